/*
 * family.h - what a file of weights may have that a model of the family has not, and under which other names.
 *
 * A row a family, and the only place that knows: weights from another task or another program fit by these rules or not
 * at all. A model whose words are in no row takes its own names, all of them, and nothing else.
 */
#ifndef LS_CHECKPOINT_FAMILY_H
#define LS_CHECKPOINT_FAMILY_H

#include "checkpoint/entries.h"

/* A name that ends with `name` may end with `other` in a file. A file with both must have the same in both, where the
 * model has a tensor `with` (NULL: always). */
typedef struct ls_ckpt_twin {
	const char *name, *other, *with;
} ls_ckpt_twin;

typedef struct ls_ckpt_family {
	const char *words;         /* the table of words, by which a model is known: a row a token of the vocabulary */
	const char *body;          /* what begins so every task shares, all else is heads; NULL: there are no heads */
	const ls_ckpt_twin *twins; /* ends with a NULL name */
	const char *const *idle;   /* endings of tensors that hold nothing to be learnt; ends with NULL */
} ls_ckpt_family;

/* Of the model that `entries` are of; NULL: none. */
const ls_ckpt_family *ls_ckpt_family_of(const ls_ckpt_entries *entries);

/* Whether a tensor belongs to the head of a task. */
int ls_ckpt_is_head(const ls_ckpt_family *family, const char *name);
/* Whether a file may have it and no model needs it. */
int ls_ckpt_is_idle(const ls_ckpt_family *family, const char *name);

/* The tensor under its own name or another, NULL: not there. `second` is the one that must be the same, or NULL. Family
 * NULL: its own name alone. */
const ls_st_tensor *ls_ckpt_family_find(const ls_ckpt_family *family, const ls_ckpt_entries *entries,
					const ls_st_reader *reader, const char *name, const ls_st_tensor **second);

#endif
