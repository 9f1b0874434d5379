/*
 * Lists of hosts in tables to fit: whatever the bytes, there are names that are not empty, or none.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tools/fit/table.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	ls_arena arena = LS_ARENA_INIT;
	char *text = ls_arena_alloc(&arena, size + 1);
	const char **names;

	if (!text)
		return 0;
	if (size > 0)
		memcpy(text, data, size);
	int64_t count = ls_fit_hosts(&arena, text, &names);
	if (count < 0 || (count > 0 && text[0] == '\0'))
		abort();
	for (int64_t i = 0; i < count; i++)
		if (names[i][0] == '\0')
			abort();
	ls_arena_release(&arena);
	return 0;
}
