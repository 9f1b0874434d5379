/*
 * lookup.c - the longest end of the text that stands in it a second time, the later of two of the same length.
 */
#include "predict/lookup.h"

enum {
	ALIKE_LEAST = 2, /* tokens that must be the same */
	ALIKE_MOST = 16, /* and need not be compared further */
	LEVEL_FIRST = 2,
	LEVEL_MOST = 5, /* LS_LOOKUP_MOST guesses */
	PAUSE_FIRST = 4,
	PAUSE_MOST = 64
};

_Static_assert((1 << LEVEL_MOST) - 1 == LS_LOOKUP_MOST, "the highest level has as many guesses as there may be");

void ls_lookup_begin(ls_lookup *l, int64_t most)
{
	*l = (ls_lookup){ .most = most < LS_LOOKUP_MOST ? (int)most : LS_LOOKUP_MOST,
			  .level = LEVEL_FIRST,
			  .pause = PAUSE_FIRST };
}

/* How many tokens before `end` are those at the end of the text. */
static int count_alike(const int32_t *tokens, int length, int end)
{
	int alike = 0;
	while (alike < ALIKE_MOST && alike < end && tokens[end - 1 - alike] == tokens[length - 1 - alike])
		alike++;
	return alike;
}

/* Where the text went on after what it ends with now; 0: nowhere. */
static int find(const int32_t *tokens, int length)
{
	int most = ALIKE_LEAST - 1, found = 0;

	for (int end = length - 1; end >= ALIKE_LEAST && most < ALIKE_MOST; end--) {
		int alike = count_alike(tokens, length, end);
		if (alike > most) {
			most = alike;
			found = end;
		}
	}
	return found;
}

int ls_lookup_guess(ls_lookup *l, const int32_t *tokens, int length, int room, int32_t *guesses)
{
	int count = (1 << l->level) - 1;

	if (l->wait > 0) {
		l->wait--;
		return 0;
	}
	count = count < l->most ? count : l->most;
	count = count < room ? count : room;
	int from = count > 0 ? find(tokens, length) : 0;
	if (from == 0)
		return 0;
	/* What ends too early goes on as if it repeated itself. */
	for (int i = 0; i < count; i++)
		guesses[i] = from + i < length ? tokens[from + i] : guesses[from + i - length];
	return count;
}

void ls_lookup_learn(ls_lookup *l, int count, int right)
{
	if (right > 0)
		l->pause = PAUSE_FIRST;
	if (right == count) {
		l->level += l->level < LEVEL_MOST && count == (1 << l->level) - 1;
	} else if (right == 0 && l->level > 1) {
		l->level--;
	} else if (right == 0) {
		l->wait = l->pause;
		l->pause = l->pause < PAUSE_MOST ? 2 * l->pause : PAUSE_MOST;
	}
}
