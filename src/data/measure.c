/*
 * measure.c - mean and deviation of images: sums of bytes are exact, whichever thread adds what, sums of floats are of
 * doubles in index order.
 */
#include "data/measure.h"

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/status.h"
#include "base/team.h"
#include "data/normalise.h"

#define MEASURED_BYTES ((uint64_t)1 << 30)
#define PATIENCE 2.0 /* seconds without a word */

/* How many samples of `bytes` each are measured, and which one is number i of them. */
static uint64_t count_looked(uint64_t samples, uint64_t bytes)
{
	uint64_t most = MEASURED_BYTES / bytes;
	return most == 0 ? 1 : samples < most ? samples : most;
}

static uint64_t index_looked(uint64_t samples, uint64_t looked, uint64_t i)
{
	return samples / looked * i + samples % looked * i / looked;
}

/* ---- bytes ------------------------------------------------------------------------------------------------------- */

typedef struct sums {
	uint64_t sum, squares;
} sums;

/* Parts of 2^16 bytes have sums that fit 32 bits, which vector units add fast. */
static void add_bytes(sums *s, const uint8_t *bytes, size_t count)
{
	for (size_t at = 0; at < count; at += 65536) {
		size_t end = count - at < 65536 ? count : at + 65536;
		uint32_t sum = 0, squares = 0;
		for (size_t i = at; i < end; i++) {
			sum += bytes[i];
			squares += (uint32_t)bytes[i] * bytes[i];
		}
		s->sum += sum;
		s->squares += squares;
	}
}

static double four_digits(double value)
{
	char text[32];
	snprintf(text, sizeof(text), "%.4g", value);
	return strtod(text, NULL);
}

static void finish(const sums *s, double count, double *mean, double *deviation)
{
	double m = (double)s->sum / count / 255, square = (double)s->squares / count / (255.0 * 255.0);
	*mean = four_digits(m);
	*deviation = four_digits(fmax(sqrt(fmax(square - m * m, 0)), 1.0 / 255));
}

ls_status ls_normalisation_measure(ls_normalisation *out, const uint8_t *images, uint64_t samples, int channels,
				   size_t positions)
{
	uint64_t values = (uint64_t)channels * positions, looked = count_looked(samples, values);
	ls_normalisation n = { 0 };
	LS_TRY(ls_normalisation_new(&n, channels));
	sums *all = calloc((size_t)channels, sizeof(*all));
	if (!all) {
		ls_normalisation_release(&n);
		return ls_fail(LS_EMEMORY, "no memory to measure %d channels", channels);
	}
	for (uint64_t i = 0; i < looked; i++) {
		uint64_t index = index_looked(samples, looked, i);
		for (int c = 0; c < channels; c++)
			add_bytes(&all[c], images + index * values + (size_t)c * positions, positions);
	}
	for (int c = 0; c < channels; c++)
		finish(&all[c], (double)looked * (double)positions, &n.mean[c], &n.deviation[c]);
	free(all);
	*out = n;
	return LS_OK;
}

/* ---- floats ------------------------------------------------------------------------------------------------------ */

typedef struct float_sums {
	double sum, squares;
} float_sums;

static void add_floats(float_sums *s, const float *values, size_t count)
{
	double sum = 0, squares = 0;
	for (size_t i = 0; i < count; i++) {
		sum += (double)values[i];
		squares += (double)values[i] * (double)values[i];
	}
	s->sum += sum;
	s->squares += squares;
}

/* A channel that is constant becomes zeros, not infinities. */
static void finish_floats(const float_sums *s, double count, double *mean, double *deviation)
{
	double m = s->sum / count, d = sqrt(fmax(s->squares / count - m * m, 0));
	*mean = four_digits(m);
	*deviation = d > 1e-6 * fmax(fabs(m), 1) ? four_digits(d) : 1;
}

/* ---- bytes that are read one by one ------------------------------------------------------------------------------ */

/* What the threads that read bytes share. */
typedef struct byte_sums {
	const ls_image_source *source;
	uint64_t looked;
	double begun;
	int is_noted;         /* of rank 0 */
	pthread_mutex_t lock; /* of what follows */
	sums *channel;        /* (channels) */
	uint64_t failed;      /* the first sample that could not be read, of `looked` */
	ls_status status;
	char error[1024];
} byte_sums;

/* The earliest failure is the result, as if one thread had read the samples in order. */
static void take_failure(byte_sums *b, uint64_t i, ls_status status)
{
	pthread_mutex_lock(&b->lock);
	if (b->status == LS_OK || i < b->failed) {
		b->failed = i;
		b->status = status;
		snprintf(b->error, sizeof(b->error), "%s", ls_last_error());
	}
	pthread_mutex_unlock(&b->lock);
}

static int is_needed(byte_sums *b, uint64_t i)
{
	pthread_mutex_lock(&b->lock);
	int is_needed = b->status == LS_OK || i < b->failed;
	pthread_mutex_unlock(&b->lock);
	return is_needed;
}

static void note_once(byte_sums *b)
{
	if (!b->source->slow || b->is_noted || ls_clock_seconds() - b->begun < PATIENCE)
		return;
	b->is_noted = 1;
	ls_log_note("decoding %" PRIu64 " images of %s to measure their mean and deviation", b->looked,
		    b->source->slow);
}

static void add_to_all(byte_sums *b, const sums *own)
{
	pthread_mutex_lock(&b->lock);
	for (int c = 0; c < b->source->channels; c++) {
		b->channel[c].sum += own[c].sum;
		b->channel[c].squares += own[c].squares;
	}
	pthread_mutex_unlock(&b->lock);
}

static void read_bytes(void *context, ls_member member)
{
	byte_sums *b = context;
	const ls_image_source *s = b->source;
	uint8_t *room = malloc((size_t)s->channels * s->positions);
	sums *own = calloc((size_t)s->channels, sizeof(*own));
	int32_t label;
	int64_t i;

	if (!room || !own)
		take_failure(b, 0, ls_fail(LS_EMEMORY, "no memory to measure %d channels", s->channels));
	while (room && own && (i = ls_team_next(member, (int64_t)b->looked)) >= 0) {
		if (member.rank == 0)
			note_once(b);
		if (!is_needed(b, (uint64_t)i))
			continue;
		ls_status status =
			s->read_bytes(s->self, index_looked(s->samples, b->looked, (uint64_t)i), room, &label);
		if (status != LS_OK)
			take_failure(b, (uint64_t)i, status);
		for (size_t c = 0; status == LS_OK && c < (size_t)s->channels; c++)
			add_bytes(&own[c], room + c * s->positions, s->positions);
	}
	if (own)
		add_to_all(b, own);
	free(room);
	free(own);
}

static ls_status measure_bytes(const ls_image_source *s, ls_normalisation *n)
{
	uint64_t looked = count_looked(s->samples, (uint64_t)s->channels * s->positions);
	uint64_t threads = s->threads > 1 ? (uint64_t)s->threads : 1;
	byte_sums b = { .source = s,
			.looked = looked,
			.begun = ls_clock_seconds(),
			.lock = PTHREAD_MUTEX_INITIALIZER,
			.channel = calloc((size_t)s->channels, sizeof(*b.channel)) };
	ls_team *team = NULL;

	ls_status status = b.channel ? ls_team_new(&team, (int)(looked < threads ? looked : threads))
				     : ls_fail(LS_EMEMORY, "no memory to measure %d channels", s->channels);
	if (status == LS_OK)
		ls_team_run(team, read_bytes, &b);
	ls_team_free(team);
	if (b.status != LS_OK)
		status = ls_fail(b.status, "%s", b.error);
	for (int c = 0; status == LS_OK && c < s->channels; c++)
		finish(&b.channel[c], (double)looked * (double)s->positions, &n->mean[c], &n->deviation[c]);
	free(b.channel);
	return status;
}

/* ---- floats that are read one by one ----------------------------------------------------------------------------- */

static ls_status add_samples(const ls_image_source *s, uint64_t looked, float *room, float_sums *channel)
{
	int32_t label;

	for (uint64_t i = 0; i < looked; i++) {
		LS_TRY(s->read_floats(s->self, index_looked(s->samples, looked, i), room, &label));
		for (size_t c = 0; c < (size_t)s->channels; c++)
			add_floats(&channel[c], room + c * s->positions, s->positions);
	}
	return LS_OK;
}

static ls_status measure_floats(const ls_image_source *s, ls_normalisation *n)
{
	size_t bytes = (size_t)s->channels * s->positions * sizeof(float);
	uint64_t looked = count_looked(s->samples, bytes);
	float *room = malloc(bytes);
	float_sums *channel = calloc((size_t)s->channels, sizeof(*channel));
	ls_status status = room && channel ? add_samples(s, looked, room, channel)
					   : ls_fail(LS_EMEMORY, "no memory to measure %d channels", s->channels);

	for (int c = 0; status == LS_OK && c < s->channels; c++)
		finish_floats(&channel[c], (double)looked * (double)s->positions, &n->mean[c], &n->deviation[c]);
	free(room);
	free(channel);
	return status;
}

ls_status ls_normalisation_measure_source(ls_normalisation *out, const ls_image_source *source)
{
	ls_normalisation n = { 0 };

	LS_TRY(ls_normalisation_new(&n, source->channels));
	ls_status status = source->read_bytes ? measure_bytes(source, &n) : measure_floats(source, &n);
	if (status == LS_OK)
		*out = n;
	else
		ls_normalisation_release(&n);
	return status;
}
