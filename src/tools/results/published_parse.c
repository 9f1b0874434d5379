/*
 * published_parse.c - the text of a file of published figures: keys, then a CSV table.
 */
#include "tools/results/published.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/link_rate.h"
#include "base/names.h"

enum { BYTES_MAX = 1 << 20, COLUMNS_MAX = 32, DEVICES_MAX = 100000, SIDE_MAX = 4096 };

/* ---- lines ------------------------------------------------------------------------------------------------------- */

/* Text that is read line by line; lines are cut in place. */
typedef struct reader {
	ls_arena *arena;
	const char *label;
	char *next; /* NULL: past the last line */
	int line;   /* of the line that was read last, from 1 */
	int skips;  /* rows that cannot be used are left out, and listed */
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

/* "3x224x224": channels, height, width */
static ls_status read_image(reader *r, const char *text, ls_published *out)
{
	int *const sides[] = { &out->channels, &out->height, &out->width };
	const char *at = text;

	for (size_t i = 0; i < LS_COUNT(sides); i++) {
		char *end;
		long side = strtol(at, &end, 10);
		if (*at < '1' || *at > '9' || side > SIDE_MAX || *end != (i + 1 < LS_COUNT(sides) ? 'x' : '\0'))
			return FAIL(r, "image is '%s', not channels, height and width as in 3x224x224", shown(r, text));
		*sides[i] = (int)side;
		at = end + 1;
	}
	return LS_OK;
}

static ls_status read_key(reader *r, char *line, ls_published *out)
{
	static const char *const keys[] = { "title",      "setting",          "recipes", "table",
					    "parameters", "words_per_sample", "image",   "classes",
					    "tokens",     "vocabulary" };
	const char **const texts[] = { &out->title, &out->setting, &out->recipes, &out->table };
	const struct {
		const char *key;
		double max, *to;
	} numbers[] = { { "words_per_sample", 1e6, &out->words_per_sample },
			{ "classes", 1e6, &out->classes },
			{ "tokens", 1e5, &out->tokens },
			{ "vocabulary", 1e7, &out->vocabulary } };
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
	if (!strcmp(line, "image"))
		return read_image(r, value, out);
	for (size_t i = 0; i < LS_COUNT(numbers); i++)
		if (!strcmp(line, numbers[i].key))
			return read_number(r, line, value, 1, numbers[i].max, numbers[i].to);
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

	*row = (ls_published_row){
		.line = r->line, .model = "", .data = "", .hosts = "", .shape = "", .link = "", .note = ""
	};
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

/* Keep the reason why the row was not read, without file and line, and go on; or fail. */
static ls_status skip_row(const reader *r, ls_status status, ls_published *out)
{
	const char *error = ls_last_error(), *place = ls_arena_format(r->arena, "%s:%d: ", r->label, r->line);

	if (!r->skips || status != LS_EFORMAT || !place || strncmp(error, place, strlen(place)) != 0)
		return status;
	ls_published_fault *fault = &out->faults[out->fault_count++];
	fault->line = r->line;
	fault->reason = ls_arena_copy(r->arena, error + strlen(place));
	return fault->reason ? LS_OK : LS_EMEMORY;
}

static ls_status read_table(reader *r, ls_published *out)
{
	const column *used[COLUMNS_MAX];
	size_t count = 0, lines = count_lines(r->next);

	LS_TRY(read_header(r, used, &count));
	out->rows = ls_arena_alloc(r->arena, lines * sizeof(*out->rows));
	out->faults = ls_arena_alloc(r->arena, lines * sizeof(*out->faults));
	if (!out->rows || !out->faults)
		return FAIL(r, "no memory for the rows");
	for (char *line = next_line(r); line; line = next_line(r)) {
		ls_published_row *row = &out->rows[out->row_count];
		ls_status status = read_row(r, line, used, count, row);
		if (status == LS_OK && row->words_per_s > 0 && !(out->words_per_sample > 0))
			status = FAIL(r, "words_per_s needs the key 'words_per_sample' above the table");
		if (status != LS_OK) {
			LS_TRY(skip_row(r, status, out));
			continue;
		}
		out->has_averages |= ls_published_is_average(row);
		out->row_count++;
	}
	return out->row_count > 0 || out->fault_count > 0 ? LS_OK : FAIL(r, "the table has no rows");
}

ls_status ls_published_parse(ls_published *out, ls_arena *arena, const void *text, size_t bytes, const char *name,
			     const char *label, int skip)
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
	reader r = { .arena = arena, .label = label, .next = copy, .skips = skip };
	if (memchr(copy, '\0', bytes))
		return ls_fail(LS_EFORMAT, "%s: has a zero byte: not a text file", label);
	LS_TRY(read_keys(&r, &set));
	LS_TRY(read_table(&r, &set));
	*out = set;
	return LS_OK;
}
