/*
 * effects.h - settings that change nothing in a run as it is.
 *
 * One row per setting says when it counts. Whoever gives an option that does not is told so, with the reason: a run
 * that silently trains without it looks like one that trained with it. Settings that contradict each other are errors,
 * and are found before.
 */
#ifndef LS_RUN_EFFECTS_H
#define LS_RUN_EFFECTS_H

#include <lockstep/train.h>

/* What a run came to, as far as it decides whether settings count. */
typedef struct ls_effects {
	const ls_train_options *options; /* as they were given */
	int is_text;                     /* of the data */
	int has_test;                    /* a test set is opened by name */
	int has_exchange;                /* gradients of several devices or micro-batches are summed in buckets */
	int nodes;
} ls_effects;

/* Whether a setting of the table counts; when not, `why` is a sentence, "--momentum has no effect with --optimizer
 * adam". */
int ls_effects_of(const ls_effects *run, const ls_setting *setting, char *why, size_t size);

/* Warn of every setting that was set by name and does not count. */
void ls_effects_warn(const ls_effects *run);

#endif
