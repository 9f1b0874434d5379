/*
 * The memory of decoders: no more than the limit at the same time, a large image alone, nobody waits for ever.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#ifdef LS_HAVE_JPEG
#include <turbojpeg.h>
#endif

#include "data/images/budget.h"
#include "data/images/image.h"
#include "support/png_writer.h"
#include "unit/assert_status.h"
#include "unit/test_main.h"

enum { THREADS = 8, ROUNDS = 300 };
#define MIB ((size_t)1 << 20)

static atomic_size_t taken, most, alone;

static void *take(void *context)
{
	size_t seed = *(size_t *)context;

	for (size_t i = 0; i < ROUNDS; i++) {
		size_t bytes = (seed + i) % 29 == 0 ? 700 * MIB : (1 + (seed * 7 + i) % 100) * MIB;
		ls_decoding_begin(bytes);
		size_t now = atomic_fetch_add(&taken, bytes) + bytes;
		if (bytes > LS_DECODING_BYTES_MAX)
			atomic_fetch_add(&alone, now == bytes);
		else if (now > atomic_load(&most))
			atomic_store(&most, now);
		atomic_fetch_sub(&taken, bytes);
		ls_decoding_end(bytes);
	}
	return NULL;
}

static void test_limit(void **state)
{
	pthread_t thread[THREADS];
	size_t seed[THREADS], large = 0;
	(void)state;
	for (size_t t = 0; t < THREADS; t++) {
		seed[t] = t;
		for (size_t i = 0; i < ROUNDS; i++)
			large += (t + i) % 29 == 0;
		assert_int_equal(pthread_create(&thread[t], NULL, take, &seed[t]), 0);
	}
	for (size_t t = 0; t < THREADS; t++)
		assert_int_equal(pthread_join(thread[t], NULL), 0);
	assert_true(atomic_load(&most) <= LS_DECODING_BYTES_MAX);
	assert_int_equal(atomic_load(&alone), large);
	ls_decoding_end(0);
}

/* What decoders ask for is what they take: of 16 bits twice as much, and again to set an image upright. */
static void test_png(void **state)
{
	static const uint8_t rows[4 * 5 * 6];
	ls_image image = { 0 };
	(void)state;
#ifndef LS_HAVE_PNG
	skip();
#endif
	for (int bits = 8; bits <= 16; bits += 8) {
		size_t bytes = (size_t)5 * 3 * (size_t)bits / 8;
		png_file f = png_make(5, 4, (uint8_t)bits, 2, rows, bytes, NULL, 0);
		assert_ok(ls_image_decode(&image, f.bytes, f.size, "a.png", 100));
		assert_int_equal(image.reserved, 4 * bytes);
		ls_image_release(&image);
		assert_int_equal(image.reserved, 0);
		assert_fails(ls_image_decode(&image, f.bytes, f.size - 20, "a.png", 100), LS_EFORMAT, "a.png");
		free(f.bytes);
	}
	ls_decoding_begin(LS_DECODING_BYTES_MAX); /* what failed has given back what it had */
	ls_decoding_end(LS_DECODING_BYTES_MAX);
}

#ifdef LS_HAVE_JPEG
/* A progressive one keeps all coefficients, whatever size is wanted. */
static void test_jpeg(void **state)
{
	enum { SIDE = 64 };
	static uint8_t rgb[SIDE * SIDE * 3];
	const ls_image_shape least = { 3, SIDE / 8, SIDE / 8 };
	tjhandle encoder = tjInitCompress();
	(void)state;
	for (int is_progressive = 0; is_progressive < 2; is_progressive++) {
		unsigned char *bytes = NULL;
		unsigned long size = 0;
		ls_image image = { 0 };
		assert_int_equal(tjCompress2(encoder, rgb, SIDE, 0, SIDE, TJPF_RGB, &bytes, &size, TJSAMP_444, 95,
					     is_progressive ? TJFLAG_PROGRESSIVE : 0),
				 0);
		assert_ok(ls_image_decode_for(&image, bytes, size, "a.jpg", SIDE * SIDE, &least));
		assert_int_equal(image.width, SIDE / 8);
		if (is_progressive)
			assert_in_range(image.reserved, 2 * SIDE * SIDE * 3, 4 * SIDE * SIDE * 3);
		else
			assert_int_equal(image.reserved, SIDE / 8 * SIDE / 8 * 3);
		ls_image_release(&image);
		tjFree(bytes);
	}
	tjDestroy(encoder);
}
#else
static void test_jpeg(void **state)
{
	(void)state;
	skip();
}
#endif

TEST_MAIN(test_limit, test_png, test_jpeg)
