#include "data/readers/zip.h"

#include <limits.h>
#include <string.h>
#include <zlib.h>

enum {
	END_MAGIC = 0x06054b50,
	END_BYTES = 22,
	COMMENT_MAX = 65535,
	ENTRY_MAGIC = 0x02014b50,
	ENTRY_BYTES = 46,
	LOCAL_MAGIC = 0x04034b50,
	LOCAL_BYTES = 30,
	END64_MAGIC = 0x06064b50,
	END64_BYTES = 56,
	LOCATOR_MAGIC = 0x07064b50,
	LOCATOR_BYTES = 20,
	EXTRA64 = 1 /* the extra field with sizes that do not fit 32 bits */
};
#define IN_64 0xffffffffu

static uint32_t get16(const uint8_t *p)
{
	return (uint32_t)p[0] | (uint32_t)p[1] << 8;
}

static uint32_t get32(const uint8_t *p)
{
	return get16(p) | get16(p + 2) << 16;
}

static uint64_t get64(const uint8_t *p)
{
	return (uint64_t)get32(p) | (uint64_t)get32(p + 4) << 32;
}

/* The end record is the last thing in the file but for a comment, whose length it stores. */
static const uint8_t *find_end(const uint8_t *data, size_t bytes)
{
	if (bytes < END_BYTES)
		return NULL;
	for (size_t comment = 0; comment <= COMMENT_MAX && comment + END_BYTES <= bytes; comment++) {
		const uint8_t *end = data + bytes - END_BYTES - comment;
		if (get32(end) == END_MAGIC && get16(end + 20) == comment)
			return end;
	}
	return NULL;
}

/* The central directory as an end record has it. */
typedef struct directory {
	uint64_t members, size, start;
} directory;

/* The record of 64-bit fields, which a locator right before the end record at byte `at` leads to. */
static ls_status read_end64(const uint8_t *data, size_t at, const char *name, directory *out)
{
	const uint8_t *locator = at >= LOCATOR_BYTES ? data + at - LOCATOR_BYTES : NULL;
	uint64_t where = locator && get32(locator) == LOCATOR_MAGIC ? get64(locator + 8) : UINT64_MAX;

	if (at < END64_BYTES || where > at - END64_BYTES || get32(data + where) != END64_MAGIC)
		return ls_fail(LS_EFORMAT, "%s: a ZIP64 archive without its end record", name);
	*out = (directory){ get64(data + where + 32), get64(data + where + 40), get64(data + where + 48) };
	return LS_OK;
}

ls_status ls_zip_open(ls_zip *zip, const uint8_t *data, size_t bytes, const char *name)
{
	const uint8_t *end = find_end(data, bytes);
	if (!end)
		return ls_fail(LS_EFORMAT, "%s: not a ZIP archive, or one that is not whole: it has no end record",
			       name);
	size_t at = (size_t)(end - data);
	directory d = { get16(end + 10), get32(end + 12), get32(end + 16) };
	if (get16(end + 4) || get16(end + 6) || get16(end + 8) != d.members)
		return ls_fail(LS_EFORMAT, "%s: a ZIP archive in several parts cannot be read", name);
	if (d.members == 0xffff || d.start == IN_64 || d.size == IN_64)
		LS_TRY(read_end64(data, at, name, &d));
	if (d.start > at || d.size > at - d.start)
		return ls_fail(LS_EFORMAT, "%s: its directory, %llu bytes from byte %llu on, does not lie inside it",
			       name, (unsigned long long)d.size, (unsigned long long)d.start);
	*zip = (ls_zip){ data, bytes, name, (size_t)d.start, (size_t)(d.start + d.size), d.members, d.members };
	return LS_OK;
}

/* Sizes and place that did not fit: those of them, in this order, are in the extra field. */
static ls_status take_extra(const ls_zip *zip, ls_zip_member *m, const uint8_t *extra, size_t bytes)
{
	size_t *const fields[] = { &m->bytes, &m->packed, &m->header };

	while (bytes >= 4 && 4 + get16(extra + 2) <= bytes && get16(extra) != EXTRA64) {
		size_t skip = 4 + get16(extra + 2);
		extra += skip;
		bytes -= skip;
	}
	size_t left = bytes >= 4 && 4 + get16(extra + 2) <= bytes ? get16(extra + 2) : 0;
	extra += left > 0 ? 4 : 0;
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		if (*fields[i] != IN_64)
			continue;
		if (left < 8)
			return ls_fail(LS_EFORMAT, "%s: %s has sizes of 64 bits that are not there", zip->name,
				       m->name);
		*fields[i] = (size_t)get64(extra);
		extra += 8;
		left -= 8;
	}
	return LS_OK;
}

ls_status ls_zip_next(ls_zip *zip, ls_zip_member *out, int *more)
{
	*more = zip->left > 0;
	if (!*more)
		return LS_OK;
	const uint8_t *entry = zip->data + zip->next;
	size_t left = zip->end - zip->next;
	if (left < ENTRY_BYTES || get32(entry) != ENTRY_MAGIC)
		return ls_fail(LS_EFORMAT, "%s: entry %llu of its directory, at byte %zu, is damaged", zip->name,
			       (unsigned long long)(zip->all - zip->left), zip->next);
	size_t name = get16(entry + 28), rest = get16(entry + 30) + get16(entry + 32);
	if (name + rest > left - ENTRY_BYTES)
		return ls_fail(LS_EFORMAT, "%s: entry %llu of its directory, at byte %zu, is cut off", zip->name,
			       (unsigned long long)(zip->all - zip->left), zip->next);
	*out = (ls_zip_member){ .method = (int)get16(entry + 10),
				.encrypted = (int)(get16(entry + 8) & 1),
				.crc = get32(entry + 16),
				.packed = get32(entry + 20),
				.bytes = get32(entry + 24),
				.header = get32(entry + 42) };
	memcpy(out->name, entry + ENTRY_BYTES, name < sizeof(out->name) ? name : sizeof(out->name) - 1);
	LS_TRY(take_extra(zip, out, entry + ENTRY_BYTES + name, get16(entry + 30)));
	zip->next += ENTRY_BYTES + name + rest;
	zip->left--;
	return LS_OK;
}

/* Where the packed bytes are: behind the local header, whose own name and extra field may differ in length. */
static ls_status find_packed(const ls_zip *zip, const ls_zip_member *member, const uint8_t **packed)
{
	size_t left = member->header < zip->bytes ? zip->bytes - member->header : 0;
	const uint8_t *header = zip->data + member->header;
	if (left < LOCAL_BYTES || get32(header) != LOCAL_MAGIC)
		return ls_fail(LS_EFORMAT, "%s: there is no member at byte %zu, where %s should be", zip->name,
			       member->header, member->name);
	size_t skip = LOCAL_BYTES + get16(header + 26) + get16(header + 28);
	if (skip > left || member->packed > left - skip)
		return ls_fail(LS_EFORMAT, "%s: %s goes beyond the archive's end", zip->name, member->name);
	*packed = header + skip;
	return LS_OK;
}

/* zlib takes and gives at most 4 GB at a time. */
static int inflate_parts(z_stream *stream, size_t packed, size_t bytes)
{
	size_t in = packed, out = bytes;
	int code = Z_OK;

	while (code == Z_OK) {
		uInt more_in = (uInt)(in < INT_MAX ? in : INT_MAX), more_out = (uInt)(out < INT_MAX ? out : INT_MAX);
		stream->avail_in += stream->avail_in == 0 ? more_in : 0;
		stream->avail_out += stream->avail_out == 0 ? more_out : 0;
		size_t before_in = stream->avail_in, before_out = stream->avail_out;
		code = inflate(stream, Z_NO_FLUSH);
		in -= before_in - stream->avail_in;
		out -= before_out - stream->avail_out;
	}
	return code == Z_STREAM_END && out == 0;
}

static ls_status inflate_all(const ls_zip *zip, const ls_zip_member *member, const uint8_t *packed, uint8_t *out)
{
	uint8_t none;
	z_stream stream = { .next_in = (Bytef *)(uintptr_t)packed, /* zlib only reads it */
			    .next_out = member->bytes ? out : &none };
	if (inflateInit2(&stream, -MAX_WBITS) != Z_OK)
		return ls_fail(LS_EMEMORY, "%s: no memory to decompress", zip->name);
	int whole = inflate_parts(&stream, member->packed, member->bytes);
	inflateEnd(&stream);
	return whole ? LS_OK
		     : ls_fail(LS_EFORMAT, "%s: %s is damaged: it does not decompress to %zu bytes", zip->name,
			       member->name, member->bytes);
}

static ls_status check_method(const ls_zip *zip, const ls_zip_member *member)
{
	if (member->encrypted || (member->method != 0 && member->method != 8))
		return ls_fail(LS_EUNSUPPORTED, "%s: %s is %s, which cannot be read", zip->name, member->name,
			       member->encrypted ? "encrypted" : "packed by another method than deflate");
	if (member->method == 0 && member->packed != member->bytes)
		return ls_fail(LS_EFORMAT, "%s: %s is stored in %zu bytes but has %zu", zip->name, member->name,
			       member->packed, member->bytes);
	return LS_OK;
}

ls_status ls_zip_view(const ls_zip *zip, const ls_zip_member *member, const uint8_t **out)
{
	const uint8_t *packed = NULL;
	LS_TRY(find_packed(zip, member, &packed));
	LS_TRY(check_method(zip, member));
	if (member->method != 0)
		return ls_fail(LS_EINVALID, "%s: %s is compressed and has to be read", zip->name, member->name);
	*out = packed;
	return LS_OK;
}

ls_status ls_zip_read(const ls_zip *zip, const ls_zip_member *member, uint8_t *out)
{
	const uint8_t *packed = NULL;
	LS_TRY(find_packed(zip, member, &packed));
	LS_TRY(check_method(zip, member));
	if (member->method == 8)
		LS_TRY(inflate_all(zip, member, packed, out));
	else if (member->bytes)
		memcpy(out, packed, member->bytes);
	if (crc32_z(0, out, member->bytes) != member->crc)
		return ls_fail(LS_EFORMAT, "%s: %s is damaged: its checksum is wrong", zip->name, member->name);
	return LS_OK;
}
