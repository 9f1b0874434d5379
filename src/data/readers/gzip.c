#include "data/readers/gzip.h"

#include <limits.h>
#include <string.h>

int ls_gzip_is(const uint8_t *data, size_t bytes)
{
	return bytes >= 2 && data[0] == 0x1f && data[1] == 0x8b;
}

ls_status ls_gzip_open(ls_gzip *gzip, const uint8_t *data, size_t bytes, const char *name)
{
	*gzip = (ls_gzip){ .data = data, .bytes = bytes, .name = name };
	if (!ls_gzip_is(data, bytes))
		return ls_fail(LS_EFORMAT, "%s: not a gzip file", name);
	if (inflateInit2(&gzip->stream, 16 + MAX_WBITS) != Z_OK) /* 16: a gzip header and trailer, nothing else */
		return ls_fail(LS_EMEMORY, "%s: no memory to decompress", name);
	return LS_OK;
}

void ls_gzip_close(ls_gzip *gzip)
{
	inflateEnd(&gzip->stream);
}

/* Offset in the compressed file of the next byte zlib would take. */
static size_t gzip_offset(const ls_gzip *gzip)
{
	return gzip->fed - gzip->stream.avail_in;
}

static void gzip_feed(ls_gzip *gzip)
{
	size_t left = gzip->bytes - gzip->fed;
	size_t part = left < INT_MAX ? left : INT_MAX;
	if (gzip->stream.avail_in || !part)
		return;
	gzip->stream.next_in = (Bytef *)(uintptr_t)(gzip->data + gzip->fed); /* zlib only reads it */
	gzip->stream.avail_in = (uInt)part;
	gzip->fed += part;
}

/* A gzip file may be several members one after the other; anything else behind the end is an error. */
static ls_status member_ended(ls_gzip *gzip)
{
	size_t at = gzip_offset(gzip);
	if (at == gzip->bytes) {
		gzip->ended = 1;
		return LS_OK;
	}
	if (!ls_gzip_is(gzip->data + at, gzip->bytes - at))
		return ls_fail(LS_EFORMAT, "%s: %zu bytes of something else follow the gzip data, from byte %zu on",
			       gzip->name, gzip->bytes - at, at);
	inflateReset(&gzip->stream);
	return LS_OK;
}

static ls_status inflate_failed(const ls_gzip *gzip, int code)
{
	const char *why = gzip->stream.msg ? gzip->stream.msg : "damaged data";
	if (code == Z_MEM_ERROR)
		return ls_fail(LS_EMEMORY, "%s: no memory to decompress", gzip->name);
	if (code == Z_BUF_ERROR)
		return ls_fail(LS_EFORMAT,
			       "%s: gzip data is truncated: it stops at byte %zu, after %llu decompressed bytes",
			       gzip->name, gzip->bytes, (unsigned long long)gzip->produced);
	return ls_fail(LS_EFORMAT, "%s: gzip data is damaged near byte %zu of %zu (after %llu decompressed bytes): %s",
		       gzip->name, gzip_offset(gzip), gzip->bytes, (unsigned long long)gzip->produced, why);
}

/* One call of zlib: makes progress in input or output, or fails. */
static ls_status gzip_step(ls_gzip *gzip)
{
	gzip_feed(gzip);
	uInt before = gzip->stream.avail_out;
	int code = inflate(&gzip->stream, Z_NO_FLUSH);
	gzip->produced += before - gzip->stream.avail_out;
	if (code == Z_STREAM_END)
		return member_ended(gzip);
	return code == Z_OK ? LS_OK : inflate_failed(gzip, code);
}

ls_status ls_gzip_read(ls_gzip *gzip, void *out, size_t want, size_t *got)
{
	size_t done = 0;
	while (done < want && !gzip->ended) {
		size_t part = want - done < INT_MAX ? want - done : INT_MAX;
		gzip->stream.next_out = (Bytef *)out + done;
		gzip->stream.avail_out = (uInt)part;
		LS_TRY(gzip_step(gzip));
		done += part - gzip->stream.avail_out;
	}
	*got = done;
	return LS_OK;
}
