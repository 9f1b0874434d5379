/*
 * Any bytes as a plain IDX file: refused, or a view that lies inside them.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "data/readers/idx.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	ls_idx idx;
	if (ls_idx_parse(&idx, data, size, "input") != LS_OK)
		return 0;
	uint64_t elements = 1;
	for (int i = 0; i < idx.rank; i++)
		elements *= idx.dims[i];
	if (elements != idx.elements || idx.data < data ||
	    idx.data + idx.elements * (uint64_t)idx.width != data + size || (idx.rank != 1 && idx.width != 1))
		abort();
	unsigned sum = 0;
	for (uint64_t i = 0; i < idx.elements; i++)
		sum += (unsigned)ls_idx_label(&idx, i);
	(void)ls_idx_expect_images(&idx, "input");
	(void)ls_idx_expect_labels(&idx, "input");
	return sum == 0xffffffffu;
}
