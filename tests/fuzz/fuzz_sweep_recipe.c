/*
 * Recipes: whatever the bytes, each form is a list whose points are sound, or there is a message.
 */
#include <stdlib.h>
#include <string.h>

#include "tools/sweep/recipe.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const ls_sweep_list *list)
{
	for (size_t i = 0; i < list->count; i++) {
		const ls_sweep_point *p = &list->points[i];
		int64_t devices = 0;
		for (int64_t k = 0; k < p->job.nodes; k++)
			devices += ls_shape_devices(p->job.shape, (size_t)k);
		if (p->job.nodes < 1 || devices != p->job.devices || p->key[0] == '\0' ||
		    ls_shape_devices(p->job.shape, (size_t)p->job.nodes) != 0)
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	for (int form = 0; form < LS_RECIPE_FORMS; form++) {
		ls_sweep_list list = { 0 };
		ls_status status = ls_recipe_parse(&list, data, size, (ls_recipe_form)form, "fuzz", "fuzz");
		if (status == LS_OK && list.count == 0)
			abort();
		if (status != LS_OK && ls_last_error()[0] == '\0')
			abort();
		if (status == LS_OK)
			check(&list);
		ls_sweep_list_release(&list);
	}
	return 0;
}
