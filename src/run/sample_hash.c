#include "run/sample_hash.h"

#include <stdlib.h>

#include "base/status.h"
#include "data/dataset.h"

enum { PROBES = 8 };

static uint64_t mix(uint64_t hash, const void *bytes, size_t count)
{
	const unsigned char *at = bytes;
	for (size_t i = 0; i < count; i++)
		hash = (hash ^ at[i]) * UINT64_C(0x100000001b3);
	return hash;
}

static ls_status hash_image(const ls_dataset *set, uint64_t index, void *room, uint64_t *hash)
{
	size_t values = ls_dataset_values(ls_dataset_describe(set));
	int32_t label = 0;

	LS_TRY(ls_dataset_sample(set, index, room, &label));
	*hash = mix(mix(*hash, room, values * sizeof(float)), &label, sizeof(label));
	return LS_OK;
}

static ls_status hash_targets(const ls_dataset *set, uint64_t index, void *room, uint64_t *hash)
{
	size_t targets = (size_t)ls_dataset_describe(set)->targets;

	if (targets == 0)
		return LS_OK;
	LS_TRY(ls_dataset_sample_targets(set, index, room));
	*hash = mix(*hash, room, targets * sizeof(float));
	return LS_OK;
}

static ls_status hash_text(const ls_dataset *set, uint64_t index, int32_t *room, uint64_t *hash)
{
	const ls_dataset_info *info = ls_dataset_describe(set);
	ls_text_sample s = { .tokens = room,
			     .segments = room + info->tokens_max,
			     .places = room + 2 * info->tokens_max,
			     .targets = room + 2 * info->tokens_max + info->masked_max };

	LS_TRY(ls_dataset_sample_text(set, index, 0, &s));
	*hash = mix(*hash, s.tokens, (size_t)s.length * sizeof(int32_t));
	*hash = mix(*hash, s.segments, (size_t)s.length * sizeof(int32_t));
	*hash = mix(*hash, s.places, (size_t)s.masked * sizeof(int32_t));
	*hash = mix(*hash, s.targets, (size_t)s.masked * sizeof(int32_t));
	*hash = mix(*hash, &s.label, sizeof(s.label));
	return LS_OK;
}

ls_status ls_sample_hash(const ls_dataset *set, uint64_t *hash)
{
	const ls_dataset_info *info = ls_dataset_describe(set);
	size_t values = ls_dataset_values(info) + 2 * ((size_t)info->tokens_max + (size_t)info->masked_max);
	values += (size_t)info->targets;
	void *room = malloc(values * sizeof(float) + 1);
	ls_status status = room ? LS_OK : ls_fail(LS_EMEMORY, "no memory for a sample");

	*hash = mix(UINT64_C(0xcbf29ce484222325), &info->vocabulary_hash, sizeof(info->vocabulary_hash));
	*hash = mix(*hash, &info->text_hash, sizeof(info->text_hash));
	*hash = mix(*hash, &info->samples, sizeof(info->samples));
	for (uint64_t i = 0; status == LS_OK && i < PROBES && info->samples > 0; i++) {
		uint64_t index = (info->samples - 1) * i / (PROBES - 1);
		status = info->tokens_max > 0 ? hash_text(set, index, room, hash) : hash_image(set, index, room, hash);
		if (status == LS_OK)
			status = hash_targets(set, index, room, hash);
	}
	free(room);
	return status;
}
