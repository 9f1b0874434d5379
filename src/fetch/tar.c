#include "fetch/tar.h"

#include <stdio.h>
#include <string.h>

#include "base/files.h"
#include "data/readers/gzip.h"
#include "data/readers/tar_header.h"

/* Copy `bytes` of the archive to `draft` (or drop them when NULL). */
static ls_status pass_bytes(ls_gzip *gzip, uint64_t bytes, ls_file_draft *draft)
{
	uint8_t buffer[16384];
	while (bytes) {
		size_t want = bytes < sizeof(buffer) ? (size_t)bytes : sizeof(buffer), got;
		LS_TRY(ls_gzip_read(gzip, buffer, want, &got));
		if (got < want)
			return ls_fail(LS_EFORMAT, "%s: the archive ends inside a file", gzip->name);
		if (draft)
			LS_TRY(ls_file_write(draft, buffer, got));
		bytes -= got;
	}
	return LS_OK;
}

static ls_status extract_member(ls_gzip *gzip, uint64_t bytes, ls_tar_want *want)
{
	ls_file_draft draft;
	if (bytes > want->limit)
		return ls_fail(LS_EFORMAT, "%s: %s has %llu bytes, expected at most %llu", gzip->name, want->member,
			       (unsigned long long)bytes, (unsigned long long)want->limit);
	LS_TRY(ls_file_begin(&draft, want->path));
	LS_TRY(ls_file_finish(&draft, pass_bytes(gzip, bytes, &draft)));
	want->found = 1;
	return LS_OK;
}

/* What to extract: some named files, or all with a prefix and suffix. */
typedef struct taking {
	ls_tar_want *wants;
	size_t count;
	const char *prefix, *suffix, *dir; /* prefix NULL: the wants */
	uint64_t left;                     /* bytes */
	size_t found;
	char path[4096], name[LS_TAR_NAME_MAX];
	ls_tar_want next; /* the file that is being extracted */
} taking;

static ls_tar_want *named_want(taking *t)
{
	for (size_t i = 0; i < t->count; i++)
		if (!t->wants[i].found && strcmp(t->wants[i].member, t->name) == 0)
			return &t->wants[i];
	return NULL;
}

static int is_safe(const char *name)
{
	const char *const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
	return name[0] && name[0] != '.' && strspn(name, letters) == strlen(name);
}

static ls_tar_want *want_of_kind(taking *t)
{
	size_t length = strlen(t->name), prefix = strlen(t->prefix), suffix = strlen(t->suffix);
	if (length <= prefix + suffix || strncmp(t->name, t->prefix, prefix) != 0 ||
	    strcmp(t->name + length - suffix, t->suffix) != 0 || !is_safe(t->name + prefix) ||
	    ls_path_join(t->path, sizeof(t->path), t->dir, t->name + prefix) != LS_OK)
		return NULL;
	t->next = (ls_tar_want){ .member = t->name, .path = t->path, .limit = t->left };
	return &t->next;
}

static ls_tar_want *find_want(taking *t, const uint8_t *header)
{
	ls_tar_header_name(header, t->name, sizeof(t->name));
	if (!ls_tar_header_is_file(header)) /* not a regular file */
		return NULL;
	return t->prefix ? want_of_kind(t) : named_want(t);
}

/* *more = 0 at the end: the two zero blocks, or no more data. */
static ls_status next_member(ls_gzip *gzip, taking *t, int *more)
{
	static const uint8_t zero[LS_TAR_BLOCK];
	uint8_t header[LS_TAR_BLOCK];
	size_t got;
	uint64_t bytes = 0;
	LS_TRY(ls_gzip_read(gzip, header, LS_TAR_BLOCK, &got));
	*more = got != 0 && memcmp(header, zero, got) != 0;
	if (!*more)
		return LS_OK;
	if (got < LS_TAR_BLOCK)
		return ls_fail(LS_EFORMAT, "%s: the archive ends inside a header", gzip->name);
	if (!ls_tar_header_is_whole(header) || !ls_tar_header_size(header, &bytes))
		return ls_fail(LS_EFORMAT, "%s: a damaged tar header", gzip->name);
	ls_tar_want *want = find_want(t, header);
	LS_TRY(want ? extract_member(gzip, bytes, want) : pass_bytes(gzip, bytes, NULL));
	if (want) {
		t->found++;
		t->left -= t->prefix ? bytes : 0;
	}
	return pass_bytes(gzip, (LS_TAR_BLOCK - bytes % LS_TAR_BLOCK) % LS_TAR_BLOCK, NULL);
}

static ls_status take_all(const char *archive, taking *t)
{
	ls_file_map map;
	ls_gzip gzip;
	LS_TRY(ls_file_map_open(&map, archive));
	ls_status status = ls_gzip_open(&gzip, map.data, map.bytes, archive);
	if (!status) {
		int more = 1;
		while (!status && more)
			status = next_member(&gzip, t, &more);
		ls_gzip_close(&gzip);
	}
	return ls_file_map_end(&map, status);
}

ls_status ls_tar_extract(const char *archive, ls_tar_want *wants, size_t count)
{
	taking t = { .wants = wants, .count = count };
	LS_TRY(take_all(archive, &t));
	for (size_t i = 0; i < count; i++)
		if (!wants[i].found)
			return ls_fail(LS_EFORMAT, "%s does not hold %s", archive, wants[i].member);
	return LS_OK;
}

ls_status ls_tar_extract_all(const char *archive, const char *prefix, const char *suffix, const char *dir,
			     uint64_t limit, size_t *count)
{
	taking t = { .prefix = prefix, .suffix = suffix, .dir = dir, .left = limit };
	LS_TRY(take_all(archive, &t));
	*count = t.found;
	return LS_OK;
}
