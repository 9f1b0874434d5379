/*
 * make.c - ls_data_make(): a generated dataset written as IDX files, of any size, by all cores, and continued after any
 * interruption.
 *
 * Since sample i is a function of i alone, the file is a function of the settings: chunks may be written in any order
 * by any thread, and written twice without harm.
 *
 * Invariants
 *  1. Files are called NAME.partial until all four are whole and on disk; then they get their names.
 *  2. lockstep-make.partial says with which settings the files are being made and how many samples of each split are on
 *     disk. It is replaced (whole or not at all) only after those samples were synced.
 *  3. lockstep-data.txt, the same settings, is written last: a directory that has it is complete.
 *  4. A file this program did not make is never overwritten.
 */
#include "data/make.h"

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
#include "base/status.h"
#include "base/team.h"
#include "data/dataset.h"
#include "data/idx.h"
#include "data/meter.h"

#define CHUNK 1024 /* samples a thread makes at a time */
#define THREADS_MAX 256
#define STATE "lockstep-make.partial"
#define DESCRIPTION "lockstep-data.txt"

enum { IMAGES, LABELS, KINDS };
static const char *const file_names[2][KINDS] = { { "train-images-idx3-ubyte", "train-labels-idx1-ubyte" },
						  { "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte" } };
static const char *const split_names[2] = { "train", "test" };

/* One split being written. */
typedef struct make_split {
	ls_dataset *set;
	size_t values;          /* bytes of a sample */
	size_t header[KINDS];   /* bytes */
	uint64_t samples, done; /* done: on disk, from the start */
} make_split;

typedef struct make_job {
	const ls_data_make_options *options;
	make_split splits[2];
	char settings[512];
	ls_team *team;
	int threads;
	uint64_t round;  /* samples between two syncs */
	uint8_t *buffer; /* (threads, CHUNK, values + 1) */
	size_t buffer_bytes;

	/* the split in work */
	make_split *split;
	int fd[KINDS];
	uint64_t round_begin, round_end;
	ls_meter meter;
	pthread_mutex_t lock; /* of what follows */
	uint64_t made;
	ls_status status;
	char error[512];
} make_job;

static ls_status job_path(const make_job *job, const char *name, const char *suffix, char *path, size_t size)
{
	char full[128];
	snprintf(full, sizeof(full), "%s%s", name, suffix);
	return ls_path_join(path, size, job->options->out, full);
}

static ls_status write_at(int fd, const void *data, size_t bytes, uint64_t offset)
{
	const char *p = data;
	while (bytes) {
		ssize_t part = pwrite(fd, p, bytes, (off_t)offset);
		if (part < 0 && errno == EINTR)
			continue;
		if (part <= 0)
			return ls_fail_errno(LS_EIO, "cannot write at byte %" PRIu64, offset);
		p += part;
		bytes -= (size_t)part;
		offset += (uint64_t)part;
	}
	return LS_OK;
}

/* Make samples [begin, end) in this thread's buffer and write them to their places. */
static ls_status make_chunk(make_job *job, int rank, uint64_t begin, uint64_t end)
{
	make_split *split = job->split;
	uint8_t *images = job->buffer + (size_t)rank * CHUNK * (split->values + 1);
	uint8_t *labels = images + CHUNK * split->values;
	for (uint64_t i = begin; i < end; i++) {
		int32_t label;
		LS_TRY(ls_dataset_read_bytes(split->set, i, images + (i - begin) * split->values, &label));
		labels[i - begin] = (uint8_t)label;
	}
	LS_TRY(write_at(job->fd[IMAGES], images, (end - begin) * split->values,
			split->header[IMAGES] + begin * split->values));
	return write_at(job->fd[LABELS], labels, end - begin, split->header[LABELS] + begin);
}

/* Messages belong to threads: the first failure is kept for the caller's. */
static void chunk_ended(make_job *job, ls_status status, uint64_t samples, int rank)
{
	pthread_mutex_lock(&job->lock);
	job->made += samples;
	if (status && !job->status) {
		job->status = status;
		snprintf(job->error, sizeof(job->error), "%s", ls_last_error());
	}
	if (rank == 0)
		ls_meter_update(&job->meter, job->made);
	pthread_mutex_unlock(&job->lock);
}

static void round_work(void *context, ls_member member)
{
	make_job *job = context;
	int64_t chunks = (int64_t)((job->round_end - job->round_begin + CHUNK - 1) / CHUNK), chunk;
	while ((chunk = ls_team_next(member, chunks)) >= 0) {
		uint64_t begin = job->round_begin + (uint64_t)chunk * CHUNK;
		uint64_t end = begin + CHUNK < job->round_end ? begin + CHUNK : job->round_end;
		ls_status status = make_chunk(job, member.rank, begin, end);
		chunk_ended(job, status, end - begin, member.rank);
		if (status)
			break;
	}
	ls_team_barrier(member); /* resets the shared counter for the next round */
}

static ls_status state_save(make_job *job)
{
	char path[4096], text[1024];
	ls_file_draft draft;
	int length = snprintf(text, sizeof(text), "%strain %" PRIu64 "\ntest %" PRIu64 "\n", job->settings,
			      job->splits[0].done, job->splits[1].done);
	LS_TRY(job_path(job, STATE, "", path, sizeof(path)));
	LS_TRY(ls_file_begin(&draft, path));
	ls_status status = ls_file_write(&draft, text, (size_t)length);
	if (status) {
		ls_file_abandon(&draft);
		return status;
	}
	return ls_file_publish(&draft);
}

static ls_status sync_split(make_job *job)
{
	for (int kind = 0; kind < KINDS; kind++)
		if (fdatasync(job->fd[kind]) != 0)
			return ls_fail_errno(LS_EIO, "cannot write to %s", job->options->out);
	return LS_OK;
}

static ls_status make_rounds(make_job *job)
{
	make_split *split = job->split;
	while (split->done < split->samples) {
		job->round_begin = split->done;
		job->round_end = split->samples - split->done < job->round ? split->samples : split->done + job->round;
		ls_team_run(job->team, round_work, job);
		if (job->status)
			return ls_fail(job->status,
				       "%s: %s; %" PRIu64 " of %" PRIu64 " samples of the %s set are safe, the "
				       "same command continues there",
				       job->options->out, job->error, split->done, split->samples,
				       split_names[split - job->splits]);
		LS_TRY(sync_split(job));
		split->done = job->round_end;
		LS_TRY(state_save(job));
	}
	return LS_OK;
}

/* Open a partial file, ours alone. One that is shorter than the state says (it was tampered with) starts afresh. */
static ls_status open_partial(make_job *job, int kind)
{
	char path[4096];
	struct stat facts;
	make_split *split = job->split;
	uint64_t unit = kind == IMAGES ? split->values : 1;
	LS_TRY(job_path(job, file_names[split - job->splits][kind], ".partial", path, sizeof(path)));
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
	if (fd < 0)
		return ls_fail_errno(LS_EIO, "cannot create %s", path);
	job->fd[kind] = fd;
	if (flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
		return ls_fail(LS_EIO, "%s is being written by another process; stop that one first", path);
	if (fstat(fd, &facts) != 0)
		return ls_fail_errno(LS_EIO, "cannot read %s", path);
	if ((uint64_t)facts.st_size < split->header[kind] + split->done * unit)
		split->done = 0;
	if (ftruncate(fd, (off_t)(split->header[kind] + split->done * unit)) != 0)
		return ls_fail_errno(LS_EIO, "cannot write %s", path);
	return LS_OK;
}

static ls_status write_headers(make_job *job)
{
	const ls_dataset_info *info = &job->split->set->info;
	const uint32_t dims[3] = { (uint32_t)job->split->samples, (uint32_t)info->height, (uint32_t)info->width };
	for (int kind = 0; kind < KINDS; kind++) {
		uint8_t header[LS_IDX_HEADER_MAX];
		size_t bytes = ls_idx_encode(header, kind == IMAGES ? 3 : 1, dims);
		LS_TRY(write_at(job->fd[kind], header, bytes, 0));
	}
	return LS_OK;
}

static ls_status make_one(make_job *job, make_split *split)
{
	if (split->done == split->samples)
		return LS_OK;
	job->split = split;
	job->fd[IMAGES] = job->fd[LABELS] = -1;
	ls_status status = open_partial(job, IMAGES);
	if (!status)
		status = open_partial(job, LABELS);
	if (!status)
		status = write_headers(job);
	if (!status) {
		job->made = split->done;
		ls_meter_begin(&job->meter, split_names[split - job->splits], "k samples", 1e3, split->done,
			       split->samples, job->options->quiet);
		status = make_rounds(job);
		ls_meter_end(&job->meter);
	}
	for (int kind = 0; kind < KINDS; kind++)
		if (job->fd[kind] >= 0)
			close(job->fd[kind]);
	return status;
}

/* Give every file its name; one that a killed process already renamed has no partial any more. */
static ls_status publish_all(make_job *job)
{
	char partial[4096], final[4096];
	ls_file_draft draft;
	for (int i = 0; i < 2 * KINDS; i++) {
		const char *name = file_names[i / KINDS][i % KINDS];
		LS_TRY(job_path(job, name, ".partial", partial, sizeof(partial)));
		LS_TRY(job_path(job, name, "", final, sizeof(final)));
		if (ls_path_exists(final) && !ls_path_exists(partial))
			continue;
		if (rename(partial, final) != 0)
			return ls_fail_errno(LS_EIO, "cannot rename %s", partial);
	}
	LS_TRY(ls_path_sync(job->options->out));
	LS_TRY(job_path(job, DESCRIPTION, "", final, sizeof(final)));
	LS_TRY(ls_file_begin(&draft, final));
	ls_status status = ls_file_write(&draft, job->settings, strlen(job->settings));
	if (status) {
		ls_file_abandon(&draft);
		return status;
	}
	LS_TRY(ls_file_publish(&draft));
	LS_TRY(job_path(job, STATE, "", partial, sizeof(partial)));
	unlink(partial);
	return LS_OK;
}

/* A file's text, or found = 0. */
static ls_status read_text(const make_job *job, const char *name, char *text, size_t size, int *found)
{
	char path[4096];
	LS_TRY(job_path(job, name, "", path, sizeof(path)));
	FILE *file = fopen(path, "rb");
	*found = file != NULL;
	if (!file)
		return errno == ENOENT ? LS_OK : ls_fail_errno(LS_EIO, "cannot read %s", path);
	size_t bytes = fread(text, 1, size - 1, file);
	text[bytes] = 0;
	fclose(file);
	return LS_OK;
}

static ls_status settings_differ(const make_job *job, const char *what, const char *found)
{
	char settings[512];
	snprintf(settings, sizeof(settings), "%.*s", 200, found);
	for (char *p = settings; *p; p++)
		*p = *p == '\n' ? ' ' : *p;
	return ls_fail(LS_EMISMATCH,
		       "%s holds %s dataset made with other settings (%s); choose another directory or "
		       "remove it",
		       job->options->out, what, settings);
}

/* Files that nobody says were made by us must not be touched. */
static ls_status refuse_foreign(const make_job *job)
{
	char path[4096];
	for (int i = 0; i < 2 * KINDS; i++) {
		LS_TRY(job_path(job, file_names[i / KINDS][i % KINDS], "", path, sizeof(path)));
		if (ls_path_exists(path))
			return ls_fail(LS_EINVALID, "%s exists already; choose another directory", path);
	}
	return LS_OK;
}

/* Look at what is in the directory: complete, partly made, or nothing of ours. */
static ls_status look_around(make_job *job, int *complete)
{
	char text[1024];
	int found;
	size_t length = strlen(job->settings);
	LS_TRY(read_text(job, DESCRIPTION, text, sizeof(text), complete));
	if (*complete)
		return strcmp(text, job->settings) == 0 ? LS_OK : settings_differ(job, "a", text);
	LS_TRY(read_text(job, STATE, text, sizeof(text), &found));
	if (!found)
		return refuse_foreign(job);
	if (strncmp(text, job->settings, length) != 0)
		return settings_differ(job, "part of a", text);
	uint64_t done[2];
	if (sscanf(text + length, "train %" SCNu64 " test %" SCNu64, &done[0], &done[1]) != 2 ||
	    done[0] > job->splits[0].samples || done[1] > job->splits[1].samples)
		return ls_fail(LS_EFORMAT, "%s/" STATE " is damaged; remove the directory and start again",
			       job->options->out);
	job->splits[0].done = done[0];
	job->splits[1].done = done[1];
	return LS_OK;
}

static ls_status check_space(const make_job *job)
{
	struct statvfs facts;
	uint64_t need = 0;
	for (int i = 0; i < 2; i++)
		need += (job->splits[i].samples - job->splits[i].done) * (job->splits[i].values + 1);
	if (statvfs(job->options->out, &facts) != 0)
		return LS_OK; /* writing will tell */
	uint64_t have = (uint64_t)facts.f_bavail * facts.f_frsize;
	if (need > have)
		return ls_fail(LS_EIO, "%s needs %.2f GB more, but only %.2f GB are free there", job->options->out,
			       (double)need * 1e-9, (double)have * 1e-9);
	return LS_OK;
}

static ls_status open_split(make_job *job, int which)
{
	make_split *split = &job->splits[which];
	ls_dataset_options options = { .name = job->options->name,
				       .split = which ? LS_SPLIT_TEST : LS_SPLIT_TRAIN,
				       .dir = job->options->dir,
				       .samples = which ? 0 : job->options->samples,
				       .seed = job->options->seed };
	LS_TRY(ls_dataset_open(&split->set, &options));
	split->samples = split->set->info.samples;
	split->values = ls_dataset_values(&split->set->info);
	split->header[IMAGES] = 16;
	split->header[LABELS] = 8;
	if (split->samples > UINT32_MAX)
		return ls_fail(LS_EINVALID, "%" PRIu64 " samples do not fit an IDX file, which holds at most %u",
			       split->samples, UINT32_MAX);
	return LS_OK;
}

/* A hash of the first and last samples: settings that make other bytes (another source, another version of the
 * drawing) are other settings. */
static ls_status probe_samples(const make_split *split, uint64_t *out)
{
	uint8_t image[28 * 28];
	int32_t label;
	uint64_t hash = 0, count = split->samples < 64 ? split->samples : 64;
	for (uint64_t i = 0; i < 2 * count; i++) {
		uint64_t index = i < count ? i : split->samples - 1 - (i - count);
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
	snprintf(job->settings, sizeof(job->settings),
		 "dataset %s\nsamples %" PRIu64 "\nseed %" PRIu64 "\nprobe %016" PRIx64 "\n", o->name,
		 job->splits[0].samples, o->seed, probe);
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	job->threads = o->threads > 0 ? o->threads : (int)(cores > 0 ? cores : 1);
	job->threads = job->threads < THREADS_MAX ? job->threads : THREADS_MAX;
	job->buffer_bytes = (size_t)job->threads * CHUNK * (job->splits[0].values + 1);
	void *buffer;
	LS_TRY(ls_buffer_new(&buffer, job->buffer_bytes, "sample buffers"));
	job->buffer = buffer;
	return ls_team_new(&job->team, job->threads);
}

static ls_status job_run(make_job *job)
{
	int complete;
	LS_TRY(job_prepare(job));
	LS_TRY(ls_path_make(job->options->out));
	LS_TRY(look_around(job, &complete));
	if (!complete) {
		LS_TRY(check_space(job));
		LS_TRY(state_save(job));
		for (int i = 0; i < 2; i++)
			LS_TRY(make_one(job, &job->splits[i]));
		LS_TRY(publish_all(job));
	}
	if (!job->options->quiet)
		ls_log_line("%s %s in %s: %" PRIu64 " to train, %" PRIu64 " to test", job->options->name,
			    complete ? "is already" : "is", job->options->out, job->splits[0].samples,
			    job->splits[1].samples);
	return LS_OK;
}

static const char *makable_at(size_t i)
{
	static const char *const names[] = { "bigmnist", "glyphs" };
	return i < 2 ? names[i] : NULL;
}

ls_status ls_make_run(const ls_data_make_options *options, uint64_t round)
{
	const char *name = options->name ? options->name : "";
	if (strcmp(name, "bigmnist") != 0 && strcmp(name, "glyphs") != 0)
		return ls_name_unknown("dataset to make", name, makable_at);
	if (!options->out || !*options->out)
		return ls_fail(LS_EINVALID, "no directory named to write %s to", name);
	make_job *job = calloc(1, sizeof(*job));
	if (!job)
		return ls_fail(LS_EMEMORY, "no memory to make %s", name);
	job->options = options;
	job->round = round;
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
	return ls_make_run(options, LS_MAKE_ROUND);
}
