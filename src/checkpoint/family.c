#include "checkpoint/family.h"

#include <stdio.h>
#include <string.h>

#define NAME_MAX_BYTES 256

/* Hugging Face's files: the output layer shares its weights with the words and is often stored a second time, norms of
 * the first conversions are TensorFlow's, and the encoder alone has no prefix. */
static const ls_ckpt_twin bert_twins[] = {
	{ "LayerNorm.weight", "LayerNorm.gamma", NULL },
	{ "LayerNorm.bias", "LayerNorm.beta", NULL },
	{ "cls.predictions.bias", "cls.predictions.decoder.bias", NULL },
	{ "bert.embeddings.word_embeddings.weight", "cls.predictions.decoder.weight", "cls.predictions.bias" },
	{ NULL, NULL, NULL },
};
static const char *const bert_idle[] = { "embeddings.position_ids", NULL };

static const ls_ckpt_twin no_twins[] = { { NULL, NULL, NULL } };
static const char *const none_idle[] = { NULL };

static const ls_ckpt_family families[] = {
	{ "bert.embeddings.word_embeddings.weight", "bert.", bert_twins, bert_idle },
	{ "words.weight", NULL, no_twins, none_idle },
};

static int has_entry(const ls_ckpt_entries *entries, const char *name)
{
	for (size_t i = 0; i < entries->count; i++)
		if (strcmp(entries->tensors[i].name, name) == 0)
			return 1;
	return 0;
}

const ls_ckpt_family *ls_ckpt_family_of(const ls_ckpt_entries *entries)
{
	for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++)
		if (has_entry(entries, families[i].words))
			return &families[i];
	return NULL;
}

static int ends_with(const char *name, const char *ending)
{
	size_t length = strlen(name), tail = strlen(ending);
	return length >= tail && strcmp(name + length - tail, ending) == 0;
}

int ls_ckpt_is_head(const ls_ckpt_family *family, const char *name)
{
	return family && family->body && strncmp(name, family->body, strlen(family->body)) != 0;
}

int ls_ckpt_is_idle(const ls_ckpt_family *family, const char *name)
{
	for (size_t i = 0; family && family->idle[i]; i++)
		if (ends_with(name, family->idle[i]))
			return 1;
	return 0;
}

/* Under its name, or without the body's prefix. */
static const ls_st_tensor *find_bare(const ls_ckpt_family *family, const ls_st_reader *reader, const char *name)
{
	const ls_st_tensor *found = ls_st_find(reader, name);
	if (found || !family->body || ls_ckpt_is_head(family, name))
		return found;
	return ls_st_find(reader, name + strlen(family->body));
}

static const ls_st_tensor *find_twin(const ls_ckpt_family *family, const ls_st_reader *reader, const char *name,
				     const ls_ckpt_twin *twin)
{
	char other[NAME_MAX_BYTES];
	size_t stem = strlen(name) - strlen(twin->name);
	if (stem + strlen(twin->other) >= sizeof(other))
		return NULL;
	memcpy(other, name, stem);
	snprintf(other + stem, sizeof(other) - stem, "%s", twin->other);
	return find_bare(family, reader, other);
}

const ls_st_tensor *ls_ckpt_family_find(const ls_ckpt_family *family, const ls_ckpt_entries *entries,
					const ls_st_reader *reader, const char *name, const ls_st_tensor **second)
{
	*second = NULL;
	if (!family)
		return ls_st_find(reader, name);
	const ls_st_tensor *found = find_bare(family, reader, name);
	for (const ls_ckpt_twin *twin = family->twins; twin->name; twin++) {
		if (!ends_with(name, twin->name))
			continue;
		const ls_st_tensor *other = find_twin(family, reader, name, twin);
		if (!found)
			found = other;
		else if (!twin->with || has_entry(entries, twin->with))
			*second = other;
	}
	return found;
}
