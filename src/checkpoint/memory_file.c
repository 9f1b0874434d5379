#include "checkpoint/memory_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/files.h"
#include "base/log.h"

#define PREFIX "lockstep-"
#define RUN_FILE ".snapshots"
#define MAGIC "LSMEM01\n"
enum { PAGE = 4096, RUN_PATH = 2048, HOST = 65, SLOTS = 2 };

/* The first page of a file. */
typedef struct head {
	char magic[8];
	uint64_t run;
	uint64_t room[LS_MEMORY_PARTS];
	char path[RUN_PATH]; /* of the run */
	uint64_t sum;        /* of all before */
} head;

/* The first page of a slot. */
typedef struct slot_head {
	char magic[8];
	ls_memory_facts facts;
	uint64_t sum; /* of all before */
} slot_head;

_Static_assert(sizeof(head) <= PAGE && sizeof(slot_head) <= PAGE, "a page each");

static uint64_t sum_of(const void *bytes, size_t count)
{
	return XXH3_64bits(bytes, count);
}

/* ---- where things are -------------------------------------------------------------------------------------------- */

static uint64_t paged(uint64_t bytes)
{
	return (bytes + PAGE - 1) / PAGE * PAGE;
}

static uint64_t part_offset(const uint64_t room[LS_MEMORY_PARTS], int part)
{
	uint64_t at = PAGE;
	for (int i = 0; i < part; i++)
		at += paged(room[i]);
	return at;
}

static uint64_t slot_bytes(const uint64_t room[LS_MEMORY_PARTS])
{
	return part_offset(room, LS_MEMORY_PARTS);
}

uint64_t ls_memory_file_bytes(const uint64_t room[LS_MEMORY_PARTS])
{
	return PAGE + SLOTS * slot_bytes(room);
}

/* "lockstep-1000-0123456789abcdef-": what the files of a run begin with; run 0: those of all runs. */
static void prefix_of(char *out, size_t size, uint64_t run)
{
	int used = snprintf(out, size, PREFIX "%u-", (unsigned)geteuid());
	if (run)
		snprintf(out + used, size - (size_t)used, "%016" PRIx64 "-", run);
}

/* Whatever a host is called, it is one name in a directory. NULL: any. */
static void suffix_of(char *out, size_t size, const char *host)
{
	out[0] = '\0';
	if (!host)
		return;
	snprintf(out, size, "-%.64s", host);
	for (char *c = out + 1; *c; c++)
		*c = *c == '/' ? '_' : *c;
}

static void path_of(char *out, size_t size, const ls_memory_owner *o)
{
	char prefix[64], suffix[HOST + 1];
	prefix_of(prefix, sizeof(prefix), o->run);
	suffix_of(suffix, sizeof(suffix), o->host);
	snprintf(out, size, "%s/%s%" PRIu64 "-%d%s", o->directory, prefix, o->generation, o->node, suffix);
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

/* What has the name of our file. One of our own, of a start with the same number, is of no use any more. */
static ls_status make_way(const char *path)
{
	struct stat facts;
	if (lstat(path, &facts) != 0)
		return LS_OK;
	if (facts.st_uid != geteuid())
		return ls_fail(LS_EIO, "%s belongs to another user", path);
	if (!S_ISREG(facts.st_mode))
		return ls_fail(LS_EIO, "%s is there already, and is no file", path);
	unlink(path);
	return LS_OK;
}

static ls_status create(ls_memory_file *f)
{
	int flags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
	f->fd = open(f->path, flags, 0600);
	if (f->fd < 0 && errno == EEXIST) {
		LS_TRY(make_way(f->path));
		f->fd = open(f->path, flags, 0600);
	}
	return f->fd >= 0 ? LS_OK : ls_fail_errno(LS_EIO, "cannot make %s", f->path);
}

static ls_status take_memory(const ls_memory_file *f)
{
	uint64_t bytes = ls_memory_file_bytes(f->room);
	int error = posix_fallocate(f->fd, 0, (off_t)bytes);
	if (!error)
		return LS_OK;
	errno = error;
	return ls_fail_errno(LS_EMEMORY, "cannot take %.1f MB for %s", (double)bytes / 1e6, f->path);
}

static ls_status write_head(const ls_memory_file *f, const ls_memory_owner *o)
{
	head h = { .magic = MAGIC, .run = o->run };
	memcpy(h.room, f->room, sizeof(h.room));
	if (strlen(o->path) >= sizeof(h.path))
		return ls_fail(LS_EINVALID, "path is too long: %.100s...", o->path);
	memcpy(h.path, o->path, strlen(o->path));
	h.sum = sum_of(&h, offsetof(head, sum));
	return ls_file_write_at(f->fd, &h, sizeof(h), 0) == 0 ? LS_OK
							      : ls_fail_errno(LS_EIO, "cannot write %s", f->path);
}

ls_status ls_memory_file_new(ls_memory_file *f, const ls_memory_owner *owner, const uint64_t room[LS_MEMORY_PARTS])
{
	*f = (ls_memory_file)LS_MEMORY_FILE_INIT;
	memcpy(f->room, room, sizeof(f->room));
	path_of(f->path, sizeof(f->path), owner);
	LS_TRY(create(f));
	ls_status status = take_memory(f);
	if (status == LS_OK)
		status = write_head(f, owner);
	if (status != LS_OK)
		ls_memory_file_remove(f);
	return status;
}

static uint64_t slot_at(const ls_memory_file *f)
{
	return PAGE + f->sequence % SLOTS * slot_bytes(f->room);
}

ls_status ls_memory_file_begin(ls_memory_file *f)
{
	static const char nothing[sizeof(slot_head)];
	f->sequence++;
	memset(f->bytes, 0, sizeof(f->bytes));
	memset(f->sums, 0, sizeof(f->sums));
	if (ls_file_write_at(f->fd, nothing, sizeof(nothing), slot_at(f)) != 0)
		return ls_fail_errno(LS_EIO, "cannot write %s", f->path);
	return LS_OK;
}

ls_status ls_memory_file_put(ls_memory_file *f, ls_memory_part part, const void *data, size_t bytes)
{
	if (bytes > f->room[part])
		return ls_fail(LS_EIO, "%s: %zu bytes are too many", f->path, bytes);
	if (ls_file_write_at(f->fd, data, bytes, slot_at(f) + part_offset(f->room, part)) != 0)
		return ls_fail_errno(LS_EIO, "cannot write %s", f->path);
	f->bytes[part] = bytes;
	f->sums[part] = sum_of(data, bytes);
	return LS_OK;
}

ls_status ls_memory_file_commit(ls_memory_file *f, ls_memory_facts *facts)
{
	slot_head h = { .magic = MAGIC };
	facts->sequence = f->sequence;
	memcpy(facts->bytes, f->bytes, sizeof(f->bytes));
	memcpy(facts->sums, f->sums, sizeof(f->sums));
	h.facts = *facts;
	h.sum = sum_of(&h, offsetof(slot_head, sum));
	if (ls_file_write_at(f->fd, &h, sizeof(h), slot_at(f)) != 0)
		return ls_fail_errno(LS_EIO, "cannot write %s", f->path);
	return LS_OK;
}

void ls_memory_file_close(ls_memory_file *f)
{
	if (f->fd >= 0)
		close(f->fd);
	f->fd = -1;
}

void ls_memory_file_remove(ls_memory_file *f)
{
	if (f->fd >= 0)
		unlink(f->path);
	ls_memory_file_close(f);
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* Only what nobody else can have written. -1: no such file. */
static int open_private(const char *path)
{
	struct stat facts;
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0 && errno != EACCES && errno != ELOOP)
		return -1;
	if (fd >= 0 && fstat(fd, &facts) == 0 && S_ISREG(facts.st_mode) && facts.st_uid == geteuid() &&
	    (facts.st_mode & 077) == 0)
		return fd;
	if (fd >= 0)
		close(fd);
	ls_log_warning("%s is not a private file of this user: not used as a snapshot", path);
	return -1;
}

static int read_head(int fd, head *out)
{
	return ls_file_read_at(fd, out, sizeof(*out), 0) == sizeof(*out) &&
	       !memcmp(out->magic, MAGIC, sizeof(out->magic)) && out->sum == sum_of(out, offsetof(head, sum)) &&
	       memchr(out->path, '\0', sizeof(out->path));
}

/* 0: there is no snapshot in it. */
static int read_slot(int fd, const head *file, ls_memory_found *found)
{
	slot_head h;
	found->at = PAGE + (uint64_t)found->slot * slot_bytes(file->room);
	memcpy(found->room, file->room, sizeof(found->room));
	if (ls_file_read_at(fd, &h, sizeof(h), found->at) != sizeof(h) ||
	    memcmp(h.magic, MAGIC, sizeof(h.magic)) != 0 || h.sum != sum_of(&h, offsetof(slot_head, sum)))
		return 0;
	found->facts = h.facts;
	for (int part = 0; part < LS_MEMORY_PARTS; part++)
		if (h.facts.bytes[part] > file->room[part])
			return 0;
	return h.facts.sequence > 0;
}

static ls_status read_part(int fd, const ls_memory_found *found, ls_memory_part part, void *out)
{
	const ls_memory_facts *facts = &found->facts;
	if (ls_file_read_at(fd, out, facts->bytes[part], found->at + part_offset(found->room, part)) !=
	    facts->bytes[part])
		return ls_fail(LS_EFORMAT, "%s is cut short", found->path);
	if (sum_of(out, facts->bytes[part]) != facts->sums[part])
		return ls_fail(LS_EFORMAT, "%s is damaged: checksums differ", found->path);
	return LS_OK;
}

ls_status ls_memory_read(const ls_memory_found *found, ls_memory_part part, void *out)
{
	int fd = open_private(found->path);
	if (fd < 0)
		return ls_fail(LS_EFORMAT, "%s cannot be read any more", found->path);
	ls_status status = read_part(fd, found, part, out);
	close(fd);
	return status;
}

/* A damaged part is as good as none: others may have it. */
static void verify(int fd, ls_memory_found *found)
{
	ls_memory_facts *facts = &found->facts;
	for (int part = 0; part < LS_MEMORY_PARTS; part++) {
		void *copy = malloc(facts->bytes[part] + 1);
		int is_whole = copy && read_part(fd, found, part, copy) == LS_OK;
		free(copy);
		if (is_whole)
			continue;
		if (part == LS_MEMORY_OWN)
			facts->own = -1;
		else if (part == LS_MEMORY_BUDDY)
			facts->buddy = -1;
		else
			facts->sequence = 0;
	}
}

static int is_newer(const ls_memory_facts *a, const ls_memory_facts *b)
{
	if (a->progress.step != b->progress.step)
		return a->progress.step > b->progress.step;
	return a->generation > b->generation;
}

static int insert(ls_memory_found *out, int count, int most, const ls_memory_found *found)
{
	int at = count;
	while (at > 0 && is_newer(&found->facts, &out[at - 1].facts))
		at--;
	if (at == most)
		return count;
	int moved = (count < most ? count : most - 1) - at;
	memmove(out + at + 1, out + at, (size_t)moved * sizeof(*out));
	out[at] = *found;
	return count < most ? count + 1 : most;
}

static int find_in(const char *path, uint64_t run, ls_memory_found *out, int count, int most)
{
	head h;
	int fd = open_private(path);
	if (fd < 0)
		return count;
	for (int slot = 0; slot < SLOTS && read_head(fd, &h) && h.run == run; slot++) {
		ls_memory_found found = { .slot = slot };
		snprintf(found.path, sizeof(found.path), "%s", path);
		if (!read_slot(fd, &h, &found))
			continue;
		verify(fd, &found);
		if (found.facts.sequence > 0)
			count = insert(out, count, most, &found);
	}
	close(fd);
	return count;
}

/* ---- the files of a host ----------------------------------------------------------------------------------------- */

typedef struct walk {
	DIR *list;
	const char *directory;
	char prefix[64], suffix[HOST + 1];
} walk;

static int walk_begin(walk *w, const char *directory, const char *host, uint64_t run)
{
	*w = (walk){ .directory = directory, .list = opendir(directory) };
	prefix_of(w->prefix, sizeof(w->prefix), run);
	suffix_of(w->suffix, sizeof(w->suffix), host);
	return w->list != NULL;
}

static int is_ours(const walk *w, const char *name)
{
	size_t length = strlen(name), tail = strlen(w->suffix);
	return !strncmp(name, w->prefix, strlen(w->prefix)) && length > tail &&
	       !strcmp(name + length - tail, w->suffix);
}

/* 0: there are no more. `name`: behind the prefix. */
static int walk_next(walk *w, char *path, size_t size, const char **name)
{
	const struct dirent *entry;
	while ((entry = readdir(w->list))) {
		if (!is_ours(w, entry->d_name))
			continue;
		snprintf(path, size, "%s/%s", w->directory, entry->d_name);
		*name = entry->d_name + strlen(w->prefix);
		return 1;
	}
	closedir(w->list);
	return 0;
}

int ls_memory_find(const ls_memory_owner *owner, ls_memory_found *out, int most)
{
	char path[512];
	const char *name;
	int count = 0;
	walk w;
	if (!walk_begin(&w, owner->directory, owner->host, owner->run))
		return 0;
	while (walk_next(&w, path, sizeof(path), &name))
		count = find_in(path, owner->run, out, count, most);
	return count;
}

static int is_own(const char *path, struct stat *facts)
{
	return lstat(path, facts) == 0 && facts->st_uid == geteuid() && S_ISREG(facts->st_mode);
}

static void remove_own(const char *path)
{
	struct stat facts;
	if (is_own(path, &facts))
		unlink(path);
}

uint64_t ls_memory_held(const ls_memory_owner *owner)
{
	enum { BLOCK = 512 };
	char path[512];
	const char *name;
	uint64_t bytes = 0;
	struct stat facts;
	walk w;
	if (!walk_begin(&w, owner->directory, owner->host, owner->run))
		return 0;
	while (walk_next(&w, path, sizeof(path), &name))
		bytes += is_own(path, &facts) ? (uint64_t)facts.st_blocks * BLOCK : 0;
	return bytes;
}

void ls_memory_remove(const ls_memory_owner *owner, uint64_t generation)
{
	char path[512];
	const char *name;
	walk w;
	if (!walk_begin(&w, owner->directory, owner->host, owner->run))
		return;
	while (walk_next(&w, path, sizeof(path), &name))
		if (strtoull(name, NULL, 10) < generation)
			remove_own(path);
}

/* A file server that does not answer for a moment has not ended a run. */
static int is_over(const char *run, uint64_t number)
{
	errno = 0;
	uint64_t now = ls_memory_run(run);
	return now ? now != number : errno == ENOENT || errno == ENOTDIR;
}

void ls_memory_sweep(const char *directory, const char *host)
{
	char path[512];
	const char *name;
	head h;
	walk w;
	if (!walk_begin(&w, directory, host, 0))
		return;
	while (walk_next(&w, path, sizeof(path), &name)) {
		int fd = open_private(path);
		if (fd >= 0 && read_head(fd, &h) && is_over(h.path, h.run))
			remove_own(path);
		if (fd >= 0)
			close(fd);
	}
}

/* ---- what must agree --------------------------------------------------------------------------------------------- */

uint64_t ls_memory_shape(const ls_param_table *table, int slots, int has_average)
{
	const uint64_t sizes[] = { table->total, table->reachable, table->buffers,
				   table->count, (uint64_t)slots,  (uint64_t)has_average };
	uint64_t sum = XXH3_64bits_withSeed(sizes, sizeof(sizes), sum_of(ls_version(), strlen(ls_version())));
	for (size_t i = 0; i < table->count; i++) {
		const ls_param *row = &table->rows[i];
		sum = XXH3_64bits_withSeed(row->name, strlen(row->name), sum);
		sum = XXH3_64bits_withSeed(&row->offset, sizeof(row->offset), sum);
	}
	return sum;
}

/* "0123456789abcdef 0000000000001234\n": the number, and the inode that the file has: a copy has another. */
enum { RUN_TEXT = 34 };
static void format_run(char out[RUN_TEXT + 1], uint64_t number, ino_t inode)
{
	snprintf(out, RUN_TEXT + 1, "%016" PRIx64 " %016" PRIx64 "\n", number, (uint64_t)inode);
}

uint64_t ls_memory_run(const char *run)
{
	char path[4096], text[RUN_TEXT + 1] = "", expected[RUN_TEXT + 1];
	struct stat facts;
	if (ls_path_join(path, sizeof(path), run, RUN_FILE) != LS_OK)
		return 0;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return 0;
	int is_read = fstat(fd, &facts) == 0 && read(fd, text, RUN_TEXT) > 0;
	close(fd);
	uint64_t number = is_read ? strtoull(text, NULL, 16) : 0;
	if (number)
		format_run(expected, number, facts.st_ino);
	return number && !strcmp(text, expected) ? number : 0;
}

ls_status ls_memory_run_new(const char *run, uint64_t *out)
{
	char path[4096], text[RUN_TEXT + 1];
	uint64_t number = 0;
	struct stat facts;
	LS_TRY(ls_path_join(path, sizeof(path), run, RUN_FILE));
	while (number == 0)
		if (getrandom(&number, sizeof(number), 0) != sizeof(number))
			return ls_fail_errno(LS_EIO, "cannot draw a random number");
	unlink(path);
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
	if (fd < 0)
		return ls_fail_errno(LS_EIO, "cannot make %s", path);
	int failed = fstat(fd, &facts) != 0;
	if (!failed) {
		format_run(text, number, facts.st_ino);
		failed = ls_file_write_at(fd, text, RUN_TEXT, 0) != 0;
	}
	ls_status status = failed ? ls_fail_errno(LS_EIO, "cannot write %s", path) : LS_OK;
	close(fd);
	*out = failed ? 0 : number;
	return status;
}

void ls_memory_run_remove(const char *run)
{
	char path[4096];
	if (ls_path_join(path, sizeof(path), run, RUN_FILE) == LS_OK)
		unlink(path);
}
