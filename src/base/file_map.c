/*
 * file_map.c - the bytes of a file: small ones copied, large ones mapped.
 *
 * A mapped file may be cut short by somebody else, or its disk may fail: then reading the map raises SIGBUS, which
 * would end the process without a word. Every map is therefore in a list that a SIGBUS handler knows. A fault inside a
 * map puts zeros in the place of what is lost, marks the map and lets the reader go on; the reader asks
 * ls_file_map_check() before it uses what it has read. Faults elsewhere go to the handler that was there before; one
 * that a program sets later replaces ours until the next map is opened.
 *
 * Invariants
 *  1. A map is marked before its bytes change: who sees zeros that are not the file's also sees the mark.
 *  2. Entries of the list are never freed, only used again, so the handler may walk it at any time.
 *  3. A cut inside the last page raises no signal, its bytes just become zero: the check also compares sizes.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/files.h"
#include "base/memory.h"

enum { COPIED_MAX = 4 << 20 }; /* settings, vocabularies, results: copied, and so safe from what happens to the file */

struct ls_file_guard {
	atomic_uintptr_t begin; /* 0: free */
	size_t bytes;
	atomic_int lost; /* a part could not be read */
	int fd;
	char *path;
	struct ls_file_guard *next;
};

static _Atomic(struct ls_file_guard *) guards;
static pthread_mutex_t guards_lock = PTHREAD_MUTEX_INITIALIZER; /* of changes to the list */
static uintptr_t page;

/* What SIGBUS did before us. A program may set a handler of its own at any time, so this can change. */
struct previous {
	struct sigaction action;
	struct previous *next;
};
static _Atomic(struct previous *) before;
static struct previous *all_before; /* never freed: a handler may be at work with one */

/* ---- the handler ------------------------------------------------------------------------------------------------- */

/* Zeros from the page of `at` to the end of the map. (A part of a cut file that is still there is lost with it, which
 * does not matter: nothing of a marked map is used.) */
static int put_zeros(struct ls_file_guard *guard, uintptr_t begin, uintptr_t at)
{
	uintptr_t from = at / page * page, end = begin + guard->bytes;
	atomic_store(&guard->lost, 1);
	/* The system call itself: mmap() is not on the list of functions for signal handlers, and thread sanitizer
	 * would take it for a write that others read meanwhile, as they may. */
	return syscall(SYS_mmap, from, end - from, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE,
		       -1, 0) != -1;
}

/* Do what would have happened without our handler. */
static void pass_on(int number, siginfo_t *info, void *context)
{
	const struct sigaction *then = &atomic_load(&before)->action;
	if (then->sa_flags & SA_SIGINFO) {
		then->sa_sigaction(number, info, context);
	} else if (then->sa_handler != SIG_DFL && then->sa_handler != SIG_IGN) {
		then->sa_handler(number);
	} else if (then->sa_handler == SIG_DFL || info->si_code > 0) { /* nobody can ignore a fault */
		sigaction(number, &(struct sigaction){ .sa_handler = SIG_DFL }, NULL);
		raise(number); /* comes when the handler returns */
	}
}

static void on_bus_error(int number, siginfo_t *info, void *context)
{
	int kept = errno, is_fault = info->si_code > 0; /* not sent by a process */
	uintptr_t at = (uintptr_t)info->si_addr;
	for (struct ls_file_guard *guard = atomic_load(&guards); guard && is_fault; guard = guard->next) {
		uintptr_t begin = atomic_load(&guard->begin);
		if (begin && at >= begin && at - begin < guard->bytes && put_zeros(guard, begin, at)) {
			errno = kept;
			return;
		}
	}
	pass_on(number, info, context);
	errno = kept;
}

static struct previous *remember(const struct sigaction *action)
{
	for (struct previous *p = all_before; p; p = p->next)
		if (p->action.sa_sigaction == action->sa_sigaction && p->action.sa_flags == action->sa_flags)
			return p;
	struct previous *p = malloc(sizeof(*p));
	if (p) {
		*p = (struct previous){ .action = *action, .next = all_before };
		all_before = p;
	}
	return p;
}

/* Under the lock of the list. */
static int install(void)
{
	struct sigaction now, ours = { .sa_sigaction = on_bus_error };
	page = (uintptr_t)sysconf(_SC_PAGESIZE);
	if (sigaction(SIGBUS, NULL, &now) != 0)
		return 0;
	if ((now.sa_flags & SA_SIGINFO) && now.sa_sigaction == on_bus_error)
		return 1;
	struct previous *previous = remember(&now);
	if (!previous)
		return 0;
	atomic_store(&before, previous);
	ours.sa_mask = now.sa_mask;
	ours.sa_flags = SA_SIGINFO | (now.sa_flags & (SA_ONSTACK | SA_NODEFER | SA_RESTART));
	return sigaction(SIGBUS, &ours, NULL) == 0;
}

/* ---- the list ---------------------------------------------------------------------------------------------------- */

static struct ls_file_guard *free_guard(void)
{
	for (struct ls_file_guard *guard = atomic_load(&guards); guard; guard = guard->next)
		if (!atomic_load(&guard->begin))
			return guard;
	struct ls_file_guard *guard = calloc(1, sizeof(*guard));
	if (guard) {
		guard->next = atomic_load(&guards);
		atomic_store(&guards, guard);
	}
	return guard;
}

static ls_status guard_map(ls_file_map *map, int fd, const char *path)
{
	char *copy = strdup(path);
	int kept = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	pthread_mutex_lock(&guards_lock);
	struct ls_file_guard *guard = copy && kept >= 0 && install() ? free_guard() : NULL;
	if (guard) {
		guard->bytes = map->bytes;
		guard->fd = kept;
		guard->path = copy;
		atomic_store(&guard->lost, 0);
		atomic_store(&guard->begin, (uintptr_t)map->data);
	}
	pthread_mutex_unlock(&guards_lock);
	if (guard) {
		map->guard = guard;
		return LS_OK;
	}
	ls_fail_errno(LS_EMEMORY, "cannot map %s", path);
	free(copy);
	if (kept >= 0)
		close(kept);
	return LS_EMEMORY;
}

static void release_guard(struct ls_file_guard *guard)
{
	pthread_mutex_lock(&guards_lock);
	close(guard->fd);
	free(guard->path);
	guard->path = NULL;
	atomic_store(&guard->begin, 0);
	pthread_mutex_unlock(&guards_lock);
}

/* ---- opening and closing ----------------------------------------------------------------------------------------- */

static ls_status cut_short(const char *path, uint64_t bytes, uint64_t now)
{
	return ls_fail(
		LS_EIO,
		"%s was cut short while it was in use: it had %llu bytes, now it has %llu; put it back as it was", path,
		(unsigned long long)bytes, (unsigned long long)now);
}

static ls_status copy_file(ls_file_map *map, int fd, size_t bytes, const char *path)
{
	uint8_t *data = malloc(bytes);
	size_t got = 0;
	if (!data)
		return ls_fail(LS_EMEMORY, "no memory for the %zu bytes of %s", bytes, path);
	while (got < bytes) {
		ssize_t part = read(fd, data + got, bytes - got);
		if (part < 0 && errno == EINTR)
			continue;
		if (part <= 0) {
			free(data);
			return part < 0 ? ls_fail_errno(LS_EIO, "cannot read %s", path) : cut_short(path, bytes, got);
		}
		got += (size_t)part;
	}
	*map = (ls_file_map){ .data = data, .bytes = bytes };
	return LS_OK;
}

static ls_status map_failed(size_t bytes, const char *path)
{
	int cause = errno;
	ls_memory_limit limit = ls_memory_address_space(); /* ulimit -d does not count what is only read */
	char name[64];
	errno = cause;
	if (cause != ENOMEM || limit.left == UINT64_MAX)
		return ls_fail_errno(cause == ENOMEM ? LS_EMEMORY : LS_EIO, "cannot map %s", path);
	return ls_fail(LS_EMEMORY, "cannot map %s: its %.1f MB exceed what the limit on address space leaves (%s)",
		       path, (double)bytes * 1e-6, ls_memory_limit_name(&limit, name, sizeof(name)));
}

static ls_status map_descriptor(ls_file_map *map, int fd, const char *path)
{
	struct stat facts;
	if (fstat(fd, &facts) != 0)
		return ls_fail_errno(LS_EIO, "cannot read %s", path);
	if (!S_ISREG(facts.st_mode))
		return ls_fail(LS_EIO, "%s is not a regular file", path);
	size_t bytes = (size_t)facts.st_size;
	if (bytes == 0) {
		*map = (ls_file_map){ 0 };
		return LS_OK;
	}
	if (bytes <= COPIED_MAX)
		return copy_file(map, fd, bytes, path);
	ls_file_map made = { .data = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, fd, 0), .bytes = bytes };
	if (made.data == MAP_FAILED)
		return map_failed(bytes, path);
	ls_status status = guard_map(&made, fd, path);
	if (status != LS_OK)
		munmap((void *)(uintptr_t)made.data, bytes);
	else
		*map = made;
	return status;
}

ls_status ls_file_map_open(ls_file_map *map, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe without a writer must not keep us waiting */
	if (fd < 0)
		return ls_fail_errno(errno == ENOENT ? LS_ENOTFOUND : LS_EIO, "cannot open %s", path);
	ls_status status = map_descriptor(map, fd, path);
	close(fd);
	return status;
}

int ls_file_map_lost(const ls_file_map *map)
{
	return map->guard && atomic_load_explicit(&map->guard->lost, memory_order_relaxed);
}

ls_status ls_file_map_check(const ls_file_map *map)
{
	struct stat facts;
	if (!map->guard)
		return LS_OK;
	if (fstat(map->guard->fd, &facts) == 0 && (uint64_t)facts.st_size < map->bytes)
		return cut_short(map->guard->path, map->bytes, (uint64_t)facts.st_size);
	if (ls_file_map_lost(map))
		return ls_fail(
			LS_EIO,
			"a part of %s could not be read while it was in use: it was cut short, or its disk failed",
			map->guard->path);
	return LS_OK;
}

void ls_file_map_close(ls_file_map *map)
{
	if (map->guard) {
		release_guard(map->guard);
		munmap((void *)(uintptr_t)map->data, map->bytes);
	} else {
		free((void *)(uintptr_t)map->data);
	}
	*map = (ls_file_map){ 0 };
}

ls_status ls_file_map_end(ls_file_map *map, ls_status status)
{
	ls_status whole = ls_file_map_check(map); /* first: what was read may have gone wrong because of it */
	ls_file_map_close(map);
	return whole != LS_OK ? whole : status;
}
