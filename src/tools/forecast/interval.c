#include "tools/forecast/interval.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { POINTS_MAX = 1000, COLUMNS_BEFORE = 5 };

/* ---- known comparisons ------------------------------------------------------------------------------------------- */

/* The line after the one at `at`; NULL: there is none. */
static const char *next_line(const char *at)
{
	const char *end = strchr(at, '\n');
	return end && end[1] ? end + 1 : NULL;
}

/* model,nodes,rates,speeds,strategy,measured_ms,predicted_ms,limited_by */
static int read_point(const char *line, ls_lab_point *out)
{
	char limit[32];

	for (int i = 0; i < COLUMNS_BEFORE; i++) {
		line = strchr(line, ',');
		if (!line)
			return 0;
		line++;
	}
	if (sscanf(line, "%lf,%lf,%31[^\r\n]", &out->measured_ms, &out->predicted_ms, limit) != 3)
		return 0;
	out->waits = ls_interval_waits(limit);
	return out->measured_ms > 0 && out->predicted_ms > 0;
}

size_t ls_lab_points(ls_lab_point *out, size_t most)
{
	const char *line = ls_lab_comparisons_count > 0 ? next_line(ls_lab_comparisons[0].text) : NULL;
	size_t count = 0;

	for (; line && count < most && read_point(line, &out[count]); line = next_line(line))
		count++;
	return count;
}

int ls_interval_waits(const char *bottleneck)
{
	return strcmp(bottleneck, "compute") != 0 && strcmp(bottleneck, "slowest node") != 0;
}

/* ---- half-widths ------------------------------------------------------------------------------------------------- */

static int by_magnitude(const void *a, const void *b)
{
	double left = fabs(*(const double *)a), right = fabs(*(const double *)b);
	return (left > right) - (left < right);
}

double ls_interval_quantile(double *errors, size_t count)
{
	if (count == 0)
		return 0;
	size_t k = (size_t)ceil(LS_INTERVAL_PART * ((double)count + 1) - 1e-9);
	qsort(errors, count, sizeof(*errors), by_magnitude);
	return fabs(errors[(k < count ? k : count) - 1]);
}

/* By the expansion of Cornish and Fisher: within 1.5 % from 2 degrees of freedom on, 12 % too small at 1. */
double ls_interval_student(double degrees)
{
	const double z = LS_INTERVAL_NORMAL, z3 = z * z * z, z5 = z3 * z * z, z7 = z5 * z * z;
	double d = degrees;
	return z + (z3 + z) / (4 * d) + (5 * z5 + 16 * z3 + 3 * z) / (96 * d * d) +
	       (3 * z7 + 19 * z5 + 17 * z3 - 15 * z) / (384 * d * d * d);
}

double ls_interval_repeats(double spread, int64_t repeats)
{
	double n = (double)repeats;
	return repeats < 2 ? 0 : ls_interval_student(n - 1) * spread * sqrt(1 + 1 / n);
}

double ls_interval_simulation(const char *bottleneck)
{
	ls_lab_point point[POINTS_MAX];
	double errors[POINTS_MAX];
	size_t points = ls_lab_points(point, POINTS_MAX), count = 0;

	for (size_t i = 0; i < points; i++)
		if (point[i].waits == ls_interval_waits(bottleneck))
			errors[count++] = log(point[i].predicted_ms / point[i].measured_ms);
	return ls_interval_quantile(errors, count);
}
