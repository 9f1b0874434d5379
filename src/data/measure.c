/*
 * measure.c - mean and deviation of images: sums of bytes are exact, sums of floats are of doubles in index order.
 */
#include "data/measure.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/status.h"
#include "data/normalise.h"

#define MEASURED_BYTES ((uint64_t)1 << 30)

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

/* ---- samples that are read one by one ---------------------------------------------------------------------------- */

/* What is read, and sums of each channel: of bytes or of floats. */
typedef struct measuring {
	const ls_image_source *source;
	void *room;
	sums *bytes;
	float_sums *floats;
} measuring;

static ls_status add_sample(measuring *m, uint64_t index)
{
	const ls_image_source *s = m->source;
	int32_t label;

	LS_TRY(s->read_bytes ? s->read_bytes(s->self, index, m->room, &label)
			     : s->read_floats(s->self, index, m->room, &label));
	for (size_t c = 0; c < (size_t)s->channels; c++)
		if (s->read_bytes)
			add_bytes(&m->bytes[c], (const uint8_t *)m->room + c * s->positions, s->positions);
		else
			add_floats(&m->floats[c], (const float *)m->room + c * s->positions, s->positions);
	return LS_OK;
}

static ls_status measure_all(measuring *m, ls_normalisation *n)
{
	const ls_image_source *s = m->source;
	size_t values = (size_t)s->channels * s->positions * (s->read_bytes ? 1 : sizeof(float));
	uint64_t looked = count_looked(s->samples, values);
	double count = (double)looked * (double)s->positions;

	for (uint64_t i = 0; i < looked; i++)
		LS_TRY(add_sample(m, index_looked(s->samples, looked, i)));
	for (int c = 0; c < s->channels; c++)
		if (s->read_bytes)
			finish(&m->bytes[c], count, &n->mean[c], &n->deviation[c]);
		else
			finish_floats(&m->floats[c], count, &n->mean[c], &n->deviation[c]);
	return LS_OK;
}

ls_status ls_normalisation_measure_source(ls_normalisation *out, const ls_image_source *source)
{
	size_t channels = (size_t)source->channels;
	measuring m = { .source = source,
			.room = malloc(channels * source->positions * sizeof(float)),
			.bytes = calloc(channels, sizeof(*m.bytes)),
			.floats = calloc(channels, sizeof(*m.floats)) };
	ls_normalisation n = { 0 };
	ls_status status = m.room && m.bytes && m.floats
				   ? ls_normalisation_new(&n, source->channels)
				   : ls_fail(LS_EMEMORY, "no memory to measure %d channels", source->channels);

	if (status == LS_OK)
		status = measure_all(&m, &n);
	free(m.room);
	free(m.bytes);
	free(m.floats);
	if (status == LS_OK)
		*out = n;
	else
		ls_normalisation_release(&n);
	return status;
}
