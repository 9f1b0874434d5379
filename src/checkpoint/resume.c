/*
 * resume.c - find, verify and load checkpoints.
 *
 * A file is mapped once, checked against its size and xxh64, and parsed from that same map: the verified bytes are the
 * loaded bytes. Every comparison is done before the first float of the caller changes.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <xxhash.h>

#include "base/files.h"
#include "base/log.h"
#include "base/names.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/directory.h"
#include "checkpoint/shape.h"
#include "checkpoint/state.h"
#include "checkpoint/tensors.h"

/* A verified checkpoint. */
typedef struct checkpoint {
	char paths[LS_CKPT_FILES][LS_CKPT_PATH];
	ls_file_map maps[LS_CKPT_FILES];
	ls_ckpt_state state;
} checkpoint;

static ls_status check_sum(const char *path, const ls_file_map *map, const ls_ckpt_sum *sum)
{
	if (map->bytes != sum->bytes)
		return ls_fail(LS_EFORMAT, "%s has %zu bytes, %" PRIu64 " were written: it is damaged", path,
			       map->bytes, sum->bytes);
	uint64_t hash = XXH64(map->data, map->bytes, 0);
	if (hash != sum->xxh64)
		return ls_fail(LS_EFORMAT, "%s has xxh64 %016" PRIx64 ", %016" PRIx64 " was written: it is damaged",
			       path, hash, sum->xxh64);
	return LS_OK;
}

static ls_status open_file(checkpoint *c, const char *directory, ls_ckpt_file file)
{
	LS_TRY(ls_path_join(c->paths[file], LS_CKPT_PATH, directory, ls_ckpt_file_name(file)));
	LS_TRY(ls_file_map_open(&c->maps[file], c->paths[file]));
	ls_status status = check_sum(c->paths[file], &c->maps[file], &c->state.files[file]);
	if (status != LS_OK)
		return ls_file_map_end(&c->maps[file], status);
	return LS_OK;
}

static ls_status read_state(ls_ckpt_state *state, const char *directory)
{
	char path[LS_CKPT_PATH];
	LS_TRY(ls_path_join(path, sizeof(path), directory, LS_CKPT_STATE_NAME));
	return ls_ckpt_state_read(state, path);
}

static ls_status checkpoint_open(checkpoint *c, const char *directory)
{
	LS_TRY(read_state(&c->state, directory));
	ls_status status = open_file(c, directory, LS_CKPT_MODEL);
	if (status != LS_OK)
		goto release_state;
	status = open_file(c, directory, LS_CKPT_OPTIMIZER);
	if (status != LS_OK)
		goto close_model;
	return LS_OK;
close_model:
	ls_file_map_close(&c->maps[LS_CKPT_MODEL]);
release_state:
	ls_ckpt_state_release(&c->state);
	return status;
}

static void checkpoint_close(checkpoint *c)
{
	ls_file_map_close(&c->maps[LS_CKPT_OPTIMIZER]);
	ls_file_map_close(&c->maps[LS_CKPT_MODEL]);
	ls_ckpt_state_release(&c->state);
}

ls_status ls_ckpt_verify(const char *directory)
{
	checkpoint c;
	LS_TRY(checkpoint_open(&c, directory));
	checkpoint_close(&c);
	return LS_OK;
}

ls_status ls_ckpt_recognize(const char *directory)
{
	ls_ckpt_state state;
	LS_TRY(read_state(&state, directory));
	ls_ckpt_state_release(&state);
	return LS_OK;
}

/* Why checkpoints of a run cannot be used. */
typedef struct refusal {
	size_t count;
	char newest[1024]; /* message of the newest */
} refusal;

static void refuse(refusal *refused, const char *path)
{
	ls_log_warning("skipping the checkpoint %s: %s", path, ls_last_error());
	if (refused->count++ > 0)
		return;
	snprintf(refused->newest, sizeof(refused->newest), "%s", ls_last_error());
}

/* A checkpoint that cannot be read may be whole: going back to an earlier one would lose work. */
static ls_status not_readable(ls_status status, const char *path)
{
	char why[1024];
	snprintf(why, sizeof(why), "%s", ls_last_error());
	return ls_fail(
		status,
		"the checkpoint %s cannot be read: %s; nothing was changed: %s, or move the checkpoint to another "
		"place to go on from the one before it",
		path, why,
		status == LS_EUNSUPPORTED ? "use the version that wrote it" : "make it readable and try again");
}

/* The first of `list` that is whole; a damaged one gets a warning and is skipped. */
static ls_status first_whole(const ls_ckpt_list *list, const char *root, char *path, refusal *refused)
{
	for (size_t i = 0; i < list->count; i++) {
		if (list->items[i].kind == LS_CKPT_TEMPORARY)
			continue;
		LS_TRY(ls_ckpt_item_path(path, root, list->items[i]));
		ls_status status = ls_ckpt_verify(path);
		if (status == LS_OK || status == LS_EMEMORY)
			return status;
		if (status == LS_EUNSUPPORTED || status == LS_EIO)
			return not_readable(status, path);
		refuse(refused, path);
	}
	return LS_ENOTFOUND;
}

ls_status ls_ckpt_newest(const char *run, char *out, size_t size)
{
	char root[LS_CKPT_PATH], path[LS_CKPT_PATH];
	ls_ckpt_list list;
	refusal refused = { 0 };
	LS_TRY(ls_ckpt_root(root, run));
	LS_TRY(ls_ckpt_list_read(&list, root));
	ls_status status = first_whole(&list, root, path, &refused);
	free(list.items);
	if (status == LS_ENOTFOUND && refused.count)
		return ls_fail(LS_EFORMAT,
			       "no checkpoint in %s can be used (%zu found), the newest because: %s; nothing was "
			       "changed: mend it, or remove %s to start over",
			       root, refused.count, refused.newest, root);
	if (status == LS_ENOTFOUND)
		return ls_fail(LS_ENOTFOUND, "there is no checkpoint in %s", root);
	LS_TRY(status);
	if ((size_t)snprintf(out, size, "%s", path) >= size)
		return ls_fail(LS_EINVALID, "the path %s is too long", path);
	return LS_OK;
}

ls_status ls_ckpt_present(const char *run, int *out)
{
	char root[LS_CKPT_PATH];
	ls_ckpt_list list;
	LS_TRY(ls_ckpt_root(root, run));
	LS_TRY(ls_ckpt_list_read(&list, root));
	*out = 0;
	for (size_t i = 0; i < list.count; i++)
		*out |= list.items[i].kind != LS_CKPT_TEMPORARY;
	free(list.items);
	return LS_OK;
}

static uint64_t files_bytes(const char *directory)
{
	char path[LS_CKPT_PATH];
	struct stat facts;
	uint64_t bytes = 0;
	for (int i = 0; i < LS_CKPT_FILES; i++)
		if (ls_path_join(path, sizeof(path), directory, ls_ckpt_file_name(i)) == LS_OK &&
		    stat(path, &facts) == 0)
			bytes += (uint64_t)facts.st_size;
	return bytes;
}

uint64_t ls_ckpt_newest_bytes(const char *run)
{
	char root[LS_CKPT_PATH], path[LS_CKPT_PATH];
	ls_ckpt_list list;
	uint64_t bytes = 0;
	if (ls_ckpt_root(root, run) != LS_OK || ls_ckpt_list_read(&list, root) != LS_OK)
		return 0;
	for (size_t i = 0; i < list.count && bytes == 0; i++)
		if (list.items[i].kind != LS_CKPT_TEMPORARY && ls_ckpt_item_path(path, root, list.items[i]) == LS_OK)
			bytes = files_bytes(path);
	free(list.items);
	return bytes;
}

ls_status ls_ckpt_settings(const char *directory, char **out)
{
	ls_ckpt_state state;
	LS_TRY(read_state(&state, directory));
	char *text = strdup(state.settings);
	ls_ckpt_state_release(&state);
	if (!text)
		return ls_fail(LS_EMEMORY, "no memory for the settings of %s", directory);
	*out = text;
	return LS_OK;
}

/* "exp_avg, exp_avg_sq", or "nothing". */
static const char *slots_text(char *out, size_t size, size_t count, const char *const *names)
{
	size_t at = (size_t)snprintf(out, size, "%s", count ? "" : "nothing");
	for (size_t i = 0; i < count && at < size; i++)
		at += (size_t)snprintf(out + at, size - at, "%s%s", i ? ", " : "", names[i]);
	return ls_text_printable(out, size, out);
}

static ls_status check_slots(const char *directory, const ls_ckpt_state *state, const ls_ckpt_content *content)
{
	char has[256], needs[256];
	size_t wanted = (size_t)content->slots;
	int same = state->slots == wanted;
	for (size_t i = 0; same && i < wanted; i++)
		same = strcmp(state->slot_names[i], content->slot_names[i]) == 0;
	if (same)
		return LS_OK;
	return ls_fail(LS_EMISMATCH,
		       "%s was written by another optimizer: it stores %s for each parameter, this run's stores %s; "
		       "resume with the optimizer the run was started with",
		       directory, slots_text(has, sizeof(has), state->slots, state->slot_names),
		       slots_text(needs, sizeof(needs), wanted, content->slot_names));
}

/* Both files are compared before either is imported. */
static ls_status import_both(const checkpoint *c, ls_ckpt_tensors *model, ls_ckpt_tensors *optimizer)
{
	ls_st_reader *readers[LS_CKPT_FILES] = { NULL };
	ls_ckpt_tensors *entries[LS_CKPT_FILES] = { [LS_CKPT_MODEL] = model, [LS_CKPT_OPTIMIZER] = optimizer };
	ls_status status = LS_OK;
	for (int i = 0; i < LS_CKPT_FILES && status == LS_OK; i++) {
		status = ls_st_open_bytes(&readers[i], c->maps[i].data, c->maps[i].bytes, c->paths[i]);
		if (status == LS_OK)
			status = ls_ckpt_tensors_match(entries[i], readers[i], NULL, c->paths[i]);
		if (status == LS_OK)
			status = ls_ckpt_tensors_finite(entries[i], c->paths[i]);
	}
	for (int i = 0; i < LS_CKPT_FILES && status == LS_OK; i++)
		status = ls_ckpt_tensors_import(entries[i]);
	for (int i = 0; i < LS_CKPT_FILES && status == LS_OK; i++)
		status = ls_file_map_check(&c->maps[i]);
	for (int i = 0; i < LS_CKPT_FILES; i++)
		ls_st_close(readers[i]);
	return status;
}

static ls_status load_stores(const checkpoint *c, ls_ckpt_content *content)
{
	ls_ckpt_tensors model, optimizer;
	LS_TRY(ls_ckpt_tensors_model(&model, content->table, content->params, content->buffers, 0));
	ls_status status = ls_ckpt_tensors_optimizer(&optimizer, content);
	if (status != LS_OK)
		goto release_model;
	status = import_both(c, &model, &optimizer);
	ls_ckpt_tensors_release(&optimizer);
release_model:
	ls_ckpt_tensors_release(&model);
	return status;
}

/* The checksums prove that the files are as written; the fingerprint proves that the loaded parameters are the trained
 * ones. */
static ls_status check_fingerprint(const char *directory, const ls_ckpt_state *state, ls_ckpt_content *content)
{
	LS_TRY(ls_params_fingerprint(content->table, content->params, content->buffers, &content->fingerprint));
	if (!state->has_fingerprint || state->fingerprint == content->fingerprint)
		return LS_OK;
	return ls_fail(LS_EFORMAT,
		       "the parameters read from %s have the fingerprint %016" PRIx64 ", those saved had %016" PRIx64,
		       directory, content->fingerprint, state->fingerprint);
}

ls_status ls_ckpt_load(const char *directory, ls_ckpt_content *content)
{
	checkpoint c;
	LS_TRY(checkpoint_open(&c, directory));
	ls_status status = check_slots(directory, &c.state, content);
	if (status == LS_OK)
		status = load_stores(&c, content);
	if (status == LS_OK)
		status = check_fingerprint(directory, &c.state, content);
	if (status == LS_OK)
		content->progress = c.state.progress;
	checkpoint_close(&c);
	return status;
}

ls_status ls_ckpt_load_weights(const char *file, const ls_param_table *table, const ls_ckpt_import *how, float *params,
			       float *buffers, int64_t *batches_tracked)
{
	ls_ckpt_tensors entries;
	ls_st_reader *reader;
	LS_TRY(ls_st_open(&reader, file));
	ls_status status = ls_ckpt_tensors_model(&entries, table, params, buffers, 0);
	if (status != LS_OK)
		goto close_reader;
	status = ls_ckpt_tensors_match(&entries, reader, how, file);
	if (status == LS_OK)
		status = ls_ckpt_tensors_finite(&entries, file);
	if (status == LS_OK)
		status = ls_ckpt_tensors_import(&entries);
	if (status == LS_OK)
		status = ls_st_check(reader);
	if (status == LS_OK && batches_tracked)
		*batches_tracked = entries.counter;
	ls_ckpt_tensors_release(&entries);
close_reader:
	ls_st_close(reader);
	return status;
}
