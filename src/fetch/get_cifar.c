/*
 * get_cifar.c - CIFAR-10 and CIFAR-100: files from a directory, or out of the published archive, which is
 * also downloaded.
 *
 * The archive has a published MD5; single files have none: they must have the published number of
 * records, with labels that there are.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "base/log.h"
#include "base/status.h"
#include "data/dataset.h"
#include "data/readers/cifar.h"
#include "fetch/download.h"
#include "fetch/get.h"
#include "fetch/md5.h"
#include "fetch/tar.h"

enum { FILES = LS_CIFAR_FILES + 1 };
#define ARCHIVE_MAX (400u << 20)

/* Name and size of file i, the test file last; NULL: there is none. */
static const char *file_at(const ls_cifar *kind, size_t i, uint64_t *bytes)
{
	size_t trains = 0;
	while (trains < LS_CIFAR_FILES && kind->train[trains])
		trains++;
	if (i > trains)
		return NULL;
	*bytes = kind->records[i == trains] * ls_cifar_record(kind);
	return i < trains ? kind->train[i] : kind->test[0];
}

static ls_status check(const ls_cifar *kind, const char *path, uint64_t bytes)
{
	ls_file_map map;

	LS_TRY(ls_file_map_open(&map, path));
	ls_status status = map.bytes == bytes ? ls_cifar_check_file(kind, map.data, map.bytes, path)
					      : ls_fail(LS_EMISMATCH, "%s has %zu bytes, expected %llu", path,
							map.bytes, (unsigned long long)bytes);
	return ls_file_map_end(&map, status);
}

static ls_status all_there(const ls_cifar *kind, const char *dir)
{
	uint64_t bytes;
	const char *name;

	for (size_t i = 0; (name = file_at(kind, i, &bytes)); i++) {
		char path[4096];
		LS_TRY(ls_path_join(path, sizeof(path), dir, name));
		LS_TRY(check(kind, path, bytes));
	}
	return LS_OK;
}

/* ---- from files -------------------------------------------------------------------------------------------------- */

static ls_status copy_file(const ls_cifar *kind, const char *from, const char *to, uint64_t bytes)
{
	ls_file_map map;

	LS_TRY(check(kind, from, bytes));
	LS_TRY(ls_file_map_open(&map, from));
	return ls_file_map_end(&map, ls_file_put(to, map.data, map.bytes));
}

static ls_status from_directory(const ls_cifar *kind, const char *dir, const char *from)
{
	char inner[4096];
	uint64_t bytes;
	const char *name;

	LS_TRY(ls_path_join(inner, sizeof(inner), from, kind->folder));
	const char *source = ls_path_is_directory(inner) ? inner : from;
	for (size_t i = 0; (name = file_at(kind, i, &bytes)); i++) {
		char path[4096], to[4096];
		LS_TRY(ls_path_join(path, sizeof(path), source, name));
		LS_TRY(ls_path_join(to, sizeof(to), dir, name));
		LS_TRY(copy_file(kind, path, to, bytes));
	}
	return LS_OK;
}

static ls_status from_archive(const ls_cifar *kind, const char *dir, const char *archive)
{
	ls_tar_want wants[FILES] = { { 0 } };
	char member[FILES][128], path[FILES][4096];
	size_t count = 0;

	uint64_t bytes;
	for (const char *name; (name = file_at(kind, count, &bytes)); count++) {
		snprintf(member[count], sizeof(member[count]), "%s/%s", kind->folder, name);
		LS_TRY(ls_path_join(path[count], sizeof(path[count]), dir, name));
		wants[count] = (ls_tar_want){ .member = member[count], .path = path[count], .limit = bytes };
	}
	ls_status status = ls_tar_extract(archive, wants, count);
	if (status == LS_OK)
		status = all_there(kind, dir);
	for (size_t i = 0; status != LS_OK && i < count; i++) /* nothing that is wrong stays under its final name */
		unlink(path[i]);
	return status;
}

/* ---- from the network -------------------------------------------------------------------------------------------- */

static ls_status check_archive(const ls_get_cifar_plan *plan, const char *archive)
{
	char found[33];
	ls_file_map map;
	ls_md5 md5;

	LS_TRY(ls_file_map_open(&map, archive));
	ls_md5_begin(&md5);
	ls_md5_add(&md5, map.data, map.bytes);
	ls_md5_end(&md5, found);
	ls_status status = strcmp(found, plan->md5) == 0 ? LS_OK
							 : ls_fail(LS_EMISMATCH, "%s has the MD5 %s, expected %s",
								   plan->archive, found, plan->md5);
	return ls_file_map_end(&map, status);
}

static ls_status download_once(const ls_get_cifar_plan *plan, const char *dir, const char *part, int quiet)
{
	ls_download_options fetch = {
		.url = plan->archive, .part = part, .title = plan->kind->name, .limit = ARCHIVE_MAX, .quiet = quiet
	};
	LS_TRY(ls_download(&fetch));
	ls_status status = check_archive(plan, part);
	if (status == LS_OK)
		status = from_archive(plan->kind, dir, part);
	if (status != LS_EIO)
		unlink(part);
	return status;
}

/* A continued part may have started from another file: if the whole is wrong, download it once more from the start. */
static ls_status from_network(const ls_get_cifar_plan *plan, const char *dir, int quiet)
{
	char part[4096], why[1024];

	LS_TRY(ls_path_join(part, sizeof(part), dir, "archive.tar.gz.part"));
	int continued = ls_path_exists(part);
	ls_status status = download_once(plan, dir, part, quiet);
	if (continued && (status == LS_EFORMAT || status == LS_EMISMATCH))
		status = download_once(plan, dir, part, quiet);
	if (status == LS_OK)
		return LS_OK;
	snprintf(why, sizeof(why), "%s", ls_last_error());
	return ls_fail(
		status,
		"could not get %s: %s\nput its .bin files or the archive on this machine and name the place with "
		"options.from",
		plan->kind->name, why);
}

ls_status ls_get_cifar(const ls_get_cifar_plan *plan, const ls_data_get_options *options)
{
	char dir[4096];

	LS_TRY(ls_data_directory(dir, sizeof(dir), options->dir, plan->kind->name));
	LS_TRY(ls_path_make(dir));
	int there = all_there(plan->kind, dir) == LS_OK;
	if (!there && !options->from)
		LS_TRY(from_network(plan, dir, options->quiet));
	else if (!there)
		LS_TRY(ls_path_is_directory(options->from) ? from_directory(plan->kind, dir, options->from)
							   : from_archive(plan->kind, dir, options->from));
	if (!options->quiet)
		ls_log_line("%s is %sin %s", plan->kind->name, there ? "already " : "", dir);
	return LS_OK;
}
