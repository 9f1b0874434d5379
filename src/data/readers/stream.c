#include "data/readers/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/array.h"

enum { ROOM = 1 << 16 };

struct ls_stream {
	const char *name; /* borrowed */
	int fd, is_own;
	const uint8_t *memory; /* in place of the file; NULL: the file */
	size_t memory_left;
	int is_gzip, has_looked, at_end; /* at_end: of the file */
	int in_member;                   /* gzip: between a member's header and its end */
	z_stream zip;
	uint8_t raw[ROOM]; /* of the file, when it is gzip */
	size_t raw_at, raw_end;
	uint8_t plain[LS_STREAM_PEEK + ROOM];
	size_t at, end; /* what is not taken yet; at most LS_STREAM_PEEK where more is read behind it */
};

const char *ls_stream_name(const ls_stream *s)
{
	return s->name;
}

static ls_status open_file(ls_stream *s, const char *path)
{
	struct stat facts;

	if (strcmp(path, "-") == 0) {
		s->name = "standard input";
		s->fd = STDIN_FILENO;
		return LS_OK;
	}
	s->name = path;
	s->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (s->fd < 0)
		return ls_fail_errno(errno == ENOENT ? LS_ENOTFOUND : LS_EIO, "cannot open %s", path);
	s->is_own = 1;
	if (fstat(s->fd, &facts) == 0 && S_ISDIR(facts.st_mode))
		return ls_fail(LS_EFORMAT, "%s is a directory; name its files", path);
	return LS_OK;
}

ls_status ls_stream_open(ls_stream **out, const char *path)
{
	ls_stream *s = calloc(1, sizeof(*s));
	if (!s)
		return ls_fail(LS_EMEMORY, "no memory to read %s", path);
	s->fd = -1;
	ls_status status = open_file(s, path);
	if (status == LS_OK)
		*out = s;
	else
		ls_stream_close(s);
	return status;
}

ls_status ls_stream_of_bytes(ls_stream **out, const void *bytes, size_t count, const char *name)
{
	static const uint8_t nothing;
	ls_stream *s = calloc(1, sizeof(*s));
	if (!s)
		return ls_fail(LS_EMEMORY, "no memory to read %s", name);
	s->fd = -1;
	s->name = name;
	s->memory = bytes ? bytes : &nothing;
	s->memory_left = count;
	*out = s;
	return LS_OK;
}

void ls_stream_close(ls_stream *s)
{
	if (!s)
		return;
	if (s->is_gzip)
		inflateEnd(&s->zip);
	if (s->is_own)
		close(s->fd);
	free(s);
}

/* ---- bytes of the file ------------------------------------------------------------------------------------------- */

static void copy_some(ls_stream *s, uint8_t *out, size_t want, size_t *got)
{
	*got = want < s->memory_left ? want : s->memory_left;
	memcpy(out, s->memory, *got);
	s->memory += *got;
	s->memory_left -= *got;
	s->at_end = *got == 0;
}

static ls_status read_some(ls_stream *s, uint8_t *out, size_t want, size_t *got)
{
	ssize_t count;

	*got = 0;
	if (s->at_end)
		return LS_OK;
	if (s->memory) {
		copy_some(s, out, want, got);
		return LS_OK;
	}
	do
		count = read(s->fd, out, want);
	while (count < 0 && errno == EINTR);
	if (count < 0)
		return ls_fail_errno(LS_EIO, "cannot read %s", s->name);
	s->at_end = count == 0;
	*got = (size_t)count;
	return LS_OK;
}

/* ---- gzip -------------------------------------------------------------------------------------------------------- */

static ls_status begin_gzip(ls_stream *s)
{
	if (inflateInit2(&s->zip, 16 + MAX_WBITS) != Z_OK) /* 16: a gzip header and trailer, nothing else */
		return ls_fail(LS_EMEMORY, "%s: no memory to decompress", s->name);
	s->is_gzip = 1;
	memcpy(s->raw, s->plain, s->end);
	s->raw_end = s->end;
	s->at = s->end = 0;
	return LS_OK;
}

/* One call of zlib; what follows a member is another one. */
static ls_status inflate_some(ls_stream *s, size_t *got)
{
	s->zip.next_in = s->raw + s->raw_at;
	s->zip.avail_in = (uInt)(s->raw_end - s->raw_at);
	s->zip.next_out = s->plain + s->end;
	s->zip.avail_out = ROOM;
	s->in_member |= s->zip.avail_in > 0;
	int code = inflate(&s->zip, Z_NO_FLUSH);
	s->raw_at = s->raw_end - s->zip.avail_in;
	*got = ROOM - s->zip.avail_out;
	if (code == Z_STREAM_END) {
		s->in_member = 0;
		inflateReset(&s->zip);
	} else if (code != Z_OK && code != Z_BUF_ERROR) {
		return ls_fail(code == Z_MEM_ERROR ? LS_EMEMORY : LS_EFORMAT, "%s: gzip data is damaged: %s", s->name,
			       s->zip.msg ? s->zip.msg : "no memory");
	}
	return LS_OK;
}

static ls_status read_gzip(ls_stream *s, size_t *got)
{
	*got = 0;
	while (*got == 0) {
		if (s->raw_at == s->raw_end) {
			s->raw_at = 0;
			LS_TRY(read_some(s, s->raw, ROOM, &s->raw_end));
			if (s->raw_end == 0 && s->in_member)
				return ls_fail(LS_EFORMAT, "%s: gzip data is cut short", s->name);
			if (s->raw_end == 0)
				return LS_OK;
		}
		LS_TRY(inflate_some(s, got));
	}
	return LS_OK;
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static ls_status look(ls_stream *s)
{
	size_t got = 1;

	if (s->has_looked)
		return LS_OK;
	s->has_looked = 1;
	while (s->end < 2 && got > 0) {
		LS_TRY(read_some(s, s->plain + s->end, ROOM - s->end, &got));
		s->end += got;
	}
	if (s->end >= 2 && s->plain[0] == 0x1f && s->plain[1] == 0x8b)
		return begin_gzip(s);
	return LS_OK;
}

/* Something behind what is not taken yet, nothing at the end alone. */
static ls_status fill(ls_stream *s, size_t *got)
{
	memmove(s->plain, s->plain + s->at, s->end - s->at);
	s->end -= s->at;
	s->at = 0;
	LS_TRY(s->is_gzip ? read_gzip(s, got) : read_some(s, s->plain + s->end, ROOM, got));
	s->end += *got;
	return LS_OK;
}

ls_status ls_stream_read(ls_stream *s, void *out, size_t want, size_t *got)
{
	LS_TRY(look(s));
	if (s->at == s->end)
		LS_TRY(fill(s, got));
	*got = want < s->end - s->at ? want : s->end - s->at;
	memcpy(out, s->plain + s->at, *got);
	s->at += *got;
	return LS_OK;
}

ls_status ls_stream_read_all(ls_stream *s, void *out, size_t want, size_t *got)
{
	size_t done = 0, part = 1;

	while (done < want && part > 0) {
		LS_TRY(ls_stream_read(s, (uint8_t *)out + done, want - done, &part));
		done += part;
	}
	*got = done;
	return LS_OK;
}

ls_status ls_stream_peek(ls_stream *s, const uint8_t **bytes, size_t want, size_t *got)
{
	size_t more = 1;

	LS_TRY(look(s));
	want = want < LS_STREAM_PEEK ? want : LS_STREAM_PEEK;
	while (s->end - s->at < want && more > 0)
		LS_TRY(fill(s, &more));
	*bytes = s->plain + s->at;
	*got = s->end - s->at < want ? s->end - s->at : want;
	return LS_OK;
}

ls_status ls_stream_take(ls_stream *s, uint8_t **out, size_t *bytes, size_t most)
{
	uint8_t *all = NULL;
	size_t room = 0, used = 0, got = 1;
	ls_status status = LS_OK;

	while (status == LS_OK && got > 0) {
		status = used > most ? ls_fail(LS_EFORMAT, "%s has more than %zu bytes", s->name, most)
				     : ls_array_grow(&all, &room, used + ROOM, 1);
		if (status == LS_OK)
			status = ls_stream_read(s, all + used, ROOM, &got);
		used += status == LS_OK ? got : 0;
	}
	if (status != LS_OK) {
		free(all);
		return status;
	}
	*out = all;
	*bytes = used;
	return LS_OK;
}
