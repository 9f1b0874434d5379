/*
 * mlp.c - flatten, then 256, 128 and the classes, relu between.
 */
#include "models/family.h"

ls_status ls_model_mlp(ls_graph *g, const ls_model_options *o)
{
	ls_value x = ls_input(g, o->channels, o->height, o->width);

	x = ls_linear(g, x, "fc1", (ls_linear_options){ .out_features = 256, .init = LS_WEIGHTS_HE_FAN_IN });
	x = ls_dropout(g, ls_relu(g, x), (ls_dropout_options){ .p = o->dropout });
	x = ls_linear(g, x, "fc2", (ls_linear_options){ .out_features = 128, .init = LS_WEIGHTS_HE_FAN_IN });
	x = ls_dropout(g, ls_relu(g, x), (ls_dropout_options){ .p = o->dropout });
	x = ls_linear(g, x, "fc3", (ls_linear_options){ .out_features = o->classes, .init = LS_WEIGHTS_ZERO });
	return ls_graph_finish(g, x);
}
