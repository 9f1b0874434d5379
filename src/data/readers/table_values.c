#include "data/readers/table_values.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/array.h"

void ls_table_values_release(ls_table_values *v)
{
	for (size_t i = 0; i < v->count; i++)
		free(v->value[i]);
	free(v->value);
	free(v->slot);
	*v = (ls_table_values){ 0 };
}

static size_t find_slot(const ls_table_values *v, const char *text)
{
	size_t at = XXH64(text, strlen(text), 0) & (v->slots - 1);

	while (v->slot[at] != 0 && strcmp(v->value[v->slot[at] - 1], text) != 0)
		at = (at + 1) & (v->slots - 1);
	return at;
}

static ls_status more_slots(ls_table_values *v)
{
	size_t slots = v->slots > 0 ? 4 * v->slots : 16;
	uint32_t *slot = calloc(slots, sizeof(*slot));

	if (!slot)
		return ls_fail(LS_EMEMORY, "no memory for the values of a column");
	free(v->slot);
	v->slot = slot;
	v->slots = slots;
	for (size_t i = 0; i < v->count; i++)
		slot[find_slot(v, v->value[i])] = (uint32_t)i + 1;
	return LS_OK;
}

ls_status ls_table_values_add(ls_table_values *v, const char *text, size_t most)
{
	if (v->count > most)
		return LS_OK;
	if (2 * v->count >= v->slots)
		LS_TRY(more_slots(v));
	size_t at = find_slot(v, text);
	if (v->slot[at] != 0)
		return LS_OK;
	LS_TRY(ls_array_grow(&v->value, &v->room, v->count + 1, sizeof(*v->value)));
	v->value[v->count] = strdup(text);
	if (!v->value[v->count])
		return ls_fail(LS_EMEMORY, "no memory for the values of a column");
	v->slot[at] = (uint32_t)++v->count;
	return LS_OK;
}

static int compare(const void *a, const void *b)
{
	return ls_table_compare_values(*(char *const *)a, *(char *const *)b);
}

void ls_table_values_merge_numbers(ls_table_values *v)
{
	size_t kept = 0;

	if (v->count > 1)
		qsort(v->value, v->count, sizeof(*v->value), compare);
	for (size_t i = 0; i < v->count; i++) {
		char *value = v->value[i], *first = value + strspn(value, " \t");
		memmove(value, first, strlen(first) + 1);
		value[strcspn(value, " \t")] = '\0';
		if (kept == 0 || !ls_table_same_number(v->value[kept - 1], value)) {
			v->value[kept++] = value;
			continue;
		}
		int is_shorter = strlen(value) < strlen(v->value[kept - 1]);
		free(is_shorter ? v->value[kept - 1] : value);
		v->value[kept - 1] = is_shorter ? value : v->value[kept - 1];
	}
	v->count = kept;
}

void ls_table_values_give(ls_table_values *v, ls_table_column *c)
{
	if (v->count > 1)
		qsort(v->value, v->count, sizeof(*v->value), compare);
	c->is_category = 1;
	c->value = v->value;
	c->values = v->count;
	free(v->slot);
	*v = (ls_table_values){ 0 };
}
