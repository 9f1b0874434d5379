#include "tools/results/published.h"

#include <math.h>
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

/* Numbers that were both published are the same. */
static int agree(double a, double b)
{
	return !(a > 0) || !(b > 0) || fabs(a - b) < 1e-9;
}

static int same_job(const ls_published_row *a, const ls_published_row *b)
{
	return !strcmp(a->model, b->model) && !strcmp(a->data, b->data) && !strcmp(a->link, b->link) &&
	       agree(a->batch, b->batch) && agree(a->epochs, b->epochs);
}

static ls_published_mean mean_like(const ls_published *set, const ls_published_row *like)
{
	ls_published_mean mean = { .least_s = INFINITY };

	for (size_t i = 0; i < set->row_count; i++) {
		const ls_published_row *row = &set->rows[i];
		if (ls_published_is_average(row) || !(row->wall_s > 0) || !same_job(row, like) ||
		    strcmp(row->shape, like->shape) != 0 || !agree(row->steps, like->steps))
			continue;
		mean.wall_s += row->wall_s;
		mean.least_s = fmin(mean.least_s, row->wall_s);
		mean.most_s = fmax(mean.most_s, row->wall_s);
		mean.rows++;
	}
	if (mean.rows == 0)
		return (ls_published_mean){ 0 };
	mean.wall_s /= (double)mean.rows;
	return mean;
}

ls_published_mean ls_published_mean_of(const ls_published *set, const ls_published_row *average)
{
	ls_published_mean mean = { 0 };
	ls_published_row one = *average;

	if (!ls_published_is_average(average) || !(average->wall_s > 0))
		return mean;
	mean = mean_like(set, average);
	one.shape = "1";
	one.steps = 0;
	double base = mean_like(set, &one).wall_s;
	mean.speedup = mean.rows > 0 && base > 0 ? base / mean.wall_s : 0;
	mean.differs = mean.rows > 0 &&
		       (fabs(mean.wall_s - average->wall_s) >= 1 ||
			(average->speedup > 0 && mean.speedup > 0 && fabs(mean.speedup - average->speedup) >= 0.01));
	return mean;
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
