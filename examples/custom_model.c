/*
 * custom_model.c - a custom model: a small residual network with dropout, trained on the built-in glyphs.
 *
 * Every ls_ call below adds one layer and returns the value it makes; values may be used more than once, which is all a
 * residual connection is. Mistakes are kept by the graph and reported by ls_graph_finish(), so nothing is checked
 * before.
 *
 *     cc custom_model.c $(pkg-config --cflags --libs lockstep) && ./a.out
 */
#include <lockstep/lockstep.h>
#include <stdio.h>

/* 3x3 convolution and batch norm. Its parameters are named "<name>.conv.weight", "<name>.norm.weight" and so on. */
static ls_value conv_norm(ls_graph *g, ls_value x, const char *name, int channels, int stride)
{
	char conv[64], norm[64];
	snprintf(conv, sizeof(conv), "%s.conv", name);
	snprintf(norm, sizeof(norm), "%s.norm", name);
	x = ls_conv2d(g, x, conv,
		      (ls_conv_options){
			      .out_channels = channels, .kernel = 3, .stride = stride, .padding = 1, .no_bias = 1 });
	return ls_batch_norm(g, x, norm, (ls_batch_norm_options){ 0 });
}

/* (16, 14, 14) -> (16, 14, 14): x + two convolutions of x. */
static ls_value residual(ls_graph *g, ls_value x)
{
	ls_value branch = ls_relu(g, conv_norm(g, x, "block.0", 16, 1));
	branch = conv_norm(g, branch, "block.1", 16, 1);
	return ls_relu(g, ls_add(g, branch, x));
}

static ls_status build(ls_graph *g)
{
	ls_value x = ls_input(g, 1, 28, 28);
	x = ls_relu(g, conv_norm(g, x, "stem", 16, 2)); /* (16, 14, 14) */
	x = residual(g, x);
	x = ls_relu(g, conv_norm(g, x, "narrow", 32, 2));          /* (32, 7, 7) */
	x = ls_max_pool2d(g, x, (ls_pool_options){ .kernel = 2 }); /* (32, 3, 3) */
	x = ls_dropout(g, x, (ls_dropout_options){ .p = 0.1f });
	x = ls_linear(g, x, "classes", (ls_linear_options){ .out_features = 10 });
	return ls_graph_finish(g, x);
}

int main(void)
{
	ls_graph *graph = NULL;
	ls_train_options options = LS_TRAIN_OPTIONS_INIT;
	ls_train_result result;
	ls_status status = ls_graph_new(&graph);

	if (status == LS_OK)
		status = build(graph);
	if (status == LS_OK) {
		printf("%llu parameters\n", (unsigned long long)ls_graph_describe(graph).parameters);
		options.graph = graph;
		options.data = "glyphs";
		options.samples = 6000;
		options.test_samples = 1000;
		options.batch = 64;
		options.epochs = 2;
		options.lr = 0.003;
		status = ls_train(&options, &result);
	}
	ls_graph_free(graph);
	if (status != LS_OK) {
		fprintf(stderr, "custom_model: %s\n", ls_last_error());
		return 1;
	}
	printf("accuracy %.4f on glyphs it has not seen\n", result.test_accuracy);
	return result.test_accuracy >= 0.9 ? 0 : 1;
}
