/*
 * Any bytes as a .npy file: refused, or an array inside them whose images can be read.
 */
#include <stdint.h>

#include "data/readers/npy.h"
#include "fuzz/common.h"

#define VALUES_MAX (1 << 16)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	ls_npy npy;
	ls_npy_images im;

	if (ls_npy_parse(&npy, data, size, "input") != LS_OK)
		return 0;
	fuzz_require(npy.data >= data && npy.data + npy.elements * (uint64_t)npy.width == data + size);
	if (ls_npy_expect_labels(&npy, "input") == LS_OK)
		for (uint64_t i = 0; i < npy.dims[0]; i++)
			(void)ls_npy_integer(&npy, i);
	if (ls_npy_as_images(&im, &npy, "input") != LS_OK || im.row_bytes > VALUES_MAX)
		return 0;
	fuzz_require(im.samples * im.row_bytes == npy.elements * (uint64_t)npy.width);
	float *out = malloc(VALUES_MAX * sizeof(*out));
	fuzz_require(out != NULL);
	for (uint64_t i = 0; i < im.samples && i < 4; i++) {
		const uint8_t *row = npy.data + i * im.row_bytes;
		(void)(im.is_float ? ls_npy_to_floats(&im, row, i, "input", out)
				   : ls_npy_to_bytes(&im, row, i, "input", (uint8_t *)out));
	}
	free(out);
	return 0;
}
