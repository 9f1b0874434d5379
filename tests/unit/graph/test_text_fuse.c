/* Layers of text that were fused give the bits of the same layers one by one. */
#include "unit/graph/sketch.h"
#include "unit/graph/text_net.h"
#include "unit/test_main.h"

enum { LONGEST = 11, WIDTH = 48 };

static ls_value fuse_relu(sketch *s, ls_value x)
{
	return ls_relu(s->graph, sketch_open(s, net_linear(s->graph, x, "a", 70)));
}

static ls_value fuse_gelu(sketch *s, ls_value x)
{
	return net_gelu(s->graph, sketch_open(s, net_linear(s->graph, x, "a", 70)), 0);
}

static ls_value fuse_gelu_tanh(sketch *s, ls_value x)
{
	return net_gelu(s->graph, sketch_open(s, net_linear(s->graph, x, "a", 130)), 1);
}

static ls_value fuse_add_relu(sketch *s, ls_value x)
{
	return ls_relu(s->graph, sketch_open(s, ls_add(s->graph, net_linear(s->graph, x, "a", WIDTH), x)));
}

static ls_value fuse_residual(sketch *s, ls_value x, int first, float dropout)
{
	ls_graph *g = s->graph;
	ls_value y = ls_tanh(g, net_linear(g, x, "a", WIDTH));
	if (dropout > 0)
		y = sketch_open(s, net_dropout(g, y, dropout));
	y = sketch_open(s, first ? ls_add(g, y, x) : ls_add(g, x, y));
	return net_layer_norm(g, y, "n", 0);
}

static ls_value fuse_add_norm(sketch *s, ls_value x)
{
	return fuse_residual(s, x, 1, 0);
}

static ls_value fuse_drop_add_norm(sketch *s, ls_value x)
{
	return fuse_residual(s, x, 1, 0.3f);
}

static ls_value fuse_drop_second_add_norm(sketch *s, ls_value x)
{
	return fuse_residual(s, x, 0, 0.3f);
}

typedef struct fuse_case {
	const char *name;
	ls_value (*body)(sketch *s, ls_value x);
	int nodes; /* of the fused graph, without embedding, first norm, mean and head */
} fuse_case;

static const fuse_case cases[] = {
	{ "linear, relu", fuse_relu, 1 },
	{ "linear, gelu", fuse_gelu, 1 },
	{ "linear, gelu in its tanh form", fuse_gelu_tanh, 1 },
	{ "add, relu", fuse_add_relu, 2 },
	{ "add, norm", fuse_add_norm, 3 },
	{ "dropout, add, norm", fuse_drop_add_norm, 3 },
	{ "dropout as second operand, add, norm", fuse_drop_second_add_norm, 3 },
};

static ls_graph *draw(const fuse_case *c, int apart)
{
	sketch s = { .graph = net_graph(), .apart = apart, .is_text = 1 };
	ls_value x = text_embed(s.graph, LONGEST, 0, WIDTH, "segments");
	x = c->body(&s, net_layer_norm(s.graph, x, "norm", 0));
	x = net_head(s.graph, ls_mean_token(s.graph, x));
	return sketch_finish(&s, x);
}

static void test_fused_equals_apart(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		for (int64_t count = 5; count <= 70; count += 65) {
			text_net fused, apart;
			float a[70 * NET_CLASSES], b[70 * NET_CLASSES];
			text_init(&fused, draw(&cases[i], 0), count, 0, 1, 0);
			text_init(&apart, draw(&cases[i], 1), count, 0, 1, 0);
			if (fused.net.graph->node_count != 4 + cases[i].nodes)
				fail_msg("%s: fused into %d nodes, expected %d", cases[i].name,
					 fused.net.graph->node_count, 4 + cases[i].nodes);
			sketch_assert_apart(apart.net.graph);
			sketch_copy_params(&fused.net, &apart.net);
			assert_true(text_train(&fused, count) == text_train(&apart, count));
			sketch_same_gradients(cases[i].name, &fused.net, &apart.net, 0);
			assert_true(text_infer(&fused, count, a) == text_infer(&apart, count, b));
			net_same_floats(cases[i].name, a, b, (size_t)count * NET_CLASSES);
			text_release(&fused);
			text_release(&apart);
		}
}

TEST_MAIN(test_fused_equals_apart)
