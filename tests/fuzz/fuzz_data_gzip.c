/*
 * Any bytes as a compressed IDX file and as a plain gzip stream: no crash, and no more memory than the header declared.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "data/readers/gzip.h"
#include "data/readers/idx.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_stream(const uint8_t *data, size_t size)
{
	ls_gzip gzip;
	uint8_t buffer[4096];
	size_t got = 1;
	if (ls_gzip_open(&gzip, data, size, "input") != LS_OK)
		return;
	for (int i = 0; i < 256 && got; i++) /* a megabyte is enough of any input */
		if (ls_gzip_read(&gzip, buffer, sizeof(buffer), &got) != LS_OK)
			break;
	ls_gzip_close(&gzip);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	ls_idx_file file;
	read_stream(data, size);
	if (ls_idx_load(&file, data, size, "input") != LS_OK)
		return 0;
	unsigned sum = 0;
	for (uint64_t i = 0; i < file.idx.elements; i++)
		sum += file.idx.data[i];
	if (file.inflated && file.inflated_bytes > size * LS_GZIP_RATIO_MAX + LS_GZIP_RATIO_MAX)
		abort();
	ls_idx_close(&file);
	return sum == 0xffffffffu;
}
