/*
 * cores.h - which processors a process may use, and which of them are cores.
 *
 * A processor is what the scheduler numbers; a core is one or more processors that share its arithmetic units. Kernels
 * keep a core's units busy with one thread, so threads are counted and placed by cores.
 */
#ifndef LS_BASE_CORES_H
#define LS_BASE_CORES_H

#include "base/status.h"

enum { LS_PROCESSORS = 8192, LS_PROCESSOR_WORD = 8 * (int)sizeof(unsigned long) }; /* the most that Linux supports */

/* A set of processors, in the form of the scheduler's calls. */
typedef struct ls_processors {
	unsigned long words[LS_PROCESSORS / (8 * sizeof(unsigned long))];
} ls_processors;

static inline int ls_processors_has(const ls_processors *set, int processor)
{
	return set->words[processor / LS_PROCESSOR_WORD] >> (processor % LS_PROCESSOR_WORD) & 1;
}

static inline void ls_processors_add(ls_processors *set, int processor)
{
	set->words[processor / LS_PROCESSOR_WORD] |= 1ul << (processor % LS_PROCESSOR_WORD);
}

/* The first processor >= `from`, or -1. */
int ls_processors_next(const ls_processors *set, int from);

/* The processors that the calling thread may run on. */
void ls_cores_allowed(ls_processors *out);

/* How many cores have a processor in `allowed`; if the topology cannot be read, each processor counts as a core. Reads
 * one small file per processor, about 10 us each. `root` is "" but in tests. */
int ls_cores_count(const char *root, const ls_processors *allowed);

/* Number of processors whose time the control groups grant, rounded up; INT_MAX: no limit. */
int ls_cores_quota(const char *root);

/* Cores in an order in which neighbours share caches and memory, cut where the memory changes. */
typedef struct ls_cores {
	int count;
	ls_processors *core; /* (count) their processors */
	int domains;         /* NUMA domains among them, at least 1 */
	int *first;          /* (domains + 1) the first core of each, then count */
} ls_cores;

/* The cores with a processor in `allowed`. Takes hwloc some milliseconds. */
ls_status ls_cores_list(ls_cores *out, const ls_processors *allowed);
void ls_cores_release(ls_cores *cores);

#endif
