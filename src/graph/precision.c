/*
 * precision.c - in which precision a graph multiplies.
 */
#include <pthread.h>
#include <string.h>

#include "base/names.h"
#include "graph/graph.h"

static const struct {
	const char *name, *summary;
} precisions[] = {
	[LS_PRECISION_FP32] = { "fp32", "products, sums and values in fp32 (the default)" },
	[LS_PRECISION_BF16] = { "bf16",
				"products of convolutions, linear layers and attention in bf16, summed in fp32; "
				"weights, values and update in fp32" },
	[LS_PRECISION_BF16_AMX] = { "bf16-amx", "convolutions and linear layers in bf16, but summed in the order of "
						"Intel's AMX; its results differ from those of bf16" },
	[LS_PRECISION_BF16_LAYERS] = { "bf16-layers", "as bf16, but attention multiplies in fp32: the bf16 of earlier "
						      "versions, whose runs go on in it" },
	[LS_PRECISION_COUNT] = { "auto", "what a short measurement at the start finds clearly faster than fp32, "
					 "else fp32" },
};

const char *ls_precision_name_at(size_t i)
{
	return i < sizeof(precisions) / sizeof(*precisions) ? precisions[i].name : NULL;
}

const char *ls_precision_summary_at(size_t i)
{
	return i < sizeof(precisions) / sizeof(*precisions) ? precisions[i].summary : NULL;
}

/* ---- auto ---- */

static pthread_once_t chosen = PTHREAD_ONCE_INIT;
static ls_precision_choice choice;
static ls_status choice_status;

static void choose(void)
{
	const double clearly = 1.2; /* times as fast: layers are not products alone */

	choice_status = ls_op_product_rates(choice.rates);
	if (choice_status != LS_OK)
		return;
	for (int i = LS_PRECISION_BF16; i < LS_PRECISION_COUNT; i++)
		if (choice.rates[i] > choice.rates[choice.precision] &&
		    choice.rates[i] >= clearly * choice.rates[LS_PRECISION_FP32])
			choice.precision = (ls_precision)i;
}

ls_status ls_precision_choose(ls_precision_choice *out)
{
	pthread_once(&chosen, choose);
	if (choice_status != LS_OK)
		return ls_fail(choice_status, "no memory to measure products in fp32 and bf16");
	*out = choice;
	return LS_OK;
}

ls_status ls_graph_set_precision(ls_graph *graph, const char *precision)
{
	ls_precision_choice best = { 0 };
	size_t row;

	LS_TRY(ls_name_find("precision", precision, ls_precision_name_at, &row));
	if (row == LS_PRECISION_COUNT) {
		LS_TRY(ls_precision_choose(&best));
		row = best.precision;
	}
	graph->precision = (ls_precision)row;
	return LS_OK;
}
