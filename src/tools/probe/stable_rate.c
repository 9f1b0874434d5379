#include "tools/probe/stable_rate.h"

#include <math.h>

#include "base/median.h"

static ls_stable_rate measure_round(const ls_stable_rate_options *o)
{
	double rates[LS_STABLE_REPEATS];
	int count = o->repeat < LS_STABLE_REPEATS ? o->repeat : LS_STABLE_REPEATS, kept = count - count / 4;

	for (int i = 0; i < count; i++)
		rates[i] = o->rate(o->context);
	double median = ls_median(rates, (size_t)count);
	return (ls_stable_rate){ .value = median, .spread = (rates[count - 1] - rates[count - kept]) / median };
}

static int is_steady(const ls_stable_rate *round)
{
	return round->spread <= LS_STABLE_SPREAD;
}

/* Disturbances only slow down: the fastest of the steady rounds is best, else the steadiest round. */
static int is_better(const ls_stable_rate *a, const ls_stable_rate *b)
{
	if (is_steady(a) != is_steady(b))
		return is_steady(a);
	return is_steady(a) ? a->value > b->value : a->spread < b->spread;
}

ls_stable_rate ls_stable_rate_measure(const ls_stable_rate_options *o)
{
	ls_stable_rate best = { .spread = INFINITY };

	for (int rounds = 1; rounds <= LS_STABLE_ROUNDS; rounds++) {
		ls_stable_rate round = measure_round(o);
		if (rounds == 1 || is_better(&round, &best))
			best = round;
		best.rounds = rounds;
		if (is_steady(&best) && best.value >= LS_STABLE_LEAST * o->expected)
			break;
	}
	return best;
}
