/*
 * get_install.c - check a file's size and MD5, then give it its final name.
 */
#include <lockstep/text.h>
#include <strings.h>

#include "base/files.h"
#include "base/status.h"
#include "data/readers/gzip.h"
#include "fetch/get.h"
#include "fetch/md5.h"

#define CHUNK 16384

static ls_status digest_check(const ls_get_file *file, ls_md5 *md5, uint64_t bytes, const char *source)
{
	char hex[33];
	ls_md5_end(md5, hex);
	if (bytes != file->bytes)
		return ls_fail(LS_EMISMATCH, "%s: holds %llu bytes, %s has %llu", source, (unsigned long long)bytes,
			       file->name, (unsigned long long)file->bytes);
	if (strcasecmp(hex, file->md5) != 0)
		return ls_fail(LS_EMISMATCH, "%s: MD5 is %s, that of %s is %s", source, hex, file->name, file->md5);
	return LS_OK;
}

ls_status ls_get_check(const ls_get_file *file, const char *dir, int *right)
{
	char path[4096], hex[33];
	ls_file_map map;
	ls_md5 md5;
	*right = 0;
	LS_TRY(ls_path_join(path, sizeof(path), dir, file->name));
	if (!ls_path_exists(path))
		return LS_OK;
	LS_TRY(ls_file_map_open(&map, path));
	if (map.bytes == file->bytes) {
		ls_md5_begin(&md5);
		ls_md5_add(&md5, map.data, map.bytes);
		ls_md5_end(&md5, hex);
		*right = strcasecmp(hex, file->md5) == 0;
	}
	return ls_file_map_end(&map, LS_OK);
}

static ls_status copy_plain(const ls_get_file *file, const ls_file_map *map, ls_file_draft *draft, const char *source)
{
	ls_md5 md5;
	ls_md5_begin(&md5);
	ls_md5_add(&md5, map->data, map->bytes);
	LS_TRY(digest_check(file, &md5, map->bytes, source));
	return ls_file_write(draft, map->data, map->bytes);
}

/* Stops one byte past the expected size: a bomb inflates no further. */
static ls_status copy_gzip(const ls_get_file *file, ls_gzip *gzip, ls_file_draft *draft)
{
	uint8_t buffer[CHUNK];
	uint64_t total = 0;
	size_t got = 1;
	ls_md5 md5;
	ls_md5_begin(&md5);
	while (got && total <= file->bytes) {
		uint64_t left = file->bytes + 1 - total;
		LS_TRY(ls_gzip_read(gzip, buffer, left < CHUNK ? (size_t)left : CHUNK, &got));
		ls_md5_add(&md5, buffer, got);
		LS_TRY(ls_file_write(draft, buffer, got));
		total += got;
	}
	if (total > file->bytes)
		return ls_fail(LS_EMISMATCH, "%s: decompresses to more than the %llu bytes of %s", gzip->name,
			       (unsigned long long)file->bytes, file->name);
	return digest_check(file, &md5, total, gzip->name);
}

static ls_status copy_either(const ls_get_file *file, const ls_file_map *map, ls_file_draft *draft, const char *source)
{
	if (!ls_gzip_is(map->data, map->bytes))
		return copy_plain(file, map, draft, source);
	ls_gzip gzip;
	LS_TRY(ls_gzip_open(&gzip, map->data, map->bytes, source));
	ls_status status = copy_gzip(file, &gzip, draft);
	ls_gzip_close(&gzip);
	return status;
}

ls_status ls_get_install(const ls_get_file *file, const char *dir, const char *source)
{
	char path[4096];
	ls_file_map map;
	ls_file_draft draft;
	LS_TRY(ls_path_join(path, sizeof(path), dir, file->name));
	LS_TRY(ls_file_map_open(&map, source));
	ls_status status = ls_file_begin(&draft, path);
	if (!status)
		status = ls_file_finish(&draft, copy_either(file, &map, &draft, source));
	return ls_file_map_end(&map, status);
}

ls_status ls_get_learn(const char *dir, size_t pieces, int quiet)
{
	char vocab[4096];
	LS_TRY(ls_path_join(vocab, sizeof(vocab), dir, "vocab.txt"));
	if (ls_path_exists(vocab))
		return LS_OK;
	ls_vocab_make_options make = LS_VOCAB_MAKE_OPTIONS_INIT;
	make.paths = &dir;
	make.path_count = 1;
	make.out = vocab;
	make.pieces = pieces;
	make.quiet = quiet;
	return ls_vocab_make(&make);
}
