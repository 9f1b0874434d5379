/*
 * loader.c - leaves in training order, read ahead.
 *
 * Leaves are numbered 0, 1, 2, ... from the loader's start: leaf number q goes to slot q mod slots. A reader takes the
 * next number, waits until its slot is free (q < released + slots), fills it without holding the lock, and marks it
 * ready; the consumer waits for its next number. So any number of readers delivers the same leaves in the same order.
 *
 * Invariants
 *  1. released <= delivered <= taken <= released + slots; delivered - released is 1 while a leaf is lent out, else 0.
 *  2. A slot is written by the reader that took its number, and read by the consumer only after `ready` was set under
 *     the lock.
 *  3. An error is delivered in its place in the order, and again by every call after that.
 *  4. Nothing is allocated after ls_loader_new().
 */
#include "data/loader.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "data/dataset.h"
#include "data/permute.h"

#define AHEAD_DEFAULT 4
#define THREADS_MAX 64

typedef struct slot {
	ls_leaf leaf;
	float *images;
	int32_t *labels;
	uint64_t *samples;
	ls_status status;
	int ready;
	char error[512];
} slot;

struct ls_loader {
	const ls_dataset *dataset;
	ls_loader_options options;
	uint64_t samples, steps; /* of an epoch */
	uint64_t step_leaves;    /* of a full step */
	uint64_t epoch_leaves;
	uint64_t first; /* leaf of start_epoch that is number 0 */
	uint64_t total; /* numbers there are; UINT64_MAX without an end */

	void *store; /* all slots' images, labels and indices */
	size_t store_bytes;
	slot *slots;
	uint64_t slot_count;

	pthread_mutex_t lock;
	pthread_cond_t freed, filled;
	uint64_t taken, delivered, released;
	int stop;
	pthread_t threads[THREADS_MAX];
	int thread_count;
};

static uint64_t divide_up(uint64_t a, uint64_t b)
{
	return a / b + (a % b != 0);
}

uint64_t ls_loader_steps(uint64_t samples, int64_t global_batch)
{
	return divide_up(samples, (uint64_t)global_batch);
}

/* Where leaf number q lies: its epoch, step, leaf and range of the epoch's order. */
static void leaf_place(const ls_loader *loader, uint64_t number, ls_leaf *leaf, uint64_t *begin)
{
	uint64_t global = (uint64_t)loader->options.global_batch, size = (uint64_t)loader->options.leaf;
	uint64_t from_start = loader->first + number;
	uint64_t in_epoch = from_start % loader->epoch_leaves;
	uint64_t step = in_epoch / loader->step_leaves, index = in_epoch % loader->step_leaves;
	uint64_t step_begin = step * global;
	uint64_t step_samples = loader->samples - step_begin < global ? loader->samples - step_begin : global;
	uint64_t left = step_samples - index * size;
	*begin = step_begin + index * size;
	leaf->count = (int64_t)(left < size ? left : size);
	leaf->epoch = loader->options.start_epoch + from_start / loader->epoch_leaves;
	leaf->step = step;
	leaf->leaf = (int64_t)index;
	leaf->step_samples = (int64_t)step_samples;
	leaf->last_in_step = left <= size;
	leaf->last_in_epoch = in_epoch + 1 == loader->epoch_leaves;
}

static ls_status slot_read(const ls_loader *loader, slot *s, uint64_t begin)
{
	size_t values = ls_dataset_values(&loader->dataset->info);
	ls_permutation order = ls_permutation_make(loader->options.seed, s->leaf.epoch, loader->samples);
	for (int64_t i = 0; i < s->leaf.count; i++) {
		uint64_t place = begin + (uint64_t)i;
		s->samples[i] = loader->options.shuffle ? ls_permutation_at(&order, place) : place;
		LS_TRY(ls_dataset_read(loader->dataset, s->samples[i], s->images + (size_t)i * values, &s->labels[i]));
	}
	return LS_OK;
}

static void slot_fill(const ls_loader *loader, slot *s, uint64_t number)
{
	uint64_t begin;
	leaf_place(loader, number, &s->leaf, &begin);
	s->status = slot_read(loader, s, begin);
	if (s->status)
		snprintf(s->error, sizeof(s->error), "%s", ls_last_error());
}

static void *reader(void *argument)
{
	ls_loader *loader = argument;
	pthread_mutex_lock(&loader->lock);
	while (!loader->stop && loader->taken < loader->total) {
		if (loader->taken == loader->released + loader->slot_count) {
			pthread_cond_wait(&loader->freed, &loader->lock);
			continue;
		}
		uint64_t number = loader->taken++;
		slot *s = &loader->slots[number % loader->slot_count];
		pthread_mutex_unlock(&loader->lock);
		slot_fill(loader, s, number);
		pthread_mutex_lock(&loader->lock);
		s->ready = 1;
		pthread_cond_signal(&loader->filled);
	}
	pthread_mutex_unlock(&loader->lock);
	return NULL;
}

/* Give back the leaf that was lent out, unless it carries an error, which stays. */
static void give_back(ls_loader *loader)
{
	if (loader->released == loader->delivered)
		return;
	loader->slots[loader->released % loader->slot_count].ready = 0;
	loader->released++;
	pthread_cond_signal(&loader->freed);
}

ls_status ls_loader_next(ls_loader *loader, const ls_leaf **out)
{
	pthread_mutex_lock(&loader->lock);
	give_back(loader);
	if (loader->delivered == loader->total) {
		pthread_mutex_unlock(&loader->lock);
		*out = NULL;
		return LS_OK;
	}
	slot *s = &loader->slots[loader->delivered % loader->slot_count];
	while (!s->ready)
		pthread_cond_wait(&loader->filled, &loader->lock);
	if (!s->status)
		loader->delivered++;
	pthread_mutex_unlock(&loader->lock);
	if (s->status)
		return ls_fail(s->status, "%s", s->error);
	*out = &s->leaf;
	return LS_OK;
}

static ls_status options_check(const ls_dataset *dataset, const ls_loader_options *options)
{
	uint64_t samples = dataset->info.samples;
	if (options->leaf < 1 || options->global_batch < 1)
		return ls_fail(LS_EINVALID, "leaf of %lld and global batch of %lld samples: both must be at least 1",
			       (long long)options->leaf, (long long)options->global_batch);
	if (options->ahead < 0 || options->ahead > 4096 || options->threads < 0 || options->threads > THREADS_MAX)
		return ls_fail(LS_EINVALID, "loader: %d leaves ahead with %d threads; at most 4096 and %d",
			       options->ahead, options->threads, THREADS_MAX);
	uint64_t steps = ls_loader_steps(samples, options->global_batch);
	if (options->start_step > steps)
		return ls_fail(LS_EINVALID, "cannot start at step %llu: an epoch of '%s' has %llu steps",
			       (unsigned long long)options->start_step, dataset->info.name, (unsigned long long)steps);
	return LS_OK;
}

/* Leaf numbering. start_step == steps means the epoch is done: the next step is the next epoch's first. */
static void loader_plan(ls_loader *loader)
{
	uint64_t global = (uint64_t)loader->options.global_batch, leaf = (uint64_t)loader->options.leaf;
	loader->samples = loader->dataset->info.samples;
	loader->steps = ls_loader_steps(loader->samples, loader->options.global_batch);
	uint64_t last_step = loader->samples - (loader->steps - 1) * global;
	loader->step_leaves = divide_up(global, leaf);
	loader->epoch_leaves = (loader->steps - 1) * loader->step_leaves + divide_up(last_step, leaf);
	loader->first = loader->options.start_step < loader->steps ? loader->options.start_step * loader->step_leaves
								   : loader->epoch_leaves;
	loader->total = loader->options.single_pass ? loader->epoch_leaves - loader->first : UINT64_MAX;
}

/* Slots hold the larger of what a leaf can be: `leaf`, or less when batch or dataset are smaller. One slot more than
 * are read ahead, for the leaf that is lent out. */
static ls_status loader_allocate(ls_loader *loader)
{
	uint64_t most = (uint64_t)loader->options.leaf;
	most = most < (uint64_t)loader->options.global_batch ? most : (uint64_t)loader->options.global_batch;
	most = most < loader->samples ? most : loader->samples;
	size_t values = ls_dataset_values(&loader->dataset->info);
	loader->slot_count = (uint64_t)(loader->options.ahead ? loader->options.ahead : AHEAD_DEFAULT) + 1;
	if (most > SIZE_MAX / 2 / loader->slot_count / (values * sizeof(float) + 64))
		return ls_fail(LS_EMEMORY, "leaves of %llu samples of '%s' do not fit any memory",
			       (unsigned long long)most, loader->dataset->info.name);
	size_t images = ls_round_up64((size_t)most * values * sizeof(float));
	size_t labels = ls_round_up64((size_t)most * sizeof(int32_t)), indices = (size_t)most * sizeof(uint64_t);
	size_t stride = images + labels + ls_round_up64(indices);
	loader->store_bytes = stride * loader->slot_count;
	loader->slots = calloc(loader->slot_count, sizeof(*loader->slots));
	if (!loader->slots)
		return ls_fail(LS_EMEMORY, "no memory for the loader");
	LS_TRY(ls_buffer_new(&loader->store, loader->store_bytes, "loader's leaves"));
	for (uint64_t i = 0; i < loader->slot_count; i++) {
		slot *s = &loader->slots[i];
		char *base = (char *)loader->store + i * stride;
		s->images = (float *)base;
		s->labels = (int32_t *)(base + images);
		s->samples = (uint64_t *)(base + images + labels);
		s->leaf.images = s->images;
		s->leaf.labels = s->labels;
		s->leaf.samples = s->samples;
	}
	return LS_OK;
}

/* Readers take no signals: those belong to whoever runs the training. */
static ls_status loader_start(ls_loader *loader)
{
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int wanted = loader->options.threads ? loader->options.threads : 1, failed = 0;
	while (loader->thread_count < wanted && !failed) {
		failed = pthread_create(&loader->threads[loader->thread_count], NULL, reader, loader);
		loader->thread_count += !failed;
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (failed)
		return ls_fail(LS_EMEMORY, "cannot start loader thread %d: %s", loader->thread_count, strerror(failed));
	return LS_OK;
}

ls_status ls_loader_new(ls_loader **out, const ls_dataset *dataset, const ls_loader_options *options)
{
	LS_TRY(options_check(dataset, options));
	ls_loader *loader = calloc(1, sizeof(*loader));
	if (!loader)
		return ls_fail(LS_EMEMORY, "no memory for the loader");
	loader->dataset = dataset;
	loader->options = *options;
	pthread_mutex_init(&loader->lock, NULL);
	pthread_cond_init(&loader->freed, NULL);
	pthread_cond_init(&loader->filled, NULL);
	loader_plan(loader);
	ls_status status = loader_allocate(loader);
	if (!status)
		status = loader_start(loader);
	if (status) {
		ls_loader_free(loader);
		return status;
	}
	*out = loader;
	return LS_OK;
}

void ls_loader_free(ls_loader *loader)
{
	if (!loader)
		return;
	pthread_mutex_lock(&loader->lock);
	loader->stop = 1;
	pthread_cond_broadcast(&loader->freed);
	pthread_mutex_unlock(&loader->lock);
	for (int i = 0; i < loader->thread_count; i++)
		pthread_join(loader->threads[i], NULL);
	pthread_cond_destroy(&loader->filled);
	pthread_cond_destroy(&loader->freed);
	pthread_mutex_destroy(&loader->lock);
	if (loader->store)
		ls_buffer_free(loader->store, loader->store_bytes);
	free(loader->slots);
	free(loader);
}
