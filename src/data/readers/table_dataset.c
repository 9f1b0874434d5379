/*
 * table_dataset.c - the rows of a table as a dataset: columns as numbers (table_schema.h), or one column as text.
 *
 * A sample is (features, 1, 1) numbers. Rows are kept in memory, a float per column; a category becomes its features
 * when a sample is read. The schema follows from the training part, or comes with weights.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/array.h"
#include "base/files.h"
#include "base/log.h"
#include "base/names.h"
#include "data/dataset.h"
#include "data/readers/corpus.h"
#include "data/readers/table_survey.h"
#include "data/text_input.h"

enum { FRAME = 2, TOKENS_MIN = FRAME + 1, TOKENS_DEFAULT = 128 }; /* [CLS] and [SEP] */

typedef struct table {
	ls_table_schema schema;
	char *columns;         /* the schema as text */
	const char **outputs;  /* (outputs) their names */
	float *inputs;         /* (samples, inputs) */
	int32_t *label;        /* (samples) */
	float *targets;        /* (samples, targets) where it is not classification */
	uint64_t samples, all; /* all: before some were chosen */
	size_t input_room, label_room, target_room;

	/* text */
	ls_special special;
	ls_tokens tokens; /* of all samples, one behind the other */
	size_t *start;    /* (samples + 1) */
	size_t start_room;
} table;

static void table_free(void *self)
{
	table *t = self;
	ls_table_schema_release(&t->schema);
	ls_tokens_free(&t->tokens);
	free(t->start);
	free(t->columns);
	free(t->outputs);
	free(t->inputs);
	free(t->label);
	free(t->targets);
	free(t);
}

/* ---- samples ----------------------------------------------------------------------------------------------------- */

/* The first N of a file may be of one class: N evenly spread ones. */
static uint64_t place_of(const table *t, uint64_t index)
{
	return t->samples == t->all ? index : t->all * index / t->samples;
}

static size_t width_of(const table *t)
{
	return t->schema.task == LS_TASK_CLASSIFICATION ? 0 : t->schema.targets;
}

static ls_status table_read(void *self, uint64_t index, float *image, int32_t *label)
{
	const table *t = self;
	uint64_t place = place_of(t, index);

	ls_table_expand(&t->schema, t->inputs + place * t->schema.inputs, image);
	*label = t->label[place];
	return LS_OK;
}

static ls_status table_read_label(void *self, uint64_t index, int32_t *label)
{
	const table *t = self;
	*label = t->label[place_of(t, index)];
	return LS_OK;
}

static ls_status table_read_targets(void *self, uint64_t index, float *targets)
{
	const table *t = self;

	memcpy(targets, t->targets + place_of(t, index) * width_of(t), width_of(t) * sizeof(*targets));
	return LS_OK;
}

static int length_at(const table *t, uint64_t place)
{
	return (int)(t->start[place + 1] - t->start[place]) + FRAME;
}

static ls_status table_read_text(void *self, uint64_t index, uint64_t epoch, ls_text_sample *out)
{
	const table *t = self;
	uint64_t place = place_of(t, index);

	(void)epoch;
	out->length = length_at(t, place);
	out->masked = 0;
	out->label = t->label[place];
	out->tokens[0] = t->special.cls;
	memcpy(out->tokens + 1, t->tokens.ids + t->start[place], (size_t)(out->length - FRAME) * sizeof(int32_t));
	out->tokens[out->length - 1] = t->special.sep;
	memset(out->segments, 0, (size_t)out->length * sizeof(int32_t));
	return LS_OK;
}

static ls_status table_measure_text(void *self, uint64_t index, uint64_t epoch, int *length, int *masked)
{
	const table *t = self;

	(void)epoch;
	*length = length_at(t, place_of(t, index));
	*masked = 0;
	return LS_OK;
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

typedef struct reading {
	table *table;
	const ls_dataset_options *options;
	const ls_tokenizer *tokenizer; /* NULL: no text */
	ls_table_walk walk;
	ls_table_places places;
	ls_table_met met;
	ls_tokens found;
	uint64_t cut;
	ls_corpus_counts counts;
} reading;

static ls_status read_text(reading *r, const ls_table_row *row)
{
	table *t = r->table;
	size_t most = (size_t)(r->options->tokens > 0 ? r->options->tokens : TOKENS_DEFAULT) - FRAME;

	r->found.count = 0;
	ls_status status = ls_wordpiece_encode(r->tokenizer->wordpiece, row->field[r->places.text],
					       row->bytes[r->places.text], &r->found);
	if (status == LS_EFORMAT)
		return ls_fail_context(LS_EFORMAT, "%s:%" PRIu64, r->walk.path, row->line);
	LS_TRY(status);
	r->counts.sentences++;
	r->counts.bytes += row->bytes[r->places.text];
	r->counts.tokens += r->found.count;
	for (size_t i = 0; i < r->found.count; i++)
		r->counts.unknown += r->found.ids[i] == t->special.unk;
	r->cut += r->found.count > most;
	size_t count = r->found.count < most ? r->found.count : most;
	LS_TRY(ls_array_grow(&t->start, &t->start_room, t->all + 2, sizeof(*t->start)));
	for (size_t i = 0; i < count; i++)
		LS_TRY(ls_tokens_add(&t->tokens, r->found.ids[i]));
	t->start[t->all + 1] = t->tokens.count;
	return LS_OK;
}

static ls_status read_row(reading *r, const ls_table_row *row)
{
	table *t = r->table;
	const ls_table_schema *s = &t->schema;
	size_t width = width_of(t);

	LS_TRY(ls_array_grow(&t->inputs, &t->input_room, (t->all + 1) * s->inputs, sizeof(*t->inputs)));
	LS_TRY(ls_array_grow(&t->label, &t->label_room, t->all + 1, sizeof(*t->label)));
	LS_TRY(ls_array_grow(&t->targets, &t->target_room, (t->all + 1) * width, sizeof(*t->targets)));
	LS_TRY(ls_table_read_targets(s, r->places.target, row, r->walk.path, &t->label[t->all],
				     width > 0 ? t->targets + t->all * width : NULL));
	if (s->text)
		LS_TRY(read_text(r, row));
	else
		LS_TRY(ls_table_read_inputs(s, r->places.input, row, r->walk.path, t->inputs + t->all * s->inputs,
					    &r->met));
	t->all++;
	return LS_OK;
}

static ls_status read_rows(reading *r)
{
	ls_table_row row;
	int found = 1;

	for (;;) {
		LS_TRY(ls_table_walk_next(&r->walk, &row, &found));
		if (!found)
			return LS_OK;
		ls_status status = read_row(r, &row);
		if (status != LS_OK)
			LS_TRY(ls_table_walk_skip(&r->walk, &row, status));
	}
}

static void report(const reading *r)
{
	const char *part = r->options->split == LS_SPLIT_TRAIN ? "training" : "test";

	char lines[96] = "";

	if (r->walk.bad_lines > 0)
		snprintf(lines, sizeof(lines), "; quotes make rows of several lines, %" PRIu64 " of them left out",
			 r->walk.bad_lines);
	if (r->walk.bad_here > 0)
		ls_log_warning("%s: %" PRIu64
			       " row%s could not be read and %s left out; the last begins at line %" PRIu64 "%s",
			       r->walk.path, r->walk.bad_here, ls_plural(r->walk.bad_here, "s"),
			       r->walk.bad_here == 1 ? "was" : "were", r->walk.bad_line, lines);
	if (r->met.unknown > 0)
		ls_log_note("%s: %" PRIu64
			    " value%s of the %s rows %s not in the training part, such as '%s' of column '%s': "
			    "they count as none of the categories",
			    r->walk.path, r->met.unknown, ls_plural(r->met.unknown, "s"), part,
			    r->met.unknown == 1 ? "is" : "are", r->met.example, r->met.column);
	if (r->cut > 0)
		ls_log_warning("%s: %" PRIu64 " of %" PRIu64
			       " %s texts have more than %d tokens and were cut (options.seq_len)",
			       r->walk.path, r->cut, r->table->all, part,
			       r->options->tokens > 0 ? r->options->tokens : TOKENS_DEFAULT);
	if (r->walk.is_split && r->options->split == LS_SPLIT_TEST)
		ls_log_note(
			"%s has no file of test rows: one row in ten, by a hash of its fields, is for tests (%" PRIu64
			")",
			r->walk.path, r->table->all);
}

static ls_status read_part(reading *r, const ls_table_files *files)
{
	const ls_dataset_options *o = r->options;
	table *t = r->table;

	LS_TRY(ls_table_walk_begin(&r->walk, files, o->split, o->skip_bad));
	r->walk.names_bad = 1;
	LS_TRY(ls_table_find_places(&r->places, &t->schema, r->walk.rows, r->walk.path, 1));
	LS_TRY(ls_array_grow(&t->start, &t->start_room, 1, sizeof(*t->start)));
	t->start[0] = 0;
	LS_TRY(read_rows(r));
	if (t->all == 0)
		return ls_fail(LS_EFORMAT, "%s has no %s rows%s", r->walk.path,
			       o->split == LS_SPLIT_TEST ? "test" : "training",
			       r->walk.is_split
				       ? ": one in ten, by a hash of its fields, is for tests; it needs more rows, or "
					 "a directory with train.csv and test.csv"
				       : "");
	report(r);
	t->samples = o->samples > 0 && o->samples < t->all ? o->samples : t->all;
	return LS_OK;
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

static uint64_t hash_table(const table *t)
{
	uint64_t hash = XXH64(t->columns, strlen(t->columns), t->samples);

	hash = XXH64(t->label, t->all * sizeof(*t->label), hash);
	if (width_of(t) > 0)
		hash = XXH64(t->targets, t->all * width_of(t) * sizeof(*t->targets), hash);
	if (t->schema.inputs > 0)
		hash = XXH64(t->inputs, t->all * t->schema.inputs * sizeof(*t->inputs), hash);
	return t->tokens.count > 0 ? XXH64(t->tokens.ids, t->tokens.count * sizeof(*t->tokens.ids), hash) : hash;
}

static void describe(const table *t, const ls_dataset_options *o, const ls_tokenizer *tokenizer, ls_dataset_info *info)
{
	const char *slash = strrchr(o->name, '/');
	int is_text = t->schema.text != NULL;

	*info = (ls_dataset_info){ .samples = t->samples,
				   .channels = is_text ? 0 : (int)ls_table_features(&t->schema),
				   .height = !is_text,
				   .width = !is_text,
				   .classes = ls_table_outputs(&t->schema),
				   .task = t->schema.task,
				   .targets = (int)width_of(t),
				   .text_hash = hash_table(t) };
	if (is_text) {
		info->tokens_max = o->tokens > 0 ? o->tokens : TOKENS_DEFAULT;
		info->vocabulary = (int)ls_vocab_size(tokenizer->vocab);
		info->vocabulary_hash = ls_vocab_hash(tokenizer->vocab);
	}
	snprintf(info->name, sizeof(info->name), "%.63s", slash && slash[1] ? slash + 1 : o->name);
}

static ls_status name_outputs(table *t)
{
	size_t outputs = (size_t)ls_table_outputs(&t->schema);

	t->outputs = calloc(outputs, sizeof(*t->outputs));
	if (!t->outputs)
		return ls_fail(LS_EMEMORY, "no memory for the names of %zu outputs", outputs);
	for (size_t i = 0; i < outputs; i++)
		t->outputs[i] = ls_table_output_name(&t->schema, i);
	return LS_OK;
}

static ls_status open_table(table *t, ls_dataset **out, const ls_dataset_options *o, const ls_tokenizer *tokenizer,
			    const ls_table_files *files)
{
	const ls_dataset_ops ops = { .read = table_read,
				     .read_text = table_read_text,
				     .measure_text = table_measure_text,
				     .read_targets = table_read_targets,
				     .free = table_free };
	reading r = { .table = t, .options = o, .tokenizer = tokenizer };
	ls_dataset_info info;

	LS_TRY(o->columns ? ls_table_schema_from_text(&t->schema, o->columns, o->name)
			  : ls_table_survey(&t->schema, files, o));
	if ((t->schema.text != NULL) != (o->text_column != NULL))
		return ls_fail(LS_EMISMATCH, "%s: the weights were trained on %s", o->name,
			       t->schema.text ? "a column of text" : "a table of numbers");
	LS_TRY(ls_table_schema_to_text(&t->schema, &t->columns));
	if (tokenizer)
		t->special = tokenizer->special;
	ls_status status = read_part(&r, files);
	ls_table_places_release(&r.places);
	ls_tokens_free(&r.found);
	ls_table_walk_end(&r.walk);
	LS_TRY(status);
	LS_TRY(name_outputs(t));
	describe(t, o, tokenizer, &info);
	LS_TRY(ls_dataset_new(out, &info, &ops, t));
	(*out)->class_names = t->outputs;
	(*out)->columns = t->columns;
	(*out)->read_label = table_read_label;
	(*out)->bad = r.walk.bad_here;
	if (tokenizer && o->split == LS_SPLIT_TRAIN)
		ls_corpus_warn_unknown(info.name, &r.counts);
	return LS_OK;
}

static ls_status open_tokenizer(ls_tokenizer *tokenizer, const ls_dataset_options *o)
{
	char home[4096], hint[4096];

	if (o->next_token)
		return ls_fail(LS_EMISMATCH, "%s is a table of texts with labels, for transformer and bert models",
			       o->name);
	if (o->tokens && o->tokens < TOKENS_MIN)
		return ls_fail(LS_EINVALID, "%s: samples of %d tokens (options.seq_len); they need at least %d",
			       o->name, o->tokens, TOKENS_MIN);
	LS_TRY(ls_corpus_home(home, sizeof(home), o->name));
	int is_here = strcmp(home, ".") == 0;
	snprintf(hint, sizeof(hint),
		 "`lockstep data make vocab %.1000s --text-column %.200s --out %.1000s%svocab.txt` learns one; or name "
		 "one with options.vocab",
		 o->name, o->text_column ? o->text_column : "NAME", is_here ? "" : home, is_here ? "" : "/");
	return ls_tokenizer_open(tokenizer, o, home, hint);
}

ls_status ls_table_open(ls_dataset **out, const ls_dataset_options *options)
{
	ls_tokenizer tokenizer = { 0 };
	ls_table_files files;

	LS_TRY(ls_table_files_find(&files, options->name));
	if (options->text_column)
		LS_TRY(open_tokenizer(&tokenizer, options));
	table *t = calloc(1, sizeof(*t));
	ls_status status = t ? open_table(t, out, options, options->text_column ? &tokenizer : NULL, &files)
			     : ls_fail(LS_EMEMORY, "no memory for dataset '%s'", options->name);
	if (status != LS_OK && t)
		table_free(t);
	ls_tokenizer_close(&tokenizer);
	return status;
}
