#include "tools/results/published.h"

#include <stdio.h>
#include <string.h>

#include "base/files.h"
#include "base/names.h"

static ls_status read_file(ls_published *out, ls_arena *arena, const char *path, int skip)
{
	const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
	char name[64];
	ls_file_map map;

	snprintf(name, sizeof(name), "%.*s", (int)strcspn(base, "."), base);
	LS_TRY(ls_file_map_open(&map, path));
	ls_status status = ls_published_parse(out, arena, map.data, map.bytes, name, path, skip);
	ls_file_map_close(&map);
	return status;
}

static ls_status read_built_in(ls_published *out, ls_arena *arena, const ls_published_file *file, int skip)
{
	char label[96];
	snprintf(label, sizeof(label), "published/%.64s.csv", file->name);
	return ls_published_parse(out, arena, file->text, file->bytes, file->name, label, skip);
}

static const char *name_at(size_t i)
{
	if (i == 0)
		return "published";
	return i <= ls_published_built_in_count ? ls_published_built_in[i - 1].name : NULL;
}

ls_status ls_published_read(ls_published **out, size_t *count, ls_arena *arena, const char *which, int skip)
{
	int all = !strcmp(which, "published");
	ls_published *sets = ls_arena_alloc(arena, (ls_published_built_in_count + 1) * sizeof(*sets));
	size_t n = 0;

	if (!sets)
		return LS_EMEMORY;
	for (size_t i = 0; i < ls_published_built_in_count; i++)
		if (all || !strcmp(which, ls_published_built_in[i].name))
			LS_TRY(read_built_in(&sets[n++], arena, &ls_published_built_in[i], skip));
	if (n == 0 && !strpbrk(which, "./") && !ls_path_exists(which))
		return ls_name_unknown("set of published figures", which, name_at);
	if (n == 0)
		LS_TRY(read_file(&sets[n++], arena, which, skip));
	*out = sets;
	*count = n;
	return LS_OK;
}

/* ---- figures ----------------------------------------------------------------------------------------------------- */

int ls_published_is_average(const ls_published_row *row)
{
	return !strcmp(row->hosts, "Avg");
}

double ls_published_samples_per_s(const ls_published *set, const ls_published_row *row)
{
	return row->words_per_s > 0 ? row->words_per_s / set->words_per_sample : row->samples_per_s;
}

double ls_published_gradient_bytes(const ls_published *set, const char *model)
{
	for (size_t i = 0; i < set->model_count; i++)
		if (!strcmp(set->models[i].name, model))
			return 4 * set->models[i].parameters;
	return 0;
}

static int has_word(const char *words, const char *word)
{
	size_t length = strlen(word);
	while (*words) {
		size_t span = strcspn(words, " ");
		if (length > 0 && span == length && !strncmp(words, word, span))
			return 1;
		words += span;
		words += strspn(words, " ");
	}
	return 0;
}

const ls_published *ls_published_for(const ls_published *sets, size_t count, const char *recipe, const char *table)
{
	for (size_t i = 0; i < count; i++)
		if (has_word(sets[i].recipes, recipe))
			return &sets[i];
	for (size_t i = 0; i < count; i++)
		if (sets[i].table[0] && !strcmp(sets[i].table, table))
			return &sets[i];
	return NULL;
}
