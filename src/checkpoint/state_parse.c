/*
 * state_parse.c - read state.json; every value is checked, the file's own checksum last.
 */
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "checkpoint/shape.h"
#include "checkpoint/state.h"
#include "checkpoint/state_json.h"
#include "json/document.h"

#define STATE_MAX ((size_t)16 << 20) /* settings are a page of text; more than this is not ours */

static ls_status parse_progress(ls_ckpt_state *state, const json_t *root, const char *label)
{
	const json_t *object = json_object_get(root, "progress");
	const ls_json_place place = { .label = label, .prefix = "progress." };
	if (!json_is_object(object))
		return ls_fail(LS_EFORMAT, "%s: \"progress\" is missing or not an object", label);
	LS_TRY(ls_fields_read(&place, ls_ckpt_progress_fields, LS_CKPT_PROGRESS_FIELDS, object, &state->progress));
	if (!json_object_get(object, "answers")) /* earlier versions counted samples */
		state->progress.answers = state->progress.loss_samples;
	return LS_OK;
}

/* Exactly 16 lower-case hexadecimal digits. */
static int parse_hex(const json_t *value, uint64_t *out)
{
	const char *text = json_string_value(value);
	if (!text || strlen(text) != 16 || strspn(text, "0123456789abcdef") != 16)
		return 0;
	*out = strtoull(text, NULL, 16);
	return 1;
}

static ls_status parse_files(ls_ckpt_state *state, const json_t *root, const char *label)
{
	const json_t *files = json_object_get(root, "files");
	for (int i = 0; i < LS_CKPT_FILES; i++) {
		const char *name = ls_ckpt_file_name((ls_ckpt_file)i);
		const json_t *file = json_object_get(files, name), *bytes = json_object_get(file, "bytes");
		if (!json_is_integer(bytes) || json_integer_value(bytes) < 0)
			return ls_fail(LS_EFORMAT, "%s: the size of %s is missing or not a whole number >= 0", label,
				       name);
		state->files[i].bytes = (uint64_t)json_integer_value(bytes);
		if (!parse_hex(json_object_get(file, "xxh64"), &state->files[i].xxh64))
			return ls_fail(LS_EFORMAT, "%s: the xxh64 of %s is missing or not 16 hexadecimal digits", label,
				       name);
	}
	return LS_OK;
}

static ls_status parse_fingerprint(ls_ckpt_state *state, const json_t *root, const char *label)
{
	const json_t *value = json_object_get(root, "fingerprint");
	state->has_fingerprint = value != NULL;
	if (value && !parse_hex(value, &state->fingerprint))
		return ls_fail(LS_EFORMAT, "%s: its fingerprint is not 16 hexadecimal digits", label);
	return LS_OK;
}

static ls_status parse_slots(ls_ckpt_state *state, const json_t *root, const char *label)
{
	const json_t *slots = json_object_get(root, "slots");
	if (!json_is_array(slots))
		return ls_fail(LS_EFORMAT, "%s: \"slots\" is missing or not a list", label);
	state->slots = json_array_size(slots);
	state->slot_names = ls_arena_alloc(&state->arena, (state->slots + 1) * sizeof(*state->slot_names));
	if (!state->slot_names)
		return LS_EMEMORY;
	for (size_t i = 0; i < state->slots; i++) {
		const char *name = json_string_value(json_array_get(slots, i));
		if (!name)
			return ls_fail(LS_EFORMAT, "%s: slot %zu is not text", label, i);
		state->slot_names[i] = ls_arena_copy(&state->arena, name);
		if (!state->slot_names[i])
			return LS_EMEMORY;
	}
	return LS_OK;
}

static ls_status parse_settings(ls_ckpt_state *state, const json_t *root, const char *label)
{
	const json_t *settings = json_object_get(root, "settings");
	if (!json_is_object(settings))
		return ls_fail(LS_EFORMAT, "%s: \"settings\" is missing or not an object", label);
	char *text = json_dumps(settings, JSON_COMPACT | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(17));
	if (!text)
		return ls_fail(LS_EMEMORY, "%s: no memory for its settings", label);
	state->settings = ls_arena_copy(&state->arena, text);
	free(text);
	return state->settings ? LS_OK : LS_EMEMORY;
}

/* Text that may be absent. */
static ls_status parse_text(ls_ckpt_state *state, const json_t *root, const char *key, const char **out,
			    const char *label)
{
	const json_t *value = json_object_get(root, key);
	*out = NULL;
	if (!value)
		return LS_OK;
	if (!json_is_string(value))
		return ls_fail(LS_EFORMAT, "%s: \"%s\" is not text", label, key);
	*out = ls_arena_copy(&state->arena, json_string_value(value));
	return *out ? LS_OK : LS_EMEMORY;
}

static ls_status check_hash(json_t *root, const char *label)
{
	uint64_t stored, actual;
	if (!parse_hex(json_object_get(root, "xxh64"), &stored))
		return ls_fail(LS_EFORMAT, "%s: its xxh64 is missing or not 16 hexadecimal digits", label);
	LS_TRY(ls_ckpt_state_hash(root, &actual));
	if (stored != actual)
		return ls_fail(LS_EFORMAT, "%s: damaged or edited: its xxh64 is %016" PRIx64 ", it says %016" PRIx64,
			       label, actual, stored);
	return LS_OK;
}

static ls_status parse_root(void *out, json_t *root, const char *label)
{
	ls_ckpt_state *state = out;
	const json_t *format = json_object_get(root, "format");

	state->arena = (ls_arena)LS_ARENA_INIT;
	if (!json_is_object(root) || !json_is_integer(format))
		return ls_fail(LS_EFORMAT, "%s: not the state of a checkpoint (no \"format\")", label);
	if (json_integer_value(format) > LS_CKPT_STATE_FORMAT)
		return ls_fail(LS_EUNSUPPORTED,
			       "%s: format %" PRId64 " is of a later version of Lockstep, this version reads format %d",
			       label, (int64_t)json_integer_value(format), LS_CKPT_STATE_FORMAT);
	if (json_integer_value(format) != LS_CKPT_STATE_FORMAT)
		return ls_fail(LS_EFORMAT, "%s: format %" PRId64 ", this version reads format %d", label,
			       (int64_t)json_integer_value(format), LS_CKPT_STATE_FORMAT);
	LS_TRY(parse_progress(state, root, label));
	LS_TRY(parse_fingerprint(state, root, label));
	LS_TRY(parse_files(state, root, label));
	LS_TRY(parse_slots(state, root, label));
	LS_TRY(parse_settings(state, root, label));
	LS_TRY(parse_text(state, root, "isa", &state->isa, label));
	LS_TRY(parse_text(state, root, "kernels", &state->kernels, label));
	return check_hash(root, label);
}

LS_JSON_DOCUMENT(ls_ckpt_state, STATE_MAX, parse_root)

void ls_ckpt_state_release(ls_ckpt_state *state)
{
	ls_arena_release(&state->arena);
}
