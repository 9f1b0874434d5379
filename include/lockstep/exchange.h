/*
 * exchange.h - an all-reduce for any program's own arrays whose bits do not depend on how many ranks there are.
 *
 * MPI_Allreduce() adds what the ranks bring in an order of its own choice, so the sum of the same numbers has other
 * bits on 2 ranks than on 3. Here the numbers are *contributions* with an index each: the gradient of micro-batch i,
 * the forces of cell i, the partial result of task i. Their sum follows a fixed binary tree over the indices,
 *
 *     ((c0 + c1) + (c2 + c3)) + (c4 + c5)
 *
 * whoever holds them: any number of ranks, any assignment of contributions to ranks, the same bits on every rank.
 *
 *     ls_allreduce *reduce = NULL;
 *     ls_allreduce_options options = LS_ALLREDUCE_OPTIONS_INIT;
 *     options.communicator = MPI_Comm_c2f(comm);
 *     if (ls_allreduce_new(&reduce, &options)) return fail();
 *     for (int64_t i = 0; i < 12; i++)
 *         if (i % ranks == rank)
 *             mine[count++] = (ls_contribution){ .index = i, .values = result_of_task(i) };
 *     if (ls_allreduce_sum(reduce, mine, count, 12, total, n)) return fail();
 *     ls_allreduce_free(reduce);
 *
 * examples/allreduce.c is a whole program. This header does not need <mpi.h>, and a program that runs without MPI is
 * one rank that sums what it has.
 *
 * Algorithm and cost. Ranks tell each other who has which contributions; each adds up what its own make of the tree, P
 * partial sums; these go to the owners of 1/N of the array each (reduce-scatter), which add them in the order of the
 * tree; the sums go to all (all-gather). For N ranks and arrays of M bytes a rank sends
 *
 *     (N-1)/N (P + 1) M bytes in 2 (N-1) messages, after 2 (N-1) small ones (3 (N-1) where a rank needs more memory
 *     than in calls before),
 *
 * and keeps up to (P + P' / N) M bytes of memory, P' being the partial sums of all others. Contributions next to each
 * other are cheapest: a run of a power of two that begins at a multiple of it is one partial sum, any run of n has at
 * most 2 log2(n). With P = 1 that is what a ring all-reduce moves. The best assignment gives rank r the contributions
 * [r C/N, (r + 1) C/N).
 */
#ifndef LOCKSTEP_EXCHANGE_H
#define LOCKSTEP_EXCHANGE_H

#include <stddef.h>
#include <stdint.h>

#include <lockstep/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ls_allreduce ls_allreduce;

/* MPI_COMM_WORLD, where a program has no communicator of its own. */
#define LS_COMM_WORLD (-1)

typedef struct ls_allreduce_options {
	size_t size; /* set by LS_ALLREDUCE_OPTIONS_INIT */
	/* Its Fortran handle, MPI_Comm_c2f(comm), an int in every MPI: so that this header and other languages need no
	 * mpi.h (mpi4py: comm.py2f()). LS_COMM_WORLD: all ranks */
	int communicator;
	double timeout; /* seconds without any message of a rank that is waited for; 0: 30 */
} ls_allreduce_options;

#define LS_ALLREDUCE_OPTIONS_INIT                                                                                      \
	{                                                                                                              \
		.size = sizeof(ls_allreduce_options), .communicator = LS_COMM_WORLD, .timeout = 30                     \
	}

/* One of the arrays to be added: its place in the order of the sum, and its numbers. */
typedef struct ls_contribution {
	int64_t index; /* in [0, contributions): each is given by one rank */
	const float *values;
} ls_contribution;

/* Collective over the communicator, which is duplicated. MPI must be initialised, at any thread level: calls are
 * made by the caller's thread. `options` NULL: the defaults. */
LS_API ls_status ls_allreduce_new(ls_allreduce **out, const ls_allreduce_options *options);

/* Collective, as MPI_Comm_free() is; before MPI_Finalize(). Harmless on NULL and twice. */
LS_API void ls_allreduce_free(ls_allreduce *reduce);

/* This rank, from 0, and how many there are; -1 where `reduce` was freed. */
LS_API int ls_allreduce_rank(const ls_allreduce *reduce);
LS_API int ls_allreduce_ranks(const ls_allreduce *reduce);

/*
 * Collective: out[k] = the sum over all contributions of values[k], on every rank. `mine` are this rank's, in any
 * order; it may have none. `contributions` (of all ranks, at most 2^24) and `floats` must be the same on all ranks.
 * `out` may be one of this rank's own arrays; otherwise arrays do not overlap. NaN and infinities are added as
 * processors do.
 *
 * LS_EINVALID, LS_EMISMATCH: ranks disagree, or a contribution is missing or given twice. All ranks get an error, `out`
 * is not changed, and the next call may be a right one. LS_EMEMORY: the same, where a rank has not enough. LS_EPEER: a
 * rank was silent for `timeout`; messages may be under way to and from `out`, so the program must end, by MPI_Abort()
 * best.
 *
 * Memory is allocated when a call needs more than those before it.
 */
LS_API ls_status ls_allreduce_sum(ls_allreduce *reduce, const ls_contribution *mine, int64_t count,
				  int64_t contributions, float *out, size_t floats);

#ifdef __cplusplus
}
#endif
#endif
