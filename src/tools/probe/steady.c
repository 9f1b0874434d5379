#include "tools/probe/steady.h"

#include <math.h>
#include <stdlib.h>

static int descending(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;
	return (left < right) - (left > right);
}

static ls_steady measure_round(const ls_steady_options *o)
{
	double rates[LS_STEADY_REPEATS];
	int count = o->repeat < LS_STEADY_REPEATS ? o->repeat : LS_STEADY_REPEATS, kept = count - count / 4;

	for (int i = 0; i < count; i++)
		rates[i] = o->rate(o->context);
	qsort(rates, (size_t)count, sizeof(*rates), descending);
	double median = (rates[(count - 1) / 2] + rates[count / 2]) / 2;
	return (ls_steady){ .value = median, .spread = (rates[0] - rates[kept - 1]) / median };
}

static int is_steady(const ls_steady *round)
{
	return round->spread <= LS_STEADY_SPREAD;
}

/* Disturbances make things slower, never faster: of steady rounds the fastest, else the steadiest. */
static int is_better(const ls_steady *a, const ls_steady *b)
{
	if (is_steady(a) != is_steady(b))
		return is_steady(a);
	return is_steady(a) ? a->value > b->value : a->spread < b->spread;
}

ls_steady ls_steady_measure(const ls_steady_options *o)
{
	ls_steady best = { .spread = INFINITY };

	for (int rounds = 1; rounds <= LS_STEADY_ROUNDS; rounds++) {
		ls_steady round = measure_round(o);
		if (rounds == 1 || is_better(&round, &best))
			best = round;
		best.rounds = rounds;
		if (is_steady(&best) && best.value >= LS_STEADY_LEAST * o->expected)
			break;
	}
	return best;
}
