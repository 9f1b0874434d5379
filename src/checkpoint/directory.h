/*
 * directory.h - RUN/ckpt and the names in it.
 *
 *     step-000000200        whole, always
 *     .step-000000200.tmp   being written or being removed: worthless after a crash
 *     .step-000000200.old   whole; renamed while a new step-000000200 takes its name
 *     step-000000200.aside  unknown or damaged, and in the way: never used, never removed
 *
 * Only the process that trains calls prepare, publish and prune. Listing changes nothing, so others may read meanwhile.
 */
#ifndef LS_CHECKPOINT_DIRECTORY_H
#define LS_CHECKPOINT_DIRECTORY_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

#define LS_CKPT_PATH 4096

typedef enum ls_ckpt_kind { LS_CKPT_WHOLE, LS_CKPT_TEMPORARY, LS_CKPT_OLD } ls_ckpt_kind;

typedef struct ls_ckpt_item {
	uint64_t step;
	ls_ckpt_kind kind;
} ls_ckpt_item;

typedef struct ls_ckpt_list {
	ls_ckpt_item *items; /* free() */
	size_t count;
} ls_ckpt_list;

/* RUN/ckpt, of LS_CKPT_PATH bytes. */
ls_status ls_ckpt_root(char *out, const char *run);
/* The path of one of the three names above, of LS_CKPT_PATH bytes. */
ls_status ls_ckpt_item_path(char *out, const char *root, ls_ckpt_item item);

/* Every entry of `root` named like one of ours, newest step first; an absent root is an empty list. */
ls_status ls_ckpt_list_read(ls_ckpt_list *out, const char *root);

/* Make RUN/ckpt in a run directory that is there, restore what a crash left renamed, remove what it left half written.
 */
ls_status ls_ckpt_prepare(const char *run, const char *root);

/* Whether a checkpoint directory is whole; and the cheap part of that check, whether we can read its state.json
 * (resume.c). */
ls_status ls_ckpt_verify(const char *directory);
ls_status ls_ckpt_recognize(const char *directory);

/* Give the synced temporary directory of `step` its name, replacing a whole one of the same step; anything else with
 * that name is renamed *.aside. */
ls_status ls_ckpt_publish(const char *root, uint64_t step);

/* Keep `step` and the keep - 1 newest before it. Later steps belong to a history that was abandoned when the run went
 * back to before them: they go too, or a resume would take them for the newest. What does not verify is renamed *.aside
 * instead of removed. Problems are warnings. */
void ls_ckpt_prune(const char *root, uint64_t step, int64_t keep);

#endif
