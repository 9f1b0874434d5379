/*
 * Published figures: whatever the bytes, the rows are sound or there is a message.
 */
#include <stdlib.h>
#include <string.h>

#include "tools/results/published.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	ls_arena arena = LS_ARENA_INIT;
	ls_published set = { 0 };
	ls_status status = ls_published_parse(&set, &arena, data, size, "fuzz", "fuzz");

	if (status != LS_OK && ls_last_error()[0] == '\0')
		abort();
	if (status == LS_OK && (set.row_count == 0 || set.title[0] == '\0'))
		abort();
	for (size_t i = 0; i < set.row_count; i++) {
		const ls_published_row *row = &set.rows[i];
		if (row->nodes < 1 || row->devices < row->nodes || row->model[0] == '\0' || !(row->batch >= 1) ||
		    !(ls_published_samples_per_s(&set, row) + row->wall_s > 0))
			abort();
	}
	ls_arena_release(&arena);
	return 0;
}
