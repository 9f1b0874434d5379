/*
 * make_dataset.c - ls_data_make(): a generated dataset written as IDX files, of any size, by all cores, and continued
 * after any interruption.
 *
 * Since sample i is a function of i alone, the file is a function of the settings: chunks may be written in any order
 * by any thread, and written twice without harm.
 */
#include "data/make_dataset.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/files.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/names.h"
#include "base/options.h"
#include "base/progress_bar.h"
#include "base/rng.h"
#include "base/status.h"
#include "base/team.h"
#include "data/dataset.h"
#include "data/normalise.h"
#include "data/readers/idx.h"

#define CHUNK 1024 /* samples per thread and turn */
#define THREADS_MAX 256

static const char *const split_names[2] = { "train", "test" };

/* One split being written. */
typedef struct make_split {
	ls_dataset *set;
	size_t values;                /* bytes of a sample */
	size_t header[LS_MAKE_KINDS]; /* bytes */
} make_split;

typedef struct make_job {
	const ls_data_make_options *options;
	make_split splits[2];
	ls_make_state state;
	ls_team *team;
	int threads;
	uint64_t round;  /* samples between two syncs */
	uint8_t *buffer; /* (threads, CHUNK, values + 1) */
	size_t buffer_bytes;

	/* the split in work */
	make_split *split;
	int which;
	int fd[LS_MAKE_KINDS];
	uint64_t round_begin, round_end;
	ls_progress_bar meter;
	pthread_mutex_t lock; /* of what follows */
	uint64_t made, sum;
	ls_status status;
	char error[512];
} make_job;

static ls_status write_at(int fd, const void *data, size_t bytes, uint64_t offset)
{
	if (ls_file_write_at(fd, data, bytes, offset) != 0)
		return ls_fail_errno(LS_EIO, "cannot write %zu bytes at byte %" PRIu64, bytes, offset);
	return LS_OK;
}

static uint64_t hash_samples(const uint8_t *images, const uint8_t *labels, size_t values, uint64_t first,
			     uint64_t count)
{
	uint64_t sum = 0;
	for (uint64_t i = 0; i < count; i++)
		sum += XXH64(images + i * values, values, ls_mix64(first + i) + labels[i]);
	return sum;
}

/* Make samples [begin, end) in this thread's buffer and write them to their places. */
static ls_status make_chunk(make_job *job, int rank, uint64_t begin, uint64_t end, uint64_t *sum)
{
	make_split *split = job->split;
	uint8_t *images = job->buffer + (size_t)rank * CHUNK * (split->values + 1);
	uint8_t *labels = images + CHUNK * split->values;
	for (uint64_t i = begin; i < end; i++) {
		int32_t label;
		LS_TRY(ls_dataset_read_bytes(split->set, i, images + (i - begin) * split->values, &label));
		labels[i - begin] = (uint8_t)label;
	}
	*sum = hash_samples(images, labels, split->values, begin, end - begin);
	LS_TRY(write_at(job->fd[LS_MAKE_IMAGES], images, (end - begin) * split->values,
			split->header[LS_MAKE_IMAGES] + begin * split->values));
	return write_at(job->fd[LS_MAKE_LABELS], labels, end - begin, split->header[LS_MAKE_LABELS] + begin);
}

/* Error messages are per thread: the first failure is kept for the calling thread. */
static void chunk_ended(make_job *job, ls_status status, uint64_t samples, uint64_t sum, int rank)
{
	pthread_mutex_lock(&job->lock);
	job->made += samples;
	job->sum += sum;
	if (status && !job->status) {
		job->status = status;
		snprintf(job->error, sizeof(job->error), "%s", ls_last_error());
	}
	if (rank == 0)
		ls_progress_bar_update(&job->meter, job->made);
	pthread_mutex_unlock(&job->lock);
}

static void round_work(void *context, ls_member member)
{
	make_job *job = context;
	int64_t chunks = (int64_t)((job->round_end - job->round_begin + CHUNK - 1) / CHUNK), chunk;
	while ((chunk = ls_team_next(member, chunks)) >= 0) {
		uint64_t begin = job->round_begin + (uint64_t)chunk * CHUNK;
		uint64_t end = begin + CHUNK < job->round_end ? begin + CHUNK : job->round_end;
		uint64_t sum = 0;
		ls_status status = make_chunk(job, member.rank, begin, end, &sum);
		chunk_ended(job, status, end - begin, sum, member.rank);
		if (status)
			break;
	}
}

static ls_status sync_split(make_job *job)
{
	for (int kind = 0; kind < LS_MAKE_KINDS; kind++)
		if (fdatasync(job->fd[kind]) != 0)
			return ls_fail_errno(LS_EIO, "cannot write to %s", job->options->out);
	return LS_OK;
}

static ls_status make_rounds(make_job *job)
{
	uint64_t samples = job->state.samples[job->which], *done = &job->state.done[job->which];
	while (*done < samples) {
		job->round_begin = *done;
		job->round_end = samples - *done < job->round ? samples : *done + job->round;
		ls_team_run(job->team, round_work, job);
		if (job->status)
			return ls_fail(job->status,
				       "%s: %s; %" PRIu64 " of %" PRIu64
				       " samples of the %s set are safe, the same command "
				       "continues there",
				       job->options->out, job->error, *done, samples, split_names[job->which]);
		LS_TRY(sync_split(job));
		*done = job->round_end;
		job->state.sum[job->which] = job->sum;
		LS_TRY(ls_make_save(&job->state));
	}
	return LS_OK;
}

/* Open a partial file, ours alone, and cut off what is not known to be safe. One that is shorter than the state says
 * starts afresh. */
static ls_status open_partial(make_job *job, int kind)
{
	char path[4096];
	struct stat facts;
	uint64_t unit = kind == LS_MAKE_IMAGES ? job->split->values : 1, *done = &job->state.done[job->which];
	LS_TRY(ls_make_partial(&job->state, job->which, kind, path, sizeof(path)));
	int fd = -1;
	LS_TRY(ls_file_open_own(&fd, path, O_RDWR));
	job->fd[kind] = fd;
	if (flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
		return ls_fail(LS_EIO, "%s is being written by another process; stop that one first", path);
	if (fstat(fd, &facts) != 0)
		return ls_fail_errno(LS_EIO, "cannot read %s", path);
	if ((uint64_t)facts.st_size < job->split->header[kind] + *done * unit)
		*done = 0;
	if (ftruncate(fd, (off_t)(job->split->header[kind] + *done * unit)) != 0)
		return ls_fail_errno(LS_EIO, "cannot write %s", path);
	return LS_OK;
}

/* The checksum of the first `done` samples on disk; a different value if they cannot be read. */
static uint64_t sum_on_disk(make_job *job, uint64_t done)
{
	const make_split *split = job->split;
	uint8_t *images = job->buffer, *labels = images + CHUNK * split->values;
	uint64_t sum = 0;
	for (uint64_t at = 0; at < done; at += CHUNK) {
		uint64_t count = done - at < CHUNK ? done - at : CHUNK;
		size_t bytes = count * split->values;
		if (ls_file_read_at(job->fd[LS_MAKE_IMAGES], images, bytes,
				    split->header[LS_MAKE_IMAGES] + at * split->values) != bytes ||
		    ls_file_read_at(job->fd[LS_MAKE_LABELS], labels, count, split->header[LS_MAKE_LABELS] + at) !=
			    count)
			return ~job->state.sum[job->which];
		sum += hash_samples(images, labels, split->values, at, count);
	}
	return sum;
}

/* Continue after the samples on disk if they match the state file; else write the split again. */
static void check_partial(make_job *job)
{
	uint64_t *done = &job->state.done[job->which], *sum = &job->state.sum[job->which];
	if (*done > 0 && sum_on_disk(job, *done) != *sum) {
		ls_log_warning("%s: the existing part of the %s set is damaged; making it again", job->options->out,
			       split_names[job->which]);
		*done = 0;
	}
	if (*done == 0)
		*sum = 0;
	job->made = *done;
	job->sum = *sum;
}

static ls_status write_headers(make_job *job)
{
	const ls_dataset_info *info = &job->split->set->info;
	const uint32_t dims[3] = { (uint32_t)info->samples, (uint32_t)info->height, (uint32_t)info->width };
	for (int kind = 0; kind < LS_MAKE_KINDS; kind++) {
		uint8_t header[LS_IDX_HEADER_MAX];
		size_t bytes = ls_idx_encode(header, kind == LS_MAKE_IMAGES ? 3 : 1, dims);
		LS_TRY(write_at(job->fd[kind], header, bytes, 0));
	}
	return LS_OK;
}

static ls_status make_opened(make_job *job)
{
	LS_TRY(open_partial(job, LS_MAKE_IMAGES));
	LS_TRY(open_partial(job, LS_MAKE_LABELS));
	check_partial(job);
	LS_TRY(ls_make_save(&job->state)); /* before anything is written past what it says */
	LS_TRY(write_headers(job));
	ls_progress_bar_begin(&job->meter, split_names[job->which], "k samples", 1e3, job->made,
			      job->state.samples[job->which], job->options->quiet);
	ls_status status = make_rounds(job);
	ls_progress_bar_end(&job->meter);
	return status;
}

static ls_status make_one(make_job *job, int which)
{
	char path[4096];
	LS_TRY(ls_make_partial(&job->state, which, LS_MAKE_IMAGES, path, sizeof(path)));
	if (job->state.done[which] == job->state.samples[which] && !ls_path_exists(path))
		return LS_OK; /* it already has its final name */
	job->which = which;
	job->split = &job->splits[which];
	job->fd[LS_MAKE_IMAGES] = job->fd[LS_MAKE_LABELS] = -1;
	ls_status status = make_opened(job);
	for (int kind = 0; kind < LS_MAKE_KINDS; kind++)
		if (job->fd[kind] >= 0)
			close(job->fd[kind]);
	return status;
}

static const uint64_t GB = 1000000000;

static ls_status check_space(const make_job *job)
{
	struct statvfs facts;
	uint64_t need = 0;
	for (int i = 0; i < 2; i++)
		need += (job->state.samples[i] - job->state.done[i]) * (job->splits[i].values + 1);
	if (statvfs(job->options->out, &facts) != 0)
		return LS_OK; /* writing will report it */
	uint64_t have = (uint64_t)facts.f_bavail * facts.f_frsize;
	if (need > have)
		return ls_fail(LS_EIO, "%s needs %.2f %s more, but only %.2f %s are free there", job->options->out,
			       (double)need * (need < GB ? 1e-6 : 1e-9), need < GB ? "MB" : "GB",
			       (double)have * (have < GB ? 1e-6 : 1e-9), have < GB ? "MB" : "GB");
	return LS_OK;
}

static ls_status open_split(make_job *job, int which)
{
	make_split *split = &job->splits[which];
	ls_dataset_options options = LS_DATASET_OPTIONS_INIT;
	options.name = job->options->name;
	options.split = which ? LS_SPLIT_TEST : LS_SPLIT_TRAIN;
	options.dir = job->options->dir;
	options.samples = which ? 0 : job->options->samples;
	options.seed = job->options->seed;
	LS_TRY(ls_dataset_open(&split->set, &options));
	uint64_t samples = split->set->info.samples;
	job->state.samples[which] = samples;
	split->values = ls_dataset_values(&split->set->info);
	split->header[LS_MAKE_IMAGES] = 16;
	split->header[LS_MAKE_LABELS] = 8;
	if (samples > UINT32_MAX)
		return ls_fail(LS_EINVALID, "%" PRIu64 " samples do not fit an IDX file, which holds at most %u",
			       samples, UINT32_MAX);
	return LS_OK;
}

/* A hash of the first and last samples: another source or another version of the generator counts as other settings. */
static ls_status probe_samples(const make_split *split, uint64_t *out)
{
	uint8_t image[28 * 28];
	int32_t label;
	uint64_t samples = split->set->info.samples;
	uint64_t hash = 0, count = samples < 64 ? samples : 64;
	for (uint64_t i = 0; i < 2 * count; i++) {
		uint64_t index = i < count ? i : samples - 1 - (i - count);
		LS_TRY(ls_dataset_read_bytes(split->set, index, image, &label));
		hash = XXH64(image, split->values, hash + (uint64_t)label);
	}
	*out = hash;
	return LS_OK;
}

static ls_status job_prepare(make_job *job)
{
	const ls_data_make_options *o = job->options;
	uint64_t probe = 0;
	for (int i = 0; i < 2; i++)
		LS_TRY(open_split(job, i));
	LS_TRY(probe_samples(&job->splits[0], &probe));
	snprintf(job->state.settings, sizeof(job->state.settings),
		 "dataset %s\nsamples %" PRIu64 "\nseed %" PRIu64 "\nprobe %016" PRIx64 "\n", o->name,
		 job->state.samples[0], o->seed, probe);
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	job->threads = o->threads > 0 ? o->threads : (int)(cores > 0 ? cores : 1);
	job->threads = job->threads < THREADS_MAX ? job->threads : THREADS_MAX;
	job->buffer_bytes = (size_t)job->threads * CHUNK * (job->splits[0].values + 1);
	void *buffer;
	LS_TRY(ls_buffer_new(&buffer, job->buffer_bytes, "sample buffers"));
	job->buffer = buffer;
	return ls_team_new(&job->team, job->threads);
}

/* The files are normalised as the dataset of that name is. */
static ls_status write_normalisation(const make_job *job)
{
	return ls_normalisation_write(ls_dataset_normalisation(job->splits[0].set), job->options->out);
}

static ls_status job_run(make_job *job)
{
	int complete;
	LS_TRY(job_prepare(job));
	int is_new = !ls_path_exists(job->options->out);
	LS_TRY(ls_path_make(job->options->out));
	LS_TRY(ls_make_look(&job->state, &complete));
	if (!complete) {
		ls_status status = check_space(job);
		if (status != LS_OK && is_new)
			rmdir(job->options->out); /* empty so far */
		LS_TRY(status);
		LS_TRY(ls_make_save(&job->state));
		for (int i = 0; i < 2; i++)
			LS_TRY(make_one(job, i));
		LS_TRY(write_normalisation(job));
		LS_TRY(ls_make_publish(&job->state));
	}
	if (!job->options->quiet)
		ls_log_line("%s %s in %s: %" PRIu64 " to train, %" PRIu64 " to test", job->options->name,
			    complete ? "is already" : "is", job->options->out, job->state.samples[0],
			    job->state.samples[1]);
	return LS_OK;
}

/* Name i of the datasets that can be made, NULL past the last. */
static const char *makable_at(size_t i)
{
	const ls_dataset_kind *kind;
	for (size_t row = 0; (kind = ls_dataset_kind_at(row)); row++)
		if (kind->can_make && i-- == 0)
			return kind->row.name;
	return NULL;
}

ls_status ls_make_run(const ls_data_make_options *options, uint64_t round)
{
	const char *name = options->name ? options->name : "";
	size_t row;
	LS_TRY(ls_name_find("dataset to make", name, makable_at, &row));
	if (!options->out || !*options->out)
		return ls_fail(LS_EINVALID, "no output directory given for %s", name);
	ls_data_warn_of_dir(name, options->dir);
	make_job *job = calloc(1, sizeof(*job));
	if (!job)
		return ls_fail(LS_EMEMORY, "no memory to make %s", name);
	job->options = options;
	job->round = round;
	job->state.out = options->out;
	pthread_mutex_init(&job->lock, NULL);
	ls_status status = job_run(job);
	ls_team_free(job->team);
	ls_buffer_free(job->buffer, job->buffer_bytes);
	for (int i = 0; i < 2; i++)
		ls_dataset_free(job->splits[i].set);
	pthread_mutex_destroy(&job->lock);
	free(job);
	return status;
}

ls_status ls_data_make(const ls_data_make_options *options)
{
	ls_data_make_options own = LS_DATA_MAKE_OPTIONS_INIT;

	LS_TRY(LS_OPTIONS_TAKE(&own, options, quiet, "LS_DATA_MAKE_OPTIONS_INIT"));
	return ls_make_run(&own, LS_MAKE_ROUND);
}
