/*
 * effects.h - settings that have no effect in a run.
 *
 * Rows of a table say when a setting has an effect; of several rows for a setting the first that says no counts. Giving an option that has none prints a warning with the reason:
 * otherwise a run that ignores an option looks like one that used it. Settings that contradict each other are errors,
 * and are found before.
 */
#ifndef LS_SETTINGS_EFFECTS_H
#define LS_SETTINGS_EFFECTS_H

#include <lockstep/train.h>

/* The resolved run, as far as it decides whether settings have an effect. */
typedef struct ls_effects {
	const ls_train_options *options; /* as they were given */
	int is_text;                     /* of the data */
	int has_test;                    /* a test set is opened by name */
	int has_exchange;                /* gradients of several devices or micro-batches are summed in buckets */
	int nodes;
} ls_effects;

/* Whether a setting of the table has an effect; when not, `why` is a sentence, "--momentum has no effect with
 * --optimizer adam". */
int ls_effects_of(const ls_effects *run, const ls_setting *setting, char *why, size_t size);

/* Warn of every setting that was set by name and has no effect. */
void ls_effects_warn(const ls_effects *run);

#endif
