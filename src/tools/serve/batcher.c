#include "tools/serve/batcher.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/status.h"
#include "base/thread.h"
#include "trained/outputs.h"

struct ls_batcher {
	ls_batcher_options options;
	ls_model_facts facts;
	size_t values; /* of an image */
	pthread_t thread;
	int has_thread;

	pthread_mutex_t lock; /* for what follows */
	pthread_cond_t changed;
	ls_batch_job *first, *last; /* jobs with samples that no batch has taken */
	int64_t waiting;            /* their number */
	int is_ending;

	/* the thread's own: the batch at hand */
	float *images, *logits; /* (max_batch, values), (max_batch, outputs) */
	ls_text_sample *texts;  /* (max_batch) */
	ls_batch_job **owner;   /* (max_batch) */
	int64_t *place;         /* (max_batch) in the owner */
	int64_t count;
};

/* ---- collecting -------------------------------------------------------------------------------------------------- */

static void wait_until(ls_batcher *b, double seconds)
{
	struct timespec when = { .tv_sec = (time_t)seconds,
				 .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9) };
	pthread_cond_timedwait(&b->changed, &b->lock, &when);
}

/* Until a batch is full, its oldest sample has waited enough, or the end has come. 0: nothing is left. */
static int wait_for_samples(ls_batcher *b)
{
	while (!b->first && !b->is_ending)
		pthread_cond_wait(&b->changed, &b->lock);
	if (!b->first)
		return 0;
	double until = b->first->since + b->options.max_wait;
	while (b->waiting < b->options.max_batch && !b->is_ending && ls_clock_seconds() < until)
		wait_until(b, until);
	return 1;
}

/* Move samples from the queue into the batch. */
static void take_samples(ls_batcher *b)
{
	b->count = 0;
	while (b->first && b->count < b->options.max_batch) {
		ls_batch_job *job = b->first;
		b->owner[b->count] = job;
		b->place[b->count++] = job->taken++;
		b->waiting--;
		if (job->taken == job->count)
			b->first = job->next;
	}
	if (!b->first)
		b->last = NULL;
}

/* ---- predicting -------------------------------------------------------------------------------------------------- */

static ls_status predict(ls_batcher *b)
{
	for (int64_t i = 0; i < b->count; i++) {
		const ls_batch_job *job = b->owner[i];
		if (job->texts)
			b->texts[i] = job->texts[b->place[i]];
		else
			memcpy(b->images + (size_t)i * b->values, job->images + (size_t)b->place[i] * b->values,
			       b->values * sizeof(*b->images));
	}
	LS_TRY(b->texts ? ls_model_predict_text(b->options.model, b->texts, b->count, b->logits)
			: ls_model_predict_unchecked(b->options.model, b->images, b->count, b->logits));
	return ls_model_interpret(b->options.model, b->logits, b->count);
}

static void deliver(ls_batcher *b, ls_status status)
{
	size_t outputs = (size_t)b->facts.outputs;

	for (int64_t i = 0; i < b->count; i++) {
		ls_batch_job *job = b->owner[i];
		memcpy(job->chances + (size_t)b->place[i] * outputs, b->logits + (size_t)i * outputs,
		       outputs * sizeof(*b->logits));
		job->status = status != LS_OK ? status : job->status;
		if (b->place[i] == job->count - 1) /* samples are taken in order: the last one completes it */
			job->done(job, job->status, ls_last_error());
	}
}

static void *work(void *context)
{
	ls_batcher *b = context;

	pthread_mutex_lock(&b->lock);
	while (wait_for_samples(b)) {
		take_samples(b);
		pthread_mutex_unlock(&b->lock);
		if (b->options.on_batch)
			b->options.on_batch(b->options.context, b->count);
		deliver(b, predict(b));
		pthread_mutex_lock(&b->lock);
	}
	pthread_mutex_unlock(&b->lock);
	return NULL;
}

/* ---- from outside ------------------------------------------------------------------------------------------------ */

int ls_batcher_submit(ls_batcher *b, ls_batch_job *job)
{
	pthread_mutex_lock(&b->lock);
	/* a queue that is empty takes a job of any size */
	int fits = !b->is_ending && (!b->first || b->waiting + job->count <= b->options.queue_max);
	if (fits) {
		job->taken = 0;
		job->status = LS_OK;
		job->since = ls_clock_seconds();
		job->next = NULL;
		if (b->last)
			b->last->next = job;
		else
			b->first = job;
		b->last = job;
		b->waiting += job->count;
		pthread_cond_signal(&b->changed);
	}
	pthread_mutex_unlock(&b->lock);
	return fits;
}

int64_t ls_batcher_waiting(ls_batcher *b)
{
	pthread_mutex_lock(&b->lock);
	int64_t waiting = b->waiting;
	pthread_mutex_unlock(&b->lock);
	return waiting;
}

static ls_status take_memory(ls_batcher *b)
{
	size_t most = (size_t)b->options.max_batch;

	b->owner = calloc(most, sizeof(*b->owner));
	b->place = calloc(most, sizeof(*b->place));
	b->logits = calloc(most * (size_t)b->facts.outputs, sizeof(*b->logits));
	if (b->facts.tokens_max > 0)
		b->texts = calloc(most, sizeof(*b->texts));
	else
		b->images = calloc(most * b->values, sizeof(*b->images));
	if (b->owner && b->place && b->logits && (b->texts || b->images))
		return LS_OK;
	return ls_fail(LS_EMEMORY, "no memory for batches of %lld samples; choose fewer with options.max_batch",
		       (long long)b->options.max_batch);
}

static ls_status start(ls_batcher *b)
{
	pthread_condattr_t monotonic;

	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_mutex_init(&b->lock, NULL);
	pthread_cond_init(&b->changed, &monotonic);
	pthread_condattr_destroy(&monotonic);
	LS_TRY(ls_model_describe(b->options.model, &b->facts));
	b->values = (size_t)b->facts.channels * (size_t)b->facts.height * (size_t)b->facts.width;
	LS_TRY(take_memory(b));
	int error = ls_thread_start(&b->thread, work, b);
	b->has_thread = error == 0;
	return error ? ls_fail(LS_EMEMORY, "cannot start a thread: %s", strerror(error)) : LS_OK;
}

ls_status ls_batcher_new(ls_batcher **out, const ls_batcher_options *options)
{
	ls_batcher *b = calloc(1, sizeof(*b));

	if (!b)
		return ls_fail(LS_EMEMORY, "no memory to collect requests");
	b->options = *options;
	ls_status status = start(b);
	if (status == LS_OK)
		*out = b;
	else
		ls_batcher_free(b);
	return status;
}

void ls_batcher_end(ls_batcher *b)
{
	if (!b->has_thread)
		return;
	pthread_mutex_lock(&b->lock);
	b->is_ending = 1;
	pthread_cond_signal(&b->changed);
	pthread_mutex_unlock(&b->lock);
	pthread_join(b->thread, NULL);
	b->has_thread = 0;
}

void ls_batcher_free(ls_batcher *b)
{
	if (!b)
		return;
	ls_batcher_end(b);
	pthread_cond_destroy(&b->changed);
	pthread_mutex_destroy(&b->lock);
	free(b->owner);
	free(b->place);
	free(b->logits);
	free(b->texts);
	free(b->images);
	free(b);
}
