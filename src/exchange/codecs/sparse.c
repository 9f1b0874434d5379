/*
 * sparse.c - fp32 and bf16 without runs of zeros (sparse.h).
 */
#include "exchange/codecs/sparse.h"

#include <stdint.h>
#include <string.h>

#include "exchange/codecs/bf16.h"

/* The sample is every STRIDE-th grain: odd, so that it covers all parts of rows. Fewer than SAMPLED grains are all
 * examined. */
enum { STRIDE = 13, SAMPLED = 8 * STRIDE };

size_t ls_sparse_grain(size_t block)
{
	size_t grain = LS_GRAIN_MOST;
	while (block % grain != 0)
		grain /= 2;
	return grain;
}

static size_t grain_count(const ls_codec_form *f)
{
	return (f->count + f->grain - 1) / f->grain;
}

size_t ls_sparse_bitmap(const ls_codec_form *f)
{
	return (grain_count(f) + 7) / 8;
}

static size_t grain_bytes(const ls_codec_form *f, size_t i)
{
	size_t left = f->count - i * f->grain;
	return (left < f->grain ? left : f->grain) * f->width;
}

static int is_there(const unsigned char *bitmap, size_t i)
{
	return bitmap[i / 8] >> (i % 8) & 1;
}

/* A cache line at a time: most that are not zero show in the first. */
static int is_zero(const unsigned char *at, size_t bytes)
{
	uint64_t line[8], any = 0;
	for (; bytes >= sizeof(line); at += sizeof(line), bytes -= sizeof(line)) {
		memcpy(line, at, sizeof(line));
		for (int i = 0; i < 8; i++)
			any |= line[i];
		if (any != 0)
			return 0;
	}
	for (; bytes > 0; at++, bytes--)
		any |= *at;
	return any == 0;
}

static int grain_is_zero(const ls_codec_form *f, const unsigned char *message, size_t i)
{
	return is_zero(message + i * f->grain * f->width, grain_bytes(f, i));
}

static int is_worth_examining(const ls_codec_form *f, const unsigned char *message)
{
	size_t grains = grain_count(f), zeros = 0, sampled = 0;

	for (size_t i = 0; i < grains && grains >= SAMPLED; i += STRIDE, sampled++)
		zeros += (size_t)grain_is_zero(f, message, i);
	return 8 * zeros >= sampled;
}

/* Fill in the bitmap; 0 when packing does not pay. */
static int fill_bitmap(const ls_codec_form *f, const unsigned char *message, unsigned char *bitmap)
{
	size_t most = f->count * f->width / 4 * 3, bytes = ls_sparse_bitmap(f);

	memset(bitmap, 0, ls_sparse_bitmap(f));
	for (size_t i = 0; i < grain_count(f) && bytes <= most; i++) {
		if (grain_is_zero(f, message, i))
			continue;
		bitmap[i / 8] = (unsigned char)(bitmap[i / 8] | 1u << (i % 8));
		bytes += grain_bytes(f, i);
	}
	return bytes <= most;
}

size_t ls_sparse_pack(const ls_codec_form *f, void *message, unsigned char *bitmap)
{
	unsigned char *to = message;

	if (!is_worth_examining(f, message) || !fill_bitmap(f, message, bitmap))
		return f->count * f->width;
	for (size_t i = 0; i < grain_count(f); i++) {
		if (!is_there(bitmap, i))
			continue;
		memmove(to, (const unsigned char *)message + i * f->grain * f->width, grain_bytes(f, i));
		to += grain_bytes(f, i);
	}
	memcpy(to, bitmap, ls_sparse_bitmap(f));
	return (size_t)(to - (unsigned char *)message) + ls_sparse_bitmap(f);
}

/* How many of the grains [0, count) are there. */
static size_t count_bits(const unsigned char *bitmap, size_t count)
{
	size_t sum = 0;
	uint64_t word;

	for (; count >= 64; bitmap += 8, count -= 64) {
		memcpy(&word, bitmap, sizeof(word));
		sum += (size_t)__builtin_popcountll(word);
	}
	for (; count >= 8; bitmap++, count -= 8)
		sum += (size_t)__builtin_popcount(*bitmap);
	return count > 0 ? sum + (size_t)__builtin_popcount(*bitmap & ((1u << count) - 1)) : sum;
}

ls_status ls_sparse_check(const ls_codec_form *f, const void *message, size_t bytes)
{
	size_t grains = grain_count(f), bits = 8 * ls_sparse_bitmap(f), plain = f->count * f->width;

	if (bytes == plain)
		return LS_OK;
	if (bytes > plain || bytes < ls_sparse_bitmap(f))
		return ls_fail(LS_EMISMATCH, "%zu bytes instead of %zu to %zu", bytes, ls_sparse_bitmap(f), plain);
	const unsigned char *bitmap = (const unsigned char *)message + (bytes - ls_sparse_bitmap(f));
	size_t there = count_bits(bitmap, grains), expected = there * f->grain * f->width + ls_sparse_bitmap(f);
	if (grains > 0 && is_there(bitmap, grains - 1))
		expected -= f->grain * f->width - grain_bytes(f, grains - 1);
	if (expected != bytes || count_bits(bitmap, bits) != there)
		return ls_fail(LS_EMISMATCH, "%zu bytes, but its bitmap has %zu grains, which makes %zu", bytes,
			       count_bits(bitmap, bits), expected);
	return LS_OK;
}

void ls_sparse_unpack(const ls_codec_form *f, const void *message, size_t bytes, size_t begin, size_t end, float *out)
{
	const unsigned char *bitmap = (const unsigned char *)message + (bytes - ls_sparse_bitmap(f));
	const unsigned char *from = message;

	from += count_bits(bitmap, begin / f->grain) * f->grain * f->width;
	for (size_t i = begin / f->grain; i * f->grain < end; i++) {
		size_t count = end - i * f->grain < f->grain ? end - i * f->grain : f->grain;
		float *to = out + (i * f->grain - begin);
		if (!is_there(bitmap, i)) {
			memset(to, 0, count * sizeof(*to));
			continue;
		}
		if (f->width == sizeof(float))
			memcpy(to, from, count * sizeof(*to));
		else
			ls_bf16_decode(to, from, count);
		from += count * f->width;
	}
}

const ls_codec ls_codec_sparse_fp32 = { .name = "sparse-fp32",
					.summary = "floats as they are, without runs of zeros",
					.wire = "fp32",
					.exact = 1,
					.width = sizeof(float),
					.pack = ls_sparse_pack,
					.check = ls_sparse_check,
					.unpack = ls_sparse_unpack };

const ls_codec ls_codec_sparse_bf16 = { .name = "sparse-bf16",
					.summary = "rounded to bf16, without runs of zeros",
					.wire = "bf16",
					.width = sizeof(uint16_t),
					.encode = ls_bf16_encode,
					.decode = ls_bf16_decode,
					.pack = ls_sparse_pack,
					.check = ls_sparse_check,
					.unpack = ls_sparse_unpack,
					.encode_change = ls_bf16_encode_change,
					.add_change = ls_bf16_add_change };
