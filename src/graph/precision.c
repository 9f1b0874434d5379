/*
 * precision.c - in which precision a graph multiplies.
 */
#include <string.h>

#include "base/names.h"
#include "graph/graph.h"

static const struct {
	const char *name, *summary;
} precisions[] = {
	{ "fp32", "products, sums and values in fp32 (the default)" },
	{ "bf16",
	  "products of convolutions and linear layers in bf16, summed in fp32; weights, values and update in fp32" },
	{ "auto", "bf16 where the processor has instructions for it, else fp32" },
};

const char *ls_precision_name_at(size_t i)
{
	return i < sizeof(precisions) / sizeof(*precisions) ? precisions[i].name : NULL;
}

const char *ls_precision_summary_at(size_t i)
{
	return i < sizeof(precisions) / sizeof(*precisions) ? precisions[i].summary : NULL;
}

static const char *resolved(const char *precision)
{
	if (strcmp(precision, "auto") != 0)
		return precision;
	return ls_op_bf16_is_native() ? "bf16" : "fp32";
}

ls_status ls_graph_set_precision(ls_graph *graph, const char *precision)
{
	size_t row;

	LS_TRY(ls_name_find("precision", precision, ls_precision_name_at, &row));
	graph->is_bf16 = strcmp(resolved(precision), "bf16") == 0;
	return LS_OK;
}
