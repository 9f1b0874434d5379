/*
 * check.c - ls_data_check(): read every sample of a dataset, as a training would.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/names.h"
#include "base/options.h"
#include "base/pin.h"
#include "base/status.h"
#include "base/team.h"
#include "data/dataset.h"

enum { THREADS_MAX = 256, SHOWN_MAX = 1000 };

/* What the threads share. */
typedef struct checking {
	const ls_dataset *set;
	FILE *to;
	pthread_mutex_t lock; /* of what follows */
	uint64_t bad;
	ls_status status; /* no memory */
} checking;

/* Room for a sample of any kind: an image, or a text with its arrays one behind the other. */
static size_t sample_bytes(const ls_dataset_info *info)
{
	size_t text = 2 * ((size_t)info->tokens_max + (size_t)info->masked_max) * sizeof(int32_t);
	return info->tokens_max > 0 ? text : ls_dataset_values(info) * sizeof(float);
}

static ls_status read_sample(const ls_dataset *set, uint64_t index, void *room)
{
	const ls_dataset_info *info = &set->info;
	int32_t *ids = room, label;

	if (info->tokens_max == 0)
		return ls_dataset_sample(set, index, room, &label);
	ls_text_sample s = { .tokens = ids,
			     .segments = ids + info->tokens_max,
			     .places = ids + 2 * (size_t)info->tokens_max,
			     .targets = ids + 2 * (size_t)info->tokens_max + info->masked_max };
	return ls_dataset_sample_text(set, index, 0, &s);
}

static void take_failure(checking *c, ls_status status)
{
	pthread_mutex_lock(&c->lock);
	if (status == LS_EMEMORY)
		c->status = status;
	else if (c->bad++ < SHOWN_MAX)
		fprintf(c->to, "  bad: %s\n", ls_last_error());
	pthread_mutex_unlock(&c->lock);
}

static void read_samples(void *context, ls_member member)
{
	checking *c = context;
	void *room = malloc(sample_bytes(&c->set->info));
	int64_t index;

	if (!room)
		take_failure(c, ls_fail(LS_EMEMORY, "no memory for a sample"));
	while (room && (index = ls_team_next(member, (int64_t)c->set->info.samples)) >= 0) {
		ls_status status = read_sample(c->set, (uint64_t)index, room);
		if (status != LS_OK)
			take_failure(c, status);
	}
	free(room);
}

static ls_status check_set(const ls_dataset *set, int threads, const char *title, FILE *to, uint64_t *bad)
{
	checking c = { .set = set, .to = to, .lock = PTHREAD_MUTEX_INITIALIZER };
	ls_team *team = NULL;

	LS_TRY(ls_team_new(&team, threads));
	double begun = ls_clock_seconds();
	ls_team_run(team, read_samples, &c);
	double seconds = ls_clock_seconds() - begun;
	ls_team_free(team);
	if (c.status != LS_OK)
		return ls_fail(c.status, "no memory for a sample of '%s'", set->info.name);
	LS_TRY(ls_dataset_check(set));
	uint64_t all = set->bad + c.bad;
	fprintf(to, "%s: %" PRIu64 " sample%s, %" PRIu64 " bad; read in %.2f s on %d thread%s: %.0f samples/s\n", title,
		set->info.samples - c.bad, ls_plural(set->info.samples - c.bad, "s"), all, seconds, threads,
		ls_plural((uint64_t)threads, "s"), (double)set->info.samples / seconds);
	*bad += all;
	return LS_OK;
}

/* Where opening it already fails at a bad sample, those are left out, and named in warnings. */
static ls_status open_tolerant(ls_dataset **out, const ls_dataset_options *options)
{
	ls_dataset_options own = *options;
	ls_status status = ls_dataset_open(out, &own);

	if (status != LS_EFORMAT && status != LS_EIO)
		return status;
	own.skip_bad = INT64_MAX;
	return ls_dataset_open(out, &own);
}

/* What the training images give the test images. */
static void follow(ls_dataset_options *test, const ls_dataset *train)
{
	if (!ls_dataset_normalisation(train))
		return;
	test->normalisation = ls_dataset_normalisation(train);
	test->channels = train->info.channels;
	test->height = train->info.height;
	test->width = train->info.width;
}

static ls_status check_both(ls_dataset_options *o, int threads, FILE *to, uint64_t *bad)
{
	ls_dataset *train = NULL, *test = NULL;

	o->split = LS_SPLIT_TRAIN;
	LS_TRY(open_tolerant(&train, o));
	ls_status status = check_set(train, threads, "train", to, bad);
	o->split = LS_SPLIT_TEST;
	follow(o, train);
	ls_status found = status == LS_OK ? open_tolerant(&test, o) : status;
	if (status == LS_OK && found == LS_ENOTFOUND && !ls_dataset_row_of(o->name))
		fprintf(to, "test: none\n");
	else if (status == LS_OK)
		status = found == LS_OK ? check_set(test, threads, "test", to, bad) : found;
	ls_dataset_free(test);
	ls_dataset_free(train);
	return status;
}

ls_status ls_data_check(const ls_dataset_options *options, int threads, FILE *to)
{
	ls_dataset_options own = LS_DATASET_OPTIONS_INIT;
	uint64_t bad = 0;

	LS_TRY(LS_OPTIONS_TAKE(&own, options, cache, "LS_DATASET_OPTIONS_INIT"));
	if (threads < 0 || threads > THREADS_MAX)
		return ls_fail(LS_EINVALID, "threads must be 1 to %d, or 0 for all cores, not %d", THREADS_MAX,
			       threads);
	threads = threads > 0 ? threads : ls_pin_cores();
	LS_TRY(check_both(&own, threads, to, &bad));
	if (fflush(to) != 0 || ferror(to))
		return ls_fail_errno(LS_EIO, "cannot print the check of '%s'", own.name);
	if (bad == 0)
		return LS_OK;
	return ls_fail(LS_EFORMAT, "%" PRIu64 " sample%s of %s cannot be read; options.skip_bad leaves them out", bad,
		       ls_plural(bad, "s"), own.name);
}
