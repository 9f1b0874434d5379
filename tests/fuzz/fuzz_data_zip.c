/*
 * Any bytes as a ZIP archive: refused, or members whose contents have the size and checksum that it says.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "data/readers/zip.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_member(const ls_zip *zip, const ls_zip_member *member)
{
	if (strlen(member->name) >= sizeof(member->name))
		abort();
	if (member->bytes > 1 << 20)
		return;
	uint8_t *out = malloc(member->bytes ? member->bytes : 1);
	if (out && ls_zip_read(zip, member, out) == LS_OK && crc32_z(0, out, member->bytes) != member->crc)
		abort();
	free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	ls_zip zip;
	int more = 1;
	if (ls_zip_open(&zip, data, size, "input") != LS_OK)
		return 0;
	for (int members = 0; more && members < 1000; members++) {
		ls_zip_member member;
		if (ls_zip_next(&zip, &member, &more) != LS_OK)
			return 0;
		if (more)
			read_member(&zip, &member);
	}
	return 0;
}
