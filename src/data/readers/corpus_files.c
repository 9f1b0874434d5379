/*
 * corpus_files.c - which files a corpus consists of.
 */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/names.h"
#include "base/status.h"
#include "data/readers/corpus.h"

#define DEPTH_MAX 32

static int64_t nanoseconds(struct timespec time)
{
	return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static ls_status add_file(ls_corpus_files *files, const char *path, const struct stat *facts)
{
	LS_TRY(ls_array_grow(&files->file, &files->room, files->count + 1, sizeof(*files->file)));
	char *copy = strdup(path);
	if (!copy)
		return ls_fail(LS_EMEMORY, "no memory for the list of files in the corpus");
	files->file[files->count++] = (ls_corpus_file){ .path = copy,
							.bytes = (uint64_t)facts->st_size,
							.changed = nanoseconds(facts->st_mtim),
							.entry_changed = nanoseconds(facts->st_ctim),
							.inode = (uint64_t)facts->st_ino };
	files->bytes += (uint64_t)facts->st_size;
	return LS_OK;
}

static int is_text_name(const char *name)
{
	return name[0] != '.' && strlen(name) > 4 && ls_text_ends_with(name, ".txt") && strcmp(name, "vocab.txt") != 0;
}

/* The merges.txt of a vocabulary is no text. */
static int is_merges(const char *dir, const char *name)
{
	char beside[4096];
	return strcmp(name, LS_BPE_MERGES) == 0 && ls_path_join(beside, sizeof(beside), dir, LS_BPE_VOCAB) == LS_OK &&
	       ls_path_exists(beside);
}

static ls_status walk(ls_corpus_files *files, const char *dir, int depth);

static ls_status visit(ls_corpus_files *files, const char *dir, const char *name, int depth)
{
	char path[4096];
	struct stat facts;
	if (name[0] == '.')
		return LS_OK;
	LS_TRY(ls_path_join(path, sizeof(path), dir, name));
	if (stat(path, &facts) != 0)
		return is_text_name(name) ? ls_fail_errno(LS_EIO, "cannot read %s", path) : LS_OK;
	if (S_ISDIR(facts.st_mode))
		return walk(files, path, depth + 1);
	int is_text = S_ISREG(facts.st_mode) && is_text_name(name) && !is_merges(dir, name);
	return is_text ? add_file(files, path, &facts) : LS_OK;
}

static ls_status walk(ls_corpus_files *files, const char *dir, int depth)
{
	if (depth > DEPTH_MAX)
		return ls_fail(LS_EINVALID, "%.200s...: folders lie more than %d deep; does one contain itself?", dir,
			       DEPTH_MAX);
	DIR *stream = opendir(dir);
	if (!stream)
		return ls_fail_errno(LS_EIO, "cannot read the directory %s", dir);
	ls_status status = LS_OK;
	struct dirent *entry;
	while (!status && (entry = readdir(stream)))
		status = visit(files, dir, entry->d_name, depth);
	closedir(stream);
	return status;
}

static int by_path(const void *a, const void *b)
{
	return strcmp(((const ls_corpus_file *)a)->path, ((const ls_corpus_file *)b)->path);
}

ls_status ls_corpus_find(ls_corpus_files *files, const char *path)
{
	struct stat facts;
	*files = (ls_corpus_files){ 0 };
	if (stat(path, &facts) != 0)
		return ls_fail_errno(LS_ENOTFOUND, "cannot read %s", path);
	ls_status status = S_ISDIR(facts.st_mode) ? walk(files, path, 0) : add_file(files, path, &facts);
	if (!status && files->count == 0)
		status = ls_fail(LS_ENOTFOUND, "there is no text in %s: no file whose name ends with .txt", path);
	if (status) {
		ls_corpus_files_free(files);
		return status;
	}
	qsort(files->file, files->count, sizeof(*files->file), by_path);
	return LS_OK;
}

void ls_corpus_files_free(ls_corpus_files *files)
{
	for (size_t i = 0; i < files->count; i++)
		free(files->file[i].path);
	free(files->file);
	*files = (ls_corpus_files){ 0 };
}

int ls_corpus_is_text(const char *path)
{
	ls_corpus_files files;
	ls_file_map map;
	if (ls_path_is_directory(path)) {
		int none = ls_corpus_find(&files, path) == LS_ENOTFOUND;
		ls_corpus_files_free(&files);
		return !none; /* other problems are reported when it is opened */
	}
	if (ls_file_map_open(&map, path) != LS_OK)
		return 0;
	int binary = map.bytes >= 2 &&
		     ((map.data[0] == 0 && map.data[1] == 0) || (map.data[0] == 0x1f && map.data[1] == 0x8b));
	ls_file_map_close(&map);
	return !binary;
}

ls_status ls_corpus_home(char *out, size_t size, const char *path)
{
	if ((size_t)snprintf(out, size, "%s", path) >= size)
		return ls_fail(LS_EINVALID, "path is too long: %.100s...", path);
	if (ls_path_is_directory(path))
		return LS_OK;
	char *slash = strrchr(out, '/');
	if (slash)
		slash[slash == out] = 0; /* "/file" lies in "/" */
	else
		snprintf(out, size, ".");
	return LS_OK;
}

void ls_corpus_name(char *out, size_t size, const char *path)
{
	const char *slash = strrchr(path, '/');
	snprintf(out, size, "%s", slash && slash[1] ? slash + 1 : path);
}
