/*
 * memory.h - arenas, large buffers, and limits on memory.
 *
 * Small objects of a module's lifetime live in an arena, freed at once. Big float buffers are aligned to 64 bytes,
 * zeroed, and advised to use huge pages. Training takes all memory before the first step (contract 3).
 */
#ifndef LS_BASE_MEMORY_H
#define LS_BASE_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* Zeroed bytes, 64-byte aligned; `what` names them in the error ("gradient store"). Free with ls_buffer_free. */
ls_status ls_buffer_new(void **out, size_t bytes, const char *what);
void ls_buffer_free(void *buffer, size_t bytes);

/* The same, counted in floats, with room behind them for a kernel that reads a whole cache line past the end. */
ls_status ls_floats_new(float **out, size_t count, const char *what);
void ls_floats_free(float *floats, size_t count);

/* Up to whole cache lines. */
static inline size_t ls_round_up64(size_t bytes)
{
	return (bytes + 63) / 64 * 64;
}

typedef struct ls_arena {
	struct ls_arena_block *blocks;
} ls_arena;
#define LS_ARENA_INIT                                                                                                  \
	{                                                                                                              \
		0                                                                                                      \
	}

/* Zeroed, 16-byte aligned memory that lives as long as the arena; NULL (with the error recorded) when out of memory. */
void *ls_arena_alloc(ls_arena *arena, size_t bytes);
char *ls_arena_format(ls_arena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));
char *ls_arena_copy(ls_arena *arena, const char *text);
void ls_arena_release(ls_arena *arena); /* frees everything; the arena may be used again */

/* A limit on the memory of this process, and how much of it is left (UINT64_MAX: no limit). */
typedef enum ls_memory_bound {
	LS_MEMORY_MACHINE,   /* MemTotal, MemAvailable */
	LS_MEMORY_CGROUP,    /* of a control group above the process */
	LS_MEMORY_ADDRESSES, /* RLIMIT_AS, ulimit -v */
	LS_MEMORY_DATA       /* RLIMIT_DATA, ulimit -d */
} ls_memory_bound;

typedef struct ls_memory_limit {
	ls_memory_bound bound;
	uint64_t bytes, left;
} ls_memory_limit;

/* The limit on used memory: of the machine or of the control group, whichever leaves less. */
ls_memory_limit ls_memory_physical(void);
/* Limits on mapped memory, used or not: ulimit -v counts all mappings, ulimit -d private writable ones, not read-only
 * files. */
ls_memory_limit ls_memory_address_space(void);
ls_memory_limit ls_memory_data(void);
/* The one of these two that leaves less. */
ls_memory_limit ls_memory_addresses(void);
/* The limit on used or on mapped memory, whichever leaves less. */
ls_memory_limit ls_memory_tightest(void);
/* Bytes that the tightest limit leaves. */
uint64_t ls_memory_available(void);
/* "ulimit -v 200000" or "this machine has 24.68 GB", in `text`, which is returned. */
const char *ls_memory_limit_name(const ls_memory_limit *limit, char *text, size_t size);

/* Resident size of this process now: program, libraries, and what it has read so far. */
uint64_t ls_memory_resident(void);
/* Largest resident size this process has had. */
uint64_t ls_memory_peak(void);

#endif
