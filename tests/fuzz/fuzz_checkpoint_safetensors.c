/*
 * Any bytes as a safetensors file: refused with a message, or open with every invariant the reader promises.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int holds)
{
	if (!holds)
		abort();
}

static size_t check_tensor(const ls_st_reader *reader, size_t i, const uint8_t *data, size_t size)
{
	const ls_st_tensor *tensor = ls_st_at(reader, i);
	const uint8_t *begin = tensor->data;
	require(ls_st_find(reader, tensor->name) == tensor);
	require(*tensor->name && tensor->dtype < LS_DTYPE_COUNT && tensor->rank <= LS_ST_RANK_MAX);
	require(begin >= data + 8 && begin <= data + size && tensor->bytes <= (size_t)(data + size - begin));
	size_t count = tensor->bytes / ls_dtype_bytes(tensor->dtype);
	float *out = malloc((count + 1) * sizeof(*out));
	require(out != NULL);
	if (ls_st_to_float(tensor, out) != LS_OK)
		require(*ls_last_error());
	free(out);
	return tensor->bytes;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	ls_st_reader *reader = NULL;
	if (ls_st_open_bytes(&reader, data, size, "fuzz") != LS_OK) {
		require(!reader && strncmp(ls_last_error(), "fuzz: ", 6) == 0);
		return 0;
	}
	size_t total = 0;
	uint64_t header;
	for (size_t i = 0; i < ls_st_count(reader); i++)
		total += check_tensor(reader, i, data, size);
	memcpy(&header, data, sizeof(header));
	require(8 + header + total == size);
	ls_st_metadata(reader, "format");
	ls_st_close(reader);
	return 0;
}
