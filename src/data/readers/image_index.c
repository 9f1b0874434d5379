#include "data/readers/image_index.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/array.h"
#include "base/files.h"
#include "base/pin.h"
#include "base/status.h"
#include "base/team.h"

#define MAGIC "lockstep image index 3\n"
#define SETTLED_NS 1000000000 /* how old the times of folders must be */
enum { FILES_PER_THREAD = 4096, THREADS_MAX = 16 };

/*
 * The file: this header, entries, stamps, then offsets of the names of classes, shards and what is wrong, then all
 * names, each ended by a zero. In the file, the place of a pointer to a name has its offset among the names.
 */
typedef struct header {
	char magic[32];
	uint64_t sum; /* of all that follows it */
	uint64_t count, stamps, classes, names_of_classes, shards, bad;
	uint64_t below, names; /* offset; bytes */
	uint64_t is_split;
	uint64_t others, other; /* number; offset of a name */
} header;

_Static_assert(sizeof(ls_image_entry) == 40 && sizeof(ls_image_stamp) == 40 && sizeof(char *) == sizeof(uint64_t),
	       "entries and stamps are written as they are in memory");

#define SUMMED offsetof(header, count)

/* ---- writing ----------------------------------------------------------------------------------------------------- */

/* Where the next name goes. */
typedef struct writer {
	uint8_t *names;
	uint64_t used;
} writer;

static uint64_t put_name(writer *w, const char *name)
{
	uint64_t at = w->used, bytes = strlen(name) + 1;
	if (w->names)
		memcpy(w->names + at, name, bytes);
	w->used += bytes;
	return at;
}

/* Everything in front of the names. */
static size_t fixed_bytes(const header *h)
{
	return sizeof(*h) + (h->count + h->stamps) * sizeof(ls_image_entry) +
	       (h->names_of_classes + h->shards + h->bad) * sizeof(uint64_t);
}

/* Write the list behind the header at `data`; with NULL, only count the bytes of names. */
static void put_all(const ls_image_list *l, header *h, uint8_t *data, writer *w)
{
	uint8_t *at = data ? data + sizeof(*h) : NULL;
	const struct {
		const char **name;
		uint64_t count;
	} lists[] = { { l->class_name, h->names_of_classes }, { l->shard, h->shards }, { l->why, h->bad } };

	h->below = put_name(w, l->below);
	h->other = put_name(w, l->other);
	for (size_t i = 0; i < l->count; i++) {
		ls_image_entry e = l->entry[i];
		e.path = (const char *)(uintptr_t)put_name(w, e.path);
		if (at)
			memcpy(at + i * sizeof(e), &e, sizeof(e));
	}
	at = at ? at + l->count * sizeof(ls_image_entry) : NULL;
	for (size_t i = 0; i < l->stamps; i++) {
		ls_image_stamp s = l->stamp[i];
		s.path = (const char *)(uintptr_t)put_name(w, s.path);
		if (at)
			memcpy(at + i * sizeof(s), &s, sizeof(s));
	}
	at = at ? at + l->stamps * sizeof(ls_image_stamp) : NULL;
	for (size_t k = 0; k < LS_COUNT(lists); k++)
		for (uint64_t i = 0; i < lists[k].count; i++) {
			uint64_t name = put_name(w, lists[k].name[i]);
			if (at)
				memcpy(at, &name, sizeof(name));
			at = at ? at + sizeof(name) : NULL;
		}
}

ls_status ls_image_index_format(const ls_image_list *l, uint8_t **out, size_t *bytes)
{
	header h = { .magic = MAGIC,
		     .count = l->count,
		     .stamps = l->stamps,
		     .classes = l->classes,
		     .names_of_classes = l->class_name ? l->classes : 0,
		     .shards = l->shards,
		     .bad = l->bad,
		     .is_split = (uint64_t)l->is_split,
		     .others = l->others };
	writer w = { .names = NULL };

	put_all(l, &h, NULL, &w);
	h.names = w.used;
	size_t fixed = fixed_bytes(&h), all = fixed + (size_t)h.names;
	uint8_t *data = malloc(all);
	if (!data)
		return ls_fail(LS_EMEMORY, "no memory to keep a list of %zu images", l->count);
	w = (writer){ .names = data + fixed };
	put_all(l, &h, data, &w);
	memcpy(data, &h, sizeof(h));
	h.sum = XXH64(data + SUMMED, all - SUMMED, 0);
	memcpy(data, &h, sizeof(h));
	*out = data;
	*bytes = all;
	return LS_OK;
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static ls_status damaged(const char *what)
{
	return ls_fail(LS_EFORMAT, "a list of images is damaged: %s", what);
}

/* Sizes that fit the file, and names that end. */
static ls_status check_header(const header *h, const uint8_t *data, size_t bytes)
{
	const uint64_t most = bytes / sizeof(uint64_t);

	if (memcmp(h->magic, MAGIC, sizeof(MAGIC)) != 0)
		return damaged("it is another kind of file");
	if (h->count > most || h->stamps > most || h->names_of_classes > most || h->shards > most || h->bad > most ||
	    h->names > bytes || h->classes > INT32_MAX || (h->names_of_classes && h->names_of_classes != h->classes))
		return damaged("it has numbers that cannot be");
	if (fixed_bytes(h) > bytes || bytes - fixed_bytes(h) != h->names || h->names == 0 || data[bytes - 1] != 0)
		return damaged("it has another length");
	return h->below < h->names && h->other < h->names ? LS_OK : damaged("a name");
}

/* Offsets become pointers, in place. */
static ls_status resolve(const char **at, const char *names, uint64_t bytes)
{
	uint64_t offset;

	memcpy(&offset, at, sizeof(offset));
	if (offset >= bytes)
		return damaged("a name");
	*at = names + offset;
	return LS_OK;
}

static ls_status resolve_entries(ls_image_list *l, const header *h, const char *names)
{
	for (size_t i = 0; i < l->count; i++) {
		ls_image_entry *e = &l->entry[i];
		int is_file = e->shard == LS_NO_SHARD;
		LS_TRY(resolve(&e->path, names, h->names));
		if (e->label < 0 || (uint64_t)e->label >= h->classes || (!is_file && e->shard >= h->shards) ||
		    e->bytes < 0 || e->offset > INT64_MAX - (uint64_t)e->bytes)
			return damaged("an entry");
	}
	return LS_OK;
}

/* A malloc'd copy of `count` names, whose offsets are at *at, which moves on. */
static ls_status take_names(const char ***out, uint64_t count, const uint8_t **at, const char *names, uint64_t bytes)
{
	if (count == 0)
		return LS_OK;
	const char **list = malloc(count * sizeof(*list));
	if (!list)
		return ls_fail(LS_EMEMORY, "no memory for the names of %" PRIu64 " classes", count);
	memcpy(list, *at, count * sizeof(*list));
	*at += count * sizeof(*list);
	*out = list;
	for (uint64_t i = 0; i < count; i++)
		LS_TRY(resolve(&list[i], names, bytes));
	return LS_OK;
}

static ls_status parse(ls_image_list *l, uint8_t *data, size_t bytes)
{
	header h;

	if (bytes < sizeof(h))
		return damaged("it is too short");
	memcpy(&h, data, sizeof(h));
	LS_TRY(check_header(&h, data, bytes));
	const char *names = (const char *)data + fixed_bytes(&h);
	l->count = h.count;
	l->stamps = h.stamps;
	l->classes = h.classes;
	l->shards = h.shards;
	l->bad = h.bad;
	l->is_split = h.is_split != 0;
	l->below = names + h.below;
	l->others = h.others;
	l->other = names + h.other;
	l->entry = (ls_image_entry *)(data + sizeof(h));
	LS_TRY(resolve_entries(l, &h, names));
	const uint8_t *at = data + sizeof(h) + h.count * sizeof(ls_image_entry);
	l->stamp = malloc(h.stamps * sizeof(*l->stamp) + 1);
	if (!l->stamp)
		return ls_fail(LS_EMEMORY, "no memory for the names of folders");
	memcpy(l->stamp, at, h.stamps * sizeof(*l->stamp));
	for (size_t i = 0; i < l->stamps; i++)
		LS_TRY(resolve(&l->stamp[i].path, names, h.names));
	at += h.stamps * sizeof(*l->stamp);
	LS_TRY(take_names(&l->class_name, h.names_of_classes, &at, names, h.names));
	LS_TRY(take_names(&l->shard, h.shards, &at, names, h.names));
	return take_names(&l->why, h.bad, &at, names, h.names);
}

ls_status ls_image_index_parse(ls_image_list *list, uint8_t *data, size_t bytes)
{
	ls_image_list l = *list;
	ls_status status = parse(&l, data, bytes);

	if (status == LS_OK) {
		l.loaded = data;
		*list = l;
		return LS_OK;
	}
	free(l.class_name);
	free(l.shard);
	free(l.stamp);
	free(l.why);
	return status;
}

/* ---- whether it is still true ------------------------------------------------------------------------------------ */

static int is_same_stamp(const ls_image_list *l, const ls_image_stamp *s)
{
	char path[PATH_MAX];
	struct stat now;

	if (s->path[0] == '\0')
		snprintf(path, sizeof(path), "%s", l->folder);
	else if (ls_path_join(path, sizeof(path), l->folder, s->path) != LS_OK)
		return 0;
	return stat(path, &now) == 0 && now.st_ino == s->inode && now.st_size == s->bytes &&
	       ls_image_time(&now.st_mtim) == s->modified_ns && ls_image_time(&now.st_ctim) == s->changed_ns;
}

/* The files of a list, shared by the threads of a team. */
typedef struct checking {
	const ls_image_list *list;
	const char *root;
	atomic_int has_changed;
} checking;

/* The folder of an entry, opened unless it is that of the one before: `folder` has its name, *fd its descriptor. */
static const char *enter(const checking *c, const char *path, char *folder, size_t size, int *fd)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	size_t length = (size_t)(name - path);
	char full[PATH_MAX];

	if (*fd >= 0 && strncmp(folder, path, length) == 0 && folder[length] == '\0')
		return name;
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
	if (length >= size)
		return name;
	memcpy(folder, path, length);
	folder[length] = '\0';
	if (ls_path_join(full, sizeof(full), c->root, length > 0 ? folder : ".") == LS_OK)
		*fd = open(full, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return name;
}

static void check_files(void *context, ls_member member)
{
	checking *c = context;
	char folder[PATH_MAX] = "";
	int64_t begin, end;
	int fd = -1;

	ls_team_range(member, (int64_t)c->list->count, &begin, &end);
	for (int64_t i = begin; i < end && !atomic_load_explicit(&c->has_changed, memory_order_relaxed); i++) {
		const ls_image_entry *e = &c->list->entry[i];
		struct stat now;
		const char *name = enter(c, e->path, folder, sizeof(folder), &fd);
		if (fd < 0 || fstatat(fd, name, &now, 0) != 0 || now.st_size != e->bytes ||
		    ls_image_time(&now.st_mtim) != e->modified_ns)
			atomic_store(&c->has_changed, 1);
	}
	if (fd >= 0)
		close(fd);
}

static ls_status check_all(const ls_image_list *l, const char *root, int *is_true)
{
	int64_t wanted = (int64_t)l->count / FILES_PER_THREAD + 1, cores = ls_pin_cores();
	int64_t most = cores < THREADS_MAX ? cores : THREADS_MAX;
	checking c = { .list = l, .root = root };
	ls_team *team = NULL;

	LS_TRY(ls_team_new(&team, (int)(wanted < most ? wanted : most)));
	ls_team_run(team, check_files, &c);
	ls_team_free(team);
	*is_true = !atomic_load(&c.has_changed);
	return LS_OK;
}

static ls_status is_still_true(const ls_image_list *l, int *is_true)
{
	char root[PATH_MAX];

	*is_true = 1;
	for (size_t i = 0; *is_true && i < l->stamps; i++)
		*is_true = is_same_stamp(l, &l->stamp[i]);
	if (!*is_true || l->shards > 0)
		return LS_OK;
	snprintf(root, sizeof(root), "%s", l->folder);
	if (l->below[0])
		LS_TRY(ls_path_join(root, sizeof(root), l->folder, l->below));
	return check_all(l, root, is_true);
}

/* ---- the file ---------------------------------------------------------------------------------------------------- */

/* "<where>/0123456789abcdef-train.index", by the real name of the folder. */
static ls_status index_path(const char *where, const char *path, ls_split split, char *out, size_t size)
{
	char name[64], *real = realpath(path, NULL);

	if (!real)
		return ls_fail_errno(LS_EIO, "cannot find %s", path);
	snprintf(name, sizeof(name), "%016" PRIx64 "-%s.index", (uint64_t)XXH64(real, strlen(real), 0),
		 split == LS_SPLIT_TRAIN ? "train" : "test");
	free(real);
	return ls_path_join(out, size, where, name);
}

/* A copy of the file that nobody cuts short; *data stays NULL where there is none that is whole. */
static ls_status read_index(const char *file, uint8_t **data, size_t *bytes)
{
	ls_file_map map;
	header h;

	if (!ls_path_exists(file) || ls_file_map_open(&map, file) != LS_OK)
		return LS_OK;
	uint8_t *copy = map.bytes >= sizeof(h) ? malloc(map.bytes) : NULL;
	if (copy)
		memcpy(copy, map.data, map.bytes);
	*bytes = map.bytes;
	ls_status whole = ls_file_map_end(&map, LS_OK);
	if (copy)
		memcpy(&h, copy, sizeof(h));
	if (copy && whole == LS_OK && h.sum == XXH64(copy + SUMMED, *bytes - SUMMED, 0))
		*data = copy;
	else
		free(copy);
	return LS_OK;
}

ls_status ls_image_index_load(ls_image_list *list, const char *where, const char *path, ls_split split, int *is_known)
{
	char file[PATH_MAX];
	uint8_t *data = NULL;
	size_t bytes = 0;
	ls_image_list l = *list;

	*is_known = 0;
	LS_TRY(index_path(where, path, split, file, sizeof(file)));
	LS_TRY(read_index(file, &data, &bytes));
	if (!data)
		return LS_OK;
	if (ls_image_index_parse(&l, data, bytes) != LS_OK) {
		free(data);
		return LS_OK;
	}
	ls_status status = is_still_true(&l, is_known);
	if (status == LS_OK && *is_known) {
		*list = l;
		return LS_OK;
	}
	l.arena = (ls_arena)LS_ARENA_INIT; /* is the caller's */
	ls_image_list_release(&l);
	return status;
}

/* What happened a moment ago may go on with the same time. */
static int is_settled(const ls_image_list *l)
{
	for (size_t i = 0; i < l->stamps; i++)
		if (l->stamp[i].changed_ns > l->begun_ns - SETTLED_NS)
			return 0;
	return !l->is_volatile;
}

void ls_image_index_save(const ls_image_list *l, const char *where, const char *path, ls_split split)
{
	char file[PATH_MAX];
	uint8_t *data = NULL;
	size_t bytes = 0;

	if (!is_settled(l) || ls_path_make(where) != LS_OK ||
	    index_path(where, path, split, file, sizeof(file)) != LS_OK ||
	    ls_image_index_format(l, &data, &bytes) != LS_OK)
		return;
	if (ls_file_put(file, data, bytes) != LS_OK) {
		/* the next start lists the folder again */
	}
	free(data);
}
