#include "trainer/predict.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/handles.h"
#include "base/memory.h"
#include "trainer/sample_check.h"

/* Sizes of micro-batches: powers of two from the largest down to 1. */
enum { LARGEST = 32, SIZES = 6 };
_Static_assert(LARGEST == 1 << (SIZES - 1) && SIZES <= LS_SIZES_MAX,
	       "every power of two up to the largest is planned for");

/* What one driver packs text into. */
typedef struct packed {
	int32_t *start;           /* (LARGEST + 1) */
	int32_t *last;            /* (LARGEST) where the last token of each sample lies */
	int32_t *token, *segment; /* (LARGEST * longest) */
} packed;

typedef struct driver {
	ls_executor *executor;
	packed text;
} driver;

struct ls_predictor {
	ls_predictor_options options;
	ls_devices *devices;
	driver *driver; /* (devices) */
	/* what the loss, which nobody reads, is computed with */
	int32_t none[LARGEST + 1];
	int32_t each[LARGEST + 1]; /* 0, 1, ...: a language model predicts behind the last token of each sample */
	uint64_t samples[LARGEST];
};

/* ---- making ------------------------------------------------------------------------------------------------------ */

static ls_status make_text(packed *text, int longest)
{
	size_t tokens = LARGEST * (size_t)longest;

	text->start = calloc(LARGEST + 1, sizeof(*text->start));
	text->last = calloc(LARGEST, sizeof(*text->last));
	text->token = calloc(tokens, sizeof(*text->token));
	text->segment = calloc(tokens, sizeof(*text->segment));
	if (text->start && text->last && text->token && text->segment)
		return LS_OK;
	return ls_fail(LS_EMEMORY, "no memory for %d samples of %d tokens", LARGEST, longest);
}

static ls_status make(ls_predictor *p, const ls_predictor_options *o)
{
	ls_devices_options devices = { .count = o->devices, .threads = o->threads, .pin = o->pin };
	ls_load_options load = { .inference = 1 };

	p->options = *o;
	for (int i = 0; i <= LARGEST; i++)
		p->each[i] = i;
	for (int i = 0; i < SIZES; i++)
		load.sizes[i] = LARGEST >> i;
	p->driver = calloc((size_t)o->devices, sizeof(*p->driver));
	if (!p->driver)
		return ls_fail(LS_EMEMORY, "no memory for %d devices", o->devices);
	LS_TRY(ls_devices_open(&p->devices, o->backend, &devices));
	for (int i = 0; i < o->devices; i++) {
		LS_TRY(ls_devices_load(p->devices, i, o->graph, &load, &p->driver[i].executor));
		if (o->graph->tokens_max > 0)
			LS_TRY(make_text(&p->driver[i].text, o->graph->tokens_max));
	}
	return LS_OK;
}

ls_status ls_predictor_new(ls_predictor **out, const ls_predictor_options *options)
{
	ls_predictor *p = calloc(1, sizeof(*p));
	ls_status status = p ? make(p, options) : ls_fail(LS_EMEMORY, "no memory to predict");

	if (status == LS_OK)
		*out = p;
	else
		ls_predictor_free(p);
	return status;
}

void ls_predictor_free(ls_predictor *p)
{
	if (!p)
		return;
	for (int i = 0; p->driver && i < p->options.devices; i++) {
		ls_executor_free(p->driver[i].executor);
		free(p->driver[i].text.start);
		free(p->driver[i].text.last);
		free(p->driver[i].text.token);
		free(p->driver[i].text.segment);
	}
	free(p->driver);
	ls_devices_close(p->devices);
	free(p);
}

void ls_predictor_set_params(ls_predictor *p, const float *params, const float *buffers)
{
	for (int i = 0; i < p->options.devices; i++)
		p->options.backend->set_params(p->driver[i].executor, params, buffers);
}

int64_t ls_predictor_outputs(const ls_predictor *p)
{
	return p->options.graph->values[p->options.graph->logits].channels;
}

/* ---- a run ------------------------------------------------------------------------------------------------------- */

typedef struct job {
	ls_predictor *predictor;
	const float *images; /* or: */
	const ls_text_sample *samples;
	int64_t count;
	float *logits;
	atomic_llong next; /* micro-batch */
} job;

/* Samples of micro-batch i: whole ones first, then the powers of two that the rest is made of. 0: there is none. */
static int64_t samples_of(int64_t count, int64_t i, int64_t *first)
{
	int64_t whole = count / LARGEST;

	*first = i * LARGEST;
	if (i < whole)
		return LARGEST;
	*first = whole * LARGEST;
	for (int64_t size = LARGEST / 2, at = whole; size > 0; size /= 2) {
		if (!(count & size))
			continue;
		if (at++ == i)
			return size;
		*first += size;
	}
	return 0;
}

static void pack(packed *to, const ls_text_sample *samples, int64_t count)
{
	int32_t at = 0;

	for (int64_t i = 0; i < count; i++) {
		size_t bytes = (size_t)samples[i].length * sizeof(*to->token);
		to->start[i] = at;
		memcpy(to->token + at, samples[i].tokens, bytes);
		if (samples[i].segments)
			memcpy(to->segment + at, samples[i].segments, bytes);
		else
			memset(to->segment + at, 0, bytes);
		at += samples[i].length;
		to->last[i] = at - 1;
	}
	to->start[count] = at;
}

static void drive(void *context, int device)
{
	job *j = context;
	ls_predictor *p = j->predictor;
	driver *d = &p->driver[device];
	const ls_tensor *in = &p->options.graph->values[p->options.graph->input];
	size_t floats = (size_t)in->channels * (size_t)in->height * (size_t)in->width;
	int64_t first, count;

	while ((count = samples_of(j->count, atomic_fetch_add(&j->next, 1), &first)) > 0) {
		ls_packed text = { .start = d->text.start,
				   .masked_start = p->options.graph->predicts_next ? p->each : p->none,
				   .token = d->text.token,
				   .segment = d->text.segment,
				   .masked_at = d->text.last,
				   .target = p->none };
		ls_exec_microbatch microbatch = { .count = count, .labels = p->none, .samples = p->samples };
		if (j->samples) {
			pack(&d->text, j->samples + first, count);
			microbatch.text = &text;
		} else {
			microbatch.images = j->images + (size_t)first * floats;
		}
		p->options.backend->infer(d->executor, &microbatch, j->logits + first * ls_predictor_outputs(p));
	}
}

static void run(job *j)
{
	ls_predictor *p = j->predictor;
	int64_t microbatches = (j->count + LARGEST - 1) / LARGEST;
	int devices = microbatches < p->options.devices ? (int)microbatches : p->options.devices;

	if (j->count == 0)
		return;
	ls_devices_run(p->devices, devices, drive, j);
	ls_devices_leave(p->devices);
}

static ls_status check_arrays(const void *samples, const char *name, int64_t count, const float *logits)
{
	if (count == 0)
		return LS_OK;
	LS_TRY(ls_argument_check(samples, name));
	return ls_argument_check(logits, "logits");
}

int ls_predictor_is_lost(const ls_predictor *p)
{
	return ls_devices_are_lost(p->devices);
}

ls_status ls_predictor_run(ls_predictor *p, const float *images, int64_t count, float *logits)
{
	job j = { .predictor = p, .images = images, .count = count, .logits = logits };

	if (p->options.graph->tokens_max > 0)
		return ls_fail(LS_EMISMATCH, "the model takes text, not images");
	LS_TRY(check_arrays(images, "images", count, logits));
	run(&j);
	return LS_OK;
}

ls_status ls_predictor_run_text(ls_predictor *p, const ls_text_sample *samples, int64_t count, float *logits)
{
	job j = { .predictor = p, .samples = samples, .count = count, .logits = logits };

	if (p->options.graph->tokens_max == 0)
		return ls_fail(LS_EMISMATCH, "the model takes images, not text");
	LS_TRY(check_arrays(samples, "samples", count, logits));
	for (int64_t i = 0; i < count; i++)
		LS_TRY(ls_sample_check_text(p->options.graph, &samples[i], i));
	run(&j);
	return LS_OK;
}
