#include "tools/report/scale.h"

#include <math.h>

/* The smallest of 1, 2, 5 times a power of ten that is not below `least`. */
static double round_step(double least)
{
	double power = pow(10, floor(log10(least)));
	double times = least / power;
	return power * (times <= 1.0000001 ? 1 : times <= 2.0000001 ? 2 : times <= 5.0000001 ? 5 : 10);
}

ls_scale ls_scale_fit(double low, double high, int zero, int logarithmic)
{
	ls_scale scale = { .low = low, .high = high, .logarithmic = logarithmic && low > 0 };
	if (scale.logarithmic) {
		scale.low = fmin(low, 1 / round_step(0.999999 / low));
		scale.high = fmax(high, round_step(high * 0.999999));
		if (!(scale.high > scale.low * 1.000001))
			scale.high *= 2;
		return scale;
	}
	if (zero && low > 0)
		scale.low = 0;
	if (!(scale.high - scale.low > 1e-12 * fabs(scale.high)))
		scale.high = scale.low + (scale.low != 0 ? fabs(scale.low) : 1);
	double step = round_step((scale.high - scale.low) / 6);
	scale.low = fmin(scale.low, floor(scale.low / step + 1e-9) * step);
	scale.high = fmax(scale.high, ceil(scale.high / step - 1e-9) * step);
	return scale;
}

double ls_scale_at(const ls_scale *scale, double value)
{
	double part = scale->logarithmic ? (log(value) - log(scale->low)) / (log(scale->high) - log(scale->low))
					 : (value - scale->low) / (scale->high - scale->low);
	return scale->from + part * (scale->to - scale->from);
}

static size_t linear_ticks(const ls_scale *scale, int wanted, double *out)
{
	double step = round_step((scale->high - scale->low) / (wanted > 0 ? wanted : 1));
	double first = ceil(scale->low / step - 1e-9);
	size_t count = 0;
	for (; count < LS_TICKS_MAX; count++) {
		double value = (first + (double)count) * step;
		if (value > scale->high + step * 1e-6)
			break;
		out[count] = fabs(value) < step * 1e-6 ? 0 : value;
	}
	return count;
}

/* Over a few decades 1, 2 and 5 of each; over more, every first, second, third ... power of ten. */
static size_t log_ticks(const ls_scale *scale, int wanted, double *out)
{
	static const double within[] = { 1, 2, 5 };
	int first = (int)floor(log10(scale->low) + 1e-9), last = (int)ceil(log10(scale->high) - 1e-9);
	int all = (last - first) * 3 <= wanted + 4;
	int stride = all ? 1 : 1 + (last - first) / (wanted + 1);
	size_t count = 0;
	for (int power = first; power <= last; power += stride)
		for (int k = 0; k < (all ? 3 : 1); k++) {
			double value = within[k] * pow(10, power);
			int inside = value >= scale->low * 0.999999 && value <= scale->high * 1.000001;
			if (inside && count < LS_TICKS_MAX)
				out[count++] = value;
		}
	return count;
}

size_t ls_scale_ticks(const ls_scale *scale, int wanted, double out[LS_TICKS_MAX])
{
	return scale->logarithmic ? log_ticks(scale, wanted, out) : linear_ticks(scale, wanted, out);
}
