#include "exchange/pack.h"

#include <stdint.h>
#include <string.h>

#include "exchange/bf16.h"

/* Grains from one of the sample to the next: odd, so that it meets all parts of rows. Fewer than SAMPLED are all looked
 * at. */
enum { STRIDE = 13, SAMPLED = 8 * STRIDE };

size_t ls_pack_grain(size_t block)
{
	size_t grain = LS_GRAIN_MOST;
	while (block % grain != 0)
		grain /= 2;
	return grain;
}

static size_t grain_count(const ls_pack_form *f)
{
	return (f->count + f->grain - 1) / f->grain;
}

size_t ls_pack_marks(const ls_pack_form *f)
{
	return (grain_count(f) + 7) / 8;
}

static size_t grain_bytes(const ls_pack_form *f, size_t i)
{
	size_t left = f->count - i * f->grain;
	return (left < f->grain ? left : f->grain) * f->width;
}

static int is_marked(const unsigned char *marks, size_t i)
{
	return marks[i / 8] >> (i % 8) & 1;
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

static int grain_is_zero(const ls_pack_form *f, const unsigned char *message, size_t i)
{
	return is_zero(message + i * f->grain * f->width, grain_bytes(f, i));
}

static int is_worth_a_look(const ls_pack_form *f, const unsigned char *message)
{
	size_t grains = grain_count(f), zeros = 0, sampled = 0;

	for (size_t i = 0; i < grains && grains >= SAMPLED; i += STRIDE, sampled++)
		zeros += (size_t)grain_is_zero(f, message, i);
	return 8 * zeros >= sampled;
}

/* Fill in the marks; 0 when too much is left to pay. */
static int mark(const ls_pack_form *f, const unsigned char *message, unsigned char *marks)
{
	size_t most = f->count * f->width / 4 * 3, bytes = ls_pack_marks(f);

	memset(marks, 0, ls_pack_marks(f));
	for (size_t i = 0; i < grain_count(f) && bytes <= most; i++) {
		if (grain_is_zero(f, message, i))
			continue;
		marks[i / 8] = (unsigned char)(marks[i / 8] | 1u << (i % 8));
		bytes += grain_bytes(f, i);
	}
	return bytes <= most;
}

size_t ls_pack(const ls_pack_form *f, void *message, unsigned char *marks)
{
	unsigned char *to = message;

	if (!is_worth_a_look(f, message) || !mark(f, message, marks))
		return f->count * f->width;
	for (size_t i = 0; i < grain_count(f); i++) {
		if (!is_marked(marks, i))
			continue;
		memmove(to, (const unsigned char *)message + i * f->grain * f->width, grain_bytes(f, i));
		to += grain_bytes(f, i);
	}
	memcpy(to, marks, ls_pack_marks(f));
	return (size_t)(to - (unsigned char *)message) + ls_pack_marks(f);
}

/* How many of the grains [0, count) are there. */
static size_t count_marks(const unsigned char *marks, size_t count)
{
	size_t sum = 0;
	uint64_t word;

	for (; count >= 64; marks += 8, count -= 64) {
		memcpy(&word, marks, sizeof(word));
		sum += (size_t)__builtin_popcountll(word);
	}
	for (; count >= 8; marks++, count -= 8)
		sum += (size_t)__builtin_popcount(*marks);
	return count > 0 ? sum + (size_t)__builtin_popcount(*marks & ((1u << count) - 1)) : sum;
}

ls_status ls_pack_check(const ls_pack_form *f, const void *message, size_t bytes)
{
	size_t grains = grain_count(f), bits = 8 * ls_pack_marks(f), plain = f->count * f->width;

	if (bytes == plain)
		return LS_OK;
	if (bytes > plain || bytes < ls_pack_marks(f))
		return ls_fail(LS_EMISMATCH, "%zu bytes where there should be %zu to %zu", bytes, ls_pack_marks(f),
			       plain);
	const unsigned char *marks = (const unsigned char *)message + (bytes - ls_pack_marks(f));
	size_t there = count_marks(marks, grains), expected = there * f->grain * f->width + ls_pack_marks(f);
	if (grains > 0 && is_marked(marks, grains - 1))
		expected -= f->grain * f->width - grain_bytes(f, grains - 1);
	if (expected != bytes || count_marks(marks, bits) != there)
		return ls_fail(LS_EMISMATCH, "%zu bytes, but its marks tell of %zu grains, which makes %zu", bytes,
			       count_marks(marks, bits), expected);
	return LS_OK;
}

void ls_pack_open(const ls_pack_form *f, const void *message, size_t bytes, size_t begin, size_t end, float *out)
{
	const unsigned char *marks = (const unsigned char *)message + (bytes - ls_pack_marks(f));
	const unsigned char *from = message;

	from += count_marks(marks, begin / f->grain) * f->grain * f->width;
	for (size_t i = begin / f->grain; i * f->grain < end; i++) {
		size_t count = end - i * f->grain < f->grain ? end - i * f->grain : f->grain;
		float *to = out + (i * f->grain - begin);
		if (!is_marked(marks, i)) {
			memset(to, 0, count * sizeof(*to));
			continue;
		}
		if (f->width == sizeof(float))
			memcpy(to, from, count * sizeof(*to));
		else
			ls_bf16_expand(to, (const uint16_t *)(const void *)from, count);
		from += count * f->width;
	}
}
