/*
 * tree.h - the fixed binary tree over the micro-batches of a step, independent of their assignment.
 *
 * Micro-batch i of a step is micro-batch i of the tree; a node of level k covers the micro-batches [first, first +
 * 2^k), cut at the end of the step; its sum is left + right, and a node without a right child is its left child. The
 * tree depends on the number of micro-batches alone, so the sum at its root has the same bits however the micro-batches
 * were spread.
 *
 * A partial sum is a node of the tree whose micro-batches one worker holds. Partial sums in order of their first
 * micro-batch are joined by a stack: push one, and while the two on top are siblings, replace them by their parent.
 * What is left on the stack are the largest partial sums that can be made.
 */
#ifndef LS_EXCHANGE_TREE_H
#define LS_EXCHANGE_TREE_H

#include <stddef.h>
#include <stdint.h>

/* Deepest stack: a partial sum per level, on either side. */
#define LS_TREE_DEPTH 64

typedef struct ls_partial {
	int64_t first; /* micro-batch */
	int level;     /* of the highest node that covers the same micro-batches */
} ls_partial;

/* Micro-batch `first` alone. */
ls_partial ls_partial_leaf(int64_t first, int64_t microbatches);

/* When b is a's right sibling: their parent in *a and 1; else 0. */
int ls_partial_join(ls_partial *a, ls_partial b, int64_t microbatches);

/* Largest partial sums of the micro-batches [0, microbatches) for which holder[i] == worker, in order; returns how
 * many. At most `most` are written. */
int64_t ls_partial_list(const int *holder, int64_t microbatches, int worker, ls_partial *out, int64_t most);

/*
 * How one device sums its micro-batches while it computes them. Micro-batch number k (in the device's order) writes its
 * gradient to slot `slot`; then, for each of `joins`: into += from. At the end the partial sums lie in slots.
 */
typedef struct ls_schedule_microbatch {
	int slot, first_join, joins;
} ls_schedule_microbatch;

typedef struct ls_schedule_join {
	int into, from;
} ls_schedule_join;

typedef struct ls_device_schedule {
	int64_t count;                      /* micro-batches of this device */
	ls_schedule_microbatch *microbatch; /* (capacity) */
	ls_schedule_join *join;             /* (capacity) */
	int64_t *index;                     /* (capacity) micro-batch of the step */
	int partials;                       /* held at the end */
	ls_partial *partial;                /* (capacity) */
	int *partial_slot;                  /* (capacity) */
	int slots;                          /* used */
	int64_t capacity;
} ls_device_schedule;

/* Micro-batch i is this device's when node_of[i] == node and device_of[i] == device; the capacity is at least their
 * number. */
void ls_device_schedule_make(ls_device_schedule *schedule, const int *node_of, const int *device_of,
			     int64_t microbatches, int node, int device);

/*
 * Folding partial sums of several workers, given in order of their first micro-batch. After input i is pushed,
 * `joins[i]` pairs on top are added. Outputs are runs of inputs: output j is made of inputs [begin[j], begin[j + 1]).
 */
typedef struct ls_fold {
	int inputs, outputs;
	int *joins;          /* (inputs) */
	int *begin;          /* (outputs + 1) */
	ls_partial *partial; /* (outputs) what each became */
} ls_fold;

/* The arrays of `fold` have room for `count` inputs (and one more `begin`). */
void ls_fold_make(ls_fold *fold, const ls_partial *inputs, int count, int64_t microbatches);

/* Floats summed at a time, and the scratch ls_fold_run() needs: a chunk for every level of a tree of `microbatches`. */
#define LS_FOLD_CHUNK 2048
size_t ls_fold_scratch(int64_t microbatches);

/*
 * Output j over `count` floats. inputs[i] points at input i's (all inputs of the fold are given; only those of output j
 * are read). `out` may be the first input of j. Costs one read of every input and one write.
 */
void ls_fold_run(const ls_fold *fold, int j, const float *const *inputs, size_t count, float *out, float *scratch);

/* left += right over `count` floats. */
void ls_sum_into(float *left, const float *right, size_t count);

#endif
