/*
 * unsupported.c - a file's format by its first bytes, else by the end of its name.
 *
 * Text has no magic number: an unknown file counts as text unless it has a zero byte near its beginning.
 */
#include "data/unsupported.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/files.h"
#include "base/status.h"
#include "data/readers/corpus.h"
#include "data/readers/table_rows.h"

typedef enum kind { TEXT, PICTURE, TABLE, COLUMNS, ARRAY, ARCHIVE, WEIGHTS, BINARY, KINDS } kind;

static const char *const names[KINDS] = { [TEXT] = "text",
					  [PICTURE] = "image",
					  [TABLE] = "table (CSV, TSV, JSONL)",
					  [COLUMNS] = "table (Parquet, Arrow, JSON)",
					  [ARRAY] = "array (NumPy, HDF5)",
					  [ARCHIVE] = "archive",
					  [WEIGHTS] = "weights",
					  [BINARY] = "binary" };

#define READ_TODAY                                                                                                     \
	"supported are: a folder per class with PNG or JPEG images, tar shards of such images with labels, tables "    \
	"(.csv, .tsv, .jsonl), a directory of IDX "                                                                    \
	"files named as MNIST's "                                                                                      \
	"(train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-...; man lockstep-data), NumPy arrays (.npz with "    \
	"x_train, y_train, x_test, y_test, or a directory of these as .npy), plain text to pretrain on (.txt, with a " \
	"vocab.txt), and the names of `lockstep data list`"

static int has_ending(const char *name, const char *ending)
{
	size_t length = strlen(name), own = strlen(ending);
	return length > own && !strcasecmp(name + length - own, ending);
}

static kind kind_of_name(const char *name)
{
	static const struct {
		const char *ending;
		kind kind;
	} endings[] = {
		{ ".png", PICTURE },  { ".jpg", PICTURE },         { ".jpeg", PICTURE },    { ".gif", PICTURE },
		{ ".bmp", PICTURE },  { ".webp", PICTURE },        { ".tif", PICTURE },     { ".tiff", PICTURE },
		{ ".ppm", PICTURE },  { ".pgm", PICTURE },         { ".csv", TABLE },       { ".tsv", TABLE },
		{ ".json", COLUMNS }, { ".jsonl", TABLE },         { ".parquet", COLUMNS }, { ".arrow", COLUMNS },
		{ ".npy", ARRAY },    { ".npz", ARRAY },           { ".h5", ARRAY },        { ".hdf5", ARRAY },
		{ ".mat", ARRAY },    { ".tfrecord", ARRAY },      { ".zip", ARCHIVE },     { ".tar", ARCHIVE },
		{ ".tgz", ARCHIVE },  { ".tar.gz", ARCHIVE },      { ".pt", WEIGHTS },      { ".pth", WEIGHTS },
		{ ".ckpt", WEIGHTS }, { ".safetensors", WEIGHTS }, { ".onnx", WEIGHTS },
	};
	for (size_t i = 0; i < LS_COUNT(endings); i++)
		if (has_ending(name, endings[i].ending))
			return endings[i].kind;
	return TEXT;
}

static kind kind_of_bytes(const uint8_t *data, size_t bytes)
{
	static const struct {
		const char *magic;
		size_t bytes;
		kind kind;
	} starts[] = { { "\x89PNG", 4, PICTURE },   { "\xff\xd8\xff", 3, PICTURE }, { "GIF8", 4, PICTURE },
		       { "PAR1", 4, COLUMNS },      { "\x93NUMPY", 6, ARRAY },      { "\x89HDF", 4, ARRAY },
		       { "PK\x03\x04", 4, ARCHIVE } };
	for (size_t i = 0; i < LS_COUNT(starts); i++)
		if (bytes >= starts[i].bytes && !memcmp(data, starts[i].magic, starts[i].bytes))
			return starts[i].kind;
	return memchr(data, 0, bytes < 4096 ? bytes : 4096) ? BINARY : TEXT;
}

/* How often `separator` is in the line at `at`, which moves past it; 0: the line has no end. */
static size_t count_in_line(const uint8_t **at, const uint8_t *end, uint8_t separator)
{
	const uint8_t *line_end = memchr(*at, '\n', (size_t)(end - *at));
	size_t count = 0;

	for (const uint8_t *p = *at; line_end && p < line_end; p++)
		count += *p == separator;
	*at = line_end ? line_end + 1 : end;
	return count;
}

/* Verse and logs have a comma in every line, too, but a space after it. */
static int is_prose(const uint8_t *data, const uint8_t *end, uint8_t separator)
{
	const uint8_t *first = memchr(data, separator, (size_t)(end - data));
	return first && first + 1 < end && first[1] == ' ';
}

/* Columns of a text of whose first LINES_MOST lines all have as many separators; 0: it is no table. */
static size_t columns_of(const uint8_t *data, size_t bytes)
{
	static const uint8_t separators[] = { ',', '\t', ';' };
	enum { LINES_LEAST = 4, LINES_MOST = 20 };
	const uint8_t *end = data + bytes;

	for (size_t i = 0; i < LS_COUNT(separators); i++) {
		const uint8_t *at = data;
		size_t first = count_in_line(&at, end, separators[i]);
		int line = 1, is_table = first > 1 || (first == 1 && !is_prose(data, end, separators[i]));
		for (; is_table && line < LINES_MOST && memchr(at, '\n', (size_t)(end - at)); line++)
			is_table = count_in_line(&at, end, separators[i]) == first;
		if (is_table && line >= LINES_LEAST)
			return first + 1;
	}
	return 0;
}

/* A table that goes by another name, which would be read as text. */
static ls_status check_table(const char *path, const ls_file_map *map)
{
	size_t columns = map->bytes && !has_ending(path, ".txt") && !has_ending(path, ".md")
				 ? columns_of(map->data, map->bytes)
				 : 0;

	if (columns == 0)
		return LS_OK;
	return ls_fail(LS_EUNSUPPORTED,
		       "dataset '%s' looks like a table of %zu columns: rename it so that its name ends with .csv (or "
		       ".tsv); text has names that end with .txt",
		       path, columns);
}

/* The caller reports single IDX and gzip files, which must be named by their directory. The text reader reports a .txt
 * file with zero bytes, as a wrong encoding. */
static ls_status check_file(const char *path)
{
	ls_file_map map;
	LS_TRY(ls_file_map_open(&map, path));
	kind found = map.bytes ? kind_of_bytes(map.data, map.bytes) : TEXT, named = kind_of_name(path);
	ls_status as_table = found == TEXT && named == TEXT ? check_table(path, &map) : LS_OK;
	LS_TRY(ls_file_map_end(&map, as_table));
	if (found == TEXT || found == BINARY) /* the name says more than a zero byte */
		found = named != TEXT ? named : found;
	if (found == TEXT || (found == BINARY && (!ls_corpus_is_text(path) || has_ending(path, ".txt"))))
		return LS_OK;
	return ls_fail(LS_EUNSUPPORTED,
		       "dataset '%s' is a file of kind '%s', which is not supported as data; " READ_TODAY, path,
		       names[found]);
}

/* An image of a kind that folders of classes may have. */
static int is_readable(const char *name)
{
	return has_ending(name, ".png") || has_ending(name, ".jpg") || has_ending(name, ".jpeg");
}

/* Limits of the search through a directory. */
enum { DEPTH_MAX = 8, FILES_MAX = 200000 };

typedef struct census {
	uint64_t files, of[KINDS];
	char example[KINDS][64];
} census;

static void count(census *c, const char *dir, int depth)
{
	DIR *stream = opendir(dir);
	struct dirent *entry;
	while (stream && c->files < FILES_MAX && (entry = readdir(stream))) {
		char path[4096];
		struct stat facts;
		if (entry->d_name[0] == '.' || ls_path_join(path, sizeof(path), dir, entry->d_name) != LS_OK ||
		    stat(path, &facts) != 0)
			continue;
		if (S_ISDIR(facts.st_mode) && depth < DEPTH_MAX)
			count(c, path, depth + 1);
		if (!S_ISREG(facts.st_mode))
			continue;
		kind found = kind_of_name(entry->d_name);
		if (found == TEXT && !has_ending(entry->d_name, ".txt"))
			found = BINARY; /* unknown kind */
		if (!c->of[found]++)
			snprintf(c->example[found], sizeof(c->example[found]), "%.60s", entry->d_name);
		c->files++;
	}
	if (stream)
		closedir(stream);
}

/* CIFAR's archives, unpacked: they have texts beside what is not text. */
static ls_status check_cifar(const char *path)
{
	static const struct {
		const char *file, *name;
	} known[] = { { "data_batch_1.bin", "cifar10" }, { "train.bin", "cifar100" } };
	char file[4096];

	for (size_t i = 0; i < LS_COUNT(known); i++)
		if (ls_path_join(file, sizeof(file), path, known[i].file) == LS_OK && ls_path_exists(file))
			return ls_fail(
				LS_EUNSUPPORTED,
				"dataset '%s' has CIFAR's binary files: run `lockstep data get %s --from %s`, and "
				"then name the data %s",
				path, known[i].name, path, known[i].name);
	if (ls_path_join(file, sizeof(file), path, "data_batch_1") == LS_OK && ls_path_exists(file))
		return ls_fail(LS_EUNSUPPORTED,
			       "dataset '%s' has CIFAR's files for Python; take the binary version of the archive, and "
			       "`lockstep data get cifar10 --from ARCHIVE`",
			       path);
	return LS_OK;
}

static ls_status check_directory(const char *path)
{
	census c = { 0 };
	kind most = PICTURE;

	LS_TRY(check_cifar(path));
	count(&c, path, 0);
	for (kind k = PICTURE; k < BINARY; k++)
		most = c.of[k] > c.of[most] ? k : most;
	if (!c.of[most] || c.of[most] <= c.of[TEXT])
		return LS_OK;
	if (most == PICTURE && is_readable(c.example[PICTURE]))
		return ls_fail(
			LS_EUNSUPPORTED,
			"dataset '%s': found %llu image file%s (%s), but no folder per class: put the images of each "
			"class into a folder of its own, as %s/cat/1.png",
			path, (unsigned long long)c.of[most], c.of[most] == 1 ? "" : "s", c.example[most], path);
	if (most == TABLE && ls_table_rows_named(c.example[TABLE]))
		return ls_fail(
			LS_EUNSUPPORTED,
			"dataset '%s': found %llu %s file%s (%s), but no train.csv, train.tsv or train.jsonl: name "
			"the file itself, as %s/%s",
			path, (unsigned long long)c.of[most], names[most], c.of[most] == 1 ? "" : "s", c.example[most],
			path, c.example[most]);
	return ls_fail(LS_EUNSUPPORTED,
		       "dataset '%s': found %s%llu %s file%s (%s), which are not supported as data; " READ_TODAY, path,
		       c.files == FILES_MAX ? "more than " : "", (unsigned long long)c.of[most], names[most],
		       c.of[most] == 1 ? "" : "s", c.example[most]);
}

ls_status ls_data_check_format(const char *path)
{
	return ls_path_is_directory(path) ? check_directory(path) : check_file(path);
}
