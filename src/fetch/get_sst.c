/*
 * get_sst.c - the sentiment treebank: three files from a directory or out of the published ZIP archive.
 */

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "base/log.h"
#include "base/status.h"
#include "data/dataset.h"
#include "data/readers/sst.h"
#include "data/readers/zip.h"
#include "fetch/download.h"
#include "fetch/get.h"

#define ARCHIVE_MAX (64u << 20)
#define MEMBER_MAX (64u << 20)
#define VOCABULARY 16000

/* Check that the text is that file of the treebank. */
static ls_status check(const ls_sst_file *file, const char *text, size_t bytes, const char *source)
{
	uint64_t count;
	LS_TRY(ls_sst_check(text, bytes, source, NULL, &count));
	if (count != file->sentences)
		return ls_fail(LS_EMISMATCH, "%s holds %llu trees, %s of SST-5 has %llu", source,
			       (unsigned long long)count, file->name, (unsigned long long)file->sentences);
	return LS_OK;
}

static ls_status install(const ls_sst_file *file, const char *dir, const char *text, size_t bytes, const char *source)
{
	char path[4096];
	LS_TRY(check(file, text, bytes, source));
	LS_TRY(ls_path_join(path, sizeof(path), dir, file->name));
	return ls_file_put(path, text, bytes);
}

static ls_status install_file(const ls_sst_file *file, const char *dir, const char *from)
{
	char source[4096];
	ls_file_map map;
	LS_TRY(ls_path_join(source, sizeof(source), from, file->name));
	LS_TRY(ls_file_map_open(&map, source));
	ls_status status = install(file, dir, (const char *)map.data, map.bytes, source);
	return ls_file_map_end(&map, status);
}

/* "trees/train.txt" is train.txt; what a Mac adds beside it is not. */
static const ls_sst_file *file_of(const ls_get_sst_plan *plan, const ls_zip_member *member)
{
	const char *slash = strrchr(member->name, '/');
	if (strncmp(member->name, "__MACOSX", 8) == 0)
		return NULL;
	for (int i = 0; i < LS_SST_FILES; i++)
		if (strcmp(slash ? slash + 1 : member->name, plan->files[i].name) == 0)
			return &plan->files[i];
	return NULL;
}

static ls_status install_member(const ls_sst_file *file, const char *dir, const ls_zip *zip,
				const ls_zip_member *member)
{
	char source[512];
	snprintf(source, sizeof(source), "%.255s/%.200s", zip->name, member->name);
	if (member->bytes > MEMBER_MAX)
		return ls_fail(LS_EFORMAT, "%s has %zu bytes, expected at most %u", source, member->bytes, MEMBER_MAX);
	uint8_t *text = malloc(member->bytes + 1);
	if (!text)
		return ls_fail(LS_EMEMORY, "no memory for %s", source);
	ls_status status = ls_zip_read(zip, member, text);
	if (!status)
		status = install(file, dir, (const char *)text, member->bytes, source);
	free(text);
	return status;
}

static ls_status unpack(const ls_get_sst_plan *plan, const char *dir, ls_zip *zip)
{
	int found[LS_SST_FILES] = { 0 }, more = 1;
	while (more) {
		ls_zip_member member;
		LS_TRY(ls_zip_next(zip, &member, &more));
		const ls_sst_file *file = more ? file_of(plan, &member) : NULL;
		if (!file)
			continue;
		LS_TRY(install_member(file, dir, zip, &member));
		found[file - plan->files] = 1;
	}
	for (int i = 0; i < LS_SST_FILES; i++)
		if (!found[i])
			return ls_fail(LS_EFORMAT, "%s does not hold %s", zip->name, plan->files[i].name);
	return LS_OK;
}

static ls_status from_archive(const ls_get_sst_plan *plan, const char *dir, const char *archive)
{
	ls_file_map map;
	ls_zip zip;
	LS_TRY(ls_file_map_open(&map, archive));
	ls_status status = ls_zip_open(&zip, map.data, map.bytes, archive);
	if (!status)
		status = unpack(plan, dir, &zip);
	return ls_file_map_end(&map, status);
}

/* A directory with the files, or the archive. */
static ls_status from_path(const ls_get_sst_plan *plan, const char *dir, const char *from)
{
	if (ls_path_exists(from) && !ls_path_is_directory(from))
		return from_archive(plan, dir, from);
	if (!ls_path_is_directory(from))
		return ls_fail(LS_ENOTFOUND, "there is no directory or archive %s", from);
	for (int i = 0; i < LS_SST_FILES; i++)
		LS_TRY(install_file(&plan->files[i], dir, from));
	return LS_OK;
}

static ls_status download_once(const ls_get_sst_plan *plan, const char *dir, const char *url, const char *part,
			       int quiet)
{
	ls_download_options fetch = { .url = url, .part = part, .title = "sst5", .limit = ARCHIVE_MAX, .quiet = quiet };
	LS_TRY(ls_download(&fetch));
	ls_status status = from_archive(plan, dir, part);
	if (status != LS_EIO)
		unlink(part);
	return status;
}

/* A continued part may have started from another file: if the whole is wrong, download it once more from the start. */
static ls_status download(const ls_get_sst_plan *plan, const char *dir, const char *url, int quiet)
{
	char part[4096];
	LS_TRY(ls_path_join(part, sizeof(part), dir, "trees.zip.part"));
	int continued = ls_path_exists(part);
	ls_status status = download_once(plan, dir, url, part, quiet);
	if (continued && (status == LS_EFORMAT || status == LS_EMISMATCH))
		status = download_once(plan, dir, url, part, quiet);
	return status;
}

static ls_status from_network(const ls_get_sst_plan *plan, const char *dir, int quiet)
{
	char why[1024] = "no address is known";
	for (size_t i = 0; plan->archives[i]; i++) {
		if (download(plan, dir, plan->archives[i], quiet) == LS_OK)
			return LS_OK;
		snprintf(why, sizeof(why), "%s", ls_last_error());
	}
	return ls_fail(LS_EIO,
		       "could not get sst5: %s\nput train.txt, dev.txt and test.txt, or the archive "
		       "trainDevTestTrees_PTB.zip, on this machine and give their directory with options.from, or use "
		       "`options.data babble`",
		       why);
}

static int all_there(const ls_get_sst_plan *plan, const char *dir)
{
	int right = 1;
	for (int i = 0; i < LS_SST_FILES && right; i++) {
		char path[4096];
		ls_file_map map;
		right = ls_path_join(path, sizeof(path), dir, plan->files[i].name) == LS_OK && ls_path_exists(path) &&
			ls_file_map_open(&map, path) == LS_OK;
		if (right) {
			right = check(&plan->files[i], (const char *)map.data, map.bytes, path) == LS_OK;
			ls_file_map_close(&map);
		}
	}
	return right;
}

ls_status ls_get_sst(const ls_get_sst_plan *plan, const ls_data_get_options *options)
{
	char dir[4096];
	LS_TRY(ls_data_directory(dir, sizeof(dir), options->dir, "sst5"));
	LS_TRY(ls_path_make(dir));
	int there = all_there(plan, dir);
	if (!there)
		LS_TRY(options->from ? from_path(plan, dir, options->from) : from_network(plan, dir, options->quiet));
	LS_TRY(ls_get_learn(dir, VOCABULARY, options->quiet));
	if (!options->quiet)
		ls_log_line("sst5 is %sin %s (%d files of trees, vocab.txt)", there ? "already " : "", dir,
			    LS_SST_FILES);
	return LS_OK;
}
