#include "tools/results/published.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/files.h"
#include "base/link_rate.h"
#include "base/names.h"

enum { BYTES_MAX = 1 << 20, COLUMNS_MAX = 32, DEVICES_MAX = 100000 };

/* ---- lines ------------------------------------------------------------------------------------------------------- */

/* Text that is read line by line; lines are cut in place. */
typedef struct reader {
	ls_arena *arena;
	const char *label;
	char *next; /* NULL: past the last line */
	int line;   /* of the line that was read last, from 1 */
} reader;

#define FAIL(r, ...) fail_at(r, ls_arena_format((r)->arena, __VA_ARGS__))

static ls_status fail_at(const reader *r, const char *why)
{
	return ls_fail(LS_EFORMAT, "%s:%d: %s", r->label, r->line, why ? why : "no memory");
}

static char *next_line(reader *r)
{
	char *line = r->next;
	if (!line || *line == '\0')
		return NULL;
	size_t length = strcspn(line, "\n");
	r->next = line[length] ? line + length + 1 : NULL;
	line[length] = '\0';
	if (length > 0 && line[length - 1] == '\r')
		line[length - 1] = '\0';
	r->line++;
	return line;
}

static const char *shown(const reader *r, const char *text)
{
	char printable[64];
	const char *copy = ls_arena_copy(r->arena, ls_text_printable(printable, sizeof(printable), text));
	return copy ? copy : "";
}

static ls_status read_number(const reader *r, const char *what, const char *text, double min, double max, double *out)
{
	double value;
	if (ls_parse_real(text, what, &value) != LS_OK)
		return FAIL(r, "%s is '%s', not a number", what, shown(r, text));
	if (!(value >= min && value <= max))
		return FAIL(r, "%s is %.9g, not between %.9g and %.9g", what, value, min, max);
	*out = value;
	return LS_OK;
}

/* ---- key: value -------------------------------------------------------------------------------------------------- */

/* "resnet18 11.18e6, cnn 0.42e6" */
static ls_status read_models(reader *r, char *text, ls_published *out)
{
	char *rest = NULL;
	for (char *item = strtok_r(text, ",", &rest); item; item = strtok_r(NULL, ",", &rest)) {
		char *name = item + strspn(item, " "), *space = strchr(name, ' ');
		if (!space)
			return FAIL(r, "parameters: '%s' is not a model and a number", shown(r, name));
		if (out->model_count == LS_PUBLISHED_MODELS)
			return FAIL(r, "parameters: more than %d models", LS_PUBLISHED_MODELS);
		*space = '\0';
		out->models[out->model_count].name = name;
		LS_TRY(read_number(r, "parameters", space + 1, 1, 1e15, &out->models[out->model_count].parameters));
		out->model_count++;
	}
	return LS_OK;
}

static ls_status read_key(reader *r, char *line, ls_published *out)
{
	static const char *const keys[] = { "title", "setting", "recipes", "table", "parameters", "words_per_sample" };
	const char **const texts[] = { &out->title, &out->setting, &out->recipes, &out->table };
	char *value = strstr(line, ": ");

	if (!value)
		return FAIL(r, "'%s' is not 'key: value'; an empty line ends the keys", shown(r, line));
	*value = '\0';
	value += 2;
	for (size_t i = 0; i < LS_COUNT(texts); i++)
		if (!strcmp(keys[i], line)) {
			*texts[i] = value;
			return LS_OK;
		}
	if (!strcmp(line, "parameters"))
		return read_models(r, value, out);
	if (!strcmp(line, "words_per_sample"))
		return read_number(r, line, value, 1, 1e6, &out->words_per_sample);
	const char *nearest = ls_name_nearest(line, keys, LS_COUNT(keys));
	return FAIL(r, "unknown key '%s'%s%s%s", shown(r, line), nearest ? "; did you mean '" : "",
		    nearest ? nearest : "", nearest ? "'?" : "");
}

static ls_status read_keys(reader *r, ls_published *out)
{
	for (char *line = next_line(r); line && line[0]; line = next_line(r))
		LS_TRY(read_key(r, line, out));
	return out->title[0] ? LS_OK : FAIL(r, "the key 'title' is missing above the table");
}

/* ---- the table --------------------------------------------------------------------------------------------------- */

typedef struct column {
	const char *name;
	enum { TEXT, NUMBER, REPEATS } kind;
	size_t offset;
	double min, max;
} column;

#define TEXT_COLUMN(name, member)                                                                                      \
	{                                                                                                              \
		name, TEXT, offsetof(ls_published_row, member), 0, 0                                                   \
	}
#define NUMBER_COLUMN(name, member, min, max)                                                                          \
	{                                                                                                              \
		name, NUMBER, offsetof(ls_published_row, member), min, max                                             \
	}
static const column columns[] = {
	TEXT_COLUMN("model", model),
	TEXT_COLUMN("data", data),
	TEXT_COLUMN("hosts", hosts),
	TEXT_COLUMN("devices", shape),
	TEXT_COLUMN("link", link),
	TEXT_COLUMN("note", note),
	NUMBER_COLUMN("batch_per_device", batch, 1, 1e9),
	NUMBER_COLUMN("samples_per_s", samples_per_s, 1e-9, 1e15),
	NUMBER_COLUMN("words_per_s", words_per_s, 1e-9, 1e15),
	NUMBER_COLUMN("wall_s", wall_s, 1e-9, 1e12),
	NUMBER_COLUMN("epochs", epochs, 1, 1e9),
	NUMBER_COLUMN("steps", steps, 1, 1e12),
	NUMBER_COLUMN("speedup", speedup, 1e-3, 1e9),
	NUMBER_COLUMN("epoch_s", epoch_s, 1e-9, 1e12),
	NUMBER_COLUMN("test_s", test_s, 1e-9, 1e12),
	NUMBER_COLUMN("accuracy", accuracy, 0, 1),
	{ "repeats", REPEATS, 0, 1e-9, 1e15 },
};

/* A cell of a CSV line, in quotes where it has a comma; *at is the rest of the line, NULL past the last cell. */
static ls_status next_cell(reader *r, char **at, const char **cell)
{
	char *text = *at, *end;
	if (*text == '"') {
		end = strchr(++text, '"');
		if (!end || (end[1] != ',' && end[1] != '\0'))
			return FAIL(r, "a quoted cell does not end with a quote and a comma");
		*at = end[1] ? end + 2 : NULL;
	} else {
		end = text + strcspn(text, ",");
		*at = *end ? end + 1 : NULL;
	}
	*end = '\0';
	*cell = text;
	return LS_OK;
}

static ls_status find_column(const reader *r, const char *name, const column **out)
{
	const char *names[LS_COUNT(columns)];
	for (size_t i = 0; i < LS_COUNT(columns); i++) {
		names[i] = columns[i].name;
		if (!strcmp(name, columns[i].name)) {
			*out = &columns[i];
			return LS_OK;
		}
	}
	const char *nearest = ls_name_nearest(name, names, LS_COUNT(names));
	return FAIL(r, "unknown column '%s'%s%s%s", shown(r, name), nearest ? "; did you mean '" : "",
		    nearest ? nearest : "", nearest ? "'?" : "");
}

static ls_status read_header(reader *r, const column **used, size_t *count)
{
	char *at = next_line(r);
	if (!at)
		return FAIL(r, "the table is missing: a header line and rows behind an empty line");
	for (*count = 0; at; (*count)++) {
		const char *name;
		LS_TRY(next_cell(r, &at, &name));
		if (*count == COLUMNS_MAX)
			return FAIL(r, "more than %d columns", COLUMNS_MAX);
		LS_TRY(find_column(r, name, &used[*count]));
		for (size_t i = 0; i < *count; i++)
			if (used[i] == used[*count])
				return FAIL(r, "column '%s' occurs twice", name);
	}
	return LS_OK;
}

static ls_status read_cell(reader *r, const column *c, const char *cell, ls_published_row *row)
{
	char *member = (char *)row + c->offset, *rest = NULL;
	size_t count = 0;

	if (cell[0] == '\0')
		return LS_OK;
	if (c->kind == TEXT) {
		*(const char **)member = cell;
		return LS_OK;
	}
	if (c->kind == NUMBER)
		return read_number(r, c->name, cell, c->min, c->max, (double *)member);
	for (char *one = strtok_r((char *)cell, " ", &rest); one; one = strtok_r(NULL, " ", &rest)) {
		if (count == LS_PUBLISHED_REPEATS)
			return FAIL(r, "repeats has more than %d numbers", LS_PUBLISHED_REPEATS);
		LS_TRY(read_number(r, c->name, one, c->min, c->max, &row->repeats[count++]));
	}
	return LS_OK;
}

/* "8+8": two nodes, 16 devices. */
static ls_status count_devices(const reader *r, ls_published_row *row)
{
	const char *at = row->shape;
	for (;;) {
		char *end;
		long devices = strtol(at, &end, 10);
		if (*at < '1' || *at > '9' || devices > DEVICES_MAX - row->devices || (*end != '+' && *end != '\0'))
			return FAIL(r, "devices is '%s', not the devices of each node, as in 8+8",
				    shown(r, row->shape));
		row->devices += (int)devices;
		row->nodes++;
		if (*end == '\0')
			return LS_OK;
		at = end + 1;
	}
}

static ls_status read_row(reader *r, char *at, const column *const *used, size_t count, ls_published_row *row)
{
	size_t cells = 0;

	*row = (ls_published_row){ .model = "", .data = "", .hosts = "", .shape = "", .link = "", .note = "" };
	for (; at && cells < count; cells++) {
		const char *cell;
		LS_TRY(next_cell(r, &at, &cell));
		LS_TRY(read_cell(r, used[cells], cell, row));
	}
	if (at || cells < count)
		return FAIL(r, "%s cells than the %zu columns of the header", at ? "more" : "fewer", count);
	if (row->model[0] == '\0' || !(row->batch > 0))
		return FAIL(r, "%s is missing", row->model[0] ? "batch_per_device" : "model");
	if ((row->samples_per_s > 0) + (row->words_per_s > 0) + (row->wall_s > 0) != 1)
		return FAIL(r, "a row needs one of samples_per_s, words_per_s and wall_s");
	if (row->link[0] && !(ls_link_rate(row->link) > 0))
		return FAIL(r, "link is '%s', not a rate as 1gbit", shown(r, row->link));
	return count_devices(r, row);
}

static size_t count_lines(const char *text)
{
	size_t lines = 1;
	for (; text && *text; text++)
		lines += *text == '\n';
	return lines;
}

static ls_status read_table(reader *r, ls_published *out)
{
	const column *used[COLUMNS_MAX];
	size_t count = 0;

	LS_TRY(read_header(r, used, &count));
	out->rows = ls_arena_alloc(r->arena, count_lines(r->next) * sizeof(*out->rows));
	if (!out->rows)
		return FAIL(r, "no memory for the rows");
	for (char *line = next_line(r); line; line = next_line(r)) {
		ls_published_row *row = &out->rows[out->row_count];
		LS_TRY(read_row(r, line, used, count, row));
		if (row->words_per_s > 0 && !(out->words_per_sample > 0))
			return FAIL(r, "words_per_s needs the key 'words_per_sample' above the table");
		out->has_averages |= ls_published_is_average(row);
		out->row_count++;
	}
	return out->row_count > 0 ? LS_OK : FAIL(r, "the table has no rows");
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

ls_status ls_published_parse(ls_published *out, ls_arena *arena, const void *text, size_t bytes, const char *name,
			     const char *label)
{
	ls_published set = { .title = "", .setting = "", .recipes = "", .table = "" };

	if (bytes > BYTES_MAX)
		return ls_fail(LS_EFORMAT, "%s: %zu bytes; at most %d are read", label, bytes, BYTES_MAX);
	char *copy = ls_arena_alloc(arena, bytes + 1);
	set.name = ls_arena_copy(arena, name);
	if (!copy || !set.name)
		return LS_EMEMORY;
	if (bytes > 0)
		memcpy(copy, text, bytes);
	reader r = { .arena = arena, .label = label, .next = copy };
	if (memchr(copy, '\0', bytes))
		return ls_fail(LS_EFORMAT, "%s: has a zero byte: not a text file", label);
	LS_TRY(read_keys(&r, &set));
	LS_TRY(read_table(&r, &set));
	*out = set;
	return LS_OK;
}

static ls_status read_file(ls_published *out, ls_arena *arena, const char *path)
{
	const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
	char name[64];
	ls_file_map map;

	snprintf(name, sizeof(name), "%.*s", (int)strcspn(base, "."), base);
	LS_TRY(ls_file_map_open(&map, path));
	ls_status status = ls_published_parse(out, arena, map.data, map.bytes, name, path);
	ls_file_map_close(&map);
	return status;
}

static ls_status read_built_in(ls_published *out, ls_arena *arena, const ls_published_file *file)
{
	char label[96];
	snprintf(label, sizeof(label), "published/%.64s.csv", file->name);
	return ls_published_parse(out, arena, file->text, file->bytes, file->name, label);
}

static const char *name_at(size_t i)
{
	if (i == 0)
		return "published";
	return i <= ls_published_built_in_count ? ls_published_built_in[i - 1].name : NULL;
}

ls_status ls_published_read(ls_published **out, size_t *count, ls_arena *arena, const char *which)
{
	int all = !strcmp(which, "published");
	ls_published *sets = ls_arena_alloc(arena, (ls_published_built_in_count + 1) * sizeof(*sets));
	size_t n = 0;

	if (!sets)
		return LS_EMEMORY;
	for (size_t i = 0; i < ls_published_built_in_count; i++)
		if (all || !strcmp(which, ls_published_built_in[i].name))
			LS_TRY(read_built_in(&sets[n++], arena, &ls_published_built_in[i]));
	if (n == 0 && !strpbrk(which, "./") && !ls_path_exists(which))
		return ls_name_unknown("set of published figures", which, name_at);
	if (n == 0)
		LS_TRY(read_file(&sets[n++], arena, which));
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
