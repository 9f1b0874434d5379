#include "data/readers/tar_members.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/readers/tar_header.h"

/* What a pax or GNU header says about the member behind it. */
typedef struct extra {
	char name[1024]; /* "": nothing */
	uint64_t bytes;
	int has_bytes;
} extra;

static ls_status damaged(const ls_tar_walk *w, uint64_t at, const char *what)
{
	return ls_fail(LS_EFORMAT, "%s: damaged at byte %" PRIu64 ": %s", w->path, at, what);
}

int ls_tar_is(const uint8_t *data, size_t bytes)
{
	return bytes >= LS_TAR_BLOCK && data[0] != 0 && ls_tar_header_is_whole(data);
}

/* "27 path=train/00000001.jpg\n" and the like: their own length first. */
static ls_status read_pax(const ls_tar_walk *w, const ls_tar_member *m, extra *e)
{
	const char *at = (const char *)w->data + m->offset, *end = at + m->bytes;

	while (at < end) {
		uint64_t length = 0;
		const char *text = at;
		for (; text < end && *text >= '0' && *text <= '9' && length < INT32_MAX; text++)
			length = length * 10 + (uint64_t)(*text - '0');
		if (text == end || *text != ' ' || length <= (uint64_t)(text - at) + 1 || length > (uint64_t)(end - at))
			return damaged(w, m->offset, "an extended header has no length");
		int bytes = (int)(length - (uint64_t)(text - at) - 2); /* without the space and the end of the line */
		text++;
		if (bytes - 5 >= (int)sizeof(e->name) && !memcmp(text, "path=", 5))
			return damaged(w, m->offset, "the name of a member is longer than 1023 bytes");
		if (bytes > 5 && !memcmp(text, "path=", 5))
			snprintf(e->name, sizeof(e->name), "%.*s", bytes - 5, text + 5);
		if (bytes > 5 && !memcmp(text, "size=", 5)) {
			char digits[24];
			snprintf(digits, sizeof(digits), "%.*s", bytes - 5, text + 5);
			e->bytes = strtoull(digits, NULL, 10);
			e->has_bytes = 1;
		}
		at += length;
	}
	return LS_OK;
}

/* The header at walk->at, whose bytes are all there. */
static ls_status read_header(const ls_tar_walk *w, const extra *e, ls_tar_member *m)
{
	const uint8_t *header = w->data + w->at;

	if (!ls_tar_header_is_whole(header))
		return damaged(w, w->at, "the checksum of a header is wrong");
	if (!ls_tar_header_size(header, &m->bytes))
		return damaged(w, w->at, "a size is not a number");
	if (e->has_bytes)
		m->bytes = e->bytes;
	if (e->name[0])
		snprintf(m->name, sizeof(m->name), "%s", e->name);
	else
		ls_tar_header_name(header, m->name, sizeof(m->name));
	m->is_file = ls_tar_header_is_file(header);
	m->offset = w->at + LS_TAR_BLOCK;
	if (m->bytes > w->bytes - m->offset)
		return ls_fail(LS_EFORMAT,
			       "%s: truncated: it ends inside of %s, %" PRIu64 " bytes from byte %" PRIu64 " on",
			       w->path, m->name, m->bytes, m->offset);
	return LS_OK;
}

/* Whether the walk is at the end: two blocks of zeros, or nothing more. */
static ls_status is_at_end(const ls_tar_walk *w, int *is_end)
{
	static const uint8_t zero[LS_TAR_BLOCK];

	*is_end = w->at >= w->bytes;
	if (*is_end)
		return LS_OK;
	if (w->bytes - w->at < LS_TAR_BLOCK)
		return ls_fail(LS_EFORMAT, "%s: truncated: it ends inside of a header, at byte %" PRIu64, w->path,
			       w->at);
	*is_end = memcmp(w->data + w->at, zero, LS_TAR_BLOCK) == 0;
	return LS_OK;
}

ls_status ls_tar_walk_next(ls_tar_walk *w, ls_tar_member *out, int *more)
{
	extra e = { .name = "" };

	for (;;) {
		int is_end;
		LS_TRY(is_at_end(w, &is_end));
		*more = !is_end;
		if (is_end)
			return LS_OK;
		uint8_t type = w->data[w->at + LS_TAR_TYPE];
		int is_extra = type == 'L' || type == 'K' || type == 'x' || type == 'g';
		const extra none = { .name = "" };
		LS_TRY(read_header(w, is_extra ? &none : &e, out));
		w->at = out->offset + (out->bytes + LS_TAR_BLOCK - 1) / LS_TAR_BLOCK *
					      LS_TAR_BLOCK;     /* padding may be missing at the end */
		if (type == 'L' && out->bytes > sizeof(e.name)) /* with its zero */
			return damaged(w, out->offset, "the name of a member is longer than 1023 bytes");
		if (type == 'L')
			snprintf(e.name, sizeof(e.name), "%.*s",
				 (int)(out->bytes < sizeof(e.name) ? out->bytes : sizeof(e.name) - 1),
				 (const char *)w->data + out->offset);
		else if (type == 'x')
			LS_TRY(read_pax(w, out, &e));
		else if (!is_extra)
			return LS_OK;
	}
}
