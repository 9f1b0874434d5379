#include "run/inputs.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/names.h"
#include "base/status.h"
#include "data/images/image.h"
#include "data/readers/idx.h"
#include "data/readers/records.h"

#define FILE_BYTES_MAX ((size_t)256 << 20) /* of an image */
#define RECORD_BYTES_MAX ((size_t)64 << 20)
#define COLUMN_DEFAULT "text"

struct ls_inputs {
	const ls_model *model;
	const ls_predict_options *options;
	ls_model_facts facts;
	size_t values; /* of an image */
	size_t next;   /* input to open */

	/* the open one */
	const char *path;
	ls_stream *stream; /* NULL: none is open */
	ls_input_kind kind;
	uint64_t row; /* IDX, images: read so far */
	uint64_t rows;
	ls_records *records;
	size_t column; /* CSV of text */
	int has_column;
	uint8_t *bytes; /* (values) IDX */
};

ls_status ls_inputs_new(ls_inputs **out, const ls_model *model, const ls_predict_options *options)
{
	ls_inputs *in = calloc(1, sizeof(*in));
	if (!in)
		return ls_fail(LS_EMEMORY, "no memory to read inputs");
	in->model = model;
	in->options = options;
	ls_status status = ls_model_describe(model, &in->facts);
	in->values = (size_t)in->facts.channels * (size_t)in->facts.height * (size_t)in->facts.width;
	in->bytes = calloc(in->values + 1, 1);
	if (status == LS_OK && !in->bytes)
		status = ls_fail(LS_EMEMORY, "no memory to read inputs");
	if (status == LS_OK)
		*out = in;
	else
		ls_inputs_free(in);
	return status;
}

static void close_input(ls_inputs *in)
{
	ls_records_free(in->records);
	in->records = NULL;
	ls_stream_close(in->stream);
	in->stream = NULL;
}

void ls_inputs_free(ls_inputs *in)
{
	if (!in)
		return;
	close_input(in);
	free(in->bytes);
	free(in);
}

static int is_text(const ls_inputs *in)
{
	return in->facts.tokens_max > 0;
}

static const char *name_of(const ls_inputs *in)
{
	return ls_stream_name(in->stream);
}

/* ---- what it is ---------------------------------------------------------------------------------------------------- */

static int ends_with(const char *path, const char *end)
{
	size_t length = strlen(path), tail = strlen(end);
	return length >= tail && strcasecmp(path + length - tail, end) == 0;
}

static ls_input_kind recognise(const ls_inputs *in, const uint8_t *bytes, size_t size)
{
	if (ls_image_sniff(bytes, size) != LS_IMAGE_NONE)
		return LS_INPUT_IMAGE;
	if (size >= 4 && bytes[0] == 0 && bytes[1] == 0)
		return LS_INPUT_IDX;
	if (ends_with(in->path, ".csv") || ends_with(in->path, ".csv.gz"))
		return LS_INPUT_CSV;
	return is_text(in) ? LS_INPUT_TEXT : LS_INPUT_CSV;
}

static ls_status check_kind(const ls_inputs *in)
{
	int is_image = in->kind == LS_INPUT_IMAGE || in->kind == LS_INPUT_IDX;

	if (is_text(in) && is_image)
		return ls_fail(LS_EMISMATCH, "%s holds images, and the model takes text", name_of(in));
	if (!is_text(in) && in->kind == LS_INPUT_TEXT)
		return ls_fail(LS_EMISMATCH, "%s is to be read as text, and the model takes images", name_of(in));
	return LS_OK;
}

/* ---- IDX ----------------------------------------------------------------------------------------------------------- */

static ls_status begin_idx(ls_inputs *in)
{
	const ls_model_facts *f = &in->facts;
	uint8_t header[LS_IDX_HEADER_MAX];
	size_t got = 0, more = 0, ignored;
	ls_idx idx = { 0 };

	LS_TRY(ls_stream_read_all(in->stream, header, 4, &got));
	int rank = got == 4 && header[3] <= LS_IDX_RANK_MAX ? header[3] : 0;
	LS_TRY(ls_stream_read_all(in->stream, header + 4, 4 * (size_t)rank, &more));
	LS_TRY(ls_idx_header(&idx, header, got + more, name_of(in), &ignored));
	LS_TRY(ls_idx_expect_images(&idx, name_of(in)));
	uint32_t channels = idx.rank == 4 ? idx.dims[1] : 1;
	uint32_t height = idx.dims[idx.rank - 2], width = idx.dims[idx.rank - 1];
	if (channels != (uint32_t)f->channels || height != (uint32_t)f->height || width != (uint32_t)f->width)
		return ls_fail(LS_EMISMATCH, "%s has images of %ux%ux%u; the model takes %dx%dx%d", name_of(in),
			       channels, height, width, f->channels, f->height, f->width);
	in->rows = idx.dims[0];
	return LS_OK;
}

static ls_status next_idx(ls_inputs *in, ls_input_sample *out, int *found)
{
	size_t got = 0;

	if (in->row == in->rows)
		return LS_OK;
	LS_TRY(ls_stream_read_all(in->stream, in->bytes, in->values, &got));
	out->row = ++in->row;
	if (got < in->values) {
		in->row = in->rows;
		return ls_fail(LS_EFORMAT, "%s: cut short in image %llu of %llu", name_of(in),
			       (unsigned long long)out->row, (unsigned long long)in->rows);
	}
	for (size_t i = 0; i < in->values; i++)
		out->image[i] = in->bytes[i];
	*found = 1;
	return ls_model_normalise(in->model, out->image);
}

/* ---- images -------------------------------------------------------------------------------------------------------- */

static ls_status next_image(ls_inputs *in, ls_input_sample *out, int *found)
{
	ls_image_options how = LS_IMAGE_OPTIONS_INIT;
	uint8_t *bytes = NULL;
	size_t size = 0;

	if (in->row++ > 0)
		return LS_OK;
	LS_TRY(ls_stream_take(in->stream, &bytes, &size, FILE_BYTES_MAX));
	how.name = name_of(in);
	how.resize = in->options->resize;
	ls_status status = ls_model_read_image(in->model, bytes, size, &how, out->image);
	free(bytes);
	out->row = 1;
	*found = status == LS_OK;
	return status;
}

/* ---- text ---------------------------------------------------------------------------------------------------------- */

static ls_status tokenize(const ls_inputs *in, const char *text, size_t bytes, ls_input_sample *out)
{
	int cut = 0;
	ls_status status = ls_model_tokenize(in->model, text, bytes, out->text, &cut);

	out->is_cut = cut > 0;
	if (status == LS_EFORMAT)
		return ls_fail_context(LS_EFORMAT, "%s:%llu", name_of(in), (unsigned long long)out->row);
	return status;
}

/* ---- CSV ----------------------------------------------------------------------------------------------------------- */

static ls_status fail_at(const ls_inputs *in, uint64_t row, const char *what)
{
	return ls_fail(LS_EFORMAT, "%s:%llu: %s", name_of(in), (unsigned long long)row, what);
}

static size_t column_named(const ls_record *record, const char *name)
{
	for (size_t i = 0; i < record->fields; i++)
		if (strcmp(record->field[i], name) == 0)
			return i;
	return record->fields;
}

/* By the first record, which may be a header: then *is_header is 1. */
static ls_status choose_column(ls_inputs *in, const ls_record *first, int *is_header)
{
	const char *wanted = in->options->column;
	int is_number = wanted && wanted[strspn(wanted, "0123456789")] == '\0' && *wanted;

	if (wanted && strspn(wanted, "0") == strlen(wanted))
		return ls_fail(LS_EINVALID, "options.column is '%s'; columns are counted from 1, or named", wanted);
	in->has_column = 1;
	in->column = is_number ? (size_t)strtoull(wanted, NULL, 10) - 1
			       : column_named(first, wanted ? wanted : COLUMN_DEFAULT);
	*is_header = !is_number && in->column < first->fields;
	if (is_number || *is_header)
		return LS_OK;
	if (!wanted && first->fields == 1) {
		in->column = 0;
		return LS_OK;
	}
	in->has_column = 0;
	if (wanted)
		return ls_fail(LS_EINVALID, "%s has no column '%s' in its first line (options.column)", name_of(in),
			       wanted);
	return ls_fail(LS_EINVALID, "%s has %zu columns, none of them named '%s'; choose one with options.column",
		       name_of(in), first->fields, COLUMN_DEFAULT);
}

static ls_status read_text_record(const ls_inputs *in, const ls_record *record, ls_input_sample *out)
{
	if (in->column >= record->fields)
		return ls_fail(LS_EFORMAT, "%s:%llu: %zu column%s; the text is in column %zu", name_of(in),
			       (unsigned long long)record->line, record->fields, ls_plural(record->fields, "s"),
			       in->column + 1);
	return tokenize(in, record->field[in->column], record->bytes[in->column], out);
}

/* The whole field, but for spaces around it. */
static int parse_number(const char *field, size_t bytes, float *out)
{
	const char *begin = field + strspn(field, " \t");
	size_t length = ls_decimal_span(begin);

	if (length == 0 || begin[length + strspn(begin + length, " \t")] != '\0' || strlen(field) != bytes)
		return 0;
	*out = strtof(begin, NULL);
	return isfinite(*out);
}

static ls_status read_numbers(const ls_inputs *in, const ls_record *record, float *image)
{
	const ls_model_facts *f = &in->facts;
	char shown[64];

	if (record->fields != in->values)
		return ls_fail(LS_EFORMAT, "%s:%llu: %zu value%s; an image of %dx%dx%d has %zu", name_of(in),
			       (unsigned long long)record->line, record->fields, ls_plural(record->fields, "s"),
			       f->channels, f->height, f->width, in->values);
	for (size_t i = 0; i < in->values; i++)
		if (!parse_number(record->field[i], record->bytes[i], &image[i]))
			return ls_fail(LS_EFORMAT, "%s:%llu: '%s' in column %zu is not a number", name_of(in),
				       (unsigned long long)record->line,
				       ls_text_printable(shown, sizeof(shown), record->field[i]), i + 1);
	if (in->options->is_normalised)
		return LS_OK;
	ls_status status = ls_model_normalise(in->model, image);
	if (status == LS_ENUMERIC)
		return ls_fail_context(LS_EFORMAT, "%s:%llu", name_of(in), (unsigned long long)record->line);
	return status;
}

/* A first line of names is left out. */
static int is_header(const ls_inputs *in, const ls_record *record)
{
	float ignored;
	return in->row == 1 && record->fields == in->values &&
	       !parse_number(record->field[0], record->bytes[0], &ignored) &&
	       !parse_number(record->field[record->fields - 1], record->bytes[record->fields - 1], &ignored);
}

static ls_status next_record(ls_inputs *in, ls_input_sample *out, int *found)
{
	ls_record record;
	int header;

	do {
		header = 0;
		ls_status status = ls_records_next(in->records, &record, found, &out->row);
		if (status != LS_OK || !*found)
			return status;
		in->row++;
		if (in->kind == LS_INPUT_TEXT)
			return tokenize(in, record.field[0], record.bytes[0], out);
		if (is_text(in) && !in->has_column)
			LS_TRY(choose_column(in, &record, &header));
		else if (!is_text(in))
			header = is_header(in, &record);
	} while (header);
	return is_text(in) ? read_text_record(in, &record, out) : read_numbers(in, &record, out->image);
}

/* ---- inputs -------------------------------------------------------------------------------------------------------- */

static ls_status begin_input(ls_inputs *in)
{
	const uint8_t *bytes;
	size_t got;

	LS_TRY(ls_stream_open(&in->stream, in->path));
	LS_TRY(ls_stream_peek(in->stream, &bytes, 8, &got));
	in->kind = in->options->kind != LS_INPUT_ANY ? in->options->kind : recognise(in, bytes, got);
	LS_TRY(check_kind(in));
	in->row = in->rows = 0;
	in->has_column = 0;
	if (in->kind == LS_INPUT_IDX)
		return begin_idx(in);
	if (in->kind == LS_INPUT_IMAGE)
		return LS_OK;
	if (got == 0)
		return fail_at(in, 1, "nothing is in it");
	return ls_records_new(&in->records, in->stream, in->kind == LS_INPUT_CSV, RECORD_BYTES_MAX);
}

static ls_status next_of_input(ls_inputs *in, ls_input_sample *out, int *found)
{
	switch (in->kind) {
	case LS_INPUT_IDX:
		return next_idx(in, out, found);
	case LS_INPUT_IMAGE:
		return next_image(in, out, found);
	default:
		return next_record(in, out, found);
	}
}

/* Whether nothing more can be found in the open input: it cannot be read, or it is one image. */
static int is_lost(const ls_inputs *in, ls_status status)
{
	int is_of_record = status == LS_EFORMAT || status == LS_ENUMERIC;
	return status != LS_OK && !(in->records && is_of_record);
}

ls_status ls_inputs_next(ls_inputs *in, ls_input_sample *sample, int *found)
{
	*found = 0;
	while (in->stream || in->next < in->options->input_count) {
		ls_status status = LS_OK;
		if (!in->stream) {
			in->path = in->options->inputs[in->next++];
			status = begin_input(in);
		}
		sample->input = in->path;
		sample->row = 0;
		sample->is_cut = 0;
		if (status == LS_OK)
			status = next_of_input(in, sample, found);
		if (status == LS_OK && *found)
			return LS_OK;
		if (status == LS_OK || is_lost(in, status))
			close_input(in);
		*found = 0;
		LS_TRY(status);
	}
	return LS_OK;
}
