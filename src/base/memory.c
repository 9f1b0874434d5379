/*
 * memory.c - aligned buffers and arenas.
 *
 * A buffer of 4 MiB or more is mapped: the kernel gives zeros without anybody touching the pages, starting at a huge
 * page's boundary, so that a store of many megabytes costs few TLB entries. Smaller ones come from the heap. Under
 * AddressSanitizer all do, because it cannot see past the end of a mapping.
 */
#include "base/memory.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HEAP_ONLY 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define HEAP_ONLY 1
#endif
#ifndef HEAP_ONLY
#define HEAP_ONLY 0
#endif

/* PAGE is the largest page a supported kernel has, so that trimming a mapping is always legal. */
enum { LINE = 64, PAGE = 64 << 10, HUGE_PAGE = 2 << 20, MAPPED_FROM = 4 << 20 };

static int is_mapped(size_t bytes)
{
	return !HEAP_ONLY && bytes >= MAPPED_FROM;
}

static size_t round_up(size_t bytes, size_t unit)
{
	return (bytes + unit - 1) / unit * unit;
}

/* Map one huge page too much, then give back what lies before and behind the aligned part. */
static void *map_aligned(size_t bytes)
{
	size_t wanted = round_up(bytes, PAGE), mapped = wanted + HUGE_PAGE;
	uint8_t *base = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (base == MAP_FAILED)
		return NULL;
	size_t before = round_up((uintptr_t)base, HUGE_PAGE) - (uintptr_t)base;
	size_t behind = mapped - before - wanted;
	if (before)
		munmap(base, before);
	if (behind)
		munmap(base + before + wanted, behind);
	madvise(base + before, wanted, MADV_HUGEPAGE); /* advice: a kernel without huge pages is as correct */
	return base + before;
}

ls_status ls_buffer_new(void **out, size_t bytes, const char *what)
{
	void *buffer = NULL;
	if (bytes <= SIZE_MAX / 2 - HUGE_PAGE) {
		if (is_mapped(bytes)) {
			buffer = map_aligned(bytes);
		} else {
			size_t rounded = round_up(bytes ? bytes : 1, LINE);
			buffer = aligned_alloc(LINE, rounded);
			if (buffer)
				memset(buffer, 0, rounded);
		}
	}
	if (!buffer)
		return ls_fail(LS_EMEMORY, "not enough memory for the %s: %.1f MB wanted", what, (double)bytes * 1e-6);
	*out = buffer;
	return LS_OK;
}

void ls_buffer_free(void *buffer, size_t bytes)
{
	if (!buffer)
		return;
	if (is_mapped(bytes))
		munmap(buffer, round_up(bytes, PAGE));
	else
		free(buffer);
}

#define FLOATS_BEHIND 16

ls_status ls_floats_new(float **out, size_t count, const char *what)
{
	void *buffer = NULL;
	LS_TRY(ls_buffer_new(&buffer, (count + FLOATS_BEHIND) * sizeof(float), what));
	*out = buffer;
	return LS_OK;
}

void ls_floats_free(float *floats, size_t count)
{
	ls_buffer_free(floats, (count + FLOATS_BEHIND) * sizeof(float));
}

/* ---- arena: blocks in a list, the newest first; a request that fits the newest block is cut from its end */

enum { ARENA_UNIT = 16, ARENA_BLOCK = 64 << 10 };

struct ls_arena_block {
	_Alignas(16) struct ls_arena_block *next;
	size_t used, size; /* bytes behind this header */
};

static struct ls_arena_block *arena_grow(ls_arena *arena, size_t bytes)
{
	size_t size = bytes > ARENA_BLOCK / 4 ? bytes : ARENA_BLOCK;
	struct ls_arena_block *block = calloc(1, sizeof(*block) + size);
	if (!block)
		return NULL;
	block->size = size;
	if (size != ARENA_BLOCK && arena->blocks) { /* a block of its own: keep cutting from the one in front */
		block->next = arena->blocks->next;
		arena->blocks->next = block;
	} else {
		block->next = arena->blocks;
		arena->blocks = block;
	}
	return block;
}

void *ls_arena_alloc(ls_arena *arena, size_t bytes)
{
	struct ls_arena_block *block = arena->blocks;
	if (bytes < SIZE_MAX / 2) {
		size_t wanted = round_up(bytes ? bytes : 1, ARENA_UNIT);
		if (!block || block->size - block->used < wanted)
			block = arena_grow(arena, wanted);
		if (block) {
			void *memory = (uint8_t *)(block + 1) + block->used;
			block->used += wanted;
			return memory;
		}
	}
	ls_fail(LS_EMEMORY, "not enough memory: %zu bytes wanted", bytes);
	return NULL;
}

char *ls_arena_format(ls_arena *arena, const char *format, ...)
{
	va_list arguments, again;
	va_start(arguments, format);
	va_copy(again, arguments);
	int length = vsnprintf(NULL, 0, format, arguments);
	char *text = length < 0 ? NULL : ls_arena_alloc(arena, (size_t)length + 1);
	if (text)
		vsnprintf(text, (size_t)length + 1, format, again);
	va_end(again);
	va_end(arguments);
	return text;
}

char *ls_arena_copy(ls_arena *arena, const char *text)
{
	size_t bytes = strlen(text) + 1;
	char *copy = ls_arena_alloc(arena, bytes);
	return copy ? memcpy(copy, text, bytes) : NULL;
}

void ls_arena_release(ls_arena *arena)
{
	while (arena->blocks) {
		struct ls_arena_block *next = arena->blocks->next;
		free(arena->blocks);
		arena->blocks = next;
	}
}
