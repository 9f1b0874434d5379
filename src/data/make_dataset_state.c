/*
 * make_dataset_state.c - which part of an unfinished dataset is safe on disk; the invariants are in make_dataset.h.
 */
#include "data/make_dataset.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "base/status.h"

#define STATE "lockstep-make.partial"
#define DESCRIPTION "lockstep-data.txt"
#define FILES (2 * LS_MAKE_KINDS)

static const char *const file_names[FILES] = { "train-images-idx3-ubyte", "train-labels-idx1-ubyte",
					       "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte" };

static ls_status state_path(const ls_make_state *state, const char *name, const char *suffix, char *path, size_t size)
{
	char full[128];
	snprintf(full, sizeof(full), "%s%s", name, suffix);
	return ls_path_join(path, size, state->out, full);
}

ls_status ls_make_partial(const ls_make_state *state, int split, int kind, char *path, size_t size)
{
	return state_path(state, file_names[split * LS_MAKE_KINDS + kind], ".partial", path, size);
}

/* Whole or not at all. */
static ls_status put_text(const ls_make_state *state, const char *name, const char *text)
{
	char path[4096];
	LS_TRY(state_path(state, name, "", path, sizeof(path)));
	return ls_file_put(path, text, strlen(text));
}

ls_status ls_make_save(const ls_make_state *state)
{
	char text[1024];
	snprintf(text, sizeof(text), "%strain %" PRIu64 " %016" PRIx64 "\ntest %" PRIu64 " %016" PRIx64 "\n",
		 state->settings, state->done[0], state->sum[0], state->done[1], state->sum[1]);
	return put_text(state, STATE, text);
}

/* A file that a killed process already renamed has no .partial name any more. */
ls_status ls_make_publish(const ls_make_state *state)
{
	char partial[4096], final[4096];
	for (int i = 0; i < FILES; i++) {
		LS_TRY(state_path(state, file_names[i], ".partial", partial, sizeof(partial)));
		LS_TRY(state_path(state, file_names[i], "", final, sizeof(final)));
		if (ls_path_exists(final) && !ls_path_exists(partial))
			continue;
		LS_TRY(ls_file_rename(partial, final));
	}
	LS_TRY(ls_path_sync(state->out));
	LS_TRY(put_text(state, DESCRIPTION, state->settings));
	LS_TRY(state_path(state, STATE, "", partial, sizeof(partial)));
	unlink(partial);
	return LS_OK;
}

/* A file's text, or found = 0. */
static ls_status read_text(const ls_make_state *state, const char *name, char *text, size_t size, int *found)
{
	char path[4096];
	LS_TRY(state_path(state, name, "", path, sizeof(path)));
	FILE *file = fopen(path, "rb");
	*found = file != NULL;
	if (!file)
		return errno == ENOENT ? LS_OK : ls_fail_errno(LS_EIO, "cannot read %s", path);
	size_t bytes = fread(text, 1, size - 1, file);
	text[bytes] = 0;
	fclose(file);
	return LS_OK;
}

static ls_status settings_differ(const ls_make_state *state, const char *what, const char *found)
{
	char settings[200];
	snprintf(settings, sizeof(settings), "%.*s", (int)sizeof(settings) - 1, found);
	for (char *p = settings; *p; p++)
		*p = *p == '\n' ? ' ' : *p;
	return ls_fail(LS_EMISMATCH,
		       "%s holds %s dataset made with other settings (%s); choose another directory or "
		       "remove it",
		       state->out, what, settings);
}

/* Files without a record that we wrote them must not be touched. */
static ls_status refuse_foreign(const ls_make_state *state)
{
	char path[4096];
	for (int i = 0; i < FILES; i++) {
		LS_TRY(state_path(state, file_names[i], "", path, sizeof(path)));
		if (ls_path_exists(path))
			return ls_fail(LS_EINVALID, "%s exists already; choose another directory", path);
	}
	return LS_OK;
}

ls_status ls_make_look(ls_make_state *state, int *complete)
{
	char text[1024];
	int found;
	size_t length = strlen(state->settings);
	LS_TRY(read_text(state, DESCRIPTION, text, sizeof(text), complete));
	if (*complete)
		return strcmp(text, state->settings) == 0 ? LS_OK : settings_differ(state, "a", text);
	LS_TRY(read_text(state, STATE, text, sizeof(text), &found));
	if (!found)
		return refuse_foreign(state);
	if (strncmp(text, state->settings, length) != 0)
		return settings_differ(state, "part of a", text);
	uint64_t done[2], sum[2];
	if (sscanf(text + length, "train %" SCNu64 " %" SCNx64 " test %" SCNu64 " %" SCNx64, &done[0], &sum[0],
		   &done[1], &sum[1]) != 4 ||
	    done[0] > state->samples[0] || done[1] > state->samples[1])
		return ls_fail(LS_EFORMAT, "%s/" STATE " is damaged; remove the directory and start again", state->out);
	for (int i = 0; i < 2; i++) {
		state->done[i] = done[i];
		state->sum[i] = sum[i];
	}
	return LS_OK;
}
