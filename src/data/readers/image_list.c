#include "data/readers/image_list.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <xxhash.h>

#include "base/array.h"
#include "base/files.h"
#include "base/status.h"

enum { DEPTH_MAX = 16, CLASSES_MAX = 1 << 20, TEST_PART = 10, SEARCH_MAX = 100000 };

/* ---- names --------------------------------------------------------------------------------------------------------- */

static int is_image_name(const char *name)
{
	const char *dot = strrchr(name, '.');
	return dot && dot != name &&
	       (!strcasecmp(dot, ".png") || !strcasecmp(dot, ".jpg") || !strcasecmp(dot, ".jpeg"));
}

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

/* What a folder holds; `left` entries are looked at, no more. */
typedef struct census {
	int left;
	int images, texts; /* images in folders of the root, .txt files anywhere */
} census;

static void count_files(census *c, const char *folder, int depth)
{
	DIR *stream = depth < DEPTH_MAX ? opendir(folder) : NULL;
	struct dirent *e;

	while (stream && c->left-- > 0 && (e = readdir(stream))) {
		char path[PATH_MAX];
		const char *dot = strrchr(e->d_name, '.');
		if (is_hidden(e->d_name) || ls_path_join(path, sizeof(path), folder, e->d_name) != LS_OK)
			continue;
		c->images += depth > 0 && is_image_name(e->d_name);
		c->texts += dot && !strcasecmp(dot, ".txt");
		if (e->d_type == DT_DIR || (e->d_type == DT_UNKNOWN && type_of(path) == S_IFDIR))
			count_files(c, path, depth + 1);
	}
	if (stream)
		closedir(stream);
}

/* Whether it has folders with images, and more of them than texts: a README.txt beside images and pictures beside the texts
 * of a corpus do no harm. */
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

/* ---- a folder ------------------------------------------------------------------------------------------------------ */

typedef struct scan {
	ls_image_list *list;
	size_t entry_room;
	char real_root[PATH_MAX];
} scan;

/* Links out of the folder would make its contents depend on what is elsewhere. */
static ls_status check_link(const scan *s, const char *path)
{
	char real[PATH_MAX];
	size_t length = strlen(s->real_root);

	if (!realpath(path, real))
		return ls_fail_errno(LS_EFORMAT, "%s is a symbolic link that leads nowhere", path);
	if (strncmp(real, s->real_root, length) != 0 || (real[length] != '/' && real[length] != '\0'))
		return ls_fail(LS_EFORMAT, "%s is a symbolic link to %s, outside of the dataset; copy the file", path,
			       real);
	return LS_OK;
}

static ls_status add_image(scan *s, const char *path, int32_t label, const struct stat *facts)
{
	ls_image_list *l = s->list;
	const char *kept = ls_arena_copy(&l->arena, path + strlen(l->root) + 1);

	if (!kept)
		return ls_fail(LS_EMEMORY, "no memory for the names of %zu images", l->count);
	LS_TRY(ls_array_grow(&l->entry, &s->entry_room, l->count + 1, sizeof(*l->entry)));
	l->entry[l->count++] =
		(ls_image_entry){ .path = kept,
				  .label = label,
				  .bytes = facts->st_size,
				  .modified_ns = (int64_t)facts->st_mtim.tv_sec * 1000000000 + facts->st_mtim.tv_nsec };
	return LS_OK;
}

static ls_status add_folder(scan *s, const char *folder, int32_t label, int depth);

static ls_status add_entry(scan *s, const char *path, const char *name, int32_t label, int depth)
{
	struct stat facts;

	if (lstat(path, &facts) != 0)
		return ls_fail_errno(LS_EIO, "cannot read %s", path);
	int is_link = S_ISLNK(facts.st_mode);
	if (is_link)
		LS_TRY(check_link(s, path));
	if (is_link && stat(path, &facts) != 0)
		return ls_fail_errno(LS_EIO, "cannot read %s", path);
	if (is_link && S_ISDIR(facts.st_mode)) /* images would be of two classes, or a folder inside itself */
		return ls_fail(LS_EFORMAT, "%s is a symbolic link to a folder; copy its images", path);
	if (S_ISDIR(facts.st_mode))
		return add_folder(s, path, label, depth + 1);
	return S_ISREG(facts.st_mode) && is_image_name(name) ? add_image(s, path, label, &facts) : LS_OK;
}

static ls_status add_folder(scan *s, const char *folder, int32_t label, int depth)
{
	DIR *stream = depth < DEPTH_MAX ? opendir(folder) : NULL;
	ls_status status = LS_OK;
	struct dirent *e;

	if (!stream && depth >= DEPTH_MAX)
		return ls_fail(LS_EFORMAT, "%s lies more than %d folders deep", folder, DEPTH_MAX);
	if (!stream)
		return ls_fail_errno(LS_EIO, "cannot read the folder %s", folder);
	while (status == LS_OK && (e = readdir(stream))) {
		char path[PATH_MAX];
		int is_other = e->d_type == DT_REG && !is_image_name(e->d_name);
		if (is_hidden(e->d_name) || is_other)
			continue;
		status = ls_path_join(path, sizeof(path), folder, e->d_name);
		if (status == LS_OK)
			status = add_entry(s, path, e->d_name, label, depth);
	}
	closedir(stream);
	return status;
}

/* ---- classes ------------------------------------------------------------------------------------------------------- */

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The folders in `root`, in byte order. */
static ls_status list_classes(ls_image_list *l, const char *root)
{
	DIR *stream = opendir(root);
	size_t room = 0;
	ls_status status = LS_OK;
	struct dirent *e;

	if (!stream)
		return ls_fail_errno(LS_EIO, "cannot read the folder %s", root);
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
		LS_TRY(ls_path_join(folder, sizeof(folder), l->root, l->class_name[c]));
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
static ls_status check_classes(const ls_image_list *train, const char *test_root)
{
	ls_image_list found = { 0 };
	ls_status status = list_classes(&found, test_root);

	for (size_t i = 0; status == LS_OK && i < found.classes; i++)
		if (!bsearch(&found.class_name[i], train->class_name, train->classes, sizeof(*train->class_name),
			     compare_names))
			status = ls_fail(LS_EMISMATCH, "%s has a class '%s', of which %s has no training images",
					 test_root, found.class_name[i], train->root);
	ls_image_list_release(&found);
	return status;
}

/* ---- splits -------------------------------------------------------------------------------------------------------- */

/* "pets/train", or "pets" itself; *test is "" where there is no folder of test images. */
static ls_status find_roots(const char *folder, char *train, char *test, size_t size)
{
	static const char *const names[] = { "test", "val", "valid", "validation" };
	char inner[PATH_MAX];

	test[0] = '\0';
	LS_TRY(ls_path_join(inner, sizeof(inner), folder, "train"));
	int has_train = ls_path_is_directory(inner) && has_class(inner);
	if ((size_t)snprintf(train, size, "%s", has_train ? inner : folder) >= size)
		return ls_fail(LS_EINVALID, "the name of a folder is longer than %zu characters", size - 1);
	for (size_t end = strlen(train); end > 1 && train[end - 1] == '/'; end--)
		train[end - 1] = '\0'; /* paths of images are cut off behind it */
	for (size_t i = 0; has_train && i < LS_COUNT(names); i++) {
		LS_TRY(ls_path_join(inner, sizeof(inner), folder, names[i]));
		if (ls_path_is_directory(inner) && has_class(inner)) {
			snprintf(test, size, "%s", inner);
			break;
		}
	}
	return LS_OK;
}

static int is_test(const ls_image_entry *e)
{
	return XXH64(e->path, strlen(e->path), 0) % TEST_PART == 0;
}

static void keep_split(ls_image_list *l, ls_split split)
{
	size_t kept = 0;

	for (size_t i = 0; i < l->count; i++)
		if (is_test(&l->entry[i]) == (split == LS_SPLIT_TEST))
			l->entry[kept++] = l->entry[i];
	l->count = kept;
}

/* A class of few images may have lost all of them to the test part. */
static ls_status check_split(const ls_image_list *l)
{
	char *is_there = calloc(l->classes + 1, 1);
	size_t missing = 0;

	if (!is_there)
		return ls_fail(LS_EMEMORY, "no memory for %zu classes", l->classes);
	for (size_t i = 0; i < l->count; i++)
		is_there[l->entry[i].label] = 1;
	while (missing < l->classes && is_there[missing])
		missing++;
	free(is_there);
	if (missing == l->classes)
		return LS_OK;
	return ls_fail(
		LS_EFORMAT,
		"all images of the class %s/%s are for tests, by the hash of their names; add images, or a folder test",
		l->root, l->class_name[missing]);
}

static ls_status read_list(ls_image_list *l, const char *folder, ls_split split)
{
	char train[PATH_MAX], test[PATH_MAX];
	scan s = { .list = l };

	LS_TRY(find_roots(folder, train, test, sizeof(train)));
	l->is_split = test[0] == '\0';
	int has_folder = split == LS_SPLIT_TEST && !l->is_split;
	l->root = ls_arena_copy(&l->arena, train);
	if (!l->root)
		return ls_fail(LS_EMEMORY, "no memory for the names of images");
	LS_TRY(list_classes(l, train));
	if (has_folder) {
		LS_TRY(check_classes(l, test));
		l->root = ls_arena_copy(&l->arena, test);
	}
	if (!l->root || !realpath(folder, s.real_root))
		return ls_fail_errno(LS_EIO, "cannot read the folder %s", folder);
	LS_TRY(list_images(&s, !has_folder));
	if (l->is_split)
		keep_split(l, split);
	if (l->is_split && split == LS_SPLIT_TRAIN)
		LS_TRY(check_split(l));
	if (l->count == 0)
		return ls_fail(
			LS_EFORMAT, "%s has no %s images%s", folder, split == LS_SPLIT_TEST ? "test" : "training",
			l->is_split
				? ": one in ten, by a hash of its name, is for tests; add a folder test, or more images"
				: "");
	return LS_OK;
}

ls_status ls_image_list_read(ls_image_list *out, const char *folder, ls_split split)
{
	ls_image_list l = { .root = NULL };
	ls_status status = read_list(&l, folder, split);

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
	free(l->entry);
	ls_arena_release(&l->arena);
	*l = (ls_image_list){ .root = NULL };
}
