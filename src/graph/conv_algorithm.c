/*
 * conv_algorithm.c - how a graph computes its convolutions.
 */
#include "base/names.h"
#include "graph/graph.h"

/* In the order of ls_conv_algorithm. */
static const struct {
	const char *name, *summary;
} algorithms[] = {
	{ "auto", "Winograd's algorithm for shapes where it is faster, else direct (the default)" },
	{ "direct", "every product of every tap" },
	{ "winograd", "Winograd's F(2x2, 3x3) for all 3x3 layers of stride 1, else direct" },
};

const char *ls_conv_algorithm_name_at(size_t i)
{
	return i < sizeof(algorithms) / sizeof(*algorithms) ? algorithms[i].name : NULL;
}

const char *ls_conv_algorithm_summary_at(size_t i)
{
	return i < sizeof(algorithms) / sizeof(*algorithms) ? algorithms[i].summary : NULL;
}

ls_status ls_graph_set_conv(ls_graph *graph, const char *algorithm)
{
	size_t row;

	LS_TRY(ls_name_find("convolution algorithm", algorithm, ls_conv_algorithm_name_at, &row));
	graph->conv_algorithm = (int)row;
	return LS_OK;
}
