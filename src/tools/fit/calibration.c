#include "tools/fit/calibration.h"

#include <math.h>
#include <string.h>

/* An emulated host may have been slow for one point and not for another: of a point with slow nodes, the slow one. */
static int is_nearer(const ls_fit_point *p, const ls_fit_point *found)
{
	return !found || p->unequal > found->unequal || (p->unequal == found->unequal && p->devices < found->devices);
}

const ls_fit_point *ls_fit_base(const ls_fit_table *t, const ls_fit_point *job, const char *host)
{
	const ls_fit_point *own = NULL, *any = NULL;

	for (size_t i = 0; i < t->count; i++) {
		const ls_fit_point *p = &t->point[i];
		if (!ls_fit_is_alone(p) || !ls_fit_same_job(p, job))
			continue;
		if (!strcmp(p->hosts, host) && p->unequal <= job->unequal && is_nearer(p, own))
			own = p;
		if (!p->unequal && (!any || p->devices < any->devices))
			any = p;
	}
	return own || !t->is_sweep || job->unequal ? own : any;
}

/* Seconds of a step with all devices of a one-node row, beyond those of one device alone. */
static double lost(const ls_fit_point *base, const ls_fit_point *p)
{
	double batch = (double)base->batch;
	return fmax(0, batch * (double)p->devices / p->rate - batch / ls_fit_device_rate(base));
}

double ls_fit_inside(const ls_fit_table *t, const ls_fit_point *base, int64_t devices)
{
	double whole = 0, rows = 0;

	if (devices == base->devices)
		return 0;
	for (size_t i = 0; i < t->count; i++) {
		const ls_fit_point *p = &t->point[i];
		if (!ls_fit_is_alone(p) || !ls_fit_same_host(p, base) || p->devices <= base->devices)
			continue;
		if (p->devices == devices)
			return lost(base, p);
		whole += lost(base, p) * (double)p->devices / (double)(p->devices - 1);
		rows++;
	}
	return rows > 0 ? whole / rows * (double)(devices - 1) / (double)devices : -1;
}

/* ---- rows that are off their curve ------------------------------------------------------------------------------- */

static int on_one_host(const ls_fit_point *a, const ls_fit_point *b)
{
	return ls_fit_is_alone(a) && ls_fit_is_alone(b) && ls_fit_same_host(a, b);
}

/* x = (N - 1) / N, y = seconds of a device per sample. */
static double x_of(const ls_fit_point *p)
{
	return (double)(p->devices - 1) / (double)p->devices;
}

static double y_of(const ls_fit_point *p)
{
	return (double)p->devices / p->rate;
}

/* Squares of a host's relative residuals around its line; *rows is how many it has. `first` is its first row. */
static double line_squares(const ls_fit_table *t, size_t first, double *rows)
{
	double n = 0, x = 0, y = 0, xx = 0, xy = 0, squares = 0;

	for (size_t i = 0; i < t->count; i++) {
		const ls_fit_point *p = &t->point[i];
		if (!on_one_host(&t->point[first], p))
			continue;
		n++, x += x_of(p), y += y_of(p), xx += x_of(p) * x_of(p), xy += x_of(p) * y_of(p);
	}
	*rows = n * xx - x * x > 1e-9 ? n : 0; /* fewer than two numbers of devices make no line */
	if (*rows < 3)
		return 0;
	double slope = (n * xy - x * y) / (n * xx - x * x), at_0 = (y - slope * x) / n;
	for (size_t i = 0; i < t->count; i++) {
		const ls_fit_point *p = &t->point[i];
		double line = at_0 + slope * x_of(p);
		if (on_one_host(&t->point[first], p))
			squares += (y_of(p) / line - 1) * (y_of(p) / line - 1);
	}
	return squares;
}

double ls_fit_scatter(const ls_fit_table *t, double *degrees)
{
	double squares = 0;

	*degrees = 0;
	for (size_t i = 0; i < t->count; i++) {
		size_t first = 0;
		double rows;
		while (first < i && !on_one_host(&t->point[first], &t->point[i]))
			first++;
		if (first < i || !ls_fit_is_alone(&t->point[i]))
			continue;
		squares += line_squares(t, i, &rows);
		*degrees += rows > 2 ? rows - 2 : 0;
	}
	return *degrees > 0 ? sqrt(squares / *degrees) : 0;
}

/* ---- hosts that differ ------------------------------------------------------------------------------------------- */

static int is_one_device(const ls_fit_point *p)
{
	return ls_fit_is_alone(p) && p->devices == 1 && p->hosts[0] != '\0';
}

static int in_one_group(const ls_fit_point *a, const ls_fit_point *b)
{
	return is_one_device(a) && is_one_device(b) && ls_fit_same_job(a, b) && !strcmp(a->link, b->link);
}

/* Squares of a group's relative deviations from its mean; *hosts is how many it has. `first` is its first row. */
static double group_squares(const ls_fit_table *t, size_t first, double *hosts)
{
	double mean = 0, squares = 0;

	*hosts = 0;
	for (size_t i = 0; i < t->count; i++)
		if (in_one_group(&t->point[first], &t->point[i])) {
			mean += t->point[i].rate;
			++*hosts;
		}
	mean /= fmax(1, *hosts);
	for (size_t i = 0; i < t->count; i++)
		if (in_one_group(&t->point[first], &t->point[i]))
			squares += (t->point[i].rate / mean - 1) * (t->point[i].rate / mean - 1);
	return squares;
}

double ls_fit_spread(const ls_fit_table *t)
{
	double squares = 0, degrees = 0;

	for (size_t i = 0; i < t->count; i++) {
		size_t first = 0;
		double hosts;
		while (!in_one_group(&t->point[first], &t->point[i]) && first < i)
			first++;
		if (first < i || !is_one_device(&t->point[i]))
			continue;
		squares += group_squares(t, i, &hosts);
		degrees += hosts - 1;
	}
	return degrees > 0 ? sqrt(squares / degrees) : 0;
}
