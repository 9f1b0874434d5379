#include "train/weights.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "train/settings.h"

/* RUN/ckpt/step-N lies two below its run. */
static ls_status find_run(ls_weights *w)
{
	char path[PATH_MAX];
	if (realpath(w->checkpoint, path) == NULL)
		return ls_fail_errno(LS_EIO, "cannot find where %s leads", w->checkpoint);
	for (int i = 0; i < 2; i++) {
		char *slash = strrchr(path, '/');
		slash[slash == path] = '\0';
	}
	if ((size_t)snprintf(w->run, sizeof(w->run), "%s", path) >= sizeof(w->run))
		return ls_fail(LS_EINVALID, "the path %s is too long", path);
	return LS_OK;
}

static ls_status find_in_run(ls_weights *w)
{
	LS_TRY(ls_ckpt_newest(w->run, w->checkpoint, sizeof(w->checkpoint)));
	return ls_path_join(w->file, sizeof(w->file), w->checkpoint, "model.safetensors");
}

ls_status ls_weights_find(ls_weights *out, const char *source)
{
	ls_weights w = { .run = "" };

	if (strlen(source) >= sizeof(w.run))
		return ls_fail(LS_EINVALID, "the path %.100s... is too long", source);
	if (!ls_path_is_directory(source)) {
		snprintf(w.file, sizeof(w.file), "%s", source);
	} else {
		snprintf(w.run, sizeof(w.run), "%s", source);
		LS_TRY(ls_path_join(w.file, sizeof(w.file), source, "model.safetensors"));
		if (ls_path_exists(w.file)) {
			snprintf(w.checkpoint, sizeof(w.checkpoint), "%s", source);
			LS_TRY(find_run(&w));
		} else {
			LS_TRY(find_in_run(&w));
		}
	}
	*out = w;
	return LS_OK;
}

static int is_noted(const ls_setting *row)
{
	return strcmp(row->group, LS_SETTINGS_TEXT) == 0 && (row->marks & LS_SETTING_BINDS) != 0;
}

static void add(ls_weights_notes *notes, const char *key, const char *value)
{
	if (notes->count >= LS_CKPT_NOTES)
		return;
	snprintf(notes->text[notes->count], sizeof(notes->text[0]), "%s", value);
	notes->pair[notes->count] = (ls_st_pair){ key, notes->text[notes->count] };
	notes->count++;
}

void ls_weights_note(ls_weights_notes *out, const ls_train_options *options, uint64_t vocabulary)
{
	static const ls_train_options defaults = LS_TRAIN_OPTIONS_INIT;
	char value[32], usual[32];
	const ls_setting *row;

	out->count = 0;
	for (size_t i = 0; (row = ls_train_setting_at(i)) != NULL; i++) {
		if (!is_noted(row))
			continue;
		ls_setting_format(row, options, value, sizeof(value));
		ls_setting_format(row, &defaults, usual, sizeof(usual));
		if (strcmp(value, usual) != 0)
			add(out, row->name, value);
	}
	snprintf(value, sizeof(value), "%016" PRIx64, vocabulary);
	if (vocabulary != 0)
		add(out, LS_CKPT_VOCABULARY, value);
}

static ls_status read_notes(const ls_st_reader *reader, const char *file, ls_train_options *options)
{
	const ls_setting *row;

	for (size_t i = 0; (row = ls_train_setting_at(i)) != NULL; i++) {
		const char *value = is_noted(row) ? ls_st_metadata(reader, row->name) : NULL;
		if (value == NULL || (row->kind == LS_SETTING_FLAG && strcmp(value, "on") != 0))
			continue;
		ls_status status = ls_setting_set(row, options, row->kind == LS_SETTING_FLAG ? NULL : value);
		if (status != LS_OK)
			return ls_fail_context(LS_EFORMAT, "the metadata of %s", file);
	}
	return LS_OK;
}

ls_status ls_weights_read_notes(const char *file, ls_train_options *options, char *model, size_t size)
{
	ls_st_reader *reader = NULL;
	LS_TRY(ls_st_open(&reader, file));
	const char *name = ls_st_metadata(reader, "model");
	snprintf(model, size, "%s", name != NULL ? name : "");
	ls_status status = read_notes(reader, file, options);
	ls_st_close(reader);
	return status;
}
