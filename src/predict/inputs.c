#include "predict/inputs.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/names.h"
#include "base/status.h"
#include "data/images/image.h"
#include "data/readers/idx.h"
#include "data/readers/npy.h"
#include "data/readers/numpy_array.h"
#include "data/readers/records.h"
#include "data/readers/tar_header.h"
#include "predict/row_inputs.h"
#include "predict/tar_inputs.h"
#include "trained/model_handle.h"

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
	uint64_t row; /* IDX, NumPy, images: read so far */
	uint64_t rows;
	ls_npy_images array;    /* NumPy */
	ls_numpy_array archive; /* .npz: what holds the array; its data is NULL where there is none */
	ls_tar_inputs tar;
	ls_records *records;
	size_t column; /* CSV of text */
	int has_column;
	int has_header;      /* CSV: the first record is one */
	uint8_t *bytes;      /* (values) IDX; NumPy: (values, 8) */
	ls_row_inputs table; /* rows are NULL: the open one is none */
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
	in->bytes = calloc(in->values + 1, sizeof(double));
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
	ls_numpy_array_close(&in->archive);
	ls_tar_inputs_close(&in->tar);
	if (in->table.rows)
		ls_row_inputs_close(&in->table, in->options->quiet);
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

/* ---- what it is -------------------------------------------------------------------------------------------------- */

static int ends_with(const char *path, const char *end)
{
	size_t length = strlen(path), tail = strlen(end);
	return length >= tail && strcasecmp(path + length - tail, end) == 0;
}

/* What numpy.savez() writes. */
static int is_zip(const uint8_t *bytes, size_t size)
{
	return size >= 4 && memcmp(bytes, "PK\3\4", 4) == 0;
}

static ls_input_kind recognise(const ls_inputs *in, const uint8_t *bytes, size_t size)
{
	if (ls_image_sniff(bytes, size) != LS_IMAGE_NONE || ls_tar_is(bytes, size))
		return LS_INPUT_IMAGE;
	if (size >= 4 && bytes[0] == 0 && bytes[1] == 0)
		return LS_INPUT_IDX;
	if (ls_npy_is(bytes, size) || is_zip(bytes, size))
		return LS_INPUT_NPY;
	if (ends_with(in->path, ".csv") || ends_with(in->path, ".csv.gz"))
		return LS_INPUT_CSV;
	return is_text(in) ? LS_INPUT_TEXT : LS_INPUT_CSV;
}

static ls_status check_kind(const ls_inputs *in)
{
	int is_image = in->kind == LS_INPUT_IMAGE || in->kind == LS_INPUT_IDX || in->kind == LS_INPUT_NPY;

	if (is_text(in) && is_image)
		return ls_fail(LS_EMISMATCH, "%s holds images, and the model takes text", name_of(in));
	if (!is_text(in) && in->kind == LS_INPUT_TEXT)
		return ls_fail(LS_EMISMATCH, "%s is to be read as text, and the model takes images", name_of(in));
	return LS_OK;
}

/* ---- IDX --------------------------------------------------------------------------------------------------------- */

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

/* ---- NumPy ------------------------------------------------------------------------------------------------------- */

static ls_status read_npy_header(ls_inputs *in, ls_npy *npy)
{
	uint8_t *header = malloc(LS_NPY_HEADER_MAX);
	size_t got = 0, more = 0, all = 0;

	if (!header)
		return ls_fail(LS_EMEMORY, "%s: no memory to read it", name_of(in));
	ls_status status = ls_stream_read_all(in->stream, header, 12, &got);
	if (status == LS_OK)
		status = ls_npy_begin(&all, header, got, name_of(in));
	if (status == LS_OK && all < got)
		status = ls_fail(LS_EFORMAT, "%s: damaged NumPy header: it is too short", name_of(in));
	if (status == LS_OK)
		status = ls_stream_read_all(in->stream, header + got, all - got, &more);
	if (status == LS_OK)
		status = ls_npy_header(npy, header, got + more, name_of(in));
	free(header);
	return status;
}

/* An array of one image, (H, W) or (H, W, C), is what people save. */
static void take_single(const ls_inputs *in, ls_npy *npy)
{
	const ls_model_facts *f = &in->facts;
	int is_plane = npy->rank == 2 && f->channels == 1;
	int is_image = npy->rank == 3 && f->channels > 1 && npy->elements == in->values;

	if (!is_plane && !is_image)
		return;
	memmove(npy->dims + 1, npy->dims, (size_t)npy->rank * sizeof(*npy->dims));
	npy->dims[0] = 1;
	npy->rank++;
}

/* An archive is read where it lies. */
static ls_status begin_npz(ls_inputs *in, ls_npy *npy)
{
	if (strcmp(in->path, "-") == 0)
		return ls_fail(LS_EFORMAT, "%s: an .npz archive is not read from a pipe; give the name of its file",
			       name_of(in));
	LS_TRY(ls_numpy_array_open_inputs(&in->archive, in->path));
	*npy = in->archive.npy;
	return LS_OK;
}

static ls_status begin_npy(ls_inputs *in, int is_archive)
{
	const ls_model_facts *f = &in->facts;
	ls_npy npy = { 0 };

	LS_TRY(is_archive ? begin_npz(in, &npy) : read_npy_header(in, &npy));
	take_single(in, &npy);
	LS_TRY(ls_npy_as_images(&in->array, &npy, name_of(in)));
	if (in->array.channels != f->channels || in->array.height != f->height || in->array.width != f->width)
		return ls_fail(LS_EMISMATCH, "%s has images of %dx%dx%d%s; the model takes %dx%dx%d", name_of(in),
			       in->array.channels, in->array.height, in->array.width,
			       in->array.is_channels_last ? " (channels last)" : "", f->channels, f->height, f->width);
	in->rows = in->array.samples;
	return LS_OK;
}

/* The next image of the file, in its own type: in a buffer, or where it lies in an archive. */
static ls_status next_npy_row(ls_inputs *in, uint64_t row, const uint8_t **bytes)
{
	size_t got = 0;

	*bytes = in->bytes;
	if (in->archive.npy.data) {
		*bytes = in->archive.npy.data + (row - 1) * in->array.row_bytes;
		return ls_file_map_check(&in->archive.map);
	}
	LS_TRY(ls_stream_read_all(in->stream, in->bytes, in->array.row_bytes, &got));
	if (got == in->array.row_bytes)
		return LS_OK;
	in->row = in->rows;
	return ls_fail(LS_EFORMAT, "%s: cut short in image %llu of %llu", name_of(in), (unsigned long long)row,
		       (unsigned long long)in->rows);
}

static ls_status next_npy(ls_inputs *in, ls_input_sample *out, int *found)
{
	size_t values = in->values;
	const uint8_t *row;

	if (in->row == in->rows)
		return LS_OK;
	out->row = ++in->row;
	LS_TRY(next_npy_row(in, out->row, &row));
	if (in->array.is_float) {
		LS_TRY(ls_npy_to_floats(&in->array, row, out->row - 1, name_of(in), out->image));
		*found = 1;
		return in->options->is_normalised ? LS_OK : ls_model_normalise_floats(in->model, out->image);
	}
	uint8_t *bytes = (uint8_t *)out->image + 3 * values; /* widened front to back: no byte is overwritten unread */
	LS_TRY(ls_npy_to_bytes(&in->array, row, out->row - 1, name_of(in), bytes));
	for (size_t i = 0; i < values; i++)
		out->image[i] = bytes[i];
	*found = 1;
	return ls_model_normalise(in->model, out->image);
}

/* ---- images ------------------------------------------------------------------------------------------------------ */

static ls_status decode(const ls_inputs *in, const uint8_t *bytes, size_t size, const char *name, float *image)
{
	ls_image_options how = LS_IMAGE_OPTIONS_INIT;

	how.name = name;
	how.resize = in->options->resize;
	return ls_model_read_image(in->model, bytes, size, &how, image);
}

static ls_status next_image(ls_inputs *in, ls_input_sample *out, int *found)
{
	uint8_t *bytes = NULL;
	size_t size = 0;

	if (in->row++ > 0)
		return LS_OK;
	LS_TRY(ls_stream_take(in->stream, &bytes, &size, FILE_BYTES_MAX));
	ls_status status = decode(in, bytes, size, name_of(in), out->image);
	free(bytes);
	out->row = 1;
	*found = status == LS_OK;
	return status;
}

static ls_status next_member(ls_inputs *in, ls_input_sample *out, int *found)
{
	ls_tar_image image;
	int more = 0;

	LS_TRY(ls_tar_inputs_next(&in->tar, &image, &more));
	if (!more)
		return LS_OK;
	out->row = in->tar.images;
	LS_TRY(decode(in, image.bytes, image.size, image.name, out->image));
	*found = 1;
	return ls_file_map_check(&in->tar.map);
}

/* ---- text -------------------------------------------------------------------------------------------------------- */

static ls_status tokenize(const ls_inputs *in, const char *text, size_t bytes, ls_input_sample *out)
{
	int cut = 0;
	ls_status status = ls_model_tokenize(in->model, text, bytes, out->text, &cut);

	out->is_cut = cut > 0;
	if (status == LS_EFORMAT)
		return ls_fail_context(LS_EFORMAT, "%s:%llu", name_of(in), (unsigned long long)out->row);
	return status;
}

/* ---- CSV --------------------------------------------------------------------------------------------------------- */

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

/* Not nothing, and no number either: "nan", "inf" and what is too large for a float are wrong numbers. */
static int is_name(const char *field)
{
	char *end;

	field += strspn(field, " \t");
	if (!*field)
		return 0;
	strtod(field, &end);
	return end[strspn(end, " \t")] != '\0';
}

/* A first line of names is left out, and said to be. */
static int is_header(ls_inputs *in, const ls_record *record)
{
	char shown[64];

	if (in->row != 1 || record->fields != in->values || !is_name(record->field[0]) ||
	    !is_name(record->field[record->fields - 1]))
		return 0;
	if (!in->options->quiet)
		ls_log_note("%s:%llu: taken for a header, it begins with '%s'", name_of(in),
			    (unsigned long long)record->line,
			    ls_text_printable(shown, sizeof(shown), record->field[0]));
	return 1;
}

/* Said once: there is nothing to go on with behind it. */
static ls_status check_any_rows(ls_inputs *in)
{
	int is_empty = in->has_header && in->row == 1;

	in->has_header = 0;
	if (!is_empty)
		return LS_OK;
	return ls_fail(LS_EFORMAT, in->table.rows ? "%s has no rows" : "%s has a header and no rows", in->path);
}

static ls_status next_record(ls_inputs *in, ls_input_sample *out, int *found)
{
	ls_record record;
	int header;

	do {
		header = 0;
		LS_TRY(ls_records_next(in->records, &record, found, &out->row));
		if (!*found)
			return check_any_rows(in);
		in->row++;
		if (in->kind == LS_INPUT_TEXT)
			return tokenize(in, record.field[0], record.bytes[0], out);
		if (is_text(in) && !in->has_column)
			LS_TRY(choose_column(in, &record, &header));
		else if (!is_text(in))
			header = is_header(in, &record);
		in->has_header |= header;
	} while (header);
	return is_text(in) ? read_text_record(in, &record, out) : read_numbers(in, &record, out->image);
}

/* ---- rows of a table --------------------------------------------------------------------------------------------- */

/* What the model was trained on; texts are also read line by line, or from another column. */
static int reads_rows(const ls_inputs *in)
{
	const ls_table_schema *s = &in->model->table;

	if (s->targets == 0 || in->options->kind == LS_INPUT_TEXT || in->options->column)
		return 0;
	return !s->text || ls_table_rows_named(in->path);
}

static ls_status next_row(ls_inputs *in, ls_input_sample *out, int *found)
{
	const char *text = NULL;
	size_t bytes = 0;

	ls_status status = ls_row_inputs_next(&in->table, out->image, &text, &bytes, &out->row, found);
	in->row += status != LS_OK || *found;
	LS_TRY(status);
	if (!*found)
		return check_any_rows(in);
	if (!text)
		return LS_OK;
	int cut = 0;
	status = ls_model_tokenize(in->model, text, bytes, out->text, &cut);
	out->is_cut = cut > 0;
	return status == LS_EFORMAT ? ls_fail_context(LS_EFORMAT, "%s:%llu", in->path, (unsigned long long)out->row)
				    : status;
}

/* ---- inputs ------------------------------------------------------------------------------------------------------ */

static ls_status begin_input(ls_inputs *in)
{
	const uint8_t *bytes;
	size_t got;

	if (reads_rows(in)) {
		in->row = 1; /* a table has a header */
		in->has_header = 1;
		return ls_row_inputs_open(&in->table, &in->model->table, in->path);
	}
	LS_TRY(ls_stream_open(&in->stream, in->path));
	LS_TRY(ls_stream_peek(in->stream, &bytes, LS_TAR_BLOCK, &got));
	in->kind = in->options->kind != LS_INPUT_ANY ? in->options->kind : recognise(in, bytes, got);
	LS_TRY(check_kind(in));
	in->row = in->rows = 0;
	in->has_column = in->has_header = 0;
	if (in->kind == LS_INPUT_IDX)
		return begin_idx(in);
	if (in->kind == LS_INPUT_NPY)
		return begin_npy(in, is_zip(bytes, got));
	if (in->kind == LS_INPUT_IMAGE)
		return ls_tar_is(bytes, got) ? ls_tar_inputs_open(&in->tar, in->path) : LS_OK;
	if (got == 0)
		return fail_at(in, 1, "nothing is in it");
	return ls_records_new(&in->records, in->stream, in->kind == LS_INPUT_CSV ? ',' : 0, RECORD_BYTES_MAX);
}

static ls_status next_of_input(ls_inputs *in, ls_input_sample *out, int *found)
{
	if (in->table.rows)
		return next_row(in, out, found);
	switch (in->kind) {
	case LS_INPUT_IDX:
		return next_idx(in, out, found);
	case LS_INPUT_NPY:
		return next_npy(in, out, found);
	case LS_INPUT_IMAGE:
		return in->tar.is_open ? next_member(in, out, found) : next_image(in, out, found);
	default:
		return next_record(in, out, found);
	}
}

/* Whether nothing more can be found in the open input: it cannot be read, or it is one image. */
static int is_lost(const ls_inputs *in, ls_status status)
{
	int is_of_record = status == LS_EFORMAT || status == LS_ENUMERIC;
	return status != LS_OK && !((in->records || in->table.rows || in->tar.is_open) && is_of_record);
}

ls_status ls_inputs_next(ls_inputs *in, ls_input_sample *sample, int *found)
{
	*found = 0;
	while (in->stream || in->table.rows || in->next < in->options->input_count) {
		ls_status status = LS_OK;
		if (!in->stream && !in->table.rows) {
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
