/*
 * name_rules.h - which other names a weights file may use for a model's tensors, and which tensors it may have in
 * addition.
 *
 * One row per model family; nothing else in the library knows these names. Weights of another task or from another
 * program either fit by these rules or are refused. A model without a row accepts exactly its own tensor names.
 */
#ifndef LS_CHECKPOINT_NAME_RULES_H
#define LS_CHECKPOINT_NAME_RULES_H

#include "checkpoint/tensors.h"

/* A tensor whose name ends with `name` may end with `other` in a file. If a file has both, they must be equal, provided
 * the model has a tensor called `with` (NULL: always). */
typedef struct ls_ckpt_alias {
	const char *name, *other, *with;
} ls_ckpt_alias;

typedef struct ls_ckpt_name_rules {
	const char *words; /* the word embedding, which identifies the family: (vocabulary, hidden size) */
	const char *body;  /* prefix of tensors that all tasks share; others belong to heads. NULL: no heads */
	const ls_ckpt_alias *aliases; /* ends with a NULL name */
	const char *const *idle;      /* name endings of tensors that are not trained; ends with NULL */
} ls_ckpt_name_rules;

/* The row that fits the model of `entries`; NULL: none. */
const ls_ckpt_name_rules *ls_ckpt_name_rules_of(const ls_ckpt_tensors *entries);

/* Whether a tensor is of an adapter (LoRA). */
int ls_ckpt_is_adapter(const char *name);
/* Whether a tensor belongs to the head of a task, which other tasks do not have, or is of an adapter. */
int ls_ckpt_is_head(const ls_ckpt_name_rules *rules, const char *name);
/* Whether a file may have this tensor although no model needs it. */
int ls_ckpt_is_idle(const ls_ckpt_name_rules *rules, const char *name);

/* The tensor `name` of a file, looked up by its own name, then by its aliases; NULL: the file has none of them.
 * *second is a further copy that must be equal, or NULL. With rules NULL only its own name counts. */
const ls_st_tensor *ls_ckpt_name_rules_find(const ls_ckpt_name_rules *rules, const ls_ckpt_tensors *entries,
					    const ls_st_reader *reader, const char *name, const ls_st_tensor **second);

#endif
