#include "fetch/zip.h"

#include <string.h>
#include <zlib.h>

enum {
	END_MAGIC = 0x06054b50,
	END_BYTES = 22,
	COMMENT_MAX = 65535,
	ENTRY_MAGIC = 0x02014b50,
	ENTRY_BYTES = 46,
	LOCAL_MAGIC = 0x04034b50,
	LOCAL_BYTES = 30
};

static uint32_t get16(const uint8_t *p)
{
	return (uint32_t)p[0] | (uint32_t)p[1] << 8;
}

static uint32_t get32(const uint8_t *p)
{
	return get16(p) | get16(p + 2) << 16;
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

ls_status ls_zip_open(ls_zip *zip, const uint8_t *data, size_t bytes, const char *name)
{
	const uint8_t *end = find_end(data, bytes);
	if (!end)
		return ls_fail(LS_EFORMAT, "%s: not a ZIP archive, or one that is not whole: it has no end record",
			       name);
	size_t at = (size_t)(end - data), size = get32(end + 12), start = get32(end + 16);
	unsigned members = get16(end + 10);
	if (get16(end + 4) || get16(end + 6) || get16(end + 8) != members)
		return ls_fail(LS_EFORMAT, "%s: a ZIP archive in several parts cannot be read", name);
	if (members == 0xffff || start == 0xffffffff)
		return ls_fail(LS_EUNSUPPORTED, "%s: ZIP64 archives cannot be read", name);
	if (start > at || size > at - start)
		return ls_fail(LS_EFORMAT, "%s: its directory, %zu bytes from byte %zu on, does not lie inside it",
			       name, size, start);
	*zip = (ls_zip){ data, bytes, name, start, start + size, members, members };
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
		return ls_fail(LS_EFORMAT, "%s: entry %u of its directory, at byte %zu, is damaged", zip->name,
			       zip->all - zip->left, zip->next);
	size_t name = get16(entry + 28), rest = get16(entry + 30) + get16(entry + 32);
	if (name + rest > left - ENTRY_BYTES)
		return ls_fail(LS_EFORMAT, "%s: entry %u of its directory, at byte %zu, is cut off", zip->name,
			       zip->all - zip->left, zip->next);
	*out = (ls_zip_member){ .method = (int)get16(entry + 10),
				.encrypted = (int)(get16(entry + 8) & 1),
				.crc = get32(entry + 16),
				.packed = get32(entry + 20),
				.bytes = get32(entry + 24),
				.header = get32(entry + 42) };
	memcpy(out->name, entry + ENTRY_BYTES, name < sizeof(out->name) ? name : sizeof(out->name) - 1);
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

static ls_status inflate_all(const ls_zip *zip, const ls_zip_member *member, const uint8_t *packed, uint8_t *out)
{
	uint8_t none;
	z_stream stream = { .next_in = (Bytef *)(uintptr_t)packed, /* zlib only reads it */
			    .avail_in = (uInt)member->packed,
			    .next_out = member->bytes ? out : &none,
			    .avail_out = (uInt)member->bytes };
	if (inflateInit2(&stream, -MAX_WBITS) != Z_OK)
		return ls_fail(LS_EMEMORY, "%s: no memory to decompress", zip->name);
	int code = inflate(&stream, Z_FINISH);
	int whole = code == Z_STREAM_END && stream.total_out == member->bytes;
	inflateEnd(&stream);
	return whole ? LS_OK
		     : ls_fail(LS_EFORMAT, "%s: %s is damaged: it does not decompress to %zu bytes", zip->name,
			       member->name, member->bytes);
}

ls_status ls_zip_read(const ls_zip *zip, const ls_zip_member *member, uint8_t *out)
{
	const uint8_t *packed = NULL;
	LS_TRY(find_packed(zip, member, &packed));
	if (member->encrypted || (member->method != 0 && member->method != 8))
		return ls_fail(LS_EUNSUPPORTED, "%s: %s is %s, which cannot be read", zip->name, member->name,
			       member->encrypted ? "encrypted" : "packed by another method than deflate");
	if (member->method == 0 && member->packed != member->bytes)
		return ls_fail(LS_EFORMAT, "%s: %s is stored in %zu bytes but has %zu", zip->name, member->name,
			       member->packed, member->bytes);
	if (member->method == 8)
		LS_TRY(inflate_all(zip, member, packed, out));
	else if (member->bytes)
		memcpy(out, packed, member->bytes);
	if (crc32_z(0, out, member->bytes) != member->crc)
		return ls_fail(LS_EFORMAT, "%s: %s is damaged: its checksum is wrong", zip->name, member->name);
	return LS_OK;
}
