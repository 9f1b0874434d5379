/*
 * folder_list.c - the image files of a folder with a folder per class.
 */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/files.h"
#include "base/log.h"
#include "base/names.h"
#include "base/status.h"
#include "data/readers/image_list.h"

enum { DEPTH_MAX = 16, CLASSES_MAX = 1 << 20, SEARCH_MAX = 100000 };

/* ---- names ------------------------------------------------------------------------------------------------------- */

static int is_hidden(const char *name)
{
	return name[0] == '.';
}

/* The type of an entry, links followed; 0: it is gone, or leads nowhere. */
static mode_t type_of(const char *path)
{
	struct stat facts;
	return stat(path, &facts) == 0 ? facts.st_mode & S_IFMT : 0;
}

/* What a folder holds; `left` entries are looked at, no more. A .txt file per image of the same folder is its caption;
 * `texts` are the others. */
typedef struct census {
	int left;
	int images, captions, texts;
} census;

static void count_files(census *c, const char *folder, int depth)
{
	DIR *stream = depth < DEPTH_MAX ? opendir(folder) : NULL;
	int images = 0, texts = 0;
	struct dirent *e;

	while (stream && c->left-- > 0 && (e = readdir(stream))) {
		char path[PATH_MAX];
		const char *dot = strrchr(e->d_name, '.');
		if (is_hidden(e->d_name) || ls_path_join(path, sizeof(path), folder, e->d_name) != LS_OK)
			continue;
		images += depth > 0 && ls_image_name_is(e->d_name);
		texts += dot && !strcasecmp(dot, ".txt");
		if (e->d_type == DT_DIR || (e->d_type == DT_UNKNOWN && type_of(path) == S_IFDIR))
			count_files(c, path, depth + 1);
	}
	if (stream)
		closedir(stream);
	int captions = texts < images ? texts : images;
	c->images += images;
	c->captions += captions;
	c->texts += texts - captions;
}

/* Whether it has folders with images, and more of them than texts: captions and a README.txt beside images and pictures
 * beside the texts of a corpus do no harm. */
static int has_class(const char *folder)
{
	census c = { .left = SEARCH_MAX };

	count_files(&c, folder, 0);
	return c.images > c.texts;
}

int ls_image_folder_is(const char *folder)
{
	return ls_path_is_directory(folder) && has_class(folder);
}

void ls_image_folder_note(const char *folder)
{
	census c = { .left = SEARCH_MAX };

	count_files(&c, folder, 0);
	if (c.images > 0)
		ls_log_note(
			"%s has %d image file%s in folders and %d .txt files: it is read as text, because there are "
			"more texts than images; for images, give a folder without the texts",
			folder, c.images, ls_plural((uint64_t)c.images, "s"), c.texts + c.captions);
}

/* ---- a folder ---------------------------------------------------------------------------------------------------- */

typedef struct scan {
	ls_image_list *list;
	size_t entry_room;
	const char *root; /* that paths of images are below */
	char real_folder[PATH_MAX];
} scan;

/* A folder that is read, with its stamp taken before. */
static ls_status open_folder(ls_image_list *l, const char *folder, DIR **out)
{
	const char *below = folder + strlen(l->folder);
	DIR *stream = opendir(folder);

	if (!stream)
		return ls_fail_errno(LS_EIO, "cannot read the folder %s", folder);
	ls_status status = ls_image_list_stamp(l, dirfd(stream), below + (*below == '/'));
	if (status != LS_OK)
		closedir(stream);
	else
		*out = stream;
	return status;
}

/* Links out of the folder would make its contents depend on what is elsewhere. */
static ls_status check_link(const scan *s, const char *path)
{
	char real[PATH_MAX];
	size_t length = strlen(s->real_folder);

	if (!realpath(path, real))
		return ls_fail_errno(LS_EFORMAT, "%s is a symbolic link that leads nowhere", path);
	if (strncmp(real, s->real_folder, length) != 0 || (real[length] != '/' && real[length] != '\0'))
		return ls_fail(LS_EFORMAT, "%s is a symbolic link to %s, outside of the dataset; copy the file", path,
			       real);
	return LS_OK;
}

static ls_status add_image(scan *s, const char *path, int32_t label, const struct stat *facts)
{
	ls_image_list *l = s->list;
	const char *kept = ls_arena_copy(&l->arena, path + strlen(s->root) + 1);

	if (!kept)
		return ls_fail(LS_EMEMORY, "no memory for the names of %zu images", l->count);
	const ls_image_entry entry = { .path = kept,
				       .label = label,
				       .shard = LS_NO_SHARD,
				       .bytes = facts->st_size,
				       .modified_ns = ls_image_time(&facts->st_mtim) };
	return ls_image_list_add(l, &s->entry_room, &entry);
}

/* A file in a class folder that is no image, or one of a kind that is not read. */
static ls_status pass_over(scan *s, const char *folder, const char *name)
{
	ls_image_list *l = s->list;
	char path[PATH_MAX];

	if (!ls_image_name_is_other(name) || l->others++ > 0)
		return LS_OK;
	LS_TRY(ls_path_join(path, sizeof(path), folder, name));
	const char *kept = ls_arena_copy(&l->arena, path + strlen(s->root) + 1);
	if (!kept)
		return ls_fail(LS_EMEMORY, "no memory for the names of %zu images", l->count);
	l->other = kept;
	return LS_OK;
}

static ls_status add_folder(scan *s, const char *folder, int32_t label, int depth);

static ls_status add_entry(scan *s, const char *path, const char *name, int32_t label, int depth)
{
	struct stat facts;

	if (lstat(path, &facts) != 0)
		return ls_fail_errno(LS_EIO, "cannot read %s", path);
	int is_link = S_ISLNK(facts.st_mode);
	if (is_link && check_link(s, path) != LS_OK)
		return ls_image_list_add_bad(s->list);
	if (is_link && stat(path, &facts) != 0)
		return ls_fail_errno(LS_EIO, "cannot read %s", path);
	if (is_link && S_ISDIR(facts.st_mode)) /* images would be of two classes, or a folder inside itself */
		return ls_fail(LS_EFORMAT, "%s is a symbolic link to a folder; copy its images", path);
	if (S_ISDIR(facts.st_mode))
		return add_folder(s, path, label, depth + 1);
	return S_ISREG(facts.st_mode) && ls_image_name_is(name) ? add_image(s, path, label, &facts) : LS_OK;
}

static ls_status add_folder(scan *s, const char *folder, int32_t label, int depth)
{
	DIR *stream = NULL;
	ls_status status = LS_OK;
	struct dirent *e;

	if (depth >= DEPTH_MAX)
		return ls_fail(LS_EFORMAT, "%s lies more than %d folders deep", folder, DEPTH_MAX);
	LS_TRY(open_folder(s->list, folder, &stream));
	while (status == LS_OK && (e = readdir(stream))) {
		char path[PATH_MAX];
		int is_other = e->d_type == DT_REG && !ls_image_name_is(e->d_name);
		if (is_hidden(e->d_name))
			continue;
		status = is_other ? pass_over(s, folder, e->d_name)
				  : ls_path_join(path, sizeof(path), folder, e->d_name);
		if (status == LS_OK && !is_other)
			status = add_entry(s, path, e->d_name, label, depth);
	}
	closedir(stream);
	return status;
}

/* ---- classes ----------------------------------------------------------------------------------------------------- */

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The folders in `root`, in byte order; `stamps` is the list that depends on it. */
static ls_status list_classes(ls_image_list *l, ls_image_list *stamps, const char *root)
{
	DIR *stream = NULL;
	size_t room = 0;
	ls_status status = LS_OK;
	struct dirent *e;

	LS_TRY(open_folder(stamps, root, &stream));
	while (status == LS_OK && (e = readdir(stream))) {
		char path[PATH_MAX];
		struct stat facts;
		if (is_hidden(e->d_name) || ls_path_join(path, sizeof(path), root, e->d_name) != LS_OK ||
		    type_of(path) != S_IFDIR)
			continue;
		if (lstat(path, &facts) == 0 && S_ISLNK(facts.st_mode)) {
			status = ls_fail(LS_EFORMAT, "%s is a symbolic link to a folder; copy its images", path);
			continue;
		}
		const char *name = ls_arena_copy(&l->arena, e->d_name);
		status = name ? ls_array_grow(&l->class_name, &room, l->classes + 1, sizeof(*l->class_name))
			      : ls_fail(LS_EMEMORY, "no memory for the names of %zu classes", l->classes);
		if (status == LS_OK)
			l->class_name[l->classes++] = name;
	}
	closedir(stream);
	if (status == LS_OK && l->classes > CLASSES_MAX)
		return ls_fail(LS_EFORMAT, "%s has %zu folders; at most %d classes are supported", root, l->classes,
			       CLASSES_MAX);
	if (status == LS_OK && l->classes > 0)
		qsort(l->class_name, l->classes, sizeof(*l->class_name), compare_names);
	return status;
}

static int compare_entries(const void *a, const void *b)
{
	const ls_image_entry *x = a, *y = b;
	return strcmp(x->path, y->path);
}

/* All images of the classes; classes without any are refused where they are to be learned. */
static ls_status list_images(scan *s, int needs_all)
{
	ls_image_list *l = s->list;

	for (size_t c = 0; c < l->classes; c++) {
		char folder[PATH_MAX];
		size_t before = l->count;
		LS_TRY(ls_path_join(folder, sizeof(folder), s->root, l->class_name[c]));
		if (!ls_path_is_directory(folder))
			continue;
		LS_TRY(add_folder(s, folder, (int32_t)c, 0));
		if (needs_all && l->count == before)
			return ls_fail(LS_EFORMAT,
				       "the class folder %s has no image (.png, .jpg, .jpeg); remove it, or put images "
				       "into it",
				       folder);
	}
	if (l->count > 0)
		qsort(l->entry, l->count, sizeof(*l->entry), compare_entries);
	return LS_OK;
}

/* A folder of test images may not have classes that nothing was learned of. */
static ls_status check_classes(ls_image_list *train, const char *train_root, const char *test_root)
{
	ls_image_list found = { 0 };
	ls_status status = list_classes(&found, train, test_root);

	for (size_t i = 0; status == LS_OK && i < found.classes; i++)
		if (!bsearch(&found.class_name[i], train->class_name, train->classes, sizeof(*train->class_name),
			     compare_names))
			status = ls_fail(LS_EMISMATCH, "%s has a class '%s', of which %s has no training images",
					 test_root, found.class_name[i], train_root);
	ls_image_list_release(&found);
	return status;
}

/* ---- splits ------------------------------------------------------------------------------------------------------ */

/* "train", or "" for the folder itself; *test is "" where there is no folder of test images. */
static ls_status find_roots(ls_image_list *l, const char **train, const char **test)
{
	static const char *const names[] = { "test", "val", "valid", "validation" };
	char inner[PATH_MAX];

	*test = "";
	LS_TRY(ls_path_join(inner, sizeof(inner), l->folder, "train"));
	int has_train = ls_path_is_directory(inner) && has_class(inner);
	*train = has_train ? "train" : "";
	for (size_t i = 0; has_train && !**test && i < LS_COUNT(names); i++) {
		LS_TRY(ls_path_join(inner, sizeof(inner), l->folder, names[i]));
		if (!ls_path_is_directory(inner))
			continue;
		if (has_class(inner))
			*test = names[i];
		else
			l->is_volatile = 1; /* images may come into it */
	}
	return LS_OK;
}

/* l->folder, or a folder in it. */
static ls_status root_of(const ls_image_list *l, const char *below, char *out, size_t size)
{
	if (below[0])
		return ls_path_join(out, size, l->folder, below);
	snprintf(out, size, "%s", l->folder);
	return LS_OK;
}

ls_status ls_folder_list(ls_image_list *l, ls_split split)
{
	char train[PATH_MAX], test[PATH_MAX];
	const char *of_train, *of_test;
	scan s = { .list = l };
	DIR *stream = NULL;

	LS_TRY(find_roots(l, &of_train, &of_test));
	l->is_split = !of_test[0];
	int has_folder = split == LS_SPLIT_TEST && !l->is_split;
	l->below = has_folder ? of_test : of_train;
	LS_TRY(root_of(l, of_train, train, sizeof(train)));
	LS_TRY(root_of(l, of_test, test, sizeof(test)));
	if (of_train[0]) { /* whether there are folders of test images depends on the folder itself */
		LS_TRY(open_folder(l, l->folder, &stream));
		closedir(stream);
	}
	LS_TRY(list_classes(l, l, train));
	if (has_folder)
		LS_TRY(check_classes(l, train, test));
	if (!realpath(l->folder, s.real_folder))
		return ls_fail_errno(LS_EIO, "cannot read the folder %s", l->folder);
	s.root = l->root = has_folder ? test : train; /* for messages; the caller keeps it */
	ls_status status = list_images(&s, !has_folder);
	if (status == LS_OK && l->is_split)
		status = ls_image_list_split(l, split);
	l->root = NULL;
	return status;
}
