/*
 * image_list.c - a list of images: what is common to folders (folder_list.c) and shards (shards.c), and the bytes of an
 * image.
 */
#include "data/readers/image_list.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/array.h"
#include "base/files.h"
#include "base/log.h"
#include "base/names.h"
#include "base/status.h"
#include "data/readers/image_index.h"
#include "data/test_part.h"

int64_t ls_image_time(const struct timespec *time)
{
	return (int64_t)time->tv_sec * 1000000000 + time->tv_nsec;
}

int ls_image_name_is(const char *name)
{
	const char *dot = strrchr(name, '.');
	return dot && dot != name &&
	       (!strcasecmp(dot, ".png") || !strcasecmp(dot, ".jpg") || !strcasecmp(dot, ".jpeg"));
}

int ls_image_name_is_other(const char *name)
{
	static const char *const endings[] = { ".webp", ".bmp",  ".gif", ".tif", ".tiff", ".avif",
					       ".heic", ".jfif", ".jp2", ".ppm", ".pgm" };
	const char *dot = strrchr(name, '.');

	for (size_t i = 0; dot && dot != name && i < LS_COUNT(endings); i++)
		if (!strcasecmp(dot, endings[i]))
			return 1;
	return 0;
}

/* ---- making a list ----------------------------------------------------------------------------------------------- */

ls_status ls_image_list_add(ls_image_list *l, size_t *room, const ls_image_entry *entry)
{
	LS_TRY(ls_array_grow(&l->entry, room, l->count + 1, sizeof(*l->entry)));
	l->entry[l->count++] = *entry;
	return LS_OK;
}

ls_status ls_image_list_stamp(ls_image_list *l, int fd, const char *path)
{
	const char *kept = ls_arena_copy(&l->arena, path);
	struct stat facts;

	if (!kept)
		return ls_fail(LS_EMEMORY, "no memory for the names of folders");
	if (fstat(fd, &facts) != 0)
		return ls_fail_errno(LS_EIO, "cannot read %s/%s", l->folder, path);
	LS_TRY(ls_array_grow(&l->stamp, &l->stamp_room, l->stamps + 1, sizeof(*l->stamp)));
	l->stamp[l->stamps++] = (ls_image_stamp){ .path = kept,
						  .inode = facts.st_ino,
						  .bytes = facts.st_size,
						  .modified_ns = ls_image_time(&facts.st_mtim),
						  .changed_ns = ls_image_time(&facts.st_ctim) };
	return LS_OK;
}

ls_status ls_image_list_add_bad(ls_image_list *l)
{
	const char *why = ls_arena_copy(&l->arena, ls_last_error());

	if (!why)
		return ls_fail(LS_EMEMORY, "no memory for the names of %zu samples that are wrong", l->bad);
	LS_TRY(ls_array_grow(&l->why, &l->bad_room, l->bad + 1, sizeof(*l->why)));
	l->why[l->bad++] = why;
	return LS_OK;
}

/* ---- splits ------------------------------------------------------------------------------------------------------ */

/* A class of few images may have lost all of them to the test part. */
static ls_status check_split(const ls_image_list *l)
{
	char *is_there = calloc(l->classes + 1, 1);
	size_t missing = 0, first = 0;

	if (!is_there)
		return ls_fail(LS_EMEMORY, "no memory for %zu classes", l->classes);
	for (size_t i = 0; i < l->count; i++)
		is_there[l->entry[i].label] = 1;
	for (size_t i = l->classes; i-- > 0;)
		if (!is_there[i]) {
			first = i;
			missing++;
		}
	free(is_there);
	if (missing == 0 || !l->class_name)
		return LS_OK;
	const char *place = l->shards == 1 ? l->shard[0] : l->root;
	const char *better = l->shards > 0 ? "a shard named test-..." : "a folder named test";
	if (missing == 1)
		return ls_fail(
			LS_EFORMAT,
			"%s: all images of class '%s' are for tests, by the hash of their names; add images, or %s",
			place, l->class_name[first], better);
	return ls_fail(
		LS_EFORMAT,
		"%s: all images of %zu of %zu classes are for tests, by the hash of their names, the first of them "
		"'%s'; add images, or %s",
		place, missing, l->classes, l->class_name[first], better);
}

ls_status ls_image_list_split(ls_image_list *l, ls_split split)
{
	size_t kept = 0;

	for (size_t i = 0; i < l->count; i++)
		if (ls_hash_is_in(XXH64(l->entry[i].path, strlen(l->entry[i].path), 0), split))
			l->entry[kept++] = l->entry[i];
	l->count = kept;
	return split == LS_SPLIT_TRAIN ? check_split(l) : LS_OK;
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* The folder of a shard is where it is. */
static ls_status set_folder(ls_image_list *l, const char *path)
{
	char folder[PATH_MAX];

	if ((size_t)snprintf(folder, sizeof(folder), "%s", path) >= sizeof(folder))
		return ls_fail(LS_EINVALID, "the name of a folder is longer than %zu characters", sizeof(folder) - 1);
	char *slash = !ls_path_is_directory(path) ? strrchr(folder, '/') : NULL;
	if (slash)
		slash[slash == folder] = '\0';
	else if (!ls_path_is_directory(path))
		snprintf(folder, sizeof(folder), ".");
	for (size_t end = strlen(folder); end > 1 && folder[end - 1] == '/'; end--)
		folder[end - 1] = '\0'; /* paths are cut off behind it */
	l->folder = ls_arena_copy(&l->arena, folder);
	return l->folder ? LS_OK : ls_fail(LS_EMEMORY, "no memory for the names of images");
}

static ls_status set_root(ls_image_list *l)
{
	char root[PATH_MAX];

	if (l->below[0])
		LS_TRY(ls_path_join(root, sizeof(root), l->folder, l->below));
	l->root = l->below[0] ? ls_arena_copy(&l->arena, root) : l->folder;
	return l->root ? LS_OK : ls_fail(LS_EMEMORY, "no memory for the names of images");
}

/* Samples that are left out are named, once where both splits are of the same files; more of them than allowed are an
 * error. */
static ls_status report_bad(const ls_image_list *l, ls_split split, uint64_t most)
{
	size_t named = l->is_split && split == LS_SPLIT_TEST ? 0 : l->bad;

	if (l->bad > 0 && most == 0)
		return ls_fail(LS_EFORMAT, "%s; options.skip_bad N leaves out up to N samples that cannot be read",
			       l->why[0]);
	if (l->bad > most)
		return ls_fail(LS_EFORMAT, "%zu samples cannot be read, more than options.skip_bad %llu; the first: %s",
			       l->bad, (unsigned long long)most, l->why[0]);
	for (size_t i = 0; i < named; i++)
		ls_log_warning("left out: %s", l->why[i]);
	return LS_OK;
}

/* Half of a class may be of a kind that is not read. Reported once where both splits are of the same files. */
static void report_others(const ls_image_list *l, ls_split split)
{
	if (l->others > 0 && !(l->is_split && split == LS_SPLIT_TEST))
		ls_log_warning("%s: %llu file%s such as %s %s not read: images are PNG and JPEG, convert others",
			       l->root, (unsigned long long)l->others, ls_plural(l->others, "s"), l->other,
			       l->others == 1 ? "is" : "are");
}

static ls_status check_count(const ls_image_list *l, const ls_image_list_options *o)
{
	if (l->count > 0)
		return LS_OK;
	return ls_fail(LS_EFORMAT, "%s has no %s images%s", o->path, o->split == LS_SPLIT_TEST ? "test" : "training",
		       l->is_split
			       ? ": one in ten, by a hash of its name, is for tests; add a folder test, or more images"
			       : "");
}

static ls_status read_list(ls_image_list *l, const ls_image_list_options *o)
{
	struct timespec now;
	int is_known = 0;

	clock_gettime(CLOCK_REALTIME, &now);
	l->begun_ns = ls_image_time(&now);
	l->other = "";
	LS_TRY(set_folder(l, o->path));
	if (o->index)
		LS_TRY(ls_image_index_load(l, o->index, o->path, o->split, &is_known));
	if (!is_known)
		LS_TRY(ls_shards_is(o->path) ? ls_shards_list(l, o->path, o->split) : ls_folder_list(l, o->split));
	LS_TRY(set_root(l));
	LS_TRY(report_bad(l, o->split, o->skip_bad));
	LS_TRY(check_count(l, o));
	report_others(l, o->split);
	if (!is_known && o->index)
		ls_image_index_save(l, o->index, o->path, o->split);
	return LS_OK;
}

ls_status ls_image_list_read(ls_image_list *out, const ls_image_list_options *options)
{
	ls_image_list l = { .root = NULL };
	ls_status status = read_list(&l, options);

	if (status != LS_OK) {
		ls_image_list_release(&l);
		return status;
	}
	*out = l;
	return LS_OK;
}

void ls_image_list_release(ls_image_list *l)
{
	free(l->class_name);
	free(l->shard);
	free(l->stamp);
	free(l->why);
	if (!l->loaded)
		free(l->entry);
	free(l->loaded);
	ls_arena_release(&l->arena);
	*l = (ls_image_list){ .root = NULL };
}

/* ---- the bytes of an image --------------------------------------------------------------------------------------- */

/* A file that is not what was listed would be kept under the wrong key, and other nodes may have read the old one. */
static ls_status check_file(const ls_image_entry *e, int fd, const char *name)
{
	struct stat now;

	if (fstat(fd, &now) != 0)
		return ls_fail_errno(LS_EIO, "cannot read %s", name);
	if (ls_image_time(&now.st_mtim) != e->modified_ns ||
	    (e->shard == LS_NO_SHARD ? now.st_size != e->bytes : now.st_size < (off_t)e->offset + e->bytes))
		return ls_fail(LS_EIO, "%s has changed since the dataset was opened", name);
	if (e->bytes > LS_IMAGE_BYTES_MAX)
		return ls_fail(LS_EFORMAT, "%s has %lld bytes; image files of up to %lld are read", name,
			       (long long)e->bytes, (long long)LS_IMAGE_BYTES_MAX);
	return LS_OK;
}

static ls_status read_part(int fd, uint8_t *bytes, size_t size, uint64_t offset, const char *name)
{
	if (ls_file_read_at(fd, bytes, size, offset) == size)
		return LS_OK;
	return errno ? ls_fail_errno(LS_EIO, "cannot read %s", name)
		     : ls_fail(LS_EIO, "%s has changed since the dataset was opened", name);
}

static ls_status fetch(const ls_image_entry *e, int fd, const char *name, uint8_t **bytes)
{
	LS_TRY(check_file(e, fd, name));
	uint8_t *room = malloc((size_t)e->bytes + 1);
	if (!room)
		return ls_fail(LS_EMEMORY, "%s: no memory for %lld bytes", name, (long long)e->bytes);
	ls_status status = read_part(fd, room, (size_t)e->bytes, e->offset, name);
	if (status == LS_OK)
		*bytes = room;
	else
		free(room);
	return status;
}

ls_status ls_image_list_fetch(const ls_image_list *l, uint64_t place, uint8_t **bytes, size_t *size, char *name,
			      size_t name_size)
{
	const ls_image_entry *e = &l->entry[place];
	char shard[PATH_MAX];

	LS_TRY(ls_path_join(name, name_size, l->root, e->path));
	if (e->shard != LS_NO_SHARD)
		LS_TRY(ls_path_join(shard, sizeof(shard), l->folder, l->shard[e->shard]));
	int fd = open(e->shard == LS_NO_SHARD ? name : shard, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return ls_fail_errno(LS_EIO, "cannot read %s", name);
	ls_status status = fetch(e, fd, name, bytes);
	close(fd);
	*size = (size_t)e->bytes;
	return status;
}
