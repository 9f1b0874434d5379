/*
 * Any bytes as the body of a request, for models of images, of text and of tables: refused with a reason, or samples of
 * the right shape. The first byte chooses the model.
 */
#include <math.h>

#include "fuzz/common.h"
#include "tools/serve/request.h"

static void check(const ls_request *r, const ls_request_shape *shape)
{
	size_t values = (size_t)shape->channels * (size_t)shape->height * (size_t)shape->width;

	fuzz_require(r->count >= 1 && r->count <= LS_REQUEST_INPUTS_MAX && r->top >= 1);
	fuzz_require((r->kind == LS_REQUEST_TEXTS) == (shape->input == LS_REQUEST_OF_TEXT));
	fuzz_require((r->kind == LS_REQUEST_ROWS) == (shape->input == LS_REQUEST_OF_ROWS));
	for (size_t i = 0; r->kind == LS_REQUEST_NUMBERS && i < r->count * values; i++)
		fuzz_require(isfinite(r->numbers[i]));
	for (size_t i = 0; r->kind == LS_REQUEST_ROWS && i < r->count; i++)
		fuzz_require(json_is_object(json_array_get(r->rows, i)));
	unsigned sum = 0;
	for (size_t i = 0; r->part && i < r->count; i++)
		for (size_t k = 0; k < r->part[i].size; k++)
			sum += ((const uint8_t *)r->part[i].bytes)[k];
	fuzz_require(sum != 0xffffffffu);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const ls_request_shape shapes[] = { { LS_REQUEST_OF_IMAGES, 1, 2, 2, NULL },
						   { LS_REQUEST_OF_IMAGES, 3, 1, 2, NULL },
						   { .input = LS_REQUEST_OF_TEXT },
						   { LS_REQUEST_OF_ROWS, 3, 1, 1, "area, city" } };
	ls_request request = { 0 };
	if (size < 1)
		return 0;
	const ls_request_shape *shape = &shapes[data[0] % 4];
	ls_status status = data[0] & 0x80 ? ls_request_from_image(&request, shape, data + 1, size - 1)
					  : ls_request_from_json(&request, shape, data + 1, size - 1);
	if (status == LS_OK)
		check(&request, shape);
	else
		fuzz_require(ls_last_error()[0] != '\0' && request.count == 0);
	ls_request_release(&request);
	return 0;
}
