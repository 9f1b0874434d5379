#include "data/readers/table_survey.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/log.h"
#include "base/names.h"
#include "data/dataset.h"
#include "data/readers/table_values.h"
#include "data/task.h"

/* ---- a column ---------------------------------------------------------------------------------------------------- */

enum { WORDS_RARE = 10 }; /* at most one value in ten */

typedef enum use { UNUSED, INPUT, TARGET, TEXT } use;

typedef struct column {
	use use;
	uint64_t present, missing;
	int has_text;       /* a value is no number */
	int has_points;     /* a number has a decimal point */
	uint64_t words;     /* values that are no numbers with a decimal comma, either */
	uint64_t word_line; /* the first of them */
	char word[32];
	char comma[32]; /* the first number with a decimal comma; "": there is none */
	uint64_t comma_line;
	int has_fractions;  /* a number is not whole */
	int is_01;          /* all numbers are 0 or 1 */
	double mean, sum_2; /* of numbers: Welford's */
	ls_table_values values;
} column;

typedef struct survey {
	const ls_dataset_options *options;
	ls_table_walk walk;
	column *column; /* (columns) */
	size_t columns;
	size_t *target; /* (targets) places, in the order they are named */
	size_t targets;
	uint64_t rows;
} survey;

static const char *name_of(const survey *s, size_t i, char *shown, size_t size)
{
	return ls_text_printable(shown, size, ls_table_rows_column(s->walk.rows, i));
}

static ls_status add_number(const survey *s, size_t i, const ls_table_row *row, double x)
{
	column *c = &s->column[i];
	char shown[64], field[64];

	if (!isfinite(x))
		return ls_fail(LS_EFORMAT, "%s:%" PRIu64 ": column '%s' is '%s', not a finite number", s->walk.path,
			       row->line, name_of(s, i, shown, sizeof(shown)),
			       ls_text_printable(field, sizeof(field), row->field[i]));
	double off = x - c->mean;
	c->mean += off / (double)c->present;
	c->sum_2 += off * (x - c->mean);
	c->has_fractions |= x != floor(x);
	c->is_01 &= x == 0 || x == 1;
	return LS_OK;
}

static ls_status add_field(const survey *s, size_t i, const ls_table_row *row)
{
	column *c = &s->column[i];
	double number;

	if (ls_table_is_missing(row->field[i])) {
		c->missing++;
		return LS_OK;
	}
	c->present++;
	int is_plain = ls_table_is_number(row->field[i], &number), is_comma = 0;
	if (!is_plain && (is_comma = ls_table_is_comma_number(row->field[i], &number)) && c->comma[0] == '\0') {
		ls_text_printable(c->comma, sizeof(c->comma), row->field[i]);
		c->comma_line = row->line;
	}
	c->has_points |= is_plain && strchr(row->field[i], '.') != NULL;
	if (!is_plain && !is_comma && c->words++ == 0) {
		ls_text_printable(c->word, sizeof(c->word), row->field[i]);
		c->word_line = row->line;
	}
	if (!c->has_text && (is_plain || (is_comma && row->has_decimal_commas)))
		LS_TRY(add_number(s, i, row, number));
	else
		c->has_text = 1;
	return ls_table_values_add(&c->values, row->field[i],
				   c->use == TARGET ? LS_TABLE_CLASSES_MAX : LS_TABLE_CATEGORIES_MAX);
}

/* All of a row, or nothing: what would fail is looked at first. */
static ls_status check_row(const survey *s, const ls_table_row *row)
{
	char shown[64];
	double number;

	for (size_t k = 0; k < s->targets; k++)
		if (ls_table_is_missing(row->field[s->target[k]]))
			return ls_fail(LS_EFORMAT,
				       "%s:%" PRIu64 ": column '%s' is missing, and it is what is to be predicted",
				       s->walk.path, row->line, name_of(s, s->target[k], shown, sizeof(shown)));
	for (size_t i = 0; i < s->columns; i++)
		if ((s->column[i].use == INPUT || s->column[i].use == TARGET) && !s->column[i].has_text &&
		    (ls_table_is_number(row->field[i], &number) ||
		     (row->has_decimal_commas && ls_table_is_comma_number(row->field[i], &number))) &&
		    !isfinite(number))
			return ls_fail(LS_EFORMAT, "%s:%" PRIu64 ": column '%s' is not a finite number", s->walk.path,
				       row->line, name_of(s, i, shown, sizeof(shown)));
	return LS_OK;
}

static ls_status read_rows(survey *s)
{
	ls_table_row row;
	int found = 1;

	for (;;) {
		LS_TRY(ls_table_walk_next(&s->walk, &row, &found));
		if (!found)
			return LS_OK;
		ls_status status = check_row(s, &row);
		if (status != LS_OK) {
			LS_TRY(ls_table_walk_skip(&s->walk, &row, status));
			continue;
		}
		for (size_t i = 0; i < s->columns; i++)
			if (s->column[i].use == INPUT || s->column[i].use == TARGET)
				LS_TRY(add_field(s, i, &row));
		s->rows++;
	}
}

/* A few words among numbers make texts of all of them: more often than not they are mistakes. */
static void warn_of_words(const survey *s, const column *c, const char *name)
{
	if (c->words == 0 || c->words > c->present / WORDS_RARE)
		return;
	ls_log_warning("%s:%" PRIu64 ": column '%s' is '%s', and %" PRIu64 " of its %" PRIu64
		       " values are numbers: all are taken for texts; leave the field empty where there is no number",
		       s->walk.path, c->word_line, name, c->word, c->present - c->words, c->present);
}

/* A key that the first row of JSONL does not have is no column, which users may not expect. */
static void warn_of_extra(const survey *s)
{
	ls_table_extra extra = ls_table_rows_extra(s->walk.rows);

	if (extra.rows == 0 || s->options->text_column)
		return;
	ls_log_warning("%s:%" PRIu64 ": the key '%s' is not read: columns are the keys of the first row, and %" PRIu64
		       " row%s others; give the first row all keys, null where it has no value",
		       s->walk.path, extra.line, extra.key, extra.rows, extra.rows == 1 ? " has" : "s have");
}

/* After the last row: what a column's numbers are. 1.234 beside 5,6 may be a thousand and more. */
static void judge_numbers(const survey *s)
{
	char shown[64];

	for (size_t i = 0; i < s->columns; i++) {
		column *c = &s->column[i];
		size_t most = c->use == TARGET ? LS_TABLE_CLASSES_MAX : LS_TABLE_CATEGORIES_MAX;
		c->has_text |= c->comma[0] != '\0' && c->has_points;
		if (!c->has_text && c->values.count <= most)
			ls_table_values_merge_numbers(&c->values);
		name_of(s, i, shown, sizeof(shown));
		warn_of_words(s, c, shown);
		if (c->comma[0] == '\0' || c->words > 0)
			continue;
		if (!c->has_text)
			ls_log_note("column '%s' has decimal commas: '%s' is a number", shown, c->comma);
		else
			ls_log_warning(
				"column '%s' has values such as '%s'%s: they are taken for texts, not for numbers; "
				"write decimal points%s",
				shown, c->comma, c->has_points ? " beside decimal points" : "",
				c->has_points ? "" : ", or separate the fields by semicolons");
	}
}

/* ---- which columns ----------------------------------------------------------------------------------------------- */

static void list_columns(const survey *s, char *out, size_t size)
{
	size_t used = 0;
	char shown[64];

	out[0] = '\0';
	for (size_t i = 0; i < s->columns && used + 80 < size; i++)
		used += (size_t)snprintf(out + used, size - used, "%s%s", i > 0 ? ", " : "",
					 name_of(s, i, shown, sizeof(shown)));
}

static const char *lack_of_names(const survey *s)
{
	return ls_table_rows_lack_names(s->walk.rows) ? LS_TABLE_NO_NAMES : "";
}

static ls_status add_target(survey *s, const char *name)
{
	size_t at = ls_table_rows_find(s->walk.rows, name);
	char all[512], shown[64];

	if (at == s->columns) {
		list_columns(s, all, sizeof(all));
		return ls_fail(LS_EINVALID, "%s has no column '%s' (options.target); its columns are %s%s",
			       s->walk.path, ls_text_printable(shown, sizeof(shown), name), all, lack_of_names(s));
	}
	if (s->column[at].use != INPUT)
		return ls_fail(LS_EINVALID, "options.target names column '%s' twice, or the text", name);
	s->column[at].use = TARGET;
	ls_table_rows_want(s->walk.rows, at);
	s->target[s->targets++] = at;
	return LS_OK;
}

/* A column may have commas in its name: then the whole is the name. */
static ls_status add_targets(survey *s, const char *names)
{
	char *copy = strdup(names), *rest = copy;
	ls_status status = copy ? LS_OK : ls_fail(LS_EMEMORY, "no memory for the names of targets");

	if (copy && ls_table_rows_find(s->walk.rows, names) < s->columns)
		status = add_target(s, names);
	else
		for (char *name; status == LS_OK && (name = strsep(&rest, ","));)
			status = add_target(s, name);
	free(copy);
	return status;
}

static ls_status choose_targets(survey *s)
{
	static const char *const usual[] = { "target", "label" };
	char all[512];

	if (s->options->target)
		return add_targets(s, s->options->target);
	for (size_t i = 0; i < LS_COUNT(usual); i++)
		if (ls_table_rows_find(s->walk.rows, usual[i]) < s->columns)
			return add_target(s, usual[i]);
	list_columns(s, all, sizeof(all));
	return ls_fail(LS_EINVALID,
		       "name the column of %s that is to be predicted with options.target; its columns are %s%s",
		       s->walk.path, all, lack_of_names(s));
}

static ls_status choose_columns(survey *s)
{
	const char *text = s->options->text_column;
	char all[512];

	for (size_t i = 0; i < s->columns; i++) {
		s->column[i].use = *ls_table_rows_column(s->walk.rows, i) == '\0' ? UNUSED : INPUT;
		s->column[i].is_01 = 1;
	}
	size_t at = text ? ls_table_rows_find(s->walk.rows, text) : s->columns;
	if (text && at == s->columns) {
		list_columns(s, all, sizeof(all));
		return ls_fail(LS_EINVALID,
			       "%s has no column '%s' with text; name it with options.text_column; its columns are %s",
			       s->walk.path, text, all);
	}
	if (text) {
		s->column[at].use = TEXT;
		ls_table_rows_want(s->walk.rows, at);
	}
	LS_TRY(choose_targets(s));
	for (size_t i = 0; text && i < s->columns; i++)
		s->column[i].use = s->column[i].use == INPUT ? UNUSED : s->column[i].use;
	return LS_OK;
}

/* ---- what is to be predicted ------------------------------------------------------------------------------------- */

static int all_targets_are(const survey *s, int (*is)(const column *c))
{
	for (size_t k = 0; k < s->targets; k++)
		if (!is(&s->column[s->target[k]]))
			return 0;
	return 1;
}

static int is_number(const column *c)
{
	return !c->has_text;
}

static int is_01(const column *c)
{
	return !c->has_text && c->is_01;
}

static int is_few(const column *c)
{
	return !c->has_text && !c->has_fractions && c->values.count <= LS_TABLE_FEW;
}

static ls_status given_task(const survey *s, ls_task *out)
{
	const char *task = s->options->task;
	char shown[64];

	if (ls_task_find(task, out))
		return LS_OK;
	return ls_fail(LS_EINVALID, "options.task is '%s'; it is classification, multi-label or regression",
		       ls_text_printable(shown, sizeof(shown), task));
}

static ls_status choose_task(const survey *s, ls_task *out)
{
	char shown[64];

	if (s->options->task && strcmp(s->options->task, "auto") != 0)
		return given_task(s, out);
	if (s->targets > 1) {
		*out = all_targets_are(s, is_01) ? LS_TASK_MULTI_LABEL : LS_TASK_REGRESSION;
		return LS_OK;
	}
	int are_classes = !all_targets_are(s, is_number) || all_targets_are(s, is_few);
	*out = are_classes ? LS_TASK_CLASSIFICATION : LS_TASK_REGRESSION;
	const column *c = &s->column[s->target[0]];
	if (are_classes && !c->has_text && c->values.count > 1)
		ls_log_note("'%s' has %zu different whole numbers: they are classes (options.task regression makes "
			    "them numbers)",
			    name_of(s, s->target[0], shown, sizeof(shown)), c->values.count);
	return LS_OK;
}

static double deviation_of(const column *c)
{
	double deviation = c->present > 0 ? sqrt(c->sum_2 / (double)c->present) : 0;
	return deviation > 0 && isfinite(deviation) ? deviation : 1;
}

/* Numbers beyond about 1e150 have squares that are none. */
static ls_status check_spread(const survey *s, size_t at)
{
	const column *c = &s->column[at];
	char shown[64];

	if (c->has_text || (isfinite(c->mean) && isfinite(c->sum_2)))
		return LS_OK;
	return ls_fail(LS_EFORMAT, "%s: column '%s' has numbers that are too large to take their mean and deviation",
		       s->walk.path, name_of(s, at, shown, sizeof(shown)));
}

static ls_status check_target(const survey *s, size_t at, ls_task task)
{
	const column *c = &s->column[at];
	char shown[64];
	const char *name = name_of(s, at, shown, sizeof(shown)), *path = s->walk.path;

	if (c->values.count < 2)
		return ls_fail(LS_EFORMAT,
			       "%s: column '%s' has the same value, '%s', in all %" PRIu64
			       " training rows: there is nothing to learn",
			       path, name, c->values.count > 0 ? c->values.value[0] : "", s->rows);
	if (task == LS_TASK_CLASSIFICATION && c->values.count > LS_TABLE_CLASSES_MAX)
		return ls_fail(LS_EFORMAT, "%s: column '%s' has more than %d different values, too many for classes",
			       path, name, LS_TABLE_CLASSES_MAX);
	if (task == LS_TASK_REGRESSION && c->has_text)
		return ls_fail(LS_EFORMAT, "%s:%" PRIu64 ": column '%s' is '%s', not a number, for regression", path,
			       c->words > 0 ? c->word_line : c->comma_line, name, c->words > 0 ? c->word : c->comma);
	if (task == LS_TASK_MULTI_LABEL && !is_01(c))
		return ls_fail(LS_EFORMAT, "%s: column '%s' has other values than 0 and 1, which several labels are",
			       path, name);
	return LS_OK;
}

static ls_status make_target(survey *s, size_t at, ls_table_schema *out)
{
	ls_table_column *c = NULL;
	column *from = &s->column[at];

	LS_TRY(check_target(s, at, out->task));
	if (out->task == LS_TASK_REGRESSION)
		LS_TRY(check_spread(s, at));
	LS_TRY(ls_table_schema_add(out, 1, ls_table_rows_column(s->walk.rows, at), &c));
	if (out->task == LS_TASK_CLASSIFICATION) {
		ls_table_values_give(&from->values, c);
	} else if (out->task == LS_TASK_REGRESSION) {
		c->mean = from->mean;
		c->deviation = deviation_of(from);
	}
	return LS_OK;
}

/* ---- inputs ------------------------------------------------------------------------------------------------------ */

static ls_status make_input(survey *s, size_t at, ls_table_schema *out)
{
	ls_table_column *c = NULL;
	column *from = &s->column[at];
	char shown[64];

	name_of(s, at, shown, sizeof(shown));
	if (ls_table_rows_nested(s->walk.rows, at) > 0) {
		ls_log_note("column '%s' has lists or objects (%s:%" PRIu64 "): it is left out", shown, s->walk.path,
			    ls_table_rows_nested(s->walk.rows, at));
		return LS_OK;
	}
	LS_TRY(check_spread(s, at));
	if (from->present == 0) {
		ls_log_note("column '%s' has no values in the training part: it is left out", shown);
		return LS_OK;
	}
	if (from->has_text && from->values.count > LS_TABLE_CATEGORIES_MAX) {
		ls_log_note("column '%s' has texts of more than %d different values: it is left out", shown,
			    LS_TABLE_CATEGORIES_MAX);
		return LS_OK;
	}
	LS_TRY(ls_table_schema_add(out, 0, ls_table_rows_column(s->walk.rows, at), &c));
	if (from->has_text) {
		ls_table_values_give(&from->values, c);
	} else {
		c->mean = from->mean;
		c->deviation = deviation_of(from);
	}
	if (from->missing > 0)
		ls_log_note("column '%s': %" PRIu64 " of %" PRIu64 " training rows have no value; %s", shown,
			    from->missing, s->rows,
			    from->has_text ? "they have none of its categories"
					   : "the mean of the others takes its place");
	return LS_OK;
}

static ls_status make_schema(survey *s, ls_table_schema *out)
{
	LS_TRY(choose_task(s, &out->task));
	if (out->task == LS_TASK_CLASSIFICATION && s->targets > 1)
		return ls_fail(LS_EINVALID, "options.task classification needs one target; options.target names %zu",
			       s->targets);
	for (size_t k = 0; k < s->targets; k++)
		LS_TRY(make_target(s, s->target[k], out));
	if (s->options->text_column) {
		out->text = strdup(s->options->text_column);
		return out->text ? LS_OK : ls_fail(LS_EMEMORY, "no memory for the columns of a table");
	}
	for (size_t i = 0; i < s->columns; i++)
		if (s->column[i].use == INPUT)
			LS_TRY(make_input(s, i, out));
	if (out->inputs == 0)
		return ls_fail(LS_EFORMAT, "%s: no column is left to predict '%s' from", s->walk.path,
			       out->target[0].name);
	return LS_OK;
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

static ls_status run(survey *s, ls_table_schema *out)
{
	s->columns = ls_table_rows_columns(s->walk.rows);
	s->column = calloc(s->columns, sizeof(*s->column));
	s->target = calloc(s->columns, sizeof(*s->target));
	if (!s->column || !s->target)
		return ls_fail(LS_EMEMORY, "no memory for the %zu columns of %s", s->columns, s->walk.path);
	LS_TRY(choose_columns(s));
	LS_TRY(read_rows(s));
	judge_numbers(s);
	warn_of_extra(s);
	if (s->rows == 0)
		return ls_fail(LS_EFORMAT, "%s: no rows behind the names of its columns%s", s->walk.path,
			       s->walk.is_split ? " that are for training" : "");
	return make_schema(s, out);
}

ls_status ls_table_survey(ls_table_schema *out, const ls_table_files *files, const ls_dataset_options *options)
{
	survey s = { .options = options };
	ls_table_schema schema = { 0 };

	LS_TRY(ls_table_walk_begin(&s.walk, files, LS_SPLIT_TRAIN, options->skip_bad));
	ls_status status = run(&s, &schema);
	for (size_t i = 0; s.column && i < s.columns; i++)
		ls_table_values_release(&s.column[i].values);
	free(s.column);
	free(s.target);
	ls_table_walk_end(&s.walk);
	if (status == LS_OK)
		*out = schema;
	else
		ls_table_schema_release(&schema);
	return status;
}
