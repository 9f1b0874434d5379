/*
 * Images: what decoders give, what resizing does with it, and files that are wrong.
 */
#include <math.h>
#include <stdio.h>
#include <time.h>
#ifdef LS_HAVE_JPEG
#include <turbojpeg.h>
#endif
#ifdef LS_HAVE_PNG
#define HAS_PNG 1
#else
#define HAS_PNG 0
#endif

#include "base/array.h"
#include "data/images/image.h"
#include "data/images/orientation.h"
#include "support/png_writer.h"
#include "unit/assert_status.h"
#include "unit/test_main.h"

#define MANY ((uint64_t)1 << 20)

static ls_image decode(png_file f)
{
	ls_image image = { 0 };
	assert_ok(ls_image_decode(&image, f.bytes, f.size, "a.png", MANY));
	free(f.bytes);
	return image;
}

static void expect_pixels(png_file f, int channels, const uint8_t *values, size_t count)
{
	ls_image image = decode(f);
	assert_int_equal(image.channels, channels);
	assert_int_equal(image.deep, 0);
	assert_int_equal((size_t)(image.height * image.width * channels), count);
	assert_memory_equal(image.pixels, values, count);
	ls_image_release(&image);
	ls_image_release(&image);
}

static void test_png_kinds(void **state)
{
	static const uint8_t grey[] = { 0, 10, 200, 255 }, rgb[] = { 1, 2, 3, 4, 5, 6 };
	static const uint8_t grey_alpha[] = { 7, 0, 8, 255 }, rgba[] = { 1, 2, 3, 0, 4, 5, 6, 9 };
	static const uint8_t palette[] = { 9, 9, 9, 1, 2, 3, 4, 5, 6 }, places[] = { 1, 2 }, bits[] = { 0xa0 };
	(void)state;
	if (!HAS_PNG)
		skip();
	expect_pixels(png_make(2, 2, 8, 0, grey, 2, NULL, 0), 1, grey, 4);
	expect_pixels(png_make(2, 1, 8, 2, rgb, 6, NULL, 0), 3, rgb, 6);
	expect_pixels(png_make(2, 1, 8, 4, grey_alpha, 4, NULL, 0), 1, (const uint8_t[]){ 7, 8 }, 2);
	expect_pixels(png_make(2, 1, 8, 6, rgba, 8, NULL, 0), 3, rgb, 6);
	expect_pixels(png_make(2, 1, 8, 3, places, 2, palette, 3), 3, rgb, 6);
	expect_pixels(png_make(3, 1, 1, 0, bits, 1, NULL, 0), 1, (const uint8_t[]){ 255, 0, 255 }, 3);
}

static void test_png_of_16_bits(void **state)
{
	static const uint8_t big_endian[] = { 0x12, 0x34, 0xff, 0xff };
	float pixels[2];
	(void)state;
	if (!HAS_PNG)
		skip();
	ls_image image = decode(png_make(2, 1, 16, 0, big_endian, 4, NULL, 0));
	assert_int_equal(image.deep, 1);
	assert_int_equal(((const uint16_t *)image.pixels)[0], 0x1234);
	assert_ok(ls_image_resize(&image, LS_RESIZE_COVER, (ls_image_shape){ 1, 1, 2 }, pixels, "a.png"));
	assert_true(pixels[0] == (float)(0x1234 / 257.0) && pixels[1] == 255.0f);
	ls_image_release(&image);
}

/* Cut anywhere, or with any byte changed, it is refused or is an image: nothing is read beyond its end. */
static void test_damaged_png(void **state)
{
	static const uint8_t rows[16] = { 1, 2, 3, 4 };
	ls_image image;
	(void)state;
	if (!HAS_PNG)
		skip();
	png_file f = png_make(4, 4, 8, 0, rows, 4, NULL, 0);
	for (size_t size = 0; size + 12 < f.size; size++) { /* without its IEND */
		uint8_t *part = malloc(size + 1);
		memcpy(part, f.bytes, size);
		assert_int_equal(ls_image_decode(&image, part, size, "a.png", MANY), LS_EFORMAT);
		free(part);
	}
	f.bytes[45] ^= 1; /* in the pixels: a checksum notices */
	assert_fails(ls_image_decode(&image, f.bytes, f.size, "a.png", MANY), LS_EFORMAT, "a.png: not a PNG image");
	free(f.bytes);
}

static void test_sizes_are_checked_before_memory(void **state)
{
	static const uint8_t rows[16] = { 0 };
	ls_image image;
	(void)state;
	if (!HAS_PNG)
		skip();
	png_file f = png_make(4, 4, 8, 0, rows, 4, NULL, 0);
	assert_fails(ls_image_decode(&image, f.bytes, f.size, "a.png", 15), LS_EFORMAT, "4x4 pixels; at most 15");
	free(f.bytes);
	uint8_t *long_row = calloc(70000, 1);
	f = png_make(70000, 1, 8, 0, long_row, 70000, NULL, 0);
	assert_fails(ls_image_decode(&image, f.bytes, f.size, "a.png", MANY), LS_EFORMAT, "65535 a side");
	free(f.bytes);
	free(long_row);
	assert_fails(ls_image_decode(&image, (const uint8_t *)"GIF89a..", 8, "a.gif", MANY), LS_EFORMAT,
		     "a.gif is neither a PNG nor a JPEG");
}

/* Texts that inflate to 800 MB take no time, because nobody reads them. Processor time of this process: other load does
 * not count. */
static void test_png_texts_are_not_read(void **state)
{
	enum { TEXT = 8000000, CHUNKS = 100 };
	static const uint8_t grey[] = { 0, 10, 200, 255 };
	static const char *const kinds[] = { "zTXt", "iCCP", "iTXt" };
	/* keyword, its end, method 0; of iTXt: it is compressed, method 0, no language, no translation */
	static const uint8_t starts[][8] = { "a\0\0", "a\0\0", "a\0\1\0\0\0" };
	static const size_t start_bytes[] = { 3, 3, 6 };
	(void)state;
	if (!HAS_PNG)
		skip();
	uint8_t *text = malloc(TEXT), *chunk = malloc(TEXT);
	memset(text, 'a', TEXT);
	for (size_t k = 0; k < LS_COUNT(kinds); k++) {
		uLongf packed = TEXT - 8;
		memcpy(chunk, starts[k], start_bytes[k]);
		assert_int_equal(compress(chunk + start_bytes[k], &packed, text, TEXT), Z_OK);
		png_file f = png_make(2, 2, 8, 0, grey, 2, NULL, 0);
		for (int i = 0; i < CHUNKS; i++)
			f = png_with(f, kinds[k], chunk, (uint32_t)(packed + start_bytes[k]));
		clock_t begin = clock();
		expect_pixels(f, 1, grey, 4);
		assert_true(clock() - begin < CLOCKS_PER_SEC / 2);
	}
	free(chunk);
	free(text);
}

/* PNG's own chunk of Exif data. */
static void test_orientation_of_png(void **state)
{
	static const uint8_t grey[] = { 1, 2, 3, 4, 5, 6 }; /* 3 x 2 */
	static const uint8_t turned[] = { 4, 1, 5, 2, 6, 3 };
	static const uint8_t little[] = { 'I', 'I', '*', 0, 8, 0, 0, 0, 1, 0, 0x12, 1, 3, 0, 1, 0, 0, 0, 6, 0, 0, 0 };
	static const uint8_t big[] = { 'M', 'M', 0, '*', 0, 0, 0, 8, 0, 1, 1, 0x12, 0, 3, 0, 0, 0, 1, 0, 6, 0, 0 };
	ls_image_shape shape;
	(void)state;
	if (!HAS_PNG)
		skip();
	for (int is_big = 0; is_big < 2; is_big++) {
		png_file f =
			png_with(png_make(3, 2, 8, 0, grey, 3, NULL, 0), "eXIf", is_big ? big : little, sizeof(big));
		assert_int_equal(ls_png_orientation(f.bytes, f.size), 6);
		assert_ok(ls_image_peek(&shape, f.bytes, f.size, "a.png"));
		assert_true(shape.width == 2 && shape.height == 3);
		for (size_t cut = 0; cut < f.size; cut++) { /* nothing is read behind the end */
			uint8_t *part = malloc(cut + 1);
			memcpy(part, f.bytes, cut);
			assert_in_range(ls_png_orientation(part, cut), 1, 8);
			free(part);
		}
		ls_image image = decode(f);
		assert_true(image.width == 2 && image.height == 3);
		assert_memory_equal(image.pixels, turned, sizeof(turned));
		ls_image_release(&image);
	}
}

#ifdef LS_HAVE_JPEG
static uint8_t *make_jpeg(const uint8_t *rgb, int side, int subsampling, unsigned long *size)
{
	unsigned char *bytes = NULL;
	tjhandle encoder = tjInitCompress();
	assert_int_equal(tjCompress2(encoder, rgb, side, 0, side, TJPF_RGB, &bytes, size, subsampling, 95, 0), 0);
	tjDestroy(encoder);
	return bytes;
}

static void test_jpeg(void **state)
{
	enum { SIDE = 16 };
	uint8_t rgb[SIDE * SIDE * 3];
	unsigned long size = 0;
	ls_image image = { 0 };
	(void)state;
	for (size_t i = 0; i < SIDE * SIDE; i++)
		memcpy(rgb + 3 * i, (const uint8_t[]){ 200, 100, 50 }, 3);
	for (int grey = 0; grey < 2; grey++) {
		uint8_t *bytes = make_jpeg(rgb, SIDE, grey ? TJSAMP_GRAY : TJSAMP_420, &size);
		assert_ok(ls_image_decode(&image, bytes, size, "a.jpg", MANY));
		assert_int_equal(image.channels, grey ? 1 : 3);
		assert_int_equal(image.width, SIDE);
		const uint8_t *p = image.pixels;
		assert_true(grey ? abs(p[0] - 124) <= 2
				 : abs(p[0] - 200) <= 3 && abs(p[1] - 100) <= 3 && abs(p[2] - 50) <= 3);
		ls_image_release(&image);
		assert_fails(ls_image_decode(&image, bytes, size, "a.jpg", 255), LS_EFORMAT, "16x16 pixels");
		assert_fails(ls_image_decode(&image, bytes, size - 20, "a.jpg", MANY), LS_EFORMAT, "a.jpg: not a JPEG");
		tjFree(bytes);
	}
}

/* The file with an Exif segment that says how the camera was held, after its first two bytes. */
static uint8_t *with_orientation(const uint8_t *jpeg, size_t size, int is_little, uint16_t orientation,
				 size_t *out_size)
{
	static const uint8_t little[] = {
		0xff, 0xe1, 0,    34, 'E', 'x', 'i', 'f', 0, 0, 'I', 'I', '*', 0, 8, 0, 0, 0,
		1,    0,    0x12, 1,  3,   0,   1,   0,   0, 0, 0,   0,   0,   0, 0, 0, 0, 0
	};
	static const uint8_t big[] = { 0xff, 0xe1, 0, 34,   'E', 'x', 'i', 'f', 0, 0, 'M', 'M', 0, '*', 0, 0, 0, 8,
				       0,    1,    1, 0x12, 0,   3,   0,   0,   0, 1, 0,   0,   0, 0,   0, 0, 0, 0 };
	uint8_t *file = malloc(size + sizeof(little)), *segment = file + 2;
	memcpy(file, jpeg, 2);
	memcpy(segment, is_little ? little : big, sizeof(little));
	segment[28] = (uint8_t)(is_little ? orientation : orientation >> 8);
	segment[29] = (uint8_t)(is_little ? orientation >> 8 : orientation);
	memcpy(segment + sizeof(little), jpeg + 2, size - 2);
	*out_size = size + sizeof(little);
	return file;
}

static void test_orientation_is_read(void **state)
{
	enum { SIDE = 16 };
	uint8_t rgb[SIDE * SIDE * 3] = { 0 };
	unsigned long size = 0;
	(void)state;
	memset(rgb, 250, sizeof(rgb) / 2); /* the upper half is white */
	uint8_t *bytes = make_jpeg(rgb, SIDE, TJSAMP_GRAY, &size);
	assert_int_equal(ls_jpeg_orientation(bytes, size), 1);
	for (uint16_t o = 0; o < 12; o++)
		for (int is_little = 0; is_little < 2; is_little++) {
			size_t longer;
			uint8_t *file = with_orientation(bytes, size, is_little, o, &longer);
			assert_int_equal(ls_jpeg_orientation(file, longer), o >= 1 && o <= 8 ? o : 1);
			for (size_t cut = 1; cut < 40; cut++) { /* nothing is read behind the end */
				uint8_t *part = malloc(cut);
				memcpy(part, file, cut);
				assert_in_range(ls_jpeg_orientation(part, cut), 1, 8);
				free(part);
			}
			ls_image image = { 0 };
			assert_ok(ls_image_decode(&image, file, longer, "a.jpg", MANY));
			const uint8_t *p = image.pixels;
			/* where the white half is then */
			int top_left = p[0] > 128, top_right = p[SIDE - 1] > 128;
			char found = top_left && top_right ? 'T' : top_left ? 'L' : top_right ? 'R' : 'B';
			assert_int_equal(found, o > 8 ? 'T' : "TTTBBLRRL"[o]);
			ls_image_release(&image);
			free(file);
		}
	tjFree(bytes);
}

/* Decoded at a part of its size, an image still covers what is wanted, and is what it is at full size, roughly. */
static void test_jpeg_at_a_part_of_its_size(void **state)
{
	enum { SIDE = 64 };
	static const int wanted[] = { 70, 64, 33, 32, 17, 16, 9, 8, 3 }, sides[] = { 64, 64, 64, 32, 32, 16, 16, 8, 8 };
	uint8_t rgb[SIDE * SIDE * 3];
	unsigned long size = 0;
	(void)state;
	for (size_t i = 0; i < SIDE * SIDE; i++)
		memset(rgb + 3 * i, (int)(i % SIDE) * 3, 3);
	uint8_t *bytes = make_jpeg(rgb, SIDE, TJSAMP_GRAY, &size);
	for (size_t i = 0; i < LS_COUNT(wanted); i++) {
		ls_image image = { 0 };
		ls_image_shape least = { 1, wanted[i], wanted[i] };
		assert_ok(ls_image_decode_for(&image, bytes, size, "a.jpg", MANY, &least));
		assert_int_equal(image.width, sides[i]);
		assert_int_equal(image.height, sides[i]);
		const uint8_t *row = image.pixels;
		for (int x = 0; x < sides[i]; x++) {
			int scale = SIDE / sides[i], middle = 3 * (x * scale + scale / 2);
			assert_true(abs(row[x] - middle) <= 12);
		}
		ls_image_release(&image);
	}
	tjFree(bytes);
}
/* ---- hostile JPEG ------------------------------------------------------------------------------------------------ */

/* A header that declares 65,500 x 65,500 pixels is refused before memory is taken; cut anywhere, a file is no image. */
static void test_jpeg_of_another_size(void **state)
{
	enum { SIDE = 16 };
	uint8_t rgb[SIDE * SIDE * 3] = { 0 };
	unsigned long size = 0, frame = 2;
	ls_image image = { 0 };
	(void)state;
	uint8_t *bytes = make_jpeg(rgb, SIDE, TJSAMP_GRAY, &size);
	while (bytes[frame + 1] != 0xc0) /* to the segment with the size */
		frame += 2 + ((unsigned long)bytes[frame + 2] << 8 | bytes[frame + 3]);
	for (unsigned long cut = 3; cut < size; cut++) {
		uint8_t *part = malloc(cut);
		memcpy(part, bytes, cut);
		ls_status status = ls_image_decode(&image, part, cut, "a.jpg", MANY);
		assert_int_equal(status, LS_EFORMAT);
		assert_null(image.pixels);
		free(part);
	}
	memcpy(bytes + frame + 5, (const uint8_t[]){ 0xff, 0xdc, 0xff, 0xdc }, 4);
	assert_fails(ls_image_decode(&image, bytes, size, "a.jpg", (uint64_t)1 << 27), LS_EFORMAT,
		     "a.jpg: 65500x65500 pixels; at most 134217728 are read");
	memcpy(bytes + frame + 5, (const uint8_t[]){ 0, 255, 0, 255 }, 4); /* pixels that are not there */
	assert_fails(ls_image_decode(&image, bytes, size, "a.jpg", MANY), LS_EFORMAT, "a.jpg: not a JPEG");
	tjFree(bytes);
}

/* A progressive image of one grey block, whose scan is there `scans` times. */
static size_t make_progressive(uint8_t *out, int scans)
{
	static const uint8_t frame[] = { 0xff, 0xc2, 0, 11, 8, 0, 8, 0, 8, 1, 1, 0x11, 0 };
	static const uint8_t codes[] = { 0xff, 0xc4, 0, 20, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 };
	static const uint8_t scan[] = { 0xff, 0xda, 0, 8, 1, 1, 0, 0, 0, 0, 0x7f };
	uint8_t *at = out;

	memcpy(at, (const uint8_t[]){ 0xff, 0xd8, 0xff, 0xdb, 0, 67, 0 }, 7);
	memset(at + 7, 1, 64);
	at += 71;
	memcpy(at, frame, sizeof(frame));
	at += sizeof(frame);
	memcpy(at, codes, sizeof(codes));
	at += sizeof(codes);
	for (int i = 0; i < scans; i++, at += sizeof(scan))
		memcpy(at, scan, sizeof(scan));
	memcpy(at, (const uint8_t[]){ 0xff, 0xd9 }, 2);
	return (size_t)(at + 2 - out);
}

/* Each scan goes over the whole image: a small file with thousands of them would keep a decoder busy for minutes. */
static void test_jpeg_of_many_scans(void **state)
{
	enum { FLOOD = 5000 };
	uint8_t *bytes = malloc(200 + 11 * FLOOD);
	ls_image image = { 0 };
	(void)state;
	for (int scans = 1; scans <= 100; scans += 33) {
		assert_ok(ls_image_decode(&image, bytes, make_progressive(bytes, scans), "a.jpg", MANY));
		assert_int_equal(((uint8_t *)image.pixels)[63], 128);
		ls_image_release(&image);
	}
	assert_fails(ls_image_decode(&image, bytes, make_progressive(bytes, FLOOD), "a.jpg", MANY), LS_EFORMAT,
		     "a.jpg: not a JPEG image that can be read");
	free(bytes);
}
#else
static void test_jpeg(void **state)
{
	(void)state;
	skip();
}
#define test_orientation_is_read test_jpeg
#define test_jpeg_at_a_part_of_its_size test_jpeg
#define test_jpeg_of_another_size test_jpeg
#define test_jpeg_of_many_scans test_jpeg
#endif

/* 2 x 3 pixels, as each of the eight ways to hold a camera leaves them. */
static void test_upright(void **state)
{
	static const uint8_t expected[8][6] = { { 0, 1, 2, 10, 11, 12 }, { 2, 1, 0, 12, 11, 10 },
						{ 12, 11, 10, 2, 1, 0 }, { 10, 11, 12, 0, 1, 2 },
						{ 0, 10, 1, 11, 2, 12 }, { 10, 0, 11, 1, 12, 2 },
						{ 12, 2, 11, 1, 10, 0 }, { 2, 12, 1, 11, 0, 10 } };
	(void)state;
	for (int o = 1; o <= 8; o++) {
		ls_image image = { .channels = 1, .height = 2, .width = 3 };
		assert_ok(ls_image_alloc(&image, "x", MANY));
		memcpy(image.pixels, expected[0], 6);
		assert_ok(ls_image_set_upright(&image, o, "x"));
		assert_int_equal(image.height, o < 5 ? 2 : 3);
		assert_int_equal(image.width, o < 5 ? 3 : 2);
		assert_memory_equal(image.pixels, expected[o - 1], 6);
		ls_image_release(&image);
	}
}

/* ---- resizing ---------------------------------------------------------------------------------------------------- */

static ls_image ramp(int height, int width, int channels)
{
	ls_image image = { .channels = channels, .height = height, .width = width };
	assert_ok(ls_image_alloc(&image, "ramp", MANY));
	for (int i = 0; i < height * width * channels; i++)
		((uint8_t *)image.pixels)[i] = (uint8_t)(i * 7 % 251);
	return image;
}

static void test_colours(void **state)
{
	uint8_t rgb[] = { 10, 20, 30, 255, 255, 255 }, grey[] = { 5, 6 };
	ls_image colour = { 3, 1, 2, 0, rgb, 0 }, plain = { 1, 1, 2, 0, grey, 0 };
	float out[6];
	(void)state;
	assert_ok(ls_image_resize(&colour, LS_RESIZE_COVER, (ls_image_shape){ 3, 1, 2 }, out, "x"));
	for (size_t i = 0; i < 6; i++)
		assert_true(out[i] == (float)rgb[i % 2 * 3 + i / 2]);
	assert_ok(ls_image_resize(&colour, LS_RESIZE_COVER, (ls_image_shape){ 1, 1, 2 }, out, "x"));
	assert_true(fabsf(out[0] - (0.299f * 10 + 0.587f * 20 + 0.114f * 30)) < 1e-5f && fabsf(out[1] - 255) < 1e-4f);
	assert_ok(ls_image_resize(&plain, LS_RESIZE_COVER, (ls_image_shape){ 3, 1, 2 }, out, "x"));
	for (size_t i = 0; i < 6; i++)
		assert_true(out[i] == (float)grey[i % 2]);
	assert_fails(ls_image_resize(&plain, LS_RESIZE_COVER, (ls_image_shape){ 4, 1, 2 }, out, "x"), LS_EMISMATCH,
		     "4 channels");
}

/* Shrunk to one pixel, the image is its weighted mean; a constant stays one, whatever the scale; twice as large, values
 * in the middle lie between their neighbours at 3 to 1. */
static void test_scaling(void **state)
{
	uint8_t pair[] = { 0, 100 };
	ls_image two = { 1, 1, 2, 0, pair, 0 };
	float out[64 * 64];
	(void)state;
	assert_ok(ls_image_resize(&two, LS_RESIZE_STRETCH, (ls_image_shape){ 1, 1, 4 }, out, "x"));
	assert_true(out[0] == 0 && out[1] == 25 && out[2] == 75 && out[3] == 100);
	assert_ok(ls_image_resize(&two, LS_RESIZE_STRETCH, (ls_image_shape){ 1, 1, 1 }, out, "x"));
	assert_true(out[0] == 50);
	static const int sides[] = { 1, 2, 3, 7, 28, 64 };
	for (size_t i = 0; i < LS_COUNT(sides); i++)
		for (size_t j = 0; j < LS_COUNT(sides); j++) {
			ls_image flat = ramp(sides[i], sides[j], 1);
			memset(flat.pixels, 93, (size_t)sides[i] * (size_t)sides[j]);
			for (int how = 0; how < 2; how++) {
				assert_ok(ls_image_resize(&flat, how, (ls_image_shape){ 1, 9, 13 }, out, "x"));
				for (size_t k = 0; k < 9 * 13; k++)
					assert_true(fabsf(out[k] - 93) < 1e-4f);
			}
			ls_image_release(&flat);
		}
}

/* A tall image: cover takes its middle, stretch all of it. */
static void test_cover_takes_the_middle(void **state)
{
	float cover[16], stretch[16], middle[16];
	(void)state;
	ls_image tall = ramp(12, 4, 1), part = ramp(4, 4, 1);
	memcpy(part.pixels, (const uint8_t *)tall.pixels + 4 * 4, 16);
	ls_image_shape to = { 1, 4, 4 };
	assert_ok(ls_image_resize(&tall, LS_RESIZE_COVER, to, cover, "x"));
	assert_ok(ls_image_resize(&part, LS_RESIZE_COVER, to, middle, "x"));
	assert_ok(ls_image_resize(&tall, LS_RESIZE_STRETCH, to, stretch, "x"));
	assert_memory_equal(cover, middle, sizeof(cover));
	assert_memory_not_equal(cover, stretch, sizeof(cover));
	ls_image_release(&tall);
	ls_image_release(&part);
}

static void test_normalising_is_that_of_datasets(void **state)
{
	double mean[] = { 0.25, 0.5 }, deviation[] = { 0.5, 2 };
	const ls_normalisation each = { 2, mean, deviation }, one = { 1, mean, deviation };
	float a[] = { 255, 0, 51, 255 }, b[] = { 255, 0, 51, 255 };
	(void)state;
	ls_pixels_normalise(a, (ls_image_shape){ 2, 1, 2 }, &each);
	assert_true(a[0] == 1.5f && a[1] == -0.5f && a[2] == (51 / 255.0f - 0.5f) / 2 && a[3] == 0.25f);
	ls_pixels_normalise(b, (ls_image_shape){ 2, 1, 2 }, &one);
	assert_true(b[3] == 1.5f);
}

TEST_MAIN(test_png_kinds, test_png_of_16_bits, test_damaged_png, test_sizes_are_checked_before_memory,
	  test_png_texts_are_not_read, test_orientation_of_png, test_jpeg, test_jpeg_of_another_size,
	  test_jpeg_of_many_scans, test_orientation_is_read, test_jpeg_at_a_part_of_its_size, test_upright,
	  test_colours, test_scaling, test_cover_takes_the_middle, test_normalising_is_that_of_datasets)
