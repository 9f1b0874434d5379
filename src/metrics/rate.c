/*
 * rate.c - throughput of the recent past.
 */
#include "metrics/rate.h"

void ls_rate_add(ls_rate *rate, double seconds, double samples)
{
	size_t slot = rate->count % LS_RATE_WINDOW;
	rate->seconds[slot] = seconds;
	rate->samples[slot] = samples;
	rate->count++;
}

static size_t kept(const ls_rate *rate)
{
	return rate->count < LS_RATE_WINDOW ? (size_t)rate->count : LS_RATE_WINDOW;
}

double ls_rate_median(const ls_rate *rate)
{
	double rates[LS_RATE_WINDOW];
	size_t count = 0;
	for (size_t i = 0; i < kept(rate); i++) {
		int first = i < LS_RATE_SKIPPED && rate->count <= LS_RATE_WINDOW + i; /* not yet written over */
		if (!first || rate->count <= LS_RATE_SKIPPED)
			rates[count++] = rate->seconds[i] > 0.0 ? rate->samples[i] / rate->seconds[i] : 0.0;
	}
	return ls_median(rates, count);
}

double ls_rate_mean_since(const ls_rate *rate, uint64_t steps)
{
	double seconds = 0.0, samples = 0.0;
	uint64_t reach = steps < kept(rate) ? steps : kept(rate);
	for (uint64_t back = 1; back <= reach; back++) {
		size_t slot = (rate->count - back) % LS_RATE_WINDOW;
		seconds += rate->seconds[slot];
		samples += rate->samples[slot];
	}
	return seconds > 0.0 ? samples / seconds : 0.0;
}

/* Shell's sort with Ciura's gaps: in place, because qsort() may allocate and a step must not. */
static void sort(double *values, size_t count)
{
	static const size_t gaps[] = { 1750, 701, 301, 132, 57, 23, 10, 4, 1 };
	for (size_t g = 0; g < sizeof(gaps) / sizeof(*gaps); g++) {
		for (size_t i = gaps[g]; i < count; i++) {
			double moving = values[i];
			size_t at = i;
			for (; at >= gaps[g] && values[at - gaps[g]] > moving; at -= gaps[g])
				values[at] = values[at - gaps[g]];
			values[at] = moving;
		}
	}
}

double ls_median(double *values, size_t count)
{
	if (count == 0)
		return 0.0;
	sort(values, count);
	return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2.0;
}
