/*
 * shards.c - tar files with images as a dataset, in WebDataset's convention.
 *
 *     train-000000.tar:  00000.png 00000.cls 00001.png 00001.cls ...
 *
 * Members one after the other whose names are equal up to the first dot of the last part are a sample: an image (.png,
 * .jpg, .jpeg) and a label: .cls, a number or a name in a text, or .json, {"label": ...}. Other members are left alone.
 * Shards whose names have "train" in them are training shards, those with "test" or "val" test shards; where there are
 * neither, all are both, and one image in ten, by a hash of its name, is for tests. Samples keep the order of the
 * shards' names and of the members in them.
 *
 * Nothing is unpacked: members are read where they lie. Their names serve for comparisons alone; a member whose name
 * leads out of the archive is refused all the same, and so are links, because somebody else may unpack it.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/files.h"
#include "base/log.h"
#include "base/names.h"
#include "base/status.h"
#include "data/readers/image_list.h"
#include "data/readers/tar_members.h"

enum { CLASSES_MAX = 1 << 20, LABEL_BYTES_MAX = 256, JSON_BYTES_MAX = 1 << 20 };

/* ---- finding shards ---------------------------------------------------------------------------------------------- */

static int is_tar_name(const char *name)
{
	size_t length = strlen(name);
	return name[0] != '.' && length > 4 && !strcasecmp(name + length - 4, ".tar");
}

int ls_shards_is(const char *path)
{
	DIR *stream = ls_path_is_directory(path) ? opendir(path) : NULL;
	struct dirent *e;
	int found = !stream && is_tar_name(strrchr(path, '/') ? strrchr(path, '/') + 1 : path) && ls_path_exists(path);

	while (stream && !found && (e = readdir(stream)))
		found = is_tar_name(e->d_name);
	if (stream)
		closedir(stream);
	return found;
}

static ls_status add_shard(ls_image_list *l, const char *name)
{
	const char *kept = ls_arena_copy(&l->arena, name);

	if (!kept || l->shards >= LS_NO_SHARD)
		return ls_fail(LS_EMEMORY, "no memory for the names of %zu shards", l->shards);
	LS_TRY(ls_array_grow(&l->shard, &l->shard_room, l->shards + 1, sizeof(*l->shard)));
	l->shard[l->shards++] = kept;
	return LS_OK;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static ls_status find_shards(ls_image_list *l, const char *path)
{
	const char *slash = strrchr(path, '/');
	struct dirent *e;

	if (!ls_path_is_directory(path))
		return add_shard(l, slash ? slash + 1 : path);
	DIR *stream = opendir(path);
	if (!stream)
		return ls_fail_errno(LS_EIO, "cannot read the folder %s", path);
	ls_status status = ls_image_list_stamp(l, dirfd(stream), "");
	while (status == LS_OK && (e = readdir(stream)))
		if (is_tar_name(e->d_name))
			status = add_shard(l, e->d_name);
	closedir(stream);
	if (status == LS_OK && l->shards > 0)
		qsort(l->shard, l->shards, sizeof(*l->shard), compare_names);
	return status;
}

static int is_test_shard(const char *name)
{
	return strstr(name, "test") || strstr(name, "val");
}

/* Keep the shards of a split; where their names do not say, all. */
static void keep_shards(ls_image_list *l, ls_split split)
{
	size_t trains = 0, tests = 0, kept = 0;

	for (size_t i = 0; i < l->shards; i++) {
		trains += strstr(l->shard[i], "train") != NULL;
		tests += !strstr(l->shard[i], "train") && is_test_shard(l->shard[i]);
	}
	l->is_split = trains == 0 || tests == 0;
	if (trains == 0)
		return;
	for (size_t i = 0; i < l->shards; i++) {
		int is_train = strstr(l->shard[i], "train") != NULL, is_test = !is_train && is_test_shard(l->shard[i]);
		if (l->is_split || split == LS_SPLIT_TRAIN ? is_train : is_test)
			l->shard[kept++] = l->shard[i];
	}
	l->shards = kept;
}

/* ---- labels ------------------------------------------------------------------------------------------------------ */

/* What is read of the shards before labels are numbers. */
typedef struct reading {
	ls_image_list *list;
	size_t entry_room, label_room;
	const char **label; /* (entries) as texts; equal ones may be different pointers */
	const char *last;   /* the label before, which often is the next one, too */
	/* the sample that is being put together */
	char key[1024];
	ls_image_entry image;
	int has_image, has_label, is_twice;
	int is_bad; /* and named */
	char text[LABEL_BYTES_MAX + 1];
} reading;

/* The text without white space around it. */
static ls_status take_cls(reading *r, const ls_tar_walk *w, const ls_tar_member *m)
{
	const char *at = (const char *)w->data + m->offset, *end = at + m->bytes;

	while (at < end && isspace((unsigned char)*at))
		at++;
	while (end > at && isspace((unsigned char)end[-1]))
		end--;
	if (at == end || end - at > LABEL_BYTES_MAX || memchr(at, 0, (size_t)(end - at)))
		return ls_fail(LS_EFORMAT, "%s/%s is not a label: a number or name of 1 to %d bytes", w->path, m->name,
			       LABEL_BYTES_MAX);
	snprintf(r->text, sizeof(r->text), "%.*s", (int)(end - at), at);
	return LS_OK;
}

static ls_status take_json(reading *r, const ls_tar_walk *w, const ls_tar_member *m)
{
	static const char *const names[] = { "label", "cls", "class" };
	json_error_t error;
	json_t *object = m->bytes <= JSON_BYTES_MAX
				 ? json_loadb((const char *)w->data + m->offset, (size_t)m->bytes, 0, &error)
				 : NULL;
	json_t *label = NULL;
	int taken = 0;

	for (size_t i = 0; !label && i < LS_COUNT(names); i++)
		label = json_object_get(object, names[i]);
	if (json_is_integer(label))
		taken = snprintf(r->text, sizeof(r->text), "%lld", (long long)json_integer_value(label));
	else if (json_is_string(label))
		taken = snprintf(r->text, sizeof(r->text), "%s", json_string_value(label));
	json_decref(object);
	if (taken < 1 || taken > LABEL_BYTES_MAX)
		return ls_fail(LS_EFORMAT, "%s/%s has no \"label\" that is a whole number or a name", w->path, m->name);
	return LS_OK;
}

/* ---- samples ----------------------------------------------------------------------------------------------------- */

/* The sample is wrong, as the last error says: it is named once. */
static ls_status spoil(reading *r)
{
	int is_named = r->is_bad;

	r->is_bad = 1;
	return is_named ? LS_OK : ls_image_list_add_bad(r->list);
}

/* Of what was put together: a sample, something that is wrong, or nothing that matters. */
static ls_status end_sample(reading *r, const ls_tar_walk *w)
{
	ls_image_list *l = r->list;
	const char *wrong = r->is_twice                     ? "has two images or two labels"
			    : r->has_image && !r->has_label ? "has an image but no label (.cls or .json)"
			    : r->has_label && !r->has_image ? "has a label but no image (.png, .jpg)"
							    : NULL;
	int is_sample = r->has_image && !wrong && !r->is_bad;

	if (wrong && ls_fail(LS_EFORMAT, "%s/%s %s", w->path, r->key, wrong))
		LS_TRY(spoil(r));
	r->has_image = r->has_label = r->is_twice = r->is_bad = 0;
	if (!is_sample)
		return LS_OK;
	if (!r->last || strcmp(r->last, r->text) != 0)
		r->last = ls_arena_copy(&l->arena, r->text);
	if (!r->last)
		return ls_fail(LS_EMEMORY, "no memory for the labels of %zu images", l->count);
	LS_TRY(ls_array_grow(&r->label, &r->label_room, l->count + 1, sizeof(*r->label)));
	r->label[l->count] = r->last;
	return ls_image_list_add(l, &r->entry_room, &r->image);
}

/* "a/b.seg.png" has the key "a/b" and the ending "seg.png". */
static const char *ending_of(const char *name, size_t *key_bytes)
{
	const char *slash = strrchr(name, '/'), *dot = strchr(slash ? slash + 1 : name, '.');

	*key_bytes = dot ? (size_t)(dot - name) : strlen(name);
	return dot ? dot + 1 : "";
}

static int leads_out(const char *name)
{
	for (const char *at = name; at; at = strchr(at, '/') ? strchr(at, '/') + 1 : NULL)
		if (at[0] == '.' && at[1] == '.' && (at[2] == '/' || at[2] == '\0'))
			return 1;
	return name[0] == '/';
}

static ls_status take_image(reading *r, const ls_tar_member *m, uint32_t shard, int64_t modified_ns)
{
	const char *path = ls_arena_format(&r->list->arena, "%s/%s", r->list->shard[shard], m->name);

	if (!path)
		return ls_fail(LS_EMEMORY, "no memory for the names of %zu images", r->list->count);
	r->is_twice |= r->has_image;
	r->has_image = 1;
	r->image = (ls_image_entry){ .path = path,
				     .offset = m->offset,
				     .bytes = (int64_t)m->bytes,
				     .modified_ns = modified_ns,
				     .shard = shard };
	return LS_OK;
}

static ls_status take_label(reading *r, const ls_tar_walk *w, const ls_tar_member *m, int is_json)
{
	r->is_twice |= r->has_label;
	r->has_label = 1;
	return (is_json ? take_json(r, w, m) : take_cls(r, w, m)) == LS_OK ? LS_OK : spoil(r);
}

static ls_status take_member(reading *r, const ls_tar_walk *w, const ls_tar_member *m, uint32_t shard,
			     int64_t modified_ns)
{
	size_t key_bytes;
	const char *ending = ending_of(m->name, &key_bytes);
	int is_image = !strcasecmp(ending, "png") || !strcasecmp(ending, "jpg") || !strcasecmp(ending, "jpeg");
	int is_cls = !strcasecmp(ending, "cls"), is_json = !strcasecmp(ending, "json");

	if (strncmp(r->key, m->name, key_bytes) != 0 || r->key[key_bytes] != '\0') {
		LS_TRY(end_sample(r, w));
		snprintf(r->key, sizeof(r->key), "%.*s", (int)key_bytes, m->name);
	}
	if (!is_image && !is_cls && !is_json)
		return LS_OK;
	if (leads_out(m->name) || !m->is_file) {
		ls_fail(LS_EFORMAT, "%s: member '%s' %s: it is refused", w->path, m->name,
			m->is_file ? "has a name that leads out of the archive"
				   : "is not a regular file but a link or device");
		return spoil(r);
	}
	if (is_image)
		return take_image(r, m, shard, modified_ns);
	return r->has_label && is_json ? LS_OK /* .cls says enough */ : take_label(r, w, m, is_json);
}

/* ---- names that come twice --------------------------------------------------------------------------------------- */

/* A sample of a shard by its key; `place` is in the list. */
typedef struct keyed {
	const char *path;
	size_t key_bytes, place;
} keyed;

static int compare_keys(const void *a, const void *b)
{
	const keyed *x = a, *y = b;
	size_t shorter = x->key_bytes < y->key_bytes ? x->key_bytes : y->key_bytes;
	int order = memcmp(x->path, y->path, shorter);

	if (order == 0 && x->key_bytes != y->key_bytes)
		return x->key_bytes < y->key_bytes ? -1 : 1;
	return order != 0 ? order : (x->place > y->place) - (x->place < y->place);
}

static int is_same_key(const keyed *x, const keyed *y)
{
	return x->key_bytes == y->key_bytes && memcmp(x->path, y->path, x->key_bytes) == 0;
}

/* Members of one key that do not follow each other look like two samples; the second is wrong. */
static ls_status mark_twins(reading *r, const ls_tar_walk *w, const keyed *key, size_t count)
{
	ls_image_list *l = r->list;

	for (size_t i = 1; i < count; i++) {
		ls_image_entry *e = &l->entry[key[i].place];
		if (!is_same_key(&key[i - 1], &key[i]))
			continue;
		const char *name = strchr(e->path, '/') + 1;
		ls_fail(LS_EFORMAT,
			"%s: member '%s' is of a sample that is there already: the members of a sample follow each "
			"other, and each name comes once",
			w->path, name);
		LS_TRY(ls_image_list_add_bad(l));
		e->path = NULL;
	}
	return LS_OK;
}

static void drop_marked(reading *r, size_t first)
{
	ls_image_list *l = r->list;
	size_t kept = first;

	for (size_t i = first; i < l->count; i++) {
		if (!l->entry[i].path)
			continue;
		l->entry[kept] = l->entry[i];
		r->label[kept++] = r->label[i];
	}
	l->count = kept;
}

/* Of the samples from `first` on, which are those of a shard. */
static ls_status drop_twins(reading *r, const ls_tar_walk *w, size_t first)
{
	ls_image_list *l = r->list;
	size_t count = l->count - first;
	keyed *key = malloc((count + 1) * sizeof(*key));

	if (!key)
		return ls_fail(LS_EMEMORY, "no memory for the names of %zu images", count);
	for (size_t i = 0; i < count; i++) {
		key[i] = (keyed){ .path = l->entry[first + i].path, .place = first + i };
		ending_of(key[i].path, &key[i].key_bytes);
	}
	qsort(key, count, sizeof(*key), compare_keys);
	ls_status status = mark_twins(r, w, key, count);
	if (status == LS_OK)
		drop_marked(r, first);
	free(key);
	return status;
}

static ls_status read_members(reading *r, ls_tar_walk *w, uint32_t shard, int64_t modified_ns)
{
	ls_tar_member m;
	size_t first = r->list->count;
	int more = 1;

	r->key[0] = '\0';
	for (;;) {
		LS_TRY(ls_tar_walk_next(w, &m, &more));
		if (!more)
			break;
		LS_TRY(take_member(r, w, &m, shard, modified_ns));
	}
	LS_TRY(end_sample(r, w));
	return drop_twins(r, w, first);
}

static ls_status read_shard(reading *r, uint32_t shard)
{
	ls_image_list *l = r->list;
	char path[PATH_MAX];
	ls_file_map map;

	LS_TRY(ls_path_join(path, sizeof(path), l->folder, l->shard[shard]));
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return ls_fail_errno(LS_EIO, "cannot read %s", path);
	ls_status status = ls_image_list_stamp(l, fd, l->shard[shard]);
	close(fd);
	LS_TRY(status);
	int64_t modified_ns = l->stamp[l->stamps - 1].modified_ns;
	LS_TRY(ls_file_map_open(&map, path));
	ls_tar_walk w = { .data = map.data, .bytes = map.bytes, .path = path };
	return ls_file_map_end(&map, read_members(r, &w, shard, modified_ns));
}

/* ---- classes ----------------------------------------------------------------------------------------------------- */

static int is_number(const char *text)
{
	size_t digits = strspn(text, "0123456789");
	return digits > 0 && digits <= 9 && !text[digits];
}

/* All labels are numbers: they are the classes. */
static ls_status number_classes(const reading *r, int *are_numbers)
{
	ls_image_list *l = r->list;
	long largest = 0;

	*are_numbers = 1;
	for (size_t i = 0; *are_numbers && i < l->count; i++)
		*are_numbers = (i > 0 && r->label[i] == r->label[i - 1]) || is_number(r->label[i]);
	for (size_t i = 0; *are_numbers && i < l->count; i++) {
		long label = strtol(r->label[i], NULL, 10);
		if (label >= CLASSES_MAX)
			return ls_fail(LS_EFORMAT, "%s/%s has label %ld; at most %d classes are supported", l->folder,
				       l->entry[i].path, label, CLASSES_MAX);
		l->entry[i].label = (int32_t)label;
		largest = label > largest ? label : largest;
	}
	l->classes = *are_numbers ? (size_t)largest + 1 : 0;
	return LS_OK;
}

/* The different labels in byte order. */
static ls_status name_classes(const reading *r)
{
	ls_image_list *l = r->list;

	l->class_name = malloc((l->count + 1) * sizeof(*l->class_name));
	if (!l->class_name)
		return ls_fail(LS_EMEMORY, "no memory for the names of classes");
	memcpy(l->class_name, r->label, l->count * sizeof(*l->class_name));
	qsort(l->class_name, l->count, sizeof(*l->class_name), compare_names);
	for (size_t i = 0; i < l->count; i++)
		if (l->classes == 0 || strcmp(l->class_name[l->classes - 1], l->class_name[i]) != 0)
			l->class_name[l->classes++] = l->class_name[i];
	if (l->classes > CLASSES_MAX)
		return ls_fail(LS_EFORMAT, "%s has %zu classes; at most %d are supported", l->folder, l->classes,
			       CLASSES_MAX);
	return LS_OK;
}

/* The labels of samples by the classes of the list. */
static ls_status look_up(const reading *r)
{
	ls_image_list *l = r->list;

	for (size_t i = 0; i < l->count; i++) {
		const char **found =
			bsearch(&r->label[i], l->class_name, l->classes, sizeof(*l->class_name), compare_names);
		if (!found)
			return ls_fail(LS_EMISMATCH, "%s/%s has the label '%s', of which there are no training images",
				       l->folder, l->entry[i].path, r->label[i]);
		l->entry[i].label = (int32_t)(found - l->class_name);
	}
	return LS_OK;
}

static ls_status find_classes(const reading *r)
{
	int are_numbers = 1;

	LS_TRY(number_classes(r, &are_numbers));
	if (are_numbers)
		return LS_OK;
	LS_TRY(name_classes(r));
	return look_up(r);
}

/* Test samples have the classes of the training samples. */
static ls_status copy_classes(ls_image_list *l, const ls_image_list *train)
{
	l->classes = train->classes;
	if (!train->class_name)
		return LS_OK;
	l->class_name = calloc(train->classes, sizeof(*l->class_name));
	if (!l->class_name)
		return ls_fail(LS_EMEMORY, "no memory for the names of %zu classes", train->classes);
	for (size_t i = 0; i < train->classes; i++) {
		l->class_name[i] = ls_arena_copy(&l->arena, train->class_name[i]);
		if (!l->class_name[i])
			return ls_fail(LS_EMEMORY, "no memory for the names of %zu classes", train->classes);
	}
	for (size_t i = 0; i < train->stamps; i++) { /* the names depend on the training shards, too */
		LS_TRY(ls_array_grow(&l->stamp, &l->stamp_room, l->stamps + 1, sizeof(*l->stamp)));
		l->stamp[l->stamps] = train->stamp[i];
		l->stamp[l->stamps].path = ls_arena_copy(&l->arena, train->stamp[i].path);
		if (!l->stamp[l->stamps++].path)
			return ls_fail(LS_EMEMORY, "no memory for the names of shards");
	}
	return LS_OK;
}

static ls_status follow_training(const reading *r, const char *path)
{
	ls_image_list *l = r->list;
	ls_image_list train = { .folder = l->folder };
	int are_numbers = 1;

	ls_status status = ls_shards_list(&train, path, LS_SPLIT_TRAIN);
	if (status == LS_OK)
		status = copy_classes(l, &train);
	ls_image_list_release(&train);
	LS_TRY(status);
	if (l->class_name)
		return look_up(r);
	size_t classes = l->classes;
	LS_TRY(number_classes(r, &are_numbers));
	for (size_t i = 0; i < l->count; i++)
		if (!are_numbers ? !is_number(r->label[i]) : (size_t)l->entry[i].label >= classes)
			return ls_fail(LS_EMISMATCH, "%s/%s has the label '%s', of which there are no training images",
				       l->folder, l->entry[i].path, r->label[i]);
	l->classes = classes;
	return LS_OK;
}

/* ---- the list ---------------------------------------------------------------------------------------------------- */

static ls_status read_shards(reading *r, const char *path, ls_split split)
{
	ls_image_list *l = r->list;

	for (size_t i = 0; i < l->shards; i++)
		LS_TRY(read_shard(r, (uint32_t)i));
	if (l->count == 0)
		return LS_OK; /* the caller says so */
	if (split == LS_SPLIT_TEST && !l->is_split)
		return follow_training(r, path);
	LS_TRY(find_classes(r));
	return l->is_split ? ls_image_list_split(l, split) : LS_OK;
}

ls_status ls_shards_list(ls_image_list *l, const char *path, ls_split split)
{
	reading r = { .list = l };

	l->below = "";
	l->root = l->folder;
	LS_TRY(find_shards(l, path));
	keep_shards(l, split);
	if (l->shards == 0)
		return ls_fail(LS_ENOTFOUND, "%s has no %s shards", path, split == LS_SPLIT_TEST ? "test" : "training");
	ls_status status = read_shards(&r, path, split);
	free(r.label);
	return status;
}
