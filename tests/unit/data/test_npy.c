/*
 * NumPy's .npy: what is read, in which layouts, and every way in which a file can be wrong.
 */
#include <math.h>

#include "base/status.h"
#include "data/readers/npy.h"
#include "unit/data/npys.h"
#include "unit/test_main.h"

static ls_status parse(ls_npy *out, const npy_file *file)
{
	return ls_npy_parse(out, file->bytes, file->size, "x.npy");
}

static void expect(const char *dictionary, size_t bytes, ls_status status, const char *part)
{
	static const uint8_t zeros[4096];
	npy_file file = npy_make(dictionary, zeros, bytes);
	ls_npy npy;

	assert_fails(parse(&npy, &file), status, part);
	free(file.bytes);
}

static void test_types(void **state)
{
	(void)state;
	static const struct {
		const char *type;
		int width;
		int64_t last; /* of bytes ..., 0xfe, 0xff */
	} types[] = { { "|u1", 1, 255 },
		      { "|i1", 1, -1 },
		      { "<u2", 2, 0xfffe },
		      { "<i2", 2, -2 },
		      { "<i4", 4, -66052 },
		      { "<u4", 4, 0xfffefdfcLL },
		      { "<i8", 8, -283686952306184LL },
		      { "|b1", 1, 255 },
		      { ">u1", 1, 255 } };
	uint8_t data[64];
	ls_npy npy;

	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(256 - sizeof(data) + i);
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		char shape[32];
		size_t count = sizeof(data) / (size_t)types[i].width;
		snprintf(shape, sizeof(shape), "(%zu,)", count);
		npy_file file = npy_array(types[i].type, shape, data, sizeof(data));
		assert_ok(parse(&npy, &file));
		assert_true(npy.rank == 1 && npy.dims[0] == count && npy.width == types[i].width);
		assert_true(ls_npy_integer(&npy, count - 1) == types[i].last);
		assert_ok(ls_npy_expect_labels(&npy, "y.npy"));
		free(file.bytes);
	}
}

/* Value (c, y, x) of image n is 100 n + 10 c + 2 y + x, in either layout. */
static void test_layouts(void **state)
{
	(void)state;
	uint8_t first[2 * 3 * 5 * 6], last[2 * 5 * 6 * 3], out[3 * 5 * 6], again[3 * 5 * 6];
	ls_npy npy;
	ls_npy_images im;

	for (size_t n = 0; n < 2; n++)
		for (size_t c = 0; c < 3; c++)
			for (size_t p = 0; p < 30; p++)
				first[n * 90 + c * 30 + p] = last[n * 90 + p * 3 + c] = (uint8_t)(100 * n + 10 * c + p);
	npy_file a = npy_array("|u1", "(2, 3, 5, 6)", first, sizeof(first));
	assert_ok(parse(&npy, &a));
	assert_ok(ls_npy_as_images(&im, &npy, "x.npy"));
	assert_true(im.samples == 2 && im.channels == 3 && im.height == 5 && im.width == 6 && !im.is_channels_last);
	assert_ok(ls_npy_to_bytes(&im, npy.data + im.row_bytes, 1, "x.npy", out));
	npy_file b = npy_array("|u1", "(2, 5, 6, 3)", last, sizeof(last));
	assert_ok(parse(&npy, &b));
	assert_ok(ls_npy_as_images(&im, &npy, "x.npy"));
	assert_true(im.samples == 2 && im.channels == 3 && im.height == 5 && im.width == 6 && im.is_channels_last);
	assert_ok(ls_npy_to_bytes(&im, npy.data + im.row_bytes, 1, "x.npy", again));
	assert_memory_equal(out, again, sizeof(out));
	assert_memory_equal(out, first + 90, sizeof(out));
	free(a.bytes);
	free(b.bytes);
	npy_file c = npy_array("|u1", "(6, 5, 6)", first, sizeof(first));
	assert_ok(parse(&npy, &c));
	assert_ok(ls_npy_as_images(&im, &npy, "x.npy"));
	assert_true(im.samples == 6 && im.channels == 1 && im.height == 5 && im.width == 6);
	free(c.bytes);
}

static void test_values(void **state)
{
	(void)state;
	double wide[4] = { 0.5, -3, 1e-3, 7 };
	float narrow[4] = { 1, 2, NAN, 4 }, out[4];
	int16_t integers[4] = { 0, 255, 256, 1 };
	uint8_t bytes[4];
	ls_npy npy;
	ls_npy_images im;

	npy_file a = npy_array("<f8", "(1, 2, 2)", wide, sizeof(wide));
	assert_ok(parse(&npy, &a));
	assert_ok(ls_npy_as_images(&im, &npy, "x.npy"));
	assert_true(im.is_float);
	assert_ok(ls_npy_to_floats(&im, npy.data, 0, "x.npy", out));
	for (int i = 0; i < 4; i++)
		assert_true(out[i] == (float)wide[i]);
	npy_file b = npy_array("<f4", "(1, 2, 2)", narrow, sizeof(narrow));
	assert_ok(parse(&npy, &b));
	assert_ok(ls_npy_as_images(&im, &npy, "x.npy"));
	assert_fails(ls_npy_to_floats(&im, npy.data, 3, "x.npy", out), LS_EFORMAT, "a value of image 3 is NaN");
	assert_fails(ls_npy_expect_labels(&npy, "y.npy"), LS_EFORMAT, "labels are (N)");
	npy_file c = npy_array("<i2", "(1, 2, 2)", integers, sizeof(integers));
	assert_ok(parse(&npy, &c));
	assert_ok(ls_npy_as_images(&im, &npy, "x.npy"));
	assert_fails(ls_npy_to_bytes(&im, npy.data, 0, "x.npy", bytes), LS_EFORMAT, "has the value 256");
	free(a.bytes);
	free(b.bytes);
	free(c.bytes);
}

static void test_wrong_headers(void **state)
{
	(void)state;
	ls_npy npy;
	size_t header;

	expect("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", 8, LS_EUNSUPPORTED, "Python objects");
	expect("{'descr': '<f4', 'fortran_order': True, 'shape': (1,), }", 4, LS_EUNSUPPORTED, "Fortran order");
	expect("{'descr': '>f4', 'fortran_order': False, 'shape': (1,), }", 4, LS_EUNSUPPORTED, "big-endian");
	expect("{'descr': '<f2', 'fortran_order': False, 'shape': (1,), }", 2, LS_EUNSUPPORTED, "'<f2'");
	expect("{'descr': '<U8', 'fortran_order': False, 'shape': (1,), }", 2, LS_EUNSUPPORTED, "'<U8'");
	expect("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }", 4, LS_EUNSUPPORTED, "structured");
	expect("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", 4, LS_EFORMAT, "truncated");
	expect("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", 12, LS_EFORMAT, "4 bytes too many");
	expect("{'descr': '<f4', 'fortran_order': False, }", 4, LS_EFORMAT, "missing");
	expect("{'descr': '<f4', 'descr': '<f4', 'shape': (1,), }", 4, LS_EFORMAT, "each once");
	expect("{'descr': '<f4', 'fortran_order': False, 'shape': (1, }", 4, LS_EFORMAT, "not a number");
	expect("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }", 4, LS_EFORMAT, "not a number");
	expect("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }", 4, LS_EFORMAT,
	       "too large");
	expect("{'descr': '<f4', 'fortran_order': False, 'shape': (9999999999, 9999999999), }", 4, LS_EFORMAT,
	       "more elements than can exist");
	expect("{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1), }", 4, LS_EFORMAT,
	       "more than 8 dimensions");
	expect("os.system('true')", 4, LS_EFORMAT, "not a dictionary");
	expect("{'descr': '<f4", 4, LS_EFORMAT, "a quote is not closed");
	assert_fails(ls_npy_begin(&header, (const uint8_t *)"\x93NUMPY\x09\x00\x10\x00 ", 12, "x"), LS_EUNSUPPORTED,
		     "version 9");
	assert_fails(ls_npy_parse(&npy, (const uint8_t *)"PK", 2, "x"), LS_EFORMAT, "not a NumPy array");
}

/* Any file that is cut anywhere is refused. */
static void test_cuts(void **state)
{
	(void)state;
	uint8_t data[24] = { 0 };
	npy_file file = npy_array("|u1", "(2, 3, 4)", data, sizeof(data));
	ls_npy npy;

	assert_ok(parse(&npy, &file));
	for (size_t cut = 0; cut < file.size; cut++) {
		uint8_t *part = malloc(cut + 1);
		memcpy(part, file.bytes, cut);
		assert_int_equal(ls_npy_parse(&npy, part, cut, "x.npy"), LS_EFORMAT);
		free(part);
	}
	free(file.bytes);
}

TEST_MAIN(test_types, test_layouts, test_values, test_wrong_headers, test_cuts)
