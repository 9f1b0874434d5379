#include "exchange/assigner.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

/* The first steps pay for pages and code that are new; a change must be worth the micro-batches that were read for
 * nothing. */
enum { UNSTEADY_STEPS = 2, LOOK_EVERY = 4 };
static const double SMOOTHING = 0.3, WORTH = 0.96;

ls_status ls_assigner_init(ls_assigner *d, int nodes, const int *devices, const double *weight, int follows)
{
	size_t n = (size_t)nodes;

	*d = (ls_assigner){ .nodes = nodes, .follows = follows };
	d->devices = calloc(n, sizeof(*d->devices));
	d->weight = calloc(n, sizeof(*d->weight));
	d->speed = calloc(n, sizeof(*d->speed));
	d->count = calloc(n, sizeof(*d->count));
	d->other = calloc(n, sizeof(*d->other));
	if (!d->devices || !d->weight || !d->speed || !d->count || !d->other) {
		ls_assigner_release(d);
		return ls_fail(LS_EMEMORY, "no memory to assign micro-batches to %d nodes", nodes);
	}
	memcpy(d->devices, devices, n * sizeof(*devices));
	memcpy(d->weight, weight, n * sizeof(*weight));
	for (int i = 0; i < nodes; i++) {
		d->weight[i] = devices[i] > 0 ? weight[i] : 0;
		d->workers += d->weight[i] > 0;
	}
	return LS_OK;
}

void ls_assigner_release(ls_assigner *d)
{
	free(d->other);
	free(d->count);
	free(d->speed);
	free(d->weight);
	free(d->devices);
	*d = (ls_assigner){ 0 };
}

/* When node i is done with `count` micro-batches at `speed` micro-batches per second; its devices compute one each at a
 * time. */
static double done_at(const ls_assigner *d, const double *speed, int i, int64_t count)
{
	int64_t rounds = (count + d->devices[i] - 1) / d->devices[i];
	return (double)(rounds * d->devices[i]) / speed[i];
}

static double all_done_at(const ls_assigner *d, const double *speed, const int64_t *count)
{
	double last = 0;
	for (int i = 0; i < d->nodes; i++) {
		double at = count[i] > 0 ? done_at(d, speed, i, count[i]) : 0;
		last = at > last ? at : last;
	}
	return last;
}

/* Largest remainders: no node is further than one micro-batch from its share. */
static void assign_in_proportion(const ls_assigner *d, int64_t microbatches, int64_t *count)
{
	double sum = 0;
	int64_t given = 0;

	for (int i = 0; i < d->nodes; i++)
		sum += d->weight[i];
	for (int i = 0; i < d->nodes; i++) {
		count[i] = (int64_t)((double)microbatches * d->weight[i] / sum);
		given += count[i];
	}
	for (; given < microbatches; given++) {
		int best = -1;
		double most = -DBL_MAX;
		for (int i = 0; i < d->nodes; i++) {
			double missing = (double)microbatches * d->weight[i] / sum - (double)count[i];
			if (d->weight[i] > 0 && missing > most) {
				most = missing;
				best = i;
			}
		}
		count[best]++;
	}
}

/* Each micro-batch goes to the node that would complete it first; among equals to the one that has least to do. */
static void assign_by_speed(const ls_assigner *d, const double *speed, int64_t microbatches, int64_t *count)
{
	memset(count, 0, (size_t)d->nodes * sizeof(*count));
	for (int64_t k = 0; k < microbatches; k++) {
		int best = -1;
		double at = 0, load = 0;
		for (int i = 0; i < d->nodes; i++) {
			if (d->weight[i] <= 0)
				continue;
			double mine = done_at(d, speed, i, count[i] + 1), own = (double)count[i] / speed[i];
			if (best < 0 || mine < at || (mine == at && own < load)) {
				best = i;
				at = mine;
				load = own;
			}
		}
		count[best]++;
	}
}

/* Every worker gets a micro-batch as long as there are enough: else its speed could not be measured again. */
static void leave_nobody_out(const ls_assigner *d, int64_t microbatches, int64_t *count)
{
	if (microbatches < d->workers)
		return;
	for (int i = 0; i < d->nodes; i++) {
		if (d->weight[i] <= 0 || count[i] > 0)
			continue;
		int richest = 0;
		for (int k = 1; k < d->nodes; k++)
			richest = count[k] > count[richest] ? k : richest;
		count[richest]--;
		count[i]++;
	}
}

/* How many nodes of the tree a run of micro-batches falls into. */
static int partials_of(int64_t first, int64_t last)
{
	int partials = 0;
	while (first < last) {
		int64_t step = first > 0 ? first & -first : INT64_C(1) << 62;
		while (step > last - first)
			step /= 2;
		first += step;
		partials++;
	}
	return partials;
}

/* Whether moving the cut between two neighbours by one micro-batch makes fewer partial sums and no node later. */
static int is_better(const ls_assigner *d, const double *speed, double limit, const int64_t *cut, int i, int64_t to)
{
	int64_t a = to - cut[i], b = cut[i + 2] - to;

	if (a < 1 || b < 1 || done_at(d, speed, i, a) > limit || done_at(d, speed, i + 1, b) > limit)
		return 0;
	return partials_of(cut[i], to) + partials_of(to, cut[i + 2]) <
	       partials_of(cut[i], cut[i + 1]) + partials_of(cut[i + 1], cut[i + 2]);
}

static void straighten(const ls_assigner *d, const double *speed, double limit, int64_t *cut)
{
	for (int i = 0; i + 1 < d->nodes; i++)
		for (int64_t side = -1; side <= 1; side += 2)
			if (d->weight[i] > 0 && d->weight[i + 1] > 0 &&
			    is_better(d, speed, limit, cut, i, cut[i + 1] + side)) {
				cut[i + 1] += side;
				break;
			}
}

static void count_microbatches(const ls_assigner *d, const double *speed, int64_t microbatches, int64_t *count)
{
	if (speed)
		assign_by_speed(d, speed, microbatches, count);
	else
		assign_in_proportion(d, microbatches, count);
	leave_nobody_out(d, microbatches, count);
}

void ls_assigner_assign(ls_assigner *d, int64_t microbatches, int64_t *cut)
{
	count_microbatches(d, d->known ? d->weight : NULL, microbatches, d->count);
	cut[0] = 0;
	for (int i = 0; i < d->nodes; i++)
		cut[i + 1] = cut[i] + d->count[i];
	straighten(d, d->weight, all_done_at(d, d->weight, d->count), cut);
}

void ls_assign_devices(int64_t first, int64_t last, int devices, int64_t *cut)
{
	int64_t microbatches = last - first, most = (microbatches + devices - 1) / devices;

	for (int i = 0; i <= devices; i++)
		cut[i] = first + microbatches * i / devices;
	for (int i = 0; i + 1 < devices; i++)
		for (int64_t side = -1; side <= 1; side += 2) {
			int64_t to = cut[i + 1] + side;
			if (to > cut[i] && to < cut[i + 2] && to - cut[i] <= most && cut[i + 2] - to <= most &&
			    partials_of(cut[i], to) + partials_of(to, cut[i + 2]) <
				    partials_of(cut[i], cut[i + 1]) + partials_of(cut[i + 1], cut[i + 2])) {
				cut[i + 1] = to;
				break;
			}
		}
}

static int knows_all(const ls_assigner *d)
{
	for (int i = 0; i < d->nodes; i++)
		if (d->weight[i] > 0 && d->speed[i] <= 0)
			return 0;
	return 1;
}

/* Take the measured speeds when the assignment they lead to would be done clearly sooner than the present one. */
static void consider(ls_assigner *d, const int64_t *cut)
{
	int64_t microbatches = cut[d->nodes];

	for (int i = 0; i < d->nodes; i++)
		d->other[i] = cut[i + 1] - cut[i];
	count_microbatches(d, d->speed, microbatches, d->count);
	if (all_done_at(d, d->speed, d->count) >= WORTH * all_done_at(d, d->speed, d->other))
		return;
	for (int i = 0; i < d->nodes; i++)
		d->weight[i] = d->weight[i] > 0 ? d->speed[i] : 0;
	d->known = 1;
	d->changes++;
}

void ls_assigner_learn(ls_assigner *d, const int64_t *cut, const double *seconds)
{
	if (!d->follows || d->workers < 2 || ++d->steps <= UNSTEADY_STEPS)
		return;
	for (int i = 0; i < d->nodes; i++) {
		double microbatches = (double)(cut[i + 1] - cut[i]);
		if (microbatches <= 0 || !(seconds[i] > 0) || d->weight[i] <= 0)
			continue;
		double now = microbatches * d->devices[i] / seconds[i];
		d->speed[i] += (d->speed[i] > 0 ? SMOOTHING : 1) * (now - d->speed[i]);
	}
	if (d->steps % LOOK_EVERY == 0 && cut[d->nodes] >= d->workers && knows_all(d))
		consider(d, cut);
}
