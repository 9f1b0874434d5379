/*
 * lookup.h - guesses at the next tokens of a text: those that came after its last tokens when these stood there before.
 *
 * Guesses are cheap to check: the model reads its weights once for all of them, which is what takes the time. Wrong
 * ones cost a little, so there are fewer guesses after wrong ones and more after right ones.
 */
#ifndef LS_PREDICT_LOOKUP_H
#define LS_PREDICT_LOOKUP_H

#include <stdint.h>

enum { LS_LOOKUP_MOST = 31 }; /* guesses at a time: more would seldom all be right */

typedef struct ls_lookup {
	int most;  /* guesses at a time */
	int level; /* now 2^level - 1 at a time */
	int pause; /* tokens without guesses after the next failure of a single one */
	int wait;  /* of them to come */
} ls_lookup;

/* At most `most` guesses at a time, up to LS_LOOKUP_MOST; 0: never. */
void ls_lookup_begin(ls_lookup *lookup, int64_t most);

/* Guesses at what comes after tokens[0 .. length), at most `room` of them; returns how many. */
int ls_lookup_guess(ls_lookup *lookup, const int32_t *tokens, int length, int room, int32_t *guesses);

/* The first `right` of the `count` guesses, at least one, were right. */
void ls_lookup_learn(ls_lookup *lookup, int count, int right);

#endif
