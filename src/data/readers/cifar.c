/*
 * cifar.c - CIFAR-10 and CIFAR-100 in their binary form: records of one or two label bytes and 3 x 32 x 32 bytes, red,
 * green and blue. Of the two labels of CIFAR-100 the second, finer one counts.
 */
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/status.h"
#include "data/dataset.h"
#include "data/readers/cifar.h"

enum { SIDE = 32, VALUES = 3 * SIDE * SIDE };

static double mean_10[] = { 0.4914, 0.4822, 0.4465 }, deviation_10[] = { 0.2470, 0.2435, 0.2616 };
static double mean_100[] = { 0.5071, 0.4865, 0.4409 }, deviation_100[] = { 0.2673, 0.2564, 0.2762 };

const ls_cifar ls_cifar10 = {
	.name = "cifar10",
	.folder = "cifar-10-batches-bin",
	.train = { "data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin", "data_batch_5.bin" },
	.test = { "test_batch.bin" },
	.labels = 1,
	.classes = 10,
	.records = { 10000, 10000 },
	.normalisation = { 3, mean_10, deviation_10 },
};

const ls_cifar ls_cifar100 = {
	.name = "cifar100",
	.folder = "cifar-100-binary",
	.train = { "train.bin" },
	.test = { "test.bin" },
	.labels = 2,
	.classes = 100,
	.records = { 50000, 10000 },
	.normalisation = { 3, mean_100, deviation_100 },
};

typedef struct cifar {
	const ls_cifar *kind;
	ls_file_map map[LS_CIFAR_FILES];
	uint64_t end[LS_CIFAR_FILES]; /* of its records among all */
	int files;
} cifar;

size_t ls_cifar_record(const ls_cifar *kind)
{
	return (size_t)kind->labels + VALUES;
}

static void cifar_free(void *self)
{
	cifar *c = self;
	for (int i = 0; i < c->files; i++)
		ls_file_map_close(&c->map[i]);
	free(c);
}

static ls_status cifar_check(void *self)
{
	const cifar *c = self;
	for (int i = 0; i < c->files; i++)
		LS_TRY(ls_file_map_check(&c->map[i]));
	return LS_OK;
}

static ls_status cifar_read(void *self, uint64_t index, uint8_t *image, int32_t *label)
{
	const cifar *c = self;
	int i = 0;

	while (index >= c->end[i])
		i++;
	uint64_t first = i > 0 ? c->end[i - 1] : 0;
	const uint8_t *record = c->map[i].data + (index - first) * ls_cifar_record(c->kind);
	*label = record[c->kind->labels - 1];
	memcpy(image, record + c->kind->labels, VALUES);
	return ls_file_map_lost(&c->map[i]) ? cifar_check(self) : LS_OK;
}

/* dir/NAME, or as the archive has it, dir/cifar-10-batches-bin/NAME. */
static ls_status find_file(const ls_cifar *kind, const char *dir, const char *name, char *path, size_t size)
{
	char inner[4096];

	LS_TRY(ls_path_join(path, size, dir, name));
	if (ls_path_exists(path))
		return LS_OK;
	LS_TRY(ls_path_join(inner, sizeof(inner), dir, kind->folder));
	LS_TRY(ls_path_join(path, size, inner, name));
	if (ls_path_exists(path))
		return LS_OK;
	return ls_fail(LS_ENOTFOUND, "there is no %s in %s", name, dir);
}

ls_status ls_cifar_check_file(const ls_cifar *kind, const uint8_t *data, size_t bytes, const char *path)
{
	size_t record = ls_cifar_record(kind);

	if (bytes == 0 || bytes % record != 0)
		return ls_fail(LS_EFORMAT, "%s has %zu bytes, which is not a multiple of the record size, %zu bytes",
			       path, bytes, record);
	for (size_t i = 0; i < bytes / record; i++) {
		int label = data[i * record + (size_t)kind->labels - 1];
		if (label >= kind->classes)
			return ls_fail(LS_EFORMAT, "%s: record %zu has label %d, expected 0 to %d", path, i, label,
				       kind->classes - 1);
	}
	return LS_OK;
}

static ls_status open_files(cifar *c, const char *dir, const char *const *names)
{
	for (; c->files < LS_CIFAR_FILES && names[c->files]; c->files++) {
		char path[4096];
		ls_file_map *map = &c->map[c->files];
		uint64_t before = c->files > 0 ? c->end[c->files - 1] : 0;
		LS_TRY(find_file(c->kind, dir, names[c->files], path, sizeof(path)));
		LS_TRY(ls_file_map_open(map, path));
		ls_status status = ls_cifar_check_file(c->kind, map->data, map->bytes, path);
		if (status != LS_OK) {
			ls_file_map_close(map);
			return status;
		}
		c->end[c->files] = before + map->bytes / ls_cifar_record(c->kind);
	}
	return LS_OK;
}

static ls_status make(cifar *c, ls_dataset **out, const ls_dataset_options *o)
{
	char dir[4096];
	ls_dataset_info info = { .channels = 3, .height = SIDE, .width = SIDE, .classes = c->kind->classes };

	LS_TRY(ls_data_directory(dir, sizeof(dir), o->dir, c->kind->name));
	ls_status status = open_files(c, dir, o->split == LS_SPLIT_TRAIN ? c->kind->train : c->kind->test);
	if (status == LS_ENOTFOUND) {
		char why[4200];
		snprintf(why, sizeof(why), "%s", ls_last_error());
		return ls_fail(LS_ENOTFOUND, "%s is not on this machine: %s; run `lockstep data get %s`", c->kind->name,
			       why, c->kind->name);
	}
	LS_TRY(status);
	uint64_t all = c->end[c->files - 1];
	info.samples = o->samples > 0 && o->samples < all ? o->samples : all;
	snprintf(info.name, sizeof(info.name), "%s", c->kind->name);
	LS_TRY(ls_dataset_new_bytes(out, &info, &c->kind->normalisation, cifar_read, cifar_free, c));
	(*out)->check = cifar_check;
	return LS_OK;
}

static ls_status open_kind(ls_dataset **out, const ls_dataset_options *o, const ls_cifar *kind)
{
	cifar *c = calloc(1, sizeof(*c));

	if (!c)
		return ls_fail(LS_EMEMORY, "no memory for dataset '%s'", kind->name);
	c->kind = kind;
	ls_status status = make(c, out, o);
	if (status != LS_OK)
		cifar_free(c);
	return status;
}

ls_status ls_cifar10_open(ls_dataset **out, const ls_dataset_options *options)
{
	return open_kind(out, options, &ls_cifar10);
}

ls_status ls_cifar100_open(ls_dataset **out, const ls_dataset_options *options)
{
	return open_kind(out, options, &ls_cifar100);
}
