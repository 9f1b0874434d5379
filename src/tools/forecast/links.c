#include "tools/forecast/links.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A parcel with fewer bytes left has arrived: rounding. */
#define CRUMB 1e-3

ls_status ls_links_init(ls_links *l, int groups, int parcels)
{
	size_t channels = (size_t)groups * (size_t)groups;

	*l = (ls_links){ .groups = groups, .parcels = parcels, .lanes = 1 };
	l->channel = calloc(channels, sizeof(*l->channel));
	l->port = calloc((size_t)groups, sizeof(*l->port));
	int failed = !l->channel || !l->port;
	for (size_t i = 0; !failed && i < channels; i++) {
		ls_channel *c = &l->channel[i];
		c->from = (int)(i / (size_t)groups);
		c->to = (int)(i % (size_t)groups);
		c->window = INFINITY;
		c->waiting = calloc((size_t)parcels, sizeof(*c->waiting));
		c->flying = calloc((size_t)parcels, sizeof(*c->flying));
		failed = !c->waiting || !c->flying;
	}
	if (!failed)
		return LS_OK;
	ls_links_release(l);
	return ls_fail(LS_EMEMORY, "no memory for the links of %d groups", groups);
}

void ls_links_release(ls_links *l)
{
	for (int i = 0; l->channel && i < l->groups * l->groups; i++) {
		free(l->channel[i].waiting);
		free(l->channel[i].flying);
	}
	free(l->port);
	free(l->channel);
	*l = (ls_links){ 0 };
}

ls_channel *ls_links_channel(ls_links *l, int from, int to)
{
	return &l->channel[from * l->groups + to];
}

void ls_links_send(ls_links *l, int from, int to, ls_parcel parcel)
{
	ls_channel *c = ls_links_channel(l, from, to);
	parcel.left = parcel.bytes;
	c->waiting[c->waiting_count++] = parcel;
}

/* ---- starting ---------------------------------------------------------------------------------------------------- */

/* The order of messages in the exchange: an older step first (exchange/outbox.c). */
static int is_before(const ls_parcel *a, const ls_parcel *b)
{
	return a->step != b->step ? a->step < b->step : a->rank < b->rank;
}

static int most_urgent(const ls_channel *c)
{
	int best = 0;
	for (int i = 1; i < c->waiting_count; i++)
		if (is_before(&c->waiting[i], &c->waiting[best]))
			best = i;
	return best;
}

static void start_parcels(ls_links *l, ls_channel *c)
{
	while (c->waiting_count > 0 && c->flying_count < l->parcels) {
		int i = most_urgent(c);
		if (c->flying_count >= l->lanes && c->flying_bytes + c->waiting[i].bytes > c->window * l->lanes)
			return;
		c->flying[c->flying_count++] = c->waiting[i];
		c->flying_bytes += c->waiting[i].bytes;
		/* in order of posting among equals, so no swap with the last one */
		memmove(&c->waiting[i], &c->waiting[i + 1], (size_t)(--c->waiting_count - i) * sizeof(*c->waiting));
	}
}

/* ---- sharing ----------------------------------------------------------------------------------------------------- */

static double caps(const ls_channel *c)
{
	double sum = 0;
	for (int i = 0; i < c->flying_count; i++)
		sum += c->flying[i].cap;
	return sum;
}

/* CPU seconds per byte, over all parcels in flight; includes the cost per message. */
static double cpu_per_byte(const ls_links *l, const ls_channel *c)
{
	double messages = 0, bytes = 0;
	for (int i = 0; i < c->flying_count; i++) {
		messages += c->flying[i].bytes / c->flying[i].message;
		bytes += c->flying[i].bytes;
	}
	return l->cpu_s_per_byte + l->cpu_s_a_message * messages / bytes;
}

/* Load on limit k at either end, per byte per second on the channel. */
static void takes(const ls_links *l, const ls_channel *c, double sender[LS_LIMIT_OWNERS],
		  double receiver[LS_LIMIT_OWNERS])
{
	double cpu = cpu_per_byte(l, c);
	sender[LS_LIMIT_OUT] = sender[LS_LIMIT_BOTH] = c->fan;
	sender[LS_LIMIT_IN] = 0;
	sender[LS_LIMIT_COMM] = c->fan * cpu;
	receiver[LS_LIMIT_IN] = receiver[LS_LIMIT_BOTH] = c->fan_in;
	receiver[LS_LIMIT_OUT] = 0;
	receiver[LS_LIMIT_COMM] = c->fan_in * cpu;
}

typedef struct filling {
	ls_links *l;
	double *weight; /* (groups, limits) of channels that still grow */
	char *grows;    /* (channels) */
	double level;
} filling;

/* Recomputed from scratch: subtracting frozen channels would leave rounding errors that look like weight. */
static void weigh(filling *f)
{
	double sender[LS_LIMIT_OWNERS], receiver[LS_LIMIT_OWNERS];

	memset(f->weight, 0, sizeof(*f->weight) * (size_t)f->l->groups * LS_LIMIT_OWNERS);
	for (int i = 0; i < f->l->groups * f->l->groups; i++) {
		const ls_channel *c = &f->l->channel[i];
		if (!f->grows[i])
			continue;
		takes(f->l, c, sender, receiver);
		for (int k = 0; k < LS_LIMIT_OWNERS; k++) {
			f->weight[c->from * LS_LIMIT_OWNERS + k] += sender[k];
			f->weight[c->to * LS_LIMIT_OWNERS + k] += receiver[k];
		}
	}
}

/* Raise all growing channels to `level` and add their load to the ports. */
static void raise_to(filling *f, double level)
{
	for (int p = 0; p < f->l->groups; p++)
		for (int k = 0; k < LS_LIMIT_OWNERS; k++)
			f->l->port[p].used[k] += (level - f->level) * f->weight[p * LS_LIMIT_OWNERS + k];
	f->level = level;
}

static double next_level(const filling *f)
{
	double next = INFINITY;
	for (int p = 0; p < f->l->groups; p++)
		for (int k = 0; k < LS_LIMIT_OWNERS; k++) {
			double weight = f->weight[p * LS_LIMIT_OWNERS + k];
			if (weight > 0)
				next = fmin(next,
					    f->level + (f->l->port[p].capacity[k] - f->l->port[p].used[k]) / weight);
		}
	for (int i = 0; i < f->l->groups * f->l->groups; i++)
		if (f->grows[i])
			next = fmin(next, caps(&f->l->channel[i]));
	return fmax(next, f->level);
}

static int is_full(const ls_port *port, int k)
{
	return port->capacity[k] - port->used[k] <= 1e-9 * port->capacity[k];
}

static void note_full(filling *f)
{
	for (int p = 0; p < f->l->groups; p++)
		for (int k = 0; k < LS_LIMIT_OWNERS; k++)
			f->l->port[p].full[k] |= f->weight[p * LS_LIMIT_OWNERS + k] > 0 && is_full(&f->l->port[p], k);
}

static int is_stuck(const filling *f, const ls_channel *c)
{
	double sender[LS_LIMIT_OWNERS], receiver[LS_LIMIT_OWNERS];
	takes(f->l, c, sender, receiver);
	for (int k = 0; k < LS_LIMIT_OWNERS; k++)
		if ((sender[k] > 0 && f->l->port[c->from].full[k]) || (receiver[k] > 0 && f->l->port[c->to].full[k]))
			return 1;
	return f->level >= caps(c) * (1 - 1e-12);
}

/* Fix the rates of channels that cannot grow further; returns how many still grow. */
static int freeze(filling *f)
{
	int growing = 0;
	for (int i = 0; i < f->l->groups * f->l->groups; i++) {
		ls_channel *c = &f->l->channel[i];
		if (!f->grows[i])
			continue;
		if (is_stuck(f, c)) {
			c->rate = f->level;
			f->grows[i] = 0;
		} else {
			growing++;
		}
	}
	return growing;
}

void ls_links_share(ls_links *l, const double *slow)
{
	double weight[LS_GROUPS_MAX * LS_LIMIT_OWNERS] = { 0 };
	char grows[LS_GROUPS_MAX * LS_GROUPS_MAX];
	filling f = { .l = l, .weight = weight, .grows = grows };
	int growing = 0;

	for (int p = 0; p < l->groups; p++) {
		memset(l->port[p].used, 0, sizeof(l->port[p].used));
		memset(l->port[p].full, 0, sizeof(l->port[p].full));
	}
	for (int i = 0; i < l->groups * l->groups; i++) {
		ls_channel *c = &l->channel[i];
		start_parcels(l, c);
		c->rate = 0;
		grows[i] = c->fan > 0 && c->flying_count > 0;
		growing += grows[i];
	}
	while (growing >
	       0) { /* each iteration fills a port or reaches a cap, so that at least one channel stops growing */
		weigh(&f);
		raise_to(&f, next_level(&f));
		note_full(&f);
		growing = freeze(&f);
	}
	for (int i = 0; i < l->groups * l->groups; i++)
		l->channel[i].rate *= fmin(slow[l->channel[i].from], slow[l->channel[i].to]);
}

/* ---- time -------------------------------------------------------------------------------------------------------- */

/* Part of the channel's rate that its i-th parcel gets: parcels go one after another, except those with caps, which go
 * to different nodes. */
static double share_of(const ls_channel *c, int i, double all_caps)
{
	return !isinf(all_caps) ? c->rate * c->flying[i].cap / all_caps : i == 0 ? c->rate : 0;
}

double ls_links_next(const ls_links *l)
{
	double next = INFINITY;
	for (int i = 0; i < l->groups * l->groups; i++) {
		const ls_channel *c = &l->channel[i];
		double all = caps(c);
		for (int k = 0; k < c->flying_count && c->rate > 0; k++)
			next = fmin(next, c->flying[k].left / share_of(c, k, all));
	}
	return next;
}

static void pass_parcels(ls_channel *c, double seconds)
{
	double all = caps(c);

	for (int k = 0; k < c->flying_count; k++)
		c->flying[k].left -= seconds * share_of(c, k, all);
}

void ls_links_pass(ls_links *l, double seconds, void (*through)(void *context, ls_channel *channel, ls_parcel parcel),
		   void *context)
{
	for (int i = 0; i < l->groups * l->groups; i++) {
		ls_channel *c = &l->channel[i];
		pass_parcels(c, seconds);
		for (int k = 0; k < c->flying_count;) {
			if (c->flying[k].left > CRUMB) {
				k++;
				continue;
			}
			ls_parcel parcel = c->flying[k];
			c->flying_bytes -= parcel.bytes;
			memmove(&c->flying[k], &c->flying[k + 1], (size_t)(--c->flying_count - k) * sizeof(*c->flying));
			through(context, c, parcel);
		}
	}
}

double ls_links_load(const ls_links *l, int group)
{
	double load = 0;
	for (int other = 0; other < l->groups; other++) {
		const ls_channel *out = &l->channel[group * l->groups + other],
				 *in = &l->channel[other * l->groups + group];
		if (out->flying_count > 0)
			load += out->rate * out->fan * cpu_per_byte(l, out);
		if (in->flying_count > 0)
			load += in->rate * in->fan_in * cpu_per_byte(l, in);
	}
	return load;
}
