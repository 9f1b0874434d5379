/*
 * Published figures: whatever the bytes, the rows are sound or there is a message. Where bad rows are left out, the
 * others are those that are sound.
 */
#include <stdlib.h>
#include <string.h>

#include "tools/results/published.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_rows(const ls_published *set)
{
	for (size_t i = 0; i < set->row_count; i++) {
		const ls_published_row *row = &set->rows[i];
		if (row->nodes < 1 || row->devices < row->nodes || row->model[0] == '\0' || !(row->batch >= 1) ||
		    row->line < 1 || !(ls_published_samples_per_s(set, row) + row->wall_s > 0))
			abort();
	}
	for (size_t i = 0; i < set->fault_count; i++)
		if (set->faults[i].line < 1 || set->faults[i].reason[0] == '\0')
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	ls_arena arena = LS_ARENA_INIT;
	ls_published set = { 0 }, rest = { 0 };
	ls_status status = ls_published_parse(&set, &arena, data, size, "fuzz", "fuzz", 0);

	if (status != LS_OK && ls_last_error()[0] == '\0')
		abort();
	if (status == LS_OK && (set.row_count == 0 || set.title[0] == '\0'))
		abort();
	check_rows(&set);
	if (ls_published_parse(&rest, &arena, data, size, "fuzz", "fuzz", 1) == LS_OK) {
		check_rows(&rest);
		if (rest.row_count + rest.fault_count == 0 || (status == LS_OK && rest.row_count != set.row_count))
			abort();
	} else if (status == LS_OK) {
		abort();
	}
	ls_arena_release(&arena);
	return 0;
}
