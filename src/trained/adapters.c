#include "trained/adapters.h"

#include <stdlib.h>
#include <string.h>

#include "base/names.h"
#include "checkpoint/name_rules.h"

#define ENDING_A ".lora_A.weight"
#define ENDING_B ".lora_B.weight"

int ls_adapters_are_in(const ls_param_table *table)
{
	for (size_t i = 0; i < table->count; i++)
		if (ls_ckpt_is_adapter(table->rows[i].name))
			return 1;
	return 0;
}

/* The parameter whose name is that of A with another ending. */
static const ls_param *find(const ls_param_table *table, const ls_param *a, const char *ending)
{
	size_t length = strlen(a->name) - strlen(ENDING_A);

	for (size_t i = 0; i < table->count; i++) {
		const char *name = table->rows[i].name;
		if (strncmp(name, a->name, length) == 0 && strcmp(name + length, ending) == 0)
			return &table->rows[i];
	}
	return NULL;
}

static int fit(const ls_param *w, const ls_param *a, const ls_param *b)
{
	return w && b && w->rank == 2 && a->rank == 2 && b->rank == 2 && w->layout.is_transposed &&
	       w->shape[0] == a->shape[1] && w->shape[1] == b->shape[0] && a->shape[0] == b->shape[1];
}

/* w (in, out) += (b (out, rank) a (rank, in))^T */
static void add(float *w, const float *a, const float *b, int64_t in, int64_t out, int64_t rank)
{
	for (int64_t i = 0; i < in; i++)
		for (int64_t o = 0; o < out; o++) {
			double sum = 0;
			for (int64_t r = 0; r < rank; r++)
				sum += (double)b[o * rank + r] * (double)a[r * in + i];
			w[i * out + o] = (float)((double)w[i * out + o] + sum);
		}
}

static ls_status merge(const ls_param *w, const ls_param *a, const ls_param *b, float *params)
{
	float *values = malloc((ls_param_elements(w) + ls_param_elements(a) + ls_param_elements(b)) * sizeof(*values));

	if (!values)
		return ls_fail(LS_EMEMORY, "no memory to add the adapters of '%s'", w->name);
	float *of_a = values + ls_param_elements(w), *of_b = of_a + ls_param_elements(a);
	ls_param_export(w, LS_STORE_WHOLE, params, values);
	ls_param_export(a, LS_STORE_WHOLE, params, of_a);
	ls_param_export(b, LS_STORE_WHOLE, params, of_b);
	add(values, of_a, of_b, w->shape[0], w->shape[1], a->shape[0]);
	ls_param_import(w, LS_STORE_WHOLE, values, params);
	free(values);
	return LS_OK;
}

ls_status ls_adapters_merge(const ls_param_table *table, float *params)
{
	for (size_t i = 0; i < table->count; i++) {
		const ls_param *a = &table->rows[i];
		if (!ls_text_ends_with(a->name, ENDING_A))
			continue;
		const ls_param *w = find(table, a, ".weight"), *b = find(table, a, ENDING_B);
		if (!fit(w, a, b))
			return ls_fail(LS_EUNSUPPORTED, "'%s' is not an adapter that can be added to a weight",
				       a->name);
		LS_TRY(merge(w, a, b, params));
	}
	return LS_OK;
}

void ls_adapters_leave_out(ls_ckpt_tensors *t)
{
	size_t kept = 0;

	for (size_t i = 0; i < t->count; i++) {
		if (ls_ckpt_is_adapter(t->tensors[i].name))
			continue;
		t->tensors[kept] = t->tensors[i];
		t->sources[kept++] = t->sources[i];
	}
	t->count = kept;
}
