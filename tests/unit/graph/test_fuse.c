/* Layers that were fused give what the same layers give one by one. A bias behind a pool sums other elements in another
 * order; everything else gives the same bits. */
#include "unit/graph/sketch.h"
#include "unit/test_main.h"

static ls_value stem(sketch *s, ls_value x)
{
	return ls_avg_pool2d(s->graph, net_conv(s->graph, x, "stem", 20, 3, 1), (ls_pool_options){ .kernel = 2 });
}

static ls_value norm_relu(sketch *s, ls_value x)
{
	return ls_relu(s->graph,
		       sketch_open(s, net_norm(s->graph, net_conv(s->graph, stem(s, x), "a", 20, 3, 0), "n")));
}

static ls_value residual(sketch *s, ls_value x, int branch_first, int relu)
{
	ls_graph *g = s->graph;
	ls_value skip = stem(s, x), branch = sketch_open(s, net_norm(g, net_conv(g, skip, "a", 20, 3, 0), "n"));
	x = branch_first ? ls_add(g, branch, skip) : ls_add(g, skip, branch);
	return relu ? ls_relu(g, sketch_open(s, x)) : x;
}

static ls_value norm_add_relu(sketch *s, ls_value x)
{
	return residual(s, x, 1, 1);
}

static ls_value add_norm_relu(sketch *s, ls_value x)
{
	return residual(s, x, 0, 1);
}

static ls_value norm_add(sketch *s, ls_value x)
{
	return residual(s, x, 1, 0);
}

static ls_value add_relu(sketch *s, ls_value x)
{
	x = stem(s, x);
	x = ls_add(s->graph, net_conv(s->graph, x, "a", 20, 3, 1), net_conv(s->graph, x, "b", 20, 1, 0));
	return ls_relu(s->graph, sketch_open(s, x));
}

static ls_value conv_relu(sketch *s, ls_value x)
{
	return ls_relu(s->graph, sketch_open(s, net_conv(s->graph, stem(s, x), "a", 33, 3, 1)));
}

static ls_value conv_relu_pool(sketch *s, ls_value x)
{
	x = ls_relu(s->graph, sketch_open(s, net_conv(s->graph, stem(s, x), "a", 33, 3, 1)));
	return ls_max_pool2d(s->graph, sketch_open(s, x), (ls_pool_options){ .kernel = 2 });
}

static ls_value conv_pool(sketch *s, ls_value x)
{
	x = sketch_open(s, net_conv(s->graph, stem(s, x), "a", 33, 3, 1));
	return ls_max_pool2d(s->graph, x, (ls_pool_options){ .kernel = 3, .stride = 1, .padding = 1 });
}

static ls_value per_position_gelu(sketch *s, ls_value x)
{
	return net_gelu(s->graph, sketch_open(s, net_per_position(s->graph, stem(s, x), "a", 33)), 0);
}

static ls_value drop_add_layer_norm(sketch *s, ls_value x)
{
	ls_graph *g = s->graph;
	ls_value skip = stem(s, x), branch = ls_tanh(g, net_per_position(g, skip, "a", 20));
	branch = sketch_open(s, net_dropout(g, branch, 0.3f));
	return net_layer_norm(g, sketch_open(s, ls_add(g, skip, branch)), "n", 0);
}

static ls_graph *draw(ls_value (*body)(sketch *s, ls_value x), int apart)
{
	sketch s = { .graph = net_graph(), .apart = apart };
	ls_value x = net_head(s.graph, body(&s, ls_input(s.graph, 3, 8, 8)));
	return sketch_finish(&s, x);
}

typedef struct fuse_case {
	const char *name;
	ls_value (*body)(sketch *s, ls_value x);
	int nodes; /* of the fused graph: stem, pool, head and what is left of the rest */
	int bias_tolerance;
} fuse_case;

static const fuse_case cases[] = {
	{ "norm, relu", norm_relu, 3 + 2, 0 },
	{ "norm, add, relu", norm_add_relu, 3 + 2, 0 },
	{ "norm as second operand of add, relu", add_norm_relu, 3 + 2, 0 },
	{ "norm, add", norm_add, 3 + 2, 0 },
	{ "add, relu", add_relu, 3 + 3, 0 },
	{ "conv, relu", conv_relu, 3 + 1, 0 },
	{ "conv, relu, max pool", conv_relu_pool, 3 + 2, 1 },
	{ "conv, max pool", conv_pool, 3 + 2, 1 },
	{ "linear per position, gelu", per_position_gelu, 3 + 1, 0 },
	{ "dropout, add, layer norm", drop_add_layer_norm, 3 + 3, 0 },
};

static void test_fused_equals_apart(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		for (int64_t count = 5; count <= 70; count += 65) {
			net fused, apart;
			net_init(&fused, draw(cases[i].body, 0), count, 0, 1, 0);
			net_init(&apart, draw(cases[i].body, 1), count, 0, 1, 0);
			if (fused.graph->node_count != cases[i].nodes)
				fail_msg("%s: fused into %d nodes, expected %d", cases[i].name, fused.graph->node_count,
					 cases[i].nodes);
			sketch_assert_apart(apart.graph);
			sketch_copy_params(&fused, &apart);
			net_train(&fused, count);
			net_train(&apart, count);
			sketch_same_gradients(cases[i].name, &fused, &apart, cases[i].bias_tolerance);
			net_release(&fused);
			net_release(&apart);
		}
}

/* Inference agrees, too. */
static void test_inference(void **state)
{
	float a[9 * NET_CLASSES], b[9 * NET_CLASSES];
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		net fused, apart;
		net_init(&fused, draw(cases[i].body, 0), 9, 0, 1, 1);
		net_init(&apart, draw(cases[i].body, 1), 9, 0, 1, 1);
		sketch_copy_params(&fused, &apart);
		memcpy(apart.buffers, fused.buffers, fused.graph->params.buffers * sizeof(float));
		ls_exec_microbatch microbatch = net_microbatch(&fused, 9), other = net_microbatch(&apart, 9);
		ls_exec_infer(fused.exec, &microbatch, a);
		ls_exec_infer(apart.exec, &other, b);
		for (int k = 0; k < 9 * NET_CLASSES; k++)
			if (a[k] != b[k])
				fail_msg("%s: logit %d is %.9g fused, %.9g apart", cases[i].name, k, (double)a[k],
					 (double)b[k]);
		net_release(&fused);
		net_release(&apart);
	}
}

TEST_MAIN(test_fused_equals_apart, test_inference)
