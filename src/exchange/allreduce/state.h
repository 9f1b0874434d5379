/*
 * state.h - the inside of an ls_allreduce, and the parts of a call.
 */
#ifndef LS_EXCHANGE_ALLREDUCE_STATE_H
#define LS_EXCHANGE_ALLREDUCE_STATE_H

#include "exchange/allreduce/allreduce.h"
#include "exchange/tree.h"

enum {
	LS_ALLREDUCE_TAG_HEADER = 1,
	LS_ALLREDUCE_TAG_INDICES,
	LS_ALLREDUCE_TAG_MEMORY,
	LS_ALLREDUCE_TAG_PARTIALS,
	LS_ALLREDUCE_TAG_SUMS
};

/* What a rank says about its call. */
typedef struct ls_allreduce_header {
	int64_t call; /* number of the call */
	int64_t floats, contributions, count;
	int64_t refused; /* its own arguments are wrong, or it has no memory (an ls_status): it sends nothing more */
} ls_allreduce_header;

/* Floats that a rank has, or needs, for sums. */
typedef struct ls_allreduce_memory {
	size_t scratch, packed, received;
} ls_allreduce_memory;

/* A partial sum of some rank. */
typedef struct ls_allreduce_piece {
	ls_partial partial;
	int rank, output; /* its number among the rank's */
} ls_allreduce_piece;

struct ls_allreduce {
	ls_transport *transport; /* NULL: alone */
	int rank, ranks;
	double timeout;
	int64_t calls;
	int is_broken;
	ls_allreduce_header *headers; /* (ranks) */
	int *done;                    /* (slots) found by poll() */
	char *pending;                /* (slots) operations under way */
	int64_t *partials, *place;    /* (ranks) partial sums, and where they lie in `received` */
	ls_allreduce_memory *memory;  /* (ranks) what each has: it follows from calls that all have made */
	int64_t *out_of_memory;       /* (ranks) whether it is, in the call under way */

	/* of the call under way, with room for the largest so far */
	int64_t room;               /* contributions */
	int64_t *indices;           /* (room) of all ranks, rank by rank */
	int *holder;                /* (room) which rank has it */
	const float **values;       /* (room) own ones, by index; then those of `own` or `total` */
	const float **inputs;       /* (room) */
	ls_partial *listed;         /* (room) */
	ls_allreduce_piece *pieces; /* (room) */
	ls_fold own, total;         /* own contributions -> own partial sums; all partial sums -> the sum */
	float *packed, *received, *scratch;
	size_t packed_floats, received_floats, scratch_floats;
	ls_allreduce *next; /* of those that are broken */
};

/* Messages: at most one from and one to each other rank at a time. */
ls_status ls_allreduce_send(ls_allreduce *a, int peer, int tag, const void *buffer, size_t bytes);
ls_status ls_allreduce_receive(ls_allreduce *a, int peer, int tag, void *buffer, size_t bytes);

/* Until all messages that were started are there; `what` is for the error. */
ls_status ls_allreduce_await(ls_allreduce *a, const char *what);

/* No later call can work; returns the status. */
ls_status ls_allreduce_break_down(ls_allreduce *a, ls_status status);

/* What is wrong with the arguments of this rank. */
ls_status ls_allreduce_check(const ls_contribution *mine, int64_t count, int64_t contributions, const float *out,
			     size_t floats);

/* All ranks know of all arguments, or none goes on: `refused` is what is wrong with this rank's. */
ls_status ls_allreduce_agree(ls_allreduce *a, ls_status refused, const ls_allreduce_header *own);

/* `reserved` is whether this rank has its memory: LS_OK where all have. */
ls_status ls_allreduce_agree_on_memory(ls_allreduce *a, ls_status reserved);

/* Who has which contribution: a->holder. */
ls_status ls_allreduce_assign(ls_allreduce *a, const ls_contribution *mine);

void ls_allreduce_release_plan(ls_allreduce *a);

#endif
