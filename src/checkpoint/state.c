/*
 * state.c - the checksum and the writer of state.json.
 *
 * The last key, "xxh64", covers the others: the hash of their canonical text (compact, keys sorted, 17 digits). So a
 * flipped digit in a loss or a counter is found like damage in a tensor file is.
 */
#include <float.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/files.h"
#include "checkpoint/state.h"
#include "checkpoint/state_json.h"

const char *ls_ckpt_file_name(ls_ckpt_file file)
{
	return file == LS_CKPT_MODEL ? "model.safetensors" : "optimizer.safetensors";
}

#define COUNTER(member) LS_FIELD_WHOLE_OF(ls_ckpt_progress, member, 0, 0x1p63)
/* not in checkpoints of earlier versions */
#define LATER_COUNTER(member) LS_FIELD_WHOLE_IF_OF(ls_ckpt_progress, member, 0, 0x1p63)
#define LATER_REAL(member) LS_FIELD_REAL_IF_OF(ls_ckpt_progress, member, -DBL_MAX, DBL_MAX)
const ls_field ls_ckpt_progress_fields[LS_CKPT_PROGRESS_FIELDS] = {
	LS_FIELD_REAL_OF(ls_ckpt_progress, loss_sum, -DBL_MAX, DBL_MAX),
	COUNTER(step),
	COUNTER(epoch),
	COUNTER(epoch_step),
	COUNTER(loss_samples),
	COUNTER(correct),
	COUNTER(batches_tracked),
	LATER_COUNTER(answers),
	LATER_COUNTER(eval_step),
	LATER_COUNTER(best_step),
	LATER_REAL(best),
	LATER_COUNTER(stale),
	LATER_COUNTER(has_reference),
	LATER_REAL(reference),
};

ls_status ls_ckpt_state_hash(json_t *root, uint64_t *out)
{
	json_t *rest = json_copy(root);
	json_object_del(rest, "xxh64");
	char *text = json_dumps(rest, JSON_COMPACT | JSON_SORT_KEYS | JSON_REAL_PRECISION(17));
	json_decref(rest);
	if (!text)
		return ls_fail(LS_EMEMORY, "no memory to check " LS_CKPT_STATE_NAME);
	*out = XXH64(text, strlen(text), 0);
	free(text);
	return LS_OK;
}

static ls_status parse_settings(const char *text, json_t **out)
{
	json_error_t error;
	json_t *settings = json_loads(text ? text : "{}", JSON_REJECT_DUPLICATES, &error);
	if (!settings)
		return ls_fail(LS_EINVALID, "the run's settings are not JSON: %s", error.text);
	if (!json_is_object(settings)) {
		json_decref(settings);
		return ls_fail(LS_EINVALID, "the run's settings are not a JSON object");
	}
	*out = settings;
	return LS_OK;
}

ls_status ls_ckpt_state_check(const ls_ckpt_content *content)
{
	const ls_ckpt_progress *progress = &content->progress;
	if (!isfinite(progress->loss_sum))
		return ls_fail(LS_ENUMERIC,
			       "the loss at step %" PRIu64 " is %f: not saved, the last good checkpoint is kept",
			       progress->step, progress->loss_sum);
	for (int i = 0; i < LS_CKPT_PROGRESS_FIELDS; i++) {
		const ls_field *field = &ls_ckpt_progress_fields[i];
		uint64_t value;
		if (field->kind != LS_FIELD_WHOLE && field->kind != LS_FIELD_WHOLE_IF)
			continue;
		memcpy(&value, (const char *)progress + field->offset, sizeof(value));
		if (value > INT64_MAX)
			return ls_fail(LS_EINVALID, "progress.%s = %" PRIu64 " cannot be stored", field->name, value);
	}
	json_t *settings;
	LS_TRY(parse_settings(content->settings, &settings));
	json_decref(settings);
	return LS_OK;
}

static json_t *progress_json(const ls_ckpt_progress *progress)
{
	json_t *object = json_object();
	if (ls_fields_write(ls_ckpt_progress_fields, LS_CKPT_PROGRESS_FIELDS, progress, object) == 0)
		return object;
	json_decref(object);
	return NULL;
}

static json_t *hex_json(uint64_t value)
{
	return json_sprintf("%016" PRIx64, value);
}

static json_t *files_json(const ls_ckpt_sum *files)
{
	json_t *object = json_object();
	for (int i = 0; i < LS_CKPT_FILES; i++)
		json_object_set_new(object, ls_ckpt_file_name((ls_ckpt_file)i),
				    json_pack("{s:I, s:o}", "bytes", (json_int_t)files[i].bytes, "xxh64",
					      hex_json(files[i].xxh64)));
	return object;
}

static json_t *slots_json(const ls_ckpt_content *content)
{
	json_t *list = json_array();
	for (int i = 0; i < content->slots; i++)
		json_array_append_new(list, json_string(content->slot_names[i]));
	return list;
}

/* Steals `settings`. NULL when out of memory: json_pack() fails when a part is NULL. */
static json_t *state_json(const ls_ckpt_content *content, const ls_ckpt_sum *files, json_t *settings)
{
	return json_pack("{s:i, s:s, s:s*, s:o, s:o, s:o, s:o, s:s*, s:s*, s:o}", "format", LS_CKPT_STATE_FORMAT,
			 "lockstep", ls_version(), "model", content->model, "progress",
			 progress_json(&content->progress), "fingerprint", hex_json(content->fingerprint), "files",
			 files_json(files), "slots", slots_json(content), "isa", content->isa, "kernels",
			 content->kernels, "settings", settings);
}

ls_status ls_ckpt_state_write(const char *path, const ls_ckpt_content *content, const ls_ckpt_sum files[LS_CKPT_FILES])
{
	json_t *settings;
	uint64_t hash;
	char *text = NULL;
	LS_TRY(parse_settings(content->settings, &settings));
	json_t *root = state_json(content, files, settings);
	ls_status status = root ? ls_ckpt_state_hash(root, &hash) : ls_fail(LS_EMEMORY, "no memory to write %s", path);
	if (status == LS_OK) {
		json_object_set_new(root, "xxh64", hex_json(hash));
		text = json_dumps(root, JSON_INDENT(2) | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(17));
		status = text ? ls_file_put_text(path, text) : ls_fail(LS_EMEMORY, "no memory to write %s", path);
	}
	free(text);
	json_decref(root);
	return status;
}
