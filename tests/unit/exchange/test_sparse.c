/*
 * Packed messages: what comes out is what went in, bit for bit, from any block of it; what pays is packed and nothing
 * else; messages that were damaged are refused, whatever their length.
 */
#include <stddef.h>
#include <stdint.h>

#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "exchange/codecs/bf16.h"
#include "exchange/codecs/sparse.h"
#include "unit/test_main.h"

enum { SEED = 20261116, CASES = 4000, MOST = 20000 };

static uint64_t seeds;

static uint64_t draw(uint64_t limit)
{
	return ls_mix64(SEED + seeds++) % limit;
}

/* Random elements, of which grains are zero with a chance of `zeros` in 8; else some are -0.0 alone, or NaN. */
static void fill(const ls_codec_form *f, unsigned char *message, uint64_t zeros)
{
	static const uint32_t odd[] = { 0x80000000u, 0x7fc00000u, 0xff800001u, 1 };
	for (size_t i = 0; i < f->count; i++) {
		uint32_t bits = (uint32_t)(ls_mix64(SEED + seeds++) >> 32);
		uint64_t kind = ls_mix64(seeds - seeds % 64 + i / f->grain);
		if (kind % 8 < zeros)
			bits = 0;
		else if (kind >> 32 & 1)
			bits = i % f->grain == (kind >> 40) % f->grain ? odd[kind >> 60 & 3] : 0;
		bits = f->width == 2 ? bits >> 16 : bits;
		memcpy(message + i * f->width, &bits, f->width); /* the low bytes */
	}
}

static void as_floats(const ls_codec_form *f, const unsigned char *message, float *out)
{
	if (f->width == 2)
		ls_bf16_decode(out, message, f->count);
	else
		memcpy(out, message, f->count * sizeof(float));
}

static ls_codec_form draw_form(void)
{
	size_t widths[] = { 2, 4 };
	return (ls_codec_form){ .count = 1 + draw(draw(4) ? 700 : MOST),
				.width = widths[draw(2)],
				.grain = (size_t)1 << draw(7) };
}

/* Some blocks of it, each of them alone. */
static void check_open(const ls_codec_form *f, const unsigned char *message, size_t bytes, const float *expected)
{
	static float got[MOST];
	for (int k = 0; k < 4; k++) {
		size_t begin = k == 0 ? 0 : draw(f->count) / f->grain * f->grain;
		size_t end = k == 0 ? f->count : begin + 1 + draw(f->count - begin);
		memset(got, 0xaa, sizeof(got));
		ls_sparse_unpack(f, message, bytes, begin, end, got);
		assert_memory_equal(got, expected + begin, (end - begin) * sizeof(float));
	}
}

static size_t count_zero_grains(const ls_codec_form *f, const unsigned char *message)
{
	size_t zeros = 0;
	for (size_t i = 0; i < f->count; i += f->grain) {
		size_t end = i + f->grain < f->count ? i + f->grain : f->count, any = 0;
		for (size_t at = i * f->width; at < end * f->width; at++)
			any |= message[at];
		zeros += any == 0;
	}
	return zeros;
}

static void nothing_is_lost(void **state)
{
	static unsigned char message[4 * MOST], before[4 * MOST], bitmap[MOST / 8 + 1];
	static float expected[MOST];
	int packed = 0;

	(void)state;
	print_message("seed %d\n", SEED);
	for (int c = 0; c < CASES; c++) {
		ls_codec_form f = draw_form();
		size_t plain = f.count * f.width;
		fill(&f, message, draw(10));
		memcpy(before, message, plain);
		as_floats(&f, message, expected);
		size_t bytes = ls_sparse_pack(&f, message, bitmap);
		assert_int_equal(ls_sparse_check(&f, message, bytes), LS_OK);
		if (bytes == plain) {
			assert_memory_equal(message, before, plain);
			continue;
		}
		packed++;
		assert_true(bytes <= plain / 4 * 3);
		assert_true(bytes + (count_zero_grains(&f, before) * f.grain) * f.width >= plain);
		check_open(&f, message, bytes, expected);
	}
	assert_true(packed > CASES / 4 && packed < CASES);
}

static float *ones(size_t count)
{
	float *all = calloc(count, sizeof(float));
	for (size_t i = 0; i < count; i++)
		all[i] = 1;
	return all;
}

/* Bytes of some messages of 100 grains of 64. */
static void known_lengths(void **state)
{
	const ls_codec_form f = { .count = 6400, .width = 4, .grain = 64 };
	unsigned char bitmap[13];
	float *all = ones(f.count);

	(void)state;
	assert_int_equal(ls_sparse_bitmap(&f), 13);
	assert_int_equal(ls_sparse_pack(&f, all, bitmap), 25600);
	memset(all, 0, 25 * 64 * sizeof(float)); /* a quarter: the bitmap are just too much */
	assert_int_equal(ls_sparse_pack(&f, all, bitmap), 25600);
	memset(all, 0, 26 * 64 * sizeof(float));
	assert_int_equal(ls_sparse_pack(&f, all, bitmap), 74 * 256 + 13);
	memset(all, 0, f.count * sizeof(float));
	assert_int_equal(ls_sparse_pack(&f, all, bitmap), 13);
	memset(all, 0, f.count * sizeof(float));
	all[6399] = -0.0f;
	assert_int_equal(ls_sparse_pack(&f, all, bitmap), 256 + 13);
	free(all);
	assert_int_equal(ls_sparse_grain(16384), 64);
	assert_int_equal(ls_sparse_grain(96), 32);
	assert_int_equal(ls_sparse_grain(16), 16);
	assert_int_equal(ls_sparse_grain(7), 1);
}

/* Rows of an embedding, of which one in 16 is there: nearly all of the rest is saved, though they are a sample away. */
static void rows_are_found(void **state)
{
	const ls_codec_form f = { .count = 512 * 256, .width = 4, .grain = 64 };
	unsigned char bitmap[256];
	float *all = calloc(f.count, sizeof(float));

	(void)state;
	for (size_t row = 0; row < 512; row += 16)
		for (size_t i = 0; i < 256; i++)
			all[row * 256 + i] = 0.5f;
	assert_int_equal(ls_sparse_pack(&f, all, bitmap), 32 * 1024 + 256);
	free(all);
}

/* Every other length, every other mark: refused, unless the message is a right one by chance. */
static void damaged_messages_are_refused(void **state)
{
	const ls_codec_form f = { .count = 1000, .width = 4, .grain = 64 };
	static unsigned char message[8000], bitmap[2];
	static float out[1000];

	(void)state;
	seeds = 0;
	fill(&f, message, 6);
	size_t bytes = ls_sparse_pack(&f, message, bitmap);
	assert_true(bytes < 4000);
	for (size_t wrong = 0; wrong < 8000; wrong++) {
		ls_status status = ls_sparse_check(&f, message, wrong);
		if (wrong < 2 || wrong > 4000)
			assert_int_equal(status, LS_EMISMATCH);
		else if (status == LS_OK && wrong < 4000)
			ls_sparse_unpack(&f, message, wrong, 0, 1000, out); /* reads nothing that is not there */
	}
	for (int bit = 0; bit < 16; bit++) {
		message[bytes - 2 + (size_t)bit / 8] ^= (unsigned char)(1u << bit % 8);
		assert_int_equal(ls_sparse_check(&f, message, bytes), LS_EMISMATCH);
		message[bytes - 2 + (size_t)bit / 8] ^= (unsigned char)(1u << bit % 8);
	}
	assert_int_equal(ls_sparse_check(&f, message, bytes), LS_OK);
	assert_int_equal(ls_sparse_check(&f, message, bytes - 1), LS_EMISMATCH);
}

/* Rubbish in memory of just its size, for the address sanitizer: either refused, or read within it. */
static void rubbish_is_survived(void **state)
{
	static float out[700];

	(void)state;
	for (int c = 0; c < CASES; c++) {
		ls_codec_form f = draw_form();
		f.count = 1 + f.count % 700;
		size_t bytes = draw(f.count * f.width + 9);
		unsigned char *message = malloc(bytes + 1);
		for (size_t i = 0; i < bytes; i++)
			message[i] = (unsigned char)(draw(3) ? 0 : draw(256));
		unsigned char *exact = realloc(message, bytes > 0 ? bytes : 1);
		if (ls_sparse_check(&f, exact, bytes) == LS_OK && bytes < f.count * f.width)
			ls_sparse_unpack(&f, exact, bytes, 0, f.count, out);
		free(exact);
	}
}

TEST_MAIN(nothing_is_lost, known_lengths, rows_are_found, damaged_messages_are_refused, rubbish_is_survived)
