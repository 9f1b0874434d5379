#include "data/readers/npy.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "data/readers/declared.h"

#define SIDE_MAX (1 << 20)
#define MAGIC "\x93NUMPY"
enum { MAGIC_BYTES = 6, CHANNELS_LAST_MAX = 4 };

/* ---- the dictionary ---------------------------------------------------------------------------------------------- */

/* A place in the text of the header, and where it ends. */
typedef struct cursor {
	const char *at, *end;
	const char *name;
} cursor;

static ls_status damaged(const cursor *c, const char *what)
{
	return ls_fail(LS_EFORMAT, "%s: damaged NumPy header: %s", c->name, what);
}

static void skip_spaces(cursor *c)
{
	while (c->at < c->end && (*c->at == ' ' || *c->at == '\n'))
		c->at++;
}

/* Whether `text` comes next, which is then behind. */
static int take(cursor *c, const char *text)
{
	size_t length = strlen(text);

	skip_spaces(c);
	if ((size_t)(c->end - c->at) < length || memcmp(c->at, text, length) != 0)
		return 0;
	c->at += length;
	return 1;
}

/* A text in quotes, without any inside. */
static ls_status take_text(cursor *c, char *out, size_t size)
{
	size_t used = 0;

	skip_spaces(c);
	char quote = c->at < c->end ? *c->at : '\0';
	if (quote != '\'' && quote != '"')
		return damaged(c, "a name in quotes is missing");
	for (c->at++; c->at < c->end && *c->at != quote; c->at++)
		if (used + 1 < size && isprint((unsigned char)*c->at))
			out[used++] = *c->at;
	if (c->at == c->end)
		return damaged(c, "a quote is not closed");
	c->at++;
	out[used] = '\0';
	return LS_OK;
}

static ls_status take_number(cursor *c, uint64_t *out)
{
	uint64_t value = 0;
	int digits = 0;

	skip_spaces(c);
	for (; c->at < c->end && isdigit((unsigned char)*c->at); c->at++, digits++)
		if (__builtin_mul_overflow(value, (uint64_t)10, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(*c->at - '0'), &value))
			return damaged(c, "a dimension is too large");
	if (digits == 0)
		return damaged(c, "a dimension is not a number");
	take(c, "L"); /* of Python 2 */
	*out = value;
	return LS_OK;
}

static ls_status take_shape(cursor *c, ls_npy *out)
{
	if (!take(c, "("))
		return damaged(c, "the shape is not a tuple");
	for (out->rank = 0; !take(c, ")");) {
		if (out->rank == LS_NPY_RANK_MAX)
			return ls_fail(LS_EFORMAT, "%s: an array of more than %d dimensions", c->name, LS_NPY_RANK_MAX);
		LS_TRY(take_number(c, &out->dims[out->rank++]));
		if (!take(c, ",") && (c->at == c->end || *c->at != ')'))
			return damaged(c, "the shape is not closed");
	}
	return LS_OK;
}

/* '<f4': byte order, kind, bytes. */
static ls_status take_type(cursor *c, ls_npy *out)
{
	char text[64];

	skip_spaces(c);
	if (c->at < c->end && *c->at == '[')
		return ls_fail(LS_EUNSUPPORTED, "%s: a structured array; save each of its fields as an array", c->name);
	LS_TRY(take_text(c, text, sizeof(text)));
	const char *kind = text + (text[0] == '<' || text[0] == '>' || text[0] == '|' || text[0] == '=');
	const char *order = text[0] == '>' ? "big-endian" : NULL;
	int width = kind[0] && isdigit((unsigned char)kind[1]) && !kind[2] ? kind[1] - '0' : 0;
	int is_integer = (kind[0] == 'u' || kind[0] == 'i') && (width == 1 || width == 2 || width == 4 || width == 8);
	int is_float = kind[0] == 'f' && (width == 4 || width == 8), is_truth = kind[0] == 'b' && width == 1;
	if (kind[0] == 'O')
		return ls_fail(LS_EUNSUPPORTED,
			       "%s: an array of Python objects (dtype object), which only Python can read; save one of "
			       "numbers, such as x.astype('float32')",
			       c->name);
	if (!is_integer && !is_float && !is_truth)
		return ls_fail(LS_EUNSUPPORTED,
			       "%s: elements of type '%s'; supported are integers, float32 and float64 (x.astype)",
			       c->name, text);
	if (order && width > 1)
		return ls_fail(LS_EUNSUPPORTED,
			       "%s: big-endian elements ('%s'); save x.astype('%s'), which is little-endian", c->name,
			       text, kind);
	out->kind = kind[0];
	out->width = width;
	return LS_OK;
}

static ls_status take_order(cursor *c)
{
	if (take(c, "False"))
		return LS_OK;
	if (take(c, "True"))
		return ls_fail(LS_EUNSUPPORTED,
			       "%s: elements in Fortran order; save numpy.ascontiguousarray(x), which is in C order",
			       c->name);
	return damaged(c, "the order is neither True nor False");
}

enum { HAS_TYPE = 1, HAS_ORDER = 2, HAS_SHAPE = 4, HAS_ALL = 7 };

static ls_status take_entry(cursor *c, ls_npy *out, int *seen)
{
	char key[32];

	LS_TRY(take_text(c, key, sizeof(key)));
	int what = !strcmp(key, "descr")           ? HAS_TYPE
		   : !strcmp(key, "fortran_order") ? HAS_ORDER
		   : !strcmp(key, "shape")         ? HAS_SHAPE
						   : 0;
	if (!what || (*seen & what) || !take(c, ":"))
		return damaged(c, "expected descr, fortran_order and shape, each once");
	*seen |= what;
	return what == HAS_TYPE ? take_type(c, out) : what == HAS_ORDER ? take_order(c) : take_shape(c, out);
}

static ls_status take_dictionary(cursor *c, ls_npy *out)
{
	int seen = 0;

	if (!take(c, "{"))
		return damaged(c, "it is not a dictionary");
	while (!take(c, "}")) {
		LS_TRY(take_entry(c, out, &seen));
		if (!take(c, ",") && (c->at == c->end || *c->at != '}'))
			return damaged(c, "it is not closed");
	}
	return seen == HAS_ALL ? LS_OK : damaged(c, "descr, fortran_order or shape is missing");
}

/* ---- the file ---------------------------------------------------------------------------------------------------- */

int ls_npy_is(const uint8_t *bytes, size_t size)
{
	return size >= MAGIC_BYTES && memcmp(bytes, MAGIC, MAGIC_BYTES) == 0;
}

/* Version 1 has 2 bytes for the length of the dictionary, later ones 4; where it begins. */
static size_t text_offset(const uint8_t *data)
{
	return data[6] == 1 ? 10 : 12;
}

ls_status ls_npy_begin(size_t *header_bytes, const uint8_t *data, size_t bytes, const char *name)
{
	if (!ls_npy_is(data, bytes))
		return ls_fail(LS_EFORMAT, "%s: not a NumPy array (.npy)", name);
	if (bytes < 8 || bytes < text_offset(data))
		return ls_fail(LS_EFORMAT, "%s: truncated in its header: %zu bytes", name, bytes);
	if (data[6] < 1 || data[6] > 3)
		return ls_fail(LS_EUNSUPPORTED, "%s: version %d of the NumPy format; known are 1 to 3", name, data[6]);
	size_t text = (size_t)data[8] | (size_t)data[9] << 8;
	if (data[6] > 1)
		text |= (size_t)data[10] << 16 | (size_t)data[11] << 24;
	if (text > LS_NPY_HEADER_MAX - 12)
		return ls_fail(LS_EFORMAT, "%s: a header of %zu bytes, expected at most %zu", name, text,
			       LS_NPY_HEADER_MAX - 12);
	*header_bytes = text_offset(data) + text;
	return LS_OK;
}

ls_status ls_npy_header(ls_npy *out, const uint8_t *data, size_t bytes, const char *name)
{
	ls_npy npy = { .elements = 1 };

	LS_TRY(ls_npy_begin(&npy.header_bytes, data, bytes, name));
	if (bytes < npy.header_bytes)
		return ls_fail(LS_EFORMAT, "%s: truncated in its header: %zu bytes of %zu", name, bytes,
			       npy.header_bytes);
	cursor c = { (const char *)data + text_offset(data), (const char *)data + npy.header_bytes, name };
	LS_TRY(take_dictionary(&c, &npy));
	for (int i = 0; i < npy.rank; i++)
		if (__builtin_mul_overflow(npy.elements, npy.dims[i], &npy.elements) || npy.elements > INT64_MAX / 8)
			return ls_fail(LS_EFORMAT, "%s: its header declares more elements than can exist", name);
	*out = npy;
	return LS_OK;
}

ls_status ls_npy_parse(ls_npy *out, const uint8_t *data, size_t bytes, const char *name)
{
	ls_npy npy;

	LS_TRY(ls_npy_header(&npy, data, bytes, name));
	LS_TRY(ls_declared_check(name, bytes, npy.header_bytes + npy.elements * (uint64_t)npy.width));
	npy.data = data + npy.header_bytes;
	*out = npy;
	return LS_OK;
}

/* ---- elements ---------------------------------------------------------------------------------------------------- */

/* Little-endian, whatever the processor is. */
static uint64_t load(const uint8_t *at, int width)
{
	uint64_t value = 0;
	for (int i = width; i-- > 0;)
		value = value << 8 | at[i];
	return value;
}

static int64_t integer_at(const uint8_t *at, char kind, int width)
{
	uint64_t value = load(at, width);

	if (kind == 'i' && width < 8 && value >> (8 * width - 1))
		return (int64_t)(value | UINT64_MAX << (8 * width)); /* the sign goes on */
	if (kind == 'u' && value > INT64_MAX)
		return INT64_MAX; /* more than any use has room for */
	return (int64_t)value;
}

static float float_at(const uint8_t *at, int width)
{
	uint64_t bits = load(at, width);

	if (width == 8) {
		double value;
		memcpy(&value, &bits, sizeof(value));
		return (float)value;
	}
	uint32_t half = (uint32_t)bits;
	float value;
	memcpy(&value, &half, sizeof(value));
	return value;
}

int64_t ls_npy_integer(const ls_npy *npy, uint64_t i)
{
	return integer_at(npy->data + i * (uint64_t)npy->width, npy->kind, npy->width);
}

/* ---- images ------------------------------------------------------------------------------------------------------ */

static const char *show_shape(const ls_npy *npy, char *out, size_t size)
{
	size_t used = (size_t)snprintf(out, size, "(");

	for (int i = 0; i < npy->rank && used < size; i++)
		used += (size_t)snprintf(out + used, size - used, "%s%" PRIu64, i > 0 ? ", " : "", npy->dims[i]);
	if (used < size)
		snprintf(out + used, size - used, ")");
	return out;
}

ls_status ls_npy_as_images(ls_npy_images *out, const ls_npy *npy, const char *name)
{
	const uint64_t *d = npy->dims;
	char shape[200];

	if (npy->rank != 3 && npy->rank != 4)
		return ls_fail(LS_EFORMAT,
			       "%s has shape %s; images are (N, H, W), (N, C, H, W) or (N, H, W, C): reshape it", name,
			       show_shape(npy, shape, sizeof(shape)));
	int last = npy->rank == 4 && d[3] <= CHANNELS_LAST_MAX && d[1] > CHANNELS_LAST_MAX;
	uint64_t channels = npy->rank == 3 ? 1 : last ? d[3] : d[1];
	uint64_t height = npy->rank == 3 || last ? d[1] : d[2], width = npy->rank == 3 || last ? d[2] : d[3];
	if (npy->elements == 0 || channels > SIDE_MAX || height > SIDE_MAX || width > SIDE_MAX ||
	    channels * height > SIDE_MAX || channels * height * width > (uint64_t)1 << 28)
		return ls_fail(LS_EFORMAT, "%s has shape %s: %s", name, show_shape(npy, shape, sizeof(shape)),
			       npy->elements == 0 ? "there is no image" : "its images are too large");
	*out = (ls_npy_images){ .samples = d[0],
				.channels = (int)channels,
				.height = (int)height,
				.width = (int)width,
				.is_channels_last = last,
				.is_float = npy->kind == 'f',
				.row_bytes = (size_t)(channels * height * width) * (size_t)npy->width,
				.kind = npy->kind,
				.element = npy->width };
	return LS_OK;
}

ls_status ls_npy_expect_labels(const ls_npy *npy, const char *name)
{
	char shape[200];

	if (npy->rank != 1 && !(npy->rank == 2 && npy->dims[1] == 1))
		return ls_fail(LS_EFORMAT, "%s has shape %s; labels are (N), a number per image%s", name,
			       show_shape(npy, shape, sizeof(shape)),
			       npy->rank == 2 ? " (of one-hot rows take y.argmax(axis=1))" : "");
	if (npy->kind == 'f')
		return ls_fail(LS_EFORMAT, "%s has labels of float%d; save whole numbers, y.astype('int64')", name,
			       8 * npy->width);
	return LS_OK;
}

/* Where channel c of position p is among the values of the file. */
static size_t source_of(const ls_npy_images *im, size_t c, size_t p)
{
	return im->is_channels_last ? p * (size_t)im->channels + c : c * (size_t)im->height * (size_t)im->width + p;
}

ls_status ls_npy_to_bytes(const ls_npy_images *im, const uint8_t *row, uint64_t index, const char *name, uint8_t *out)
{
	size_t positions = (size_t)im->height * (size_t)im->width, width = (size_t)im->element;

	if (im->kind == 'u' && im->element == 1 && !im->is_channels_last) {
		memcpy(out, row, im->row_bytes);
		return LS_OK;
	}
	for (size_t c = 0; c < (size_t)im->channels; c++)
		for (size_t p = 0; p < positions; p++) {
			int64_t value = integer_at(row + source_of(im, c, p) * width, im->kind, im->element);
			if (value < 0 || value > 255)
				return ls_fail(LS_EFORMAT,
					       "%s: image %" PRIu64 " has the value %" PRId64
					       "; integers are pixels from 0 to 255, save others as float32",
					       name, index, value);
			*out++ = (uint8_t)value;
		}
	return LS_OK;
}

ls_status ls_npy_to_floats(const ls_npy_images *im, const uint8_t *row, uint64_t index, const char *name, float *out)
{
	size_t positions = (size_t)im->height * (size_t)im->width, width = (size_t)im->element;

	for (size_t c = 0; c < (size_t)im->channels; c++)
		for (size_t p = 0; p < positions; p++, out++) {
			*out = float_at(row + source_of(im, c, p) * width, im->element);
			if (!isfinite(*out))
				return ls_fail(LS_EFORMAT, "%s: a value of image %" PRIu64 " is %s", name, index,
					       isnan(*out) ? "NaN" : "infinite");
		}
	return LS_OK;
}
