/*
 * snapshot.h - a copy in memory of all that a checkpoint has of a trainer, so that training goes on while it is
 * written.
 *
 *     ls_snapshot_new()    before the first step: all memory it will ever take
 *     ls_snapshot_take()   between two steps: copies the stores
 *     snapshot->content    what ls_ckpt_save() takes, until the next call of ls_snapshot_take()
 *
 * Cost: one pass over parameters, running statistics and optimizer state; for Adam three floats per parameter.
 */
#ifndef LS_CHECKPOINT_SNAPSHOT_H
#define LS_CHECKPOINT_SNAPSHOT_H

#include "checkpoint/checkpoint.h"

typedef struct ls_snapshot {
	ls_ckpt_content content; /* its stores are the copies */
	float *floats;           /* (count) all of them */
	size_t count;
	float **slot; /* (content.slots) */
} ls_snapshot;

/* Bytes that a snapshot of such a trainer takes. */
size_t ls_snapshot_bytes(const ls_param_table *table, int slots);

/* For stores like those of `like`, whose table and slot names must outlive it. */
ls_status ls_snapshot_new(ls_snapshot **out, const ls_ckpt_content *like);
void ls_snapshot_free(ls_snapshot *snapshot); /* harmless on NULL */

/* Copy the stores of `from`, and take over what else it says (position, settings, metadata), which is borrowed. */
void ls_snapshot_take(ls_snapshot *snapshot, const ls_ckpt_content *from);

#endif
