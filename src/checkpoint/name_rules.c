#include "checkpoint/name_rules.h"

#include <stdio.h>
#include <string.h>

#include "base/names.h"

#define NAME_MAX_BYTES 256

/* Hugging Face's files: the output layer shares its weights with the words and is often stored a second time, norms of
 * the first conversions are TensorFlow's, and the encoder alone has no prefix. */
static const ls_ckpt_alias bert_aliases[] = {
	{ "LayerNorm.weight", "LayerNorm.gamma", NULL },
	{ "LayerNorm.bias", "LayerNorm.beta", NULL },
	{ "cls.predictions.bias", "cls.predictions.decoder.bias", NULL },
	{ "bert.embeddings.word_embeddings.weight", "cls.predictions.decoder.weight", "cls.predictions.bias" },
	{ NULL, NULL, NULL },
};
static const char *const bert_idle[] = { "embeddings.position_ids", NULL };

/* Hugging Face's GPT-2: the output layer is the words, masks are stored, and the files of OpenAI's own models have no
 * prefix. */
static const ls_ckpt_alias gpt_aliases[] = {
	{ "transformer.wte.weight", "lm_head.weight", NULL },
	{ NULL, NULL, NULL },
};
static const char *const gpt_idle[] = { ".attn.bias", ".attn.masked_bias", NULL };

static const ls_ckpt_alias no_aliases[] = { { NULL, NULL, NULL } };
static const char *const none_idle[] = { NULL };

static const ls_ckpt_name_rules all_rules[] = {
	{ "bert.embeddings.word_embeddings.weight", "bert.", bert_aliases, bert_idle },
	{ "transformer.wte.weight", "transformer.", gpt_aliases, gpt_idle },
	{ "words.weight", NULL, no_aliases, none_idle },
};

static int has_entry(const ls_ckpt_tensors *entries, const char *name)
{
	for (size_t i = 0; i < entries->count; i++)
		if (strcmp(entries->tensors[i].name, name) == 0)
			return 1;
	return 0;
}

const ls_ckpt_name_rules *ls_ckpt_name_rules_of(const ls_ckpt_tensors *entries)
{
	for (size_t i = 0; i < sizeof(all_rules) / sizeof(all_rules[0]); i++)
		if (has_entry(entries, all_rules[i].words))
			return &all_rules[i];
	return NULL;
}

int ls_ckpt_is_adapter(const char *name)
{
	return strstr(name, ".lora_") != NULL;
}

int ls_ckpt_is_head(const ls_ckpt_name_rules *rules, const char *name)
{
	return rules && rules->body &&
	       (strncmp(name, rules->body, strlen(rules->body)) != 0 || ls_ckpt_is_adapter(name));
}

int ls_ckpt_is_idle(const ls_ckpt_name_rules *rules, const char *name)
{
	for (size_t i = 0; rules && rules->idle[i]; i++)
		if (ls_text_ends_with(name, rules->idle[i]))
			return 1;
	return 0;
}

/* Under its name, or without the body's prefix. */
static const ls_st_tensor *find_bare(const ls_ckpt_name_rules *rules, const ls_st_reader *reader, const char *name)
{
	const ls_st_tensor *found = ls_st_find(reader, name);
	if (found || !rules->body || ls_ckpt_is_head(rules, name))
		return found;
	return ls_st_find(reader, name + strlen(rules->body));
}

static const ls_st_tensor *find_alias(const ls_ckpt_name_rules *rules, const ls_st_reader *reader, const char *name,
				      const ls_ckpt_alias *alias)
{
	char other[NAME_MAX_BYTES];
	size_t stem = strlen(name) - strlen(alias->name);
	if (stem + strlen(alias->other) >= sizeof(other))
		return NULL;
	memcpy(other, name, stem);
	snprintf(other + stem, sizeof(other) - stem, "%s", alias->other);
	return find_bare(rules, reader, other);
}

const ls_st_tensor *ls_ckpt_name_rules_find(const ls_ckpt_name_rules *rules, const ls_ckpt_tensors *entries,
					    const ls_st_reader *reader, const char *name, const ls_st_tensor **second)
{
	*second = NULL;
	if (!rules)
		return ls_st_find(reader, name);
	const ls_st_tensor *found = find_bare(rules, reader, name);
	for (const ls_ckpt_alias *alias = rules->aliases; alias->name; alias++) {
		if (!ls_text_ends_with(name, alias->name))
			continue;
		const ls_st_tensor *other = find_alias(rules, reader, name, alias);
		if (!found)
			found = other;
		else if (!alias->with || has_entry(entries, alias->with))
			*second = other;
	}
	return found;
}
