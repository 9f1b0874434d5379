/*
 * loader.c - micro-batches in training order, read ahead.
 *
 * Micro-batches are numbered 0, 1, 2, ... from the loader's start: micro-batch number q goes to slot q mod slots. A
 * reader takes the next number, waits until its slot is free (q < released + slots), fills it without holding the lock,
 * and marks it ready; the consumer waits for its next number. So any number of readers delivers the same micro-batches
 * in the same order.
 *
 * A plain loader delivers every micro-batch of the epoch from its start on. Where micro-batches are assigned, `runs`
 * maps numbers to micro-batches: each step's share is a run of numbers, and `total` numbers are known so far. Readers
 * wait for more numbers as they wait for free slots.
 *
 * Invariants
 *  1. released <= delivered <= taken <= released + slots; delivered - released is 1 while a micro-batch is borrowed,
 *     else 0.
 *  2. A slot is written by the reader that took its number, and read by the consumer only after `ready` was set under
 *     the lock.
 *  3. An error is delivered in its place in the order, and again by every call after that.
 *  4. Nothing is allocated after ls_loader_new(), but by a dataset that decodes files.
 *  5. A run stays until its last number is delivered. So the run of any number >= delivered, and thus of every number
 *     a reader can take, is there.
 */
#include "data/loader.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "base/thread.h"
#include "data/dataset.h"
#include "data/packed_text.h"
#include "data/shuffle.h"
#include "data/transforms/transforms.h"

#define AHEAD_DEFAULT 4
#define THREADS_MAX 64
#define THREADS_CHOSEN 16 /* each has a micro-batch of memory */

typedef struct slot {
	ls_microbatch microbatch;
	float *images;           /* NULL: text */
	float *scratch;          /* of transforms */
	ls_microbatch_text text; /* all NULL: images */
	int32_t *labels;
	float *targets; /* NULL: none */
	uint64_t *samples;
	ls_status status;
	int ready;
	char error[512];
} slot;

/* Consecutive micro-batches that were assigned: micro-batch `first` is number end - count. */
typedef struct run {
	uint64_t first; /* counted from the beginning of start_epoch */
	uint64_t count, end;
} run;

struct ls_loader {
	const ls_dataset *dataset;
	ls_loader_options options;
	uint64_t samples, steps;    /* of an epoch */
	uint64_t step_microbatches; /* of a full step */
	uint64_t epoch_microbatches;
	uint64_t first; /* micro-batch of start_epoch that is number 0 */
	uint64_t total; /* numbers that exist or were assigned so far; UINT64_MAX: endless */

	run runs[LS_LOADER_ASSIGNS];      /* a ring */
	uint64_t runs_begin, runs_end;    /* counted without end */
	uint64_t next_step, end_of_steps; /* to be assigned, counted from the beginning of start_epoch */

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

void ls_loader_step_at(uint64_t samples, int64_t global_batch, int64_t microbatch, uint64_t step, ls_step_shape *out)
{
	uint64_t steps = ls_loader_steps(samples, global_batch);
	assert(step < steps);
	uint64_t left = samples - step * (uint64_t)global_batch;
	out->samples = left < (uint64_t)global_batch ? (int64_t)left : global_batch;
	out->microbatches = (int64_t)divide_up((uint64_t)out->samples, (uint64_t)microbatch);
	out->last_in_epoch = step + 1 == steps;
}

/* Where micro-batch `place` lies, counted from the beginning of start_epoch: epoch, step, micro-batch and range of the
 * order. */
static void microbatch_place(const ls_loader *loader, uint64_t place, ls_microbatch *microbatch, uint64_t *begin)
{
	const ls_loader_options *o = &loader->options;
	uint64_t in_epoch = place % loader->epoch_microbatches;
	ls_step_shape shape;
	microbatch->epoch = o->start_epoch + place / loader->epoch_microbatches;
	microbatch->step = in_epoch / loader->step_microbatches;
	microbatch->microbatch = (int64_t)(in_epoch % loader->step_microbatches);
	ls_loader_step_at(loader->samples, o->global_batch, o->microbatch, microbatch->step, &shape);
	int64_t before = microbatch->microbatch * o->microbatch, left = shape.samples - before;
	*begin = microbatch->step * (uint64_t)o->global_batch + (uint64_t)before;
	microbatch->count = left < o->microbatch ? left : o->microbatch;
	microbatch->step_samples = shape.samples;
	microbatch->last_in_step = microbatch->microbatch + 1 == shape.microbatches;
	microbatch->last_in_epoch = microbatch->last_in_step && shape.last_in_epoch;
}

/* The micro-batch that number q stands for, counted from the beginning of start_epoch. Invariant 5 ends the search. */
static uint64_t number_place(const ls_loader *loader, uint64_t number)
{
	if (!loader->options.assigned)
		return loader->first + number;
	uint64_t i = loader->runs_begin;
	while (loader->runs[i % LS_LOADER_ASSIGNS].end <= number)
		i++;
	const run *r = &loader->runs[i % LS_LOADER_ASSIGNS];
	return r->first + r->count - (r->end - number);
}

/* A reader's cache of the last step it worked on: micro-batches of a step mostly follow each other. */
typedef struct step_memory {
	uint64_t epoch, step;
	int64_t masked;
	int known;
} step_memory;

static uint64_t sample_at(const ls_loader *loader, const ls_permutation *order, uint64_t place)
{
	return loader->options.shuffle ? ls_permutation_at(order, place) : place;
}

/* The masked positions of a whole step, including micro-batches that other loaders deliver. */
static ls_status step_masked(const ls_loader *loader, const ls_permutation *order, const ls_microbatch *microbatch,
			     step_memory *memory)
{
	uint64_t begin = microbatch->step * (uint64_t)loader->options.global_batch;
	int64_t sum = 0;
	if (memory->known && memory->epoch == microbatch->epoch && memory->step == microbatch->step)
		return LS_OK;
	for (uint64_t i = 0; loader->dataset->info.masked_max && i < (uint64_t)microbatch->step_samples; i++) {
		int length, masked;
		uint64_t index = sample_at(loader, order, begin + i);
		LS_TRY(ls_dataset_sample_measures(loader->dataset, index, microbatch->epoch, &length, &masked));
		sum += masked;
	}
	*memory = (step_memory){ microbatch->epoch, microbatch->step, sum, 1 };
	return LS_OK;
}

/* The float targets of the micro-batch's sample i, whose label is read. */
static ls_status targets_read(const ls_loader *loader, slot *s, int64_t i, uint64_t index)
{
	int count = s->microbatch.target_count;
	float *row = s->targets + i * count;

	if (loader->dataset->info.targets)
		return ls_dataset_sample_targets(loader->dataset, index, row);
	memset(row, 0, (size_t)count * sizeof(*row));
	row[s->labels[i]] = 1;
	return LS_OK;
}

static ls_status slot_read(const ls_loader *loader, slot *s, uint64_t begin, step_memory *memory)
{
	size_t values = ls_dataset_values(&loader->dataset->info);
	ls_permutation order = ls_permutation_make(loader->options.seed, s->microbatch.epoch, loader->samples);
	if (s->microbatch.text) {
		LS_TRY(step_masked(loader, &order, &s->microbatch, memory));
		s->text.packed.step_masked = memory->masked;
	}
	for (int64_t i = 0; i < s->microbatch.count; i++) {
		uint64_t index = s->samples[i] = sample_at(loader, &order, begin + (uint64_t)i);
		LS_TRY(s->microbatch.text ? ls_microbatch_text_read(&s->text, loader->dataset, i, index,
								    s->microbatch.epoch, &s->labels[i])
					  : ls_dataset_sample(loader->dataset, index, s->images + (size_t)i * values,
							      &s->labels[i]));
		if (s->targets)
			LS_TRY(targets_read(loader, s, i, index));
		if (loader->options.transforms && s->microbatch.images)
			LS_TRY(ls_transforms_apply(loader->options.transforms, loader->dataset, s->microbatch.epoch,
						   index, s->images + (size_t)i * values,
						   s->targets ? s->targets + i * s->microbatch.target_count : NULL,
						   s->scratch));
	}
	return LS_OK;
}

static void slot_fill(const ls_loader *loader, slot *s, uint64_t place, step_memory *memory)
{
	uint64_t begin;
	microbatch_place(loader, place, &s->microbatch, &begin);
	s->status = slot_read(loader, s, begin, memory);
	ls_status whole =
		ls_dataset_check(loader->dataset); /* a cut file may be why reading failed or returned zeros */
	s->status = whole ? whole : s->status;
	if (s->status)
		snprintf(s->error, sizeof(s->error), "%s", ls_last_error());
}

static void *reader(void *argument)
{
	ls_loader *loader = argument;
	step_memory memory = { .known = 0 };
	pthread_mutex_lock(&loader->lock);
	while (!loader->stop) {
		if (loader->taken == loader->total || loader->taken == loader->released + loader->slot_count) {
			pthread_cond_wait(&loader->freed, &loader->lock);
			continue;
		}
		uint64_t number = loader->taken++, place = number_place(loader, number);
		slot *s = &loader->slots[number % loader->slot_count];
		pthread_mutex_unlock(&loader->lock);
		slot_fill(loader, s, place, &memory);
		pthread_mutex_lock(&loader->lock);
		s->ready = 1;
		pthread_cond_signal(&loader->filled);
	}
	pthread_mutex_unlock(&loader->lock);
	return NULL;
}

/* Release the borrowed micro-batch, unless it carries an error, which stays. */
static void give_back(ls_loader *loader)
{
	if (loader->released == loader->delivered)
		return;
	loader->slots[loader->released % loader->slot_count].ready = 0;
	loader->released++;
	pthread_cond_signal(&loader->freed);
}

ls_status ls_loader_next(ls_loader *loader, const ls_microbatch **out)
{
	pthread_mutex_lock(&loader->lock);
	give_back(loader);
	if (loader->delivered == loader->total) {
		int over = !loader->options.assigned || loader->next_step == loader->end_of_steps;
		pthread_mutex_unlock(&loader->lock);
		if (!over)
			return ls_fail(
				LS_EINVALID,
				"all micro-batches assigned to this loader are delivered: assign it a step first");
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
	*out = &s->microbatch;
	return LS_OK;
}

/* Check that [first, first + count) of the next step can be assigned. Delivered runs free their places. */
static ls_status assign_check(ls_loader *loader, int64_t first, int64_t count)
{
	ls_step_shape shape;
	if (!loader->options.assigned || loader->next_step == loader->end_of_steps)
		return ls_fail(LS_EINVALID, "cannot assign micro-batches to a loader %s",
			       loader->options.assigned ? "whose single pass is assigned"
							: "that delivers all of them");
	ls_loader_step_at(loader->samples, loader->options.global_batch, loader->options.microbatch,
			  loader->next_step % loader->steps, &shape);
	if (first < 0 || count < 0 || first > shape.microbatches || count > shape.microbatches - first)
		return ls_fail(
			LS_EINVALID,
			"cannot assign %lld micro-batches from micro-batch %lld on: step %llu has %lld micro-batches",
			(long long)count, (long long)first, (unsigned long long)(loader->next_step % loader->steps),
			(long long)shape.microbatches);
	while (loader->runs_begin < loader->runs_end &&
	       loader->runs[loader->runs_begin % LS_LOADER_ASSIGNS].end <= loader->delivered)
		loader->runs_begin++;
	if (count && loader->runs_end - loader->runs_begin == LS_LOADER_ASSIGNS)
		return ls_fail(LS_EINVALID,
			       "%d steps are assigned to this loader and not delivered: take their micro-batches first",
			       LS_LOADER_ASSIGNS);
	return LS_OK;
}

ls_status ls_loader_assign(ls_loader *loader, int64_t first, int64_t count)
{
	pthread_mutex_lock(&loader->lock);
	ls_status status = assign_check(loader, first, count);
	if (!status) {
		uint64_t epoch = loader->next_step / loader->steps, step = loader->next_step % loader->steps;
		uint64_t begin = epoch * loader->epoch_microbatches + step * loader->step_microbatches;
		loader->next_step++;
		loader->total += (uint64_t)count;
		if (count)
			loader->runs[loader->runs_end++ % LS_LOADER_ASSIGNS] =
				(run){ begin + (uint64_t)first, (uint64_t)count, loader->total };
		pthread_cond_broadcast(&loader->freed);
	}
	pthread_mutex_unlock(&loader->lock);
	return status;
}

static ls_status options_check(const ls_dataset *dataset, const ls_loader_options *options)
{
	uint64_t samples = dataset->info.samples;
	if (options->microbatch < 1 || options->global_batch < 1)
		return ls_fail(LS_EINVALID,
			       "micro-batch of %lld and global batch of %lld samples: both must be at least 1",
			       (long long)options->microbatch, (long long)options->global_batch);
	if (options->ahead < 0 || options->ahead > 4096 || options->threads < 0 || options->threads > THREADS_MAX)
		return ls_fail(LS_EINVALID, "loader: %d micro-batches ahead with %d threads; at most 4096 and %d",
			       options->ahead, options->threads, THREADS_MAX);
	if (options->transforms && ls_transforms_mix(options->transforms) && !options->one_hot &&
	    !dataset->info.targets)
		return ls_fail(LS_EINVALID, "loader: samples of '%s' are mixed, and their targets are not floats",
			       dataset->info.name);
	uint64_t steps = ls_loader_steps(samples, options->global_batch);
	if (options->start_step > steps)
		return ls_fail(LS_EINVALID, "cannot start at step %llu: an epoch of '%s' has %llu steps",
			       (unsigned long long)options->start_step, dataset->info.name, (unsigned long long)steps);
	return LS_OK;
}

/* Micro-batch numbering. start_step == steps means the epoch is done: the next step is the next epoch's first. */
static void loader_plan(ls_loader *loader)
{
	uint64_t global = (uint64_t)loader->options.global_batch, microbatch = (uint64_t)loader->options.microbatch;
	loader->samples = loader->dataset->info.samples;
	loader->steps = ls_loader_steps(loader->samples, loader->options.global_batch);
	uint64_t last_step = loader->samples - (loader->steps - 1) * global;
	loader->step_microbatches = divide_up(global, microbatch);
	loader->epoch_microbatches = (loader->steps - 1) * loader->step_microbatches + divide_up(last_step, microbatch);
	loader->first = loader->options.start_step < loader->steps
				? loader->options.start_step * loader->step_microbatches
				: loader->epoch_microbatches;
	loader->total = loader->options.single_pass ? loader->epoch_microbatches - loader->first : UINT64_MAX;
	loader->next_step = loader->options.start_step;
	loader->end_of_steps = loader->options.single_pass ? loader->steps : UINT64_MAX;
	if (loader->options.assigned)
		loader->total = 0;
}

/* Float targets per sample: the dataset's, or made of its labels. */
static int targets_of(const ls_dataset_info *info, const ls_loader_options *options)
{
	return info->targets ? info->targets : options->one_hot ? info->classes : 0;
}

/* The parts of a slot's memory: images or text, labels, targets, indices, what transforms work in. */
typedef struct slot_bytes {
	size_t content, labels, targets, indices, scratch;
} slot_bytes;

static slot_bytes slot_bytes_of(const ls_dataset_info *info, const ls_loader_options *options, int64_t most)
{
	size_t images = ls_round_up64((size_t)most * ls_dataset_values(info) * sizeof(float));
	size_t scratch = options->transforms ? ls_transforms_scratch(options->transforms) : 0;
	return (slot_bytes){ .content = info->tokens_max ? ls_microbatch_text_bytes(info, most) : images,
			     .labels = ls_round_up64((size_t)most * sizeof(int32_t)),
			     .targets = ls_round_up64((size_t)most * (size_t)targets_of(info, options) * sizeof(float)),
			     .indices = ls_round_up64((size_t)most * sizeof(uint64_t)),
			     .scratch = ls_round_up64(scratch * sizeof(float)) };
}

static void slot_place(slot *s, const ls_loader *loader, int64_t most, char *base)
{
	const ls_dataset_info *info = &loader->dataset->info;
	slot_bytes bytes = slot_bytes_of(info, &loader->options, most);
	if (info->tokens_max) {
		ls_microbatch_text_place(&s->text, info, most, base);
		s->microbatch.text = &s->text.packed;
	} else {
		s->images = (float *)base;
		s->microbatch.images = s->images;
	}
	s->labels = (int32_t *)(base + bytes.content);
	s->targets = bytes.targets ? (float *)(base + bytes.content + bytes.labels) : NULL;
	s->samples = (uint64_t *)(base + bytes.content + bytes.labels + bytes.targets);
	s->scratch = (float *)(base + bytes.content + bytes.labels + bytes.targets + bytes.indices);
	s->microbatch.labels = s->labels;
	s->microbatch.targets = s->targets;
	s->microbatch.target_count = targets_of(info, &loader->options);
	s->microbatch.samples = s->samples;
}

/* A slot holds the largest micro-batch: `microbatch` samples, or fewer if the batch or the dataset is smaller. */
static uint64_t largest_microbatch(const ls_dataset *dataset, const ls_loader_options *options)
{
	uint64_t most = (uint64_t)options->microbatch;
	most = most < (uint64_t)options->global_batch ? most : (uint64_t)options->global_batch;
	return most < dataset->info.samples ? most : dataset->info.samples;
}

/* One slot more than are read ahead, for the borrowed micro-batch. */
static uint64_t slots_of(const ls_loader_options *options)
{
	int usual = options->threads > AHEAD_DEFAULT ? options->threads : AHEAD_DEFAULT;
	return (uint64_t)(options->ahead ? options->ahead : usual) + 1;
}

int ls_loader_threads(const ls_dataset *dataset, const ls_transforms *transforms, int threads)
{
	int takes_work = dataset->is_decoded || (transforms && transforms->count > 0);
	int most = threads < THREADS_CHOSEN ? threads : THREADS_CHOSEN;
	return takes_work && most > 0 ? most : 1;
}

static size_t stride_of(const ls_dataset_info *info, const ls_loader_options *options, int64_t most)
{
	slot_bytes bytes = slot_bytes_of(info, options, most);
	return bytes.content + bytes.labels + bytes.targets + bytes.indices + bytes.scratch;
}

size_t ls_loader_bytes(const ls_dataset *dataset, const ls_loader_options *options, uint64_t microbatches)
{
	uint64_t slots = slots_of(options), most = largest_microbatch(dataset, options);
	return (size_t)(microbatches < slots ? microbatches : slots) *
	       stride_of(&dataset->info, options, (int64_t)most);
}

static ls_status loader_allocate(ls_loader *loader)
{
	const ls_dataset_info *info = &loader->dataset->info;
	uint64_t most = largest_microbatch(loader->dataset, &loader->options);
	size_t values = ls_dataset_values(info) + (size_t)targets_of(info, &loader->options);
	loader->slot_count = slots_of(&loader->options);
	if (most > SIZE_MAX / 2 / loader->slot_count / (values * sizeof(float) + 64))
		return ls_fail(LS_EMEMORY, "micro-batches of %llu samples of '%s' do not fit any memory",
			       (unsigned long long)most, info->name);
	if (info->tokens_max && most > (uint64_t)(INT32_MAX / info->tokens_max)) /* rows of a micro-batch are int32 */
		return ls_fail(LS_EINVALID,
			       "micro-batches of %llu samples of '%s', of up to %d tokens each, are too large",
			       (unsigned long long)most, info->name, info->tokens_max);
	size_t stride = stride_of(info, &loader->options, (int64_t)most);
	loader->store_bytes = stride * loader->slot_count;
	loader->slots = calloc(loader->slot_count, sizeof(*loader->slots));
	if (!loader->slots)
		return ls_fail(LS_EMEMORY, "no memory for the loader");
	LS_TRY(ls_buffer_new(&loader->store, loader->store_bytes, "loader's micro-batches"));
	for (uint64_t i = 0; i < loader->slot_count; i++)
		slot_place(&loader->slots[i], loader, (int64_t)most, (char *)loader->store + i * stride);
	return LS_OK;
}

static ls_status loader_start(ls_loader *loader)
{
	int wanted = loader->options.threads ? loader->options.threads : 1, failed = 0;
	while (loader->thread_count < wanted && !failed) {
		failed = ls_thread_start(&loader->threads[loader->thread_count], reader, loader);
		loader->thread_count += !failed;
	}
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
