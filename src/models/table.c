/*
 * table.c - the table of models.
 */
#include <string.h>

#include "base/names.h"
#include "models/family.h"

static const ls_model_kind kinds[] = {
	{ { "mlp", "three linear layers, 256 and 128 wide" }, ls_model_mlp },
	{ { "cnn", "two 3x3 convolutions of 32 and 64 channels with pooling, a 128-wide layer" }, ls_model_cnn },
	{ { "resnet18", "torchvision's ResNet-18: basic blocks, 2-2-2-2" }, ls_model_resnet18 },
	{ { "resnet34", "torchvision's ResNet-34: basic blocks, 3-4-6-3" }, ls_model_resnet34 },
	{ { "resnet50", "torchvision's ResNet-50: bottlenecks, 3-4-6-3" }, ls_model_resnet50 },
	{ { "resnet101", "torchvision's ResNet-101: bottlenecks, 3-4-23-3" }, ls_model_resnet101 },
	{ { "resnet152", "torchvision's ResNet-152: bottlenecks, 3-8-36-3" }, ls_model_resnet152 },
};

#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

const ls_model_row *ls_model_row_at(size_t i)
{
	return i < KINDS ? &kinds[i].row : NULL;
}

static const char *name_at(size_t i)
{
	return i < KINDS ? kinds[i].row.name : NULL;
}

static const ls_model_kind *find(const char *name)
{
	for (size_t i = 0; i < KINDS; i++)
		if (strcmp(kinds[i].row.name, name) == 0)
			return &kinds[i];
	return NULL;
}

/* Zeros in the options stand for MNIST's shape. */
static ls_model_options filled(const ls_model_options *options)
{
	ls_model_options o = *options;
	o.channels = o.channels ? o.channels : 1;
	o.height = o.height ? o.height : 28;
	o.width = o.width ? o.width : 28;
	o.classes = o.classes ? o.classes : 10;
	return o;
}

ls_status ls_model_build(ls_graph **out, const ls_model_options *options)
{
	ls_model_options o = filled(options);
	const ls_model_kind *kind = o.name != NULL ? find(o.name) : NULL;
	ls_graph *graph = NULL;

	if (kind == NULL)
		return ls_name_unknown("model", o.name != NULL ? o.name : "", name_at);
	LS_TRY(ls_graph_new(&graph));
	ls_status status = ls_graph_finish(graph, kind->build(graph, &o));
	if (status != LS_OK) {
		ls_graph_free(graph);
		return ls_fail_context(status, "model %s for %d channels of %dx%d", o.name, o.channels, o.height,
				       o.width);
	}
	*out = graph;
	return LS_OK;
}
