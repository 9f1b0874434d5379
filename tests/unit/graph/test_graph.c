/*
 * The builder: every mistake has its message, later calls keep the first one, and the facts of a finished graph.
 */
#include "unit/graph/net.h"
#include "unit/test_main.h"

typedef ls_value (*mistake)(ls_graph *g);

static const ls_pool_options pool2 = { .kernel = 2 };

static ls_value image(ls_graph *g)
{
	return ls_input(g, 3, 8, 8);
}

static ls_value kernel_too_large(ls_graph *g)
{
	return net_head(g, ls_conv2d(g, image(g), "big",
				     (ls_conv_options){ .out_channels = 4, .kernel = 11, .padding = 1, .no_bias = 1 }));
}

static ls_value kernel_missing(ls_graph *g)
{
	return net_head(g, ls_conv2d(g, image(g), "none", (ls_conv_options){ .out_channels = 4, .no_bias = 1 }));
}

static ls_value negative_padding(ls_graph *g)
{
	return net_head(g, ls_conv2d(g, image(g), "neg",
				     (ls_conv_options){ .out_channels = 4, .kernel = 3, .padding = -1, .no_bias = 1 }));
}

static ls_value negative_stride(ls_graph *g)
{
	return net_head(g, ls_conv2d(g, image(g), "neg",
				     (ls_conv_options){ .out_channels = 4, .kernel = 3, .stride = -2, .no_bias = 1 }));
}

static ls_value no_channels(ls_graph *g)
{
	return net_head(g, ls_conv2d(g, image(g), "zero", (ls_conv_options){ .kernel = 3 }));
}

static ls_value conv_without_name(ls_graph *g)
{
	return net_head(g, net_conv(g, image(g), NULL, 4, 3, 1));
}

static ls_value norm_without_name(ls_graph *g)
{
	return net_head(g, net_norm(g, image(g), NULL));
}

static ls_value no_features(ls_graph *g)
{
	return ls_linear(g, image(g), "fc", (ls_linear_options){ .out_features = 0, .no_bias = 1 });
}

static ls_value same_name(ls_graph *g)
{
	return net_head(g, net_conv(g, net_conv(g, image(g), "twin", 4, 3, 1), "twin", 4, 3, 1));
}

static ls_value same_name_of_two_kinds(ls_graph *g)
{
	return net_head(g, net_norm(g, net_conv(g, image(g), "twin", 4, 3, 0), "twin"));
}

static ls_value add_other_channels(ls_graph *g)
{
	ls_value x = image(g);
	return net_head(g, ls_add(g, net_conv(g, x, "a", 4, 3, 1), net_conv(g, x, "b", 5, 3, 1)));
}

static ls_value add_other_size(ls_graph *g)
{
	ls_value x = image(g);
	return net_head(g, ls_add(g, net_conv(g, x, "a", 3, 3, 1), ls_max_pool2d(g, x, pool2)));
}

static ls_value foreign_value(ls_graph *g)
{
	image(g);
	return net_head(g, (ls_value){ 17 });
}

static ls_value invalid_value(ls_graph *g)
{
	image(g);
	return net_head(g, (ls_value){ -1 });
}

static ls_value second_input(ls_graph *g)
{
	ls_value x = net_conv(g, image(g), "a", 3, 3, 1);
	return net_head(g, ls_add(g, x, image(g)));
}

static ls_value impossible_input(ls_graph *g)
{
	return net_head(g, ls_input(g, 3, 0, 8));
}

static ls_value logits_with_a_map(ls_graph *g)
{
	return net_conv(g, image(g), "a", NET_CLASSES, 3, 1);
}

static ls_value one_class(ls_graph *g)
{
	return net_linear(g, image(g), "a", 1);
}

static ls_value nothing_between(ls_graph *g)
{
	return ls_input(g, 10, 1, 1);
}

static ls_value unused_layer(ls_graph *g)
{
	ls_value x = image(g);
	net_conv(g, x, "idle", 4, 3, 1);
	return net_head(g, x);
}

/* It is read, but the reader's output is not. */
static ls_value unused_chain(ls_graph *g)
{
	ls_value x = image(g);
	ls_max_pool2d(g, ls_relu(g, net_conv(g, x, "idle", 4, 3, 1)), pool2);
	return net_head(g, x);
}

static ls_value pool_too_large(ls_graph *g)
{
	return net_head(g, ls_max_pool2d(g, image(g), (ls_pool_options){ .kernel = 9 }));
}

static ls_value pool_padding(ls_graph *g)
{
	return net_head(g, ls_avg_pool2d(g, image(g), (ls_pool_options){ .kernel = 3, .padding = 2 }));
}

static ls_value certain_dropout(ls_graph *g)
{
	return net_head(g, net_dropout(g, image(g), 1.0f));
}

static ls_value negative_dropout(ls_graph *g)
{
	return net_head(g, net_dropout(g, image(g), -0.1f));
}

/* More taps than the store can number. */
static ls_value linear_on_a_huge_map(ls_graph *g)
{
	return net_head(g, ls_input(g, 16, 200, 200));
}

/* Sizes whose products do not fit: each must be reported, not wrap around. */
static ls_value huge_padding(ls_graph *g)
{
	return net_head(
		g, ls_conv2d(g, image(g), "pad",
			     (ls_conv_options){ .out_channels = 4, .kernel = 3, .padding = 0x7fffffff, .no_bias = 1 }));
}

static ls_value huge_pool_padding(ls_graph *g)
{
	return net_head(g, ls_max_pool2d(g, image(g), (ls_pool_options){ .kernel = 3, .padding = 0x40000000 }));
}

static ls_value huge_input(ls_graph *g)
{
	return net_head(g, ls_global_avg_pool(g, ls_input(g, 65536, 16384, 16384)));
}

static ls_value huge_channels(ls_graph *g)
{
	return net_head(g, net_conv(g, image(g), "wide", 0x7fffffff, 1, 0));
}

static ls_value huge_map(ls_graph *g)
{
	return net_head(g, net_conv(g, ls_input(g, 1, 4096, 4096), "wide", 256, 1, 0));
}

static ls_value huge_weights(ls_graph *g)
{
	ls_value x = net_conv(g, ls_input(g, 16, 2, 2), "a", 65536, 1, 0);
	return net_head(g, net_conv(g, x, "b", 65536, 127, 0));
}

static ls_value huge_patches(ls_graph *g)
{
	return net_head(g, net_conv(g, ls_input(g, 1, 512, 512), "a", 4, 255, 0));
}

static ls_value smoothing(ls_graph *g)
{
	ls_value x = net_head(g, image(g));
	ls_cross_entropy(g, x, (ls_cross_entropy_options){ .label_smoothing = 1 });
	return x;
}

static ls_value class_weight(ls_graph *g)
{
	ls_value x = net_head(g, image(g));
	const float weights[NET_CLASSES] = { 1, 1, -2 };
	ls_cross_entropy(g, x, (ls_cross_entropy_options){ .class_weights = weights });
	return x;
}

static ls_value loss_of_a_map(ls_graph *g)
{
	ls_value x = net_conv(g, image(g), "a", NET_CLASSES, 3, 1);
	ls_mean_squared_error(g, x);
	return net_head(g, x);
}

static ls_value two_losses_of_one_value(ls_graph *g)
{
	ls_value x = net_head(g, image(g));
	ls_mean_squared_error(g, x);
	ls_binary_cross_entropy(g, x);
	return x;
}

static ls_value output_without_loss(ls_graph *g)
{
	ls_value x = net_head(g, image(g));
	ls_mean_squared_error(g, x);
	return ls_tanh(g, x);
}

static ls_value concat_other_size(ls_graph *g)
{
	ls_value x = image(g);
	return net_head(g, ls_concat(g, net_conv(g, x, "a", 3, 3, 1), ls_max_pool2d(g, x, pool2)));
}

static const struct {
	const char *name;
	mistake make;
	const char *words[3]; /* that its message has */
} mistakes[] = {
	{ "kernel_too_large", kernel_too_large, { "big", "11x11", "8x8" } },
	{ "kernel_missing", kernel_missing, { "none", "kernel 0x0", "not possible" } },
	{ "negative_padding", negative_padding, { "neg", "padding -1" } },
	{ "negative_stride", negative_stride, { "neg", "stride -2" } },
	{ "no_channels", no_channels, { "zero", "channel" } },
	{ "conv_without_name", conv_without_name, { "name" } },
	{ "norm_without_name", norm_without_name, { "name" } },
	{ "no_features", no_features, { "fc", "feature" } },
	{ "same_name", same_name, { "twin", "differ" } },
	{ "same_name_of_two_kinds", same_name_of_two_kinds, { "twin", "differ" } },
	{ "add_other_channels", add_other_channels, { "add", "4x8x8", "5x8x8" } },
	{ "add_other_size", add_other_size, { "add", "3x8x8", "3x4x4" } },
	{ "foreign_value", foreign_value, { "not of this graph" } },
	{ "invalid_value", invalid_value, { "not of this graph" } },
	{ "second_input", second_input, { "one input" } },
	{ "impossible_input", impossible_input, { "input", "0 x 8" } },
	{ "logits_with_a_map", logits_with_a_map, { "logits", "(7, 8, 8)" } },
	{ "one_class", one_class, { "logits", "at least 2 classes", "this has 1" } },
	{ "nothing_between", nothing_between, { "at least one layer" } },
	{ "unused_layer", unused_layer, { "idle" } },
	{ "unused_chain", unused_chain, { "idle" } },
	{ "pool_too_large", pool_too_large, { "max_pool2d: kernel 9x9" } },
	{ "pool_padding", pool_padding, { "avg_pool", "padding 2", "kernel 3" } },
	{ "certain_dropout", certain_dropout, { "dropout", "1" } },
	{ "negative_dropout", negative_dropout, { "dropout", "-0.1" } },
	{ "linear_on_a_huge_map", linear_on_a_huge_map, { "head", "200x200" } },
	{ "huge_padding", huge_padding, { "pad", "padding 2147483647", "not possible" } },
	{ "huge_pool_padding", huge_pool_padding, { "max_pool2d", "padding 1073741824", "not possible" } },
	{ "huge_input", huge_input, { "65536 channels", "16384 x 16384", "too large" } },
	{ "huge_channels", huge_channels, { "wide", "too large" } },
	{ "huge_map", huge_map, { "256 channels", "4096 x 4096", "too large" } },
	{ "huge_weights", huge_weights, { "'b'", "65536 x 65536 x 127 x 127", "too large" } },
	{ "smoothing", smoothing, { "label_smoothing 1" } },
	{ "class_weight", class_weight, { "class 2", "-2" } },
	{ "loss_of_a_map", loss_of_a_map, { "mean_squared_error", "(7, 8, 8)" } },
	{ "two_losses_of_one_value", two_losses_of_one_value, { "binary_cross_entropy", "loss already" } },
	{ "output_without_loss", output_without_loss, { "does not depend on the output" } },
	{ "concat_other_size", concat_other_size, { "concat", "8x8", "4x4" } },
	{ "huge_patches", huge_patches, { "'a'", "255x255", "reads too much" } },
};

static void test_mistakes(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++) {
		ls_graph *g = net_graph();
		ls_status status = ls_graph_finish(g, mistakes[i].make(g));
		if (status != LS_EINVALID)
			fail_msg("%s was accepted (%s)", mistakes[i].name, ls_status_name(status));
		for (int k = 0; k < 3 && mistakes[i].words[k]; k++)
			if (!strstr(ls_last_error(), mistakes[i].words[k]))
				fail_msg("%s: '%s' is not in the message '%s'", mistakes[i].name, mistakes[i].words[k],
					 ls_last_error());
		ls_graph_free(g);
	}
}

/* The first mistake is the one that is reported. */
static void test_first_mistake_stays(void **state)
{
	ls_graph *g = net_graph();
	(void)state;
	ls_value x = image(g);
	assert_ok(ls_graph_check(g));
	x = net_dropout(g, x, 7);
	assert_fails(ls_graph_check(g), LS_EINVALID, "dropout");
	x = net_conv(g, ls_add(g, x, x), "a", 0, 0, 0);
	x = net_norm(g, ls_flatten(g, ls_global_avg_pool(g, ls_relu(g, ls_max_pool2d(g, x, pool2)))), "n");
	assert_int_equal(ls_graph_finish(g, net_head(g, x)), LS_EINVALID);
	assert_non_null(strstr(ls_last_error(), "dropout"));
	ls_graph_free(g);
}

static void test_finished_is_finished(void **state)
{
	ls_graph *g = net_graph();
	(void)state;
	ls_value x = net_head(g, image(g));
	assert_ok(ls_graph_finish(g, x));
	int nodes = g->node_count;
	uint64_t parameters = ls_graph_describe(g).parameters;
	ls_value y = net_linear(g, x, "late", NET_CLASSES);
	assert_int_equal(ls_graph_finish(g, y), LS_EINVALID);
	assert_non_null(strstr(ls_last_error(), "finished"));
	assert_int_equal(g->node_count, nodes);
	assert_int_equal(ls_graph_describe(g).parameters, parameters);
	ls_graph_free(g);
}

/* Layers without parameters whose output is not read are no mistake and cost nothing. */
static void test_unread_values_are_dropped(void **state)
{
	ls_graph *g = net_graph();
	(void)state;
	ls_value x = image(g);
	ls_relu(g, ls_max_pool2d(g, x, pool2));
	assert_ok(ls_graph_finish(g, net_head(g, x)));
	assert_int_equal(g->node_count, 1);
	ls_graph_free(g);
}

/* A hundred layers: the tables grow. */
static void test_deep(void **state)
{
	ls_graph *g = net_graph();
	ls_value x = image(g);
	(void)state;
	for (int i = 0; i < 100; i++) {
		char name[16];
		snprintf(name, sizeof(name), "c%d", i);
		x = ls_relu(g, net_conv(g, x, name, 4, 3, 1));
	}
	assert_ok(ls_graph_finish(g, net_head(g, x)));
	assert_int_equal(ls_graph_describe(g).parameters, (4 * 3 * 9 + 4) + 99 * (4 * 4 * 9 + 4) + 7 * 256 + 7);
	assert_int_equal(ls_graph_describe(g).layers, 101);
	ls_graph_free(g);
}

/* One convolution and one linear layer, counted by hand. */
static void test_facts(void **state)
{
	ls_graph *g = net_graph();
	(void)state;
	ls_value x = ls_conv2d(g, ls_input(g, 16, 2, 2), "a",
			       (ls_conv_options){ .out_channels = 16, .kernel = 3, .padding = 1, .no_bias = 1 });
	x = ls_conv2d(g, x, "b", (ls_conv_options){ .out_channels = 16, .kernel = 3, .stride = 2, .padding = 1 });
	assert_ok(ls_graph_finish(g, net_linear(g, x, "fc", 10)));
	ls_graph_facts f = ls_graph_describe(g);
	assert_int_equal(f.parameters, 16 * 16 * 9 + 16 * 16 * 9 + 16 + 160 + 10);
	/* b is reachable in 4 of 9 taps; fc and its bias are stored 16 wide */
	assert_int_equal(f.gradient_bytes, 4 * (16 * 16 * 9 + 16 * 16 * 4 + 16 + 16 * 16 + 16));
	/* multiply-adds: a meets the image 16 times of 36 and gives no input gradient, b 4 of 9, fc once */
	assert_true(f.flop_per_sample == 2.0 * (2 * 256 * 16 + 3 * 256 * 4 + 3 * 160));
	assert_true(f.padded_flop_per_sample == 2.0 * (2 * 256 * 36 + 3 * 256 * 9 + 3 * 160));
	assert_int_equal(f.layers, 4); /* with the packing of the input */
	ls_graph_free(g);
}

/* A linear layer sees its input through flatten; the weight is (out, C*H*W) either way. */
static void test_linear_flattens(void **state)
{
	for (int flatten = 0; flatten < 2; flatten++) {
		ls_graph *g = net_graph();
		ls_value x = net_conv(g, image(g), "a", 5, 3, 1);
		assert_ok(ls_graph_finish(g, net_head(g, flatten ? ls_flatten(g, x) : x)));
		assert_int_equal(g->node_count, 2);
		const ls_param *p = &g->params.rows[2];
		assert_string_equal(p->name, "head.weight");
		assert_int_equal(p->rank, 2);
		assert_int_equal(p->shape[0], NET_CLASSES);
		assert_int_equal(p->shape[1], 5 * 64);
		ls_graph_free(g);
	}
	(void)state;
}

/* Options of zeros are PyTorch's defaults, a bias among them; a dropout of 0 is no layer. */
static void test_defaults(void **state)
{
	static const char *const names[] = {
		"c.weight", "c.bias", "n.weight", "n.bias", "n.running_mean", "n.running_var", "n.num_batches_tracked",
		"m.weight", "m.bias", "l.weight", "l.bias"
	};
	ls_graph *g = net_graph();
	ls_value x = ls_conv2d(g, image(g), "c", (ls_conv_options){ .out_channels = 5, .kernel = 3 });
	(void)state;
	ls_value n = ls_batch_norm(g, x, "n", (ls_batch_norm_options){ 0 });
	ls_value m = ls_layer_norm(g, n, "m", (ls_layer_norm_options){ 0 });
	assert_int_equal(ls_dropout(g, m, (ls_dropout_options){ 0 }).id, m.id);
	m = ls_gelu(g, m, (ls_gelu_options){ 0 });
	assert_ok(ls_graph_finish(g, ls_linear(g, m, "l", (ls_linear_options){ .out_features = NET_CLASSES })));
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_string_equal(g->params.rows[i].name, names[i]);
	assert_int_equal(g->params.count, sizeof(names) / sizeof(names[0]));
	const ls_batch_norm_options *batch = g->nodes[1].attributes;
	const ls_layer_norm_options *layer = g->nodes[2].attributes;
	assert_true(batch->eps == 1e-5f && batch->momentum == 0.1f && layer->eps == 1e-5f);
	assert_int_equal(g->values[x.id].height, 6); /* stride 1, no padding */
	ls_graph_free(g);
}

TEST_MAIN(test_mistakes, test_first_mistake_stays, test_finished_is_finished, test_unread_values_are_dropped, test_deep,
	  test_facts, test_linear_flattens, test_defaults)
