#include "tools/serve/counters.h"

#include <inttypes.h>
#include <string.h>

#include "base/array.h"

static const double batch_bounds[] = { 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024 };
static const double second_bounds[] = { 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10 };
_Static_assert(LS_COUNT(batch_bounds) <= LS_BUCKETS_MAX && LS_COUNT(second_bounds) <= LS_BUCKETS_MAX, "bounds fit");

void ls_counters_init(ls_counters *c)
{
	memset(c, 0, sizeof(*c));
	pthread_mutex_init(&c->lock, NULL);
	c->batch.bounds = batch_bounds;
	c->batch.count = LS_COUNT(batch_bounds);
	c->seconds.bounds = second_bounds;
	c->seconds.count = LS_COUNT(second_bounds);
}

void ls_counters_release(ls_counters *c)
{
	pthread_mutex_destroy(&c->lock);
}

static void add(ls_histogram *h, double value)
{
	int i = 0;
	while (i < h->count && value > h->bounds[i])
		i++;
	h->in[i]++;
	h->sum += value;
}

void ls_counters_request(ls_counters *c, unsigned code, double seconds)
{
	pthread_mutex_lock(&c->lock);
	c->requests[code < LS_CODES ? code : 0]++;
	if (seconds >= 0)
		add(&c->seconds, seconds);
	pthread_mutex_unlock(&c->lock);
}

void ls_counters_batch(ls_counters *c, int64_t samples)
{
	pthread_mutex_lock(&c->lock);
	c->samples += (uint64_t)samples;
	add(&c->batch, (double)samples);
	pthread_mutex_unlock(&c->lock);
}

void ls_counters_timeout(ls_counters *c)
{
	pthread_mutex_lock(&c->lock);
	c->timeouts++;
	pthread_mutex_unlock(&c->lock);
}

static void head(FILE *to, const char *name, const char *kind, const char *help)
{
	fprintf(to, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind);
}

static void print_one(FILE *to, const char *name, const char *kind, const char *help, uint64_t value)
{
	head(to, name, kind, help);
	fprintf(to, "%s %" PRIu64 "\n", name, value);
}

static void print_histogram(FILE *to, const char *name, const char *help, const ls_histogram *h)
{
	uint64_t below = 0;

	head(to, name, "histogram", help);
	for (int i = 0; i < h->count; i++) {
		below += h->in[i];
		fprintf(to, "%s_bucket{le=\"%g\"} %" PRIu64 "\n", name, h->bounds[i], below);
	}
	below += h->in[h->count];
	fprintf(to, "%s_bucket{le=\"+Inf\"} %" PRIu64 "\n%s_sum %.9g\n%s_count %" PRIu64 "\n", name, below, name,
		h->sum, name, below);
}

void ls_counters_print(ls_counters *c, ls_gauges gauges, FILE *to)
{
	uint64_t errors = 0;

	pthread_mutex_lock(&c->lock);
	head(to, "lockstep_requests_total", "counter", "Requests answered, by HTTP status.");
	for (int code = 0; code < LS_CODES; code++) {
		errors += code >= 400 ? c->requests[code] : 0;
		if (c->requests[code] > 0)
			fprintf(to, "lockstep_requests_total{code=\"%d\"} %" PRIu64 "\n", code, c->requests[code]);
	}
	print_one(to, "lockstep_errors_total", "counter", "Requests answered with a status of 400 or more.", errors);
	print_one(to, "lockstep_timeouts_total", "counter",
		  "Connections closed because no request was completed in time.", c->timeouts);
	print_one(to, "lockstep_samples_total", "counter", "Samples predicted.", c->samples);
	print_histogram(to, "lockstep_batch_samples", "Samples predicted together.", &c->batch);
	print_histogram(to, "lockstep_request_seconds", "Seconds from a whole request to its answer.", &c->seconds);
	print_one(to, "lockstep_connections", "gauge", "Open connections.", (uint64_t)gauges.connections);
	print_one(to, "lockstep_waiting_samples", "gauge", "Samples that wait to be predicted.",
		  (uint64_t)gauges.waiting);
	pthread_mutex_unlock(&c->lock);
}
