#include "data/readers/tar_header.h"

#include <stdio.h>
#include <string.h>

/* The fields that matter here. */
enum {
	NAME = 0,
	NAME_BYTES = 100,
	SIZE = 124,
	SIZE_BYTES = 12,
	SUM = 148,
	SUM_BYTES = 8,
	MAGIC = 257,
	PREFIX = 345,
	PREFIX_BYTES = 155
};

static int number(const uint8_t *field, size_t bytes, uint64_t *out)
{
	uint64_t value = 0;
	size_t i = 0;

	if (field[0] & 0x80) {
		for (i = bytes > 8 ? bytes - 8 : 1; i < bytes; i++)
			value = value << 8 | field[i];
		*out = value;
		return value <= INT64_MAX;
	}
	while (i < bytes && field[i] == ' ')
		i++;
	for (; i < bytes && field[i] >= '0' && field[i] <= '7'; i++)
		value = value << 3 | (uint64_t)(field[i] - '0');
	*out = value;
	return i == bytes || field[i] == 0 || field[i] == ' ';
}

/* The sum of all header bytes, with the checksum field itself taken as spaces. */
int ls_tar_header_is_whole(const uint8_t *header)
{
	uint64_t stored = 0, sum = 0;

	for (size_t i = 0; i < LS_TAR_BLOCK; i++)
		sum += i >= SUM && i < SUM + SUM_BYTES ? ' ' : header[i];
	return number(header + SUM, SUM_BYTES, &stored) && sum == stored;
}

int ls_tar_header_size(const uint8_t *header, uint64_t *bytes)
{
	return number(header + SIZE, SIZE_BYTES, bytes);
}

void ls_tar_header_name(const uint8_t *header, char *out, size_t size)
{
	const char *name = (const char *)header + NAME, *prefix = (const char *)header + PREFIX;
	int has_prefix = memcmp(header + MAGIC, "ustar", 6) == 0 && prefix[0]; /* GNU's has other things there */

	snprintf(out, size, "%.*s%s%.*s", has_prefix ? PREFIX_BYTES : 0, prefix, has_prefix ? "/" : "", NAME_BYTES,
		 name);
}

int ls_tar_header_is_file(const uint8_t *header)
{
	return header[LS_TAR_TYPE] == '0' || header[LS_TAR_TYPE] == 0;
}
