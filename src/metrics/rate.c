/*
 * rate.c - throughput of the recent past.
 */
#include "metrics/rate.h"

#include "base/median.h"

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
