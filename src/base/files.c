/*
 * files.c - drafts: files that are whole or absent. What a name leads to is in file_target.c.
 *
 * Invariants of a draft
 *  1. It lies beside the file it becomes as "<name>.<16 random digits>.draft", so the rename stays inside one file
 *     system. The name cannot be guessed and the file is made with O_EXCL: a link or pipe planted in its place is never
 *     opened.
 *  2. It is removed when writing fails and when a signal ends the process (ls_discard_drafts). It is locked while it is
 *     written: a second writer of the same file is refused, and drafts that killed writers left behind are known by
 *     their missing lock and removed by the next writer. Of two that begin at the same time at most one goes on: each
 *     looks for the other again after its own draft is there. (Not on a file system without locks, where the file is
 *     that of the last to publish, and whole all the same.)
 *  3. The rename happens after its bytes are on disk, and publish returns after the rename is.
 *  4. Only a regular file is ever replaced, and none by a draft that was begun as new. A symbolic link is followed and
 *     stays; devices and pipes have no draft but are written to directly.
 */
#include "base/file_target.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define SUFFIX ".draft"
enum { DIGITS = 16, TRIES = 100, ROUNDS = 6, NAME_KEPT = NAME_MAX - DIGITS - (int)sizeof(SUFFIX) };

/* ---- names and leftovers ----------------------------------------------------------------------------------------- */

static const char *name_of(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

static ls_status name_draft(ls_file_draft *draft)
{
	uint64_t number;
	if (getrandom(&number, sizeof(number), 0) != (ssize_t)sizeof(number))
		return ls_fail_errno(LS_EIO, "no random name for %s", draft->path);
	const char *name = name_of(draft->path);
	int length = snprintf(draft->draft, sizeof(draft->draft), "%.*s%.*s.%016" PRIx64 SUFFIX,
			      (int)(name - draft->path), draft->path, NAME_KEPT, name, number);
	if (length < 0 || (size_t)length >= sizeof(draft->draft))
		return ls_fail(LS_EINVALID, "path is too long: %.100s...", draft->path);
	return LS_OK;
}

/* Is `entry` a draft's name for the file called `name`? */
static int is_draft_name(const char *entry, const char *name)
{
	size_t kept = strnlen(name, NAME_KEPT);
	if (strncmp(entry, name, kept) != 0 || strlen(entry) != kept + 1 + DIGITS + strlen(SUFFIX) ||
	    entry[kept] != '.' || strcmp(entry + kept + 1 + DIGITS, SUFFIX) != 0)
		return 0;
	for (const char *digit = entry + kept + 1; digit < entry + kept + 1 + DIGITS; digit++)
		if (!isxdigit((unsigned char)*digit) || isupper((unsigned char)*digit))
			return 0;
	return 1;
}

/* The lock belongs to the inode: meanwhile the name may be gone, or another file's. */
static int same_file(int fd, int directory, const char *name)
{
	struct stat opened, named;
	return fstat(fd, &opened) == 0 && fstatat(directory, name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
	       opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

/* One draft of the same file: removed when its writer is dead. 0: its writer lives. Where files cannot be locked nobody
 * knows, and it stays. */
static int clear_leftover(int directory, const char *name)
{
	struct stat facts;
	int fd = openat(directory, name, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return 1;
	int ours = fstat(fd, &facts) == 0 && S_ISREG(facts.st_mode) && facts.st_uid == geteuid(), lives = 0;
	if (ours && flock(fd, LOCK_EX | LOCK_NB) == 0)
		unlinkat(directory, name, 0);
	else
		lives = ours && errno == EWOULDBLOCK && same_file(fd, directory, name);
	close(fd);
	return !lives;
}

/* All drafts of the same file but our own, where it has one already. */
static ls_status clear_leftovers(const ls_file_draft *draft)
{
	char directory[4096];
	LS_TRY(ls_path_parent(directory, draft->path));
	DIR *entries = opendir(directory);
	if (!entries) /* creating the draft reports why, if it matters */
		return LS_OK;
	int alone = 1;
	for (const struct dirent *entry; alone && (entry = readdir(entries));)
		if (is_draft_name(entry->d_name, name_of(draft->path)) &&
		    strcmp(entry->d_name, name_of(draft->draft)) != 0)
			alone = clear_leftover(dirfd(entries), entry->d_name);
	closedir(entries);
	return alone ? LS_OK
		     : ls_fail(LS_EIO, "%s is being written by another process; stop that one first", draft->path);
}

/* ---- drafts under way, for a process that is about to end -----------------------------------------------------------
 */

/*
 * Names are copied here, so that a signal handler never reads what a writer in another thread is about to free. A name
 * changes while its slot is `filling`, when nobody else reads it; a slot becomes free when neither needs it:
 *
 *     free -> filling -> live -> free                         the writer is done with its draft
 *                        live -> removing -> removed -> free  the handler removes it, then the writer is done
 *                                removing -> left -> free     the writer is done first
 */
enum { LIVE_MAX = 64 }; /* more at a time are left to the next writer */
enum { SLOT_FREE, SLOT_FILLING, SLOT_LIVE, SLOT_REMOVING, SLOT_REMOVED, SLOT_LEFT };
typedef struct live_slot {
	atomic_int state;
	char name[sizeof((ls_file_draft *)0)->draft];
} live_slot;
static live_slot live[LIVE_MAX];

static int change_slot(live_slot *slot, int from, int to)
{
	return atomic_compare_exchange_strong(&slot->state, &from, to);
}

static void enter_live(ls_file_draft *draft)
{
	draft->slot = -1;
	for (int i = 0; i < LIVE_MAX && draft->slot < 0; i++)
		if (change_slot(&live[i], SLOT_FREE, SLOT_FILLING))
			draft->slot = i;
	if (draft->slot < 0)
		return;
	memcpy(live[draft->slot].name, draft->draft, sizeof(draft->draft));
	atomic_store(&live[draft->slot].state, SLOT_LIVE);
}

/* In this order: the handler may take the slot a step further between two of these. */
static void leave_live(ls_file_draft *draft)
{
	live_slot *slot = draft->slot >= 0 ? &live[draft->slot] : NULL;
	draft->slot = -1;
	if (slot && !change_slot(slot, SLOT_LIVE, SLOT_FREE) && !change_slot(slot, SLOT_REMOVING, SLOT_LEFT))
		change_slot(slot, SLOT_REMOVED, SLOT_FREE);
}

void ls_discard_drafts(void)
{
	for (int i = 0; i < LIVE_MAX; i++)
		if (change_slot(&live[i], SLOT_LIVE, SLOT_REMOVING)) {
			unlink(live[i].name);
			if (!change_slot(&live[i], SLOT_REMOVING, SLOT_REMOVED))
				atomic_store(&live[i].state, SLOT_FREE);
		}
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

/* Made and locked. Between the two another writer may take it for a leftover and remove it: then another name. */
static ls_status open_locked(ls_file_draft *draft, int *out)
{
	for (int i = 0; i < TRIES; i++) {
		LS_TRY(name_draft(draft));
		int fd = open(draft->draft, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
		if (fd < 0 && errno == EEXIST)
			continue;
		if (fd < 0)
			return ls_fail_errno(LS_EIO, "cannot create %s", draft->path);
		int taken = flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
		if (!taken && same_file(fd, AT_FDCWD, draft->draft)) { /* a file system without locks is fine */
			*out = fd;
			return LS_OK;
		}
		close(fd);
	}
	return ls_fail(LS_EIO, "cannot create %s: its drafts are removed by other processes", draft->path);
}

/* Wait 1 ms and up to 1, 2, 4 ... ms more, at random, so that two writers that begin together do not collide again. */
static void wait_a_little(int round)
{
	uint16_t number = 0;
	if (getrandom(&number, sizeof(number), 0) != (ssize_t)sizeof(number))
		number = (uint16_t)getpid();
	usleep(1000 + number % (1000u << round));
}

/* Whoever is first goes on. Two that begin together both see each other, or one of them does: who sees the other steps
 * back, and looks once more whether it is still there. */
static ls_status open_alone(ls_file_draft *draft, int *out)
{
	int fd = -1;
	for (int round = 0;; round++) {
		draft->draft[0] = '\0';
		LS_TRY(clear_leftovers(draft));
		LS_TRY(open_locked(draft, &fd));
		ls_status status = clear_leftovers(draft);
		if (status == LS_OK) {
			*out = fd;
			return LS_OK;
		}
		unlink(draft->draft);
		close(fd);
		if (round == ROUNDS)
			return status;
		wait_a_little(round);
	}
}

/* A pipe that nobody reads would keep us waiting, so that is an error. */
static ls_status open_direct(const ls_file_draft *draft, int *out)
{
	struct stat there;
	int is_ours = stat(draft->path, &there) == 0 && ls_file_is_output(&there);
	int fd = is_ours ? fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0)
			 : open(draft->path, O_WRONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 && errno == ENXIO)
		return ls_fail(LS_EIO, "cannot write %s: no process reads from it; start its reader first",
			       draft->path);
	if (fd < 0)
		return ls_fail_errno(LS_EIO, "cannot write %s", draft->path);
	if (!is_ours && (fstat(fd, &there) != 0 || !(S_ISCHR(there.st_mode) || S_ISFIFO(there.st_mode)) ||
			 fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK) != 0)) {
		close(fd);
		return ls_fail(LS_EIO, "cannot write %s: it was replaced meanwhile", draft->path);
	}
	*out = fd;
	return LS_OK;
}

ls_status ls_file_begin(ls_file_draft *draft, const char *path)
{
	int fd = -1;
	draft->stream = NULL;
	draft->slot = -1;
	draft->fresh = 0;
	draft->draft[0] = '\0';
	LS_TRY(ls_file_target(draft->path, &draft->direct, path));
	if (draft->direct) {
		LS_TRY(open_direct(draft, &fd));
	} else {
		LS_TRY(open_alone(draft, &fd));
	}
	if (!(draft->stream = fdopen(fd, "wb"))) {
		ls_fail_errno(LS_EIO, "cannot write %s", draft->path);
		if (!draft->direct)
			unlink(draft->draft);
		close(fd);
		return LS_EIO;
	}
	if (!draft->direct)
		enter_live(draft);
	return LS_OK;
}

static ls_status refuse_existing(const char *path)
{
	return ls_fail(LS_EINVALID, "%s exists already, and is left as it was", path);
}

/* Anything with that name counts, also a dangling link. */
static ls_status check_absent(const char *path)
{
	struct stat there;
	return lstat(path, &there) == 0 ? refuse_existing(path) : LS_OK;
}

ls_status ls_file_begin_new(ls_file_draft *draft, const char *path)
{
	draft->stream = NULL;
	LS_TRY(check_absent(path));
	LS_TRY(ls_file_begin(draft, path));
	draft->fresh = 1;
	if (!draft->direct)
		return LS_OK;
	ls_file_abandon(draft); /* a pipe was created meanwhile */
	return refuse_existing(path);
}

ls_status ls_file_check(const char *path)
{
	ls_file_draft draft;
	LS_TRY(ls_file_target(draft.path, &draft.direct, path));
	if (draft.direct)
		return access(path, W_OK) == 0 ? LS_OK : ls_fail_errno(LS_EIO, "cannot write %s", path);
	LS_TRY(ls_file_begin(&draft, path));
	ls_file_abandon(&draft);
	return LS_OK;
}

ls_status ls_file_write(ls_file_draft *draft, const void *data, size_t bytes)
{
	if (bytes && fwrite(data, 1, bytes, draft->stream) != bytes)
		return ls_fail_errno(LS_EIO, "cannot write %s", draft->path);
	return LS_OK;
}

static ls_status sync_parent(const char *path)
{
	char directory[4096];
	LS_TRY(ls_path_parent(directory, path));
	return ls_path_sync(directory);
}

/* A second name is never that of another file, as a rename's may be; where the file system has no second names, a look
 * before the rename must do. */
static ls_status name_new(const char *from, const char *to)
{
	if (link(from, to) == 0) {
		unlink(from);
		return LS_OK;
	}
	if (errno == EEXIST)
		return refuse_existing(to);
	if (errno != EPERM && errno != EOPNOTSUPP && errno != ENOSYS)
		return ls_fail_errno(LS_EIO, "cannot rename %s to %s", from, to);
	LS_TRY(check_absent(to));
	return ls_file_rename(from, to);
}

/* A stream remembers that a write failed, but not why: try once more, into a draft that is removed. What is written to
 * directly is tried with 0 bytes. */
static int cause_of(const ls_file_draft *draft)
{
	static const char text[4096];
	ssize_t wrote = 1;

	errno = EIO;
	for (int i = 0; i < 2 && wrote > 0; i++) /* the first may be cut short */
		wrote = write(fileno(draft->stream), text, draft->direct ? 0 : sizeof(text));
	return wrote < 0 ? errno : EIO;
}

static ls_status end_direct(ls_file_draft *draft)
{
	FILE *stream = draft->stream;
	int failed = ferror(stream), cause = failed ? cause_of(draft) : 0;
	draft->stream = NULL;
	if (fclose(stream) != 0 && !failed)
		failed = cause = errno;
	errno = cause;
	if (failed)
		return ls_fail_errno(LS_EIO, "cannot write %s", draft->path);
	return LS_OK;
}

/* The rename comes before the close: the lock lasts until the name is the final one. */
ls_status ls_file_publish(ls_file_draft *draft)
{
	FILE *stream = draft->stream;
	if (draft->direct)
		return end_direct(draft);
	int failed = ferror(stream);
	if (failed || fflush(stream) != 0 || fsync(fileno(stream)) != 0) {
		int cause = failed ? cause_of(draft) : errno;
		const char *left = ls_path_exists(draft->path) ? ", which is left as it was" : "";
		errno = cause;
		ls_fail_errno(LS_EIO, "cannot write %s%s", draft->path, left);
		ls_file_abandon(draft);
		return LS_EIO;
	}
	ls_status status =
		draft->fresh ? name_new(draft->draft, draft->path) : ls_file_rename(draft->draft, draft->path);
	if (status != LS_OK) {
		ls_file_abandon(draft);
		return status;
	}
	draft->stream = NULL;
	leave_live(draft);
	if (fclose(stream) != 0)
		return ls_fail_errno(LS_EIO, "cannot close %s", draft->path);
	return sync_parent(draft->path);
}

void ls_file_abandon(ls_file_draft *draft)
{
	if (!draft->stream)
		return;
	if (!draft->direct) {
		unlink(draft->draft);
		leave_live(draft);
	}
	fclose(draft->stream);
	draft->stream = NULL;
}

ls_status ls_file_finish(ls_file_draft *draft, ls_status status)
{
	if (status == LS_OK)
		return ls_file_publish(draft);
	ls_file_abandon(draft);
	return status;
}

ls_status ls_file_put(const char *path, const void *data, size_t bytes)
{
	ls_file_draft draft;
	LS_TRY(ls_file_begin(&draft, path));
	return ls_file_finish(&draft, ls_file_write(&draft, data, bytes));
}

ls_status ls_check_file(const char *path)
{
	return ls_file_check(path);
}

ls_status ls_write_file(const char *path, const void *data, size_t bytes)
{
	return ls_file_put(path, data, bytes);
}

ls_status ls_create_file(const char *path, const void *data, size_t bytes)
{
	ls_file_draft draft;
	LS_TRY(ls_file_begin_new(&draft, path));
	return ls_file_finish(&draft, ls_file_write(&draft, data, bytes));
}

ls_status ls_file_put_text(const char *path, const char *text)
{
	ls_file_draft draft;
	LS_TRY(ls_file_begin(&draft, path));
	ls_status status = ls_file_write(&draft, text, strlen(text));
	if (status == LS_OK)
		status = ls_file_write(&draft, "\n", 1);
	return ls_file_finish(&draft, status);
}
