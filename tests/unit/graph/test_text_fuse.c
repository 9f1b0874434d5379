/*
 * Layers of text that were fused give the bits of the same layers one by one.
 *
 * To keep layers apart, values between them get another reader: the mean of their rows through a linear layer of zero
 * weights, added to the logits. It changes no value and no gradient.
 */
#include "unit/graph/text_net.h"

enum { LONGEST = 11, WIDTH = 48 };

typedef struct sketch {
	ls_graph *graph;
	int apart;
	ls_value extra; /* sum of the other readers */
	int taps;
} sketch;

static ls_value open_value(sketch *s, ls_value x)
{
	char name[16];
	if (!s->apart)
		return x;
	snprintf(name, sizeof name, "tap%d", s->taps);
	ls_value t = ls_linear(s->graph, ls_mean_token(s->graph, x), name,
			       (ls_linear_options){ .out_features = NET_CLASSES });
	s->extra = s->taps++ == 0 ? t : ls_add(s->graph, s->extra, t);
	return x;
}

static ls_value fuse_relu(sketch *s, ls_value x)
{
	return ls_relu(s->graph, open_value(s, net_linear(s->graph, x, "a", 70)));
}

static ls_value fuse_gelu(sketch *s, ls_value x)
{
	return ls_gelu(s->graph, open_value(s, net_linear(s->graph, x, "a", 70)), 0);
}

static ls_value fuse_gelu_tanh(sketch *s, ls_value x)
{
	return ls_gelu(s->graph, open_value(s, net_linear(s->graph, x, "a", 130)), 1);
}

static ls_value fuse_add_relu(sketch *s, ls_value x)
{
	return ls_relu(s->graph, open_value(s, ls_add(s->graph, net_linear(s->graph, x, "a", WIDTH), x)));
}

static ls_value fuse_residual(sketch *s, ls_value x, int first, float dropout)
{
	ls_graph *g = s->graph;
	ls_value y = ls_tanh(g, net_linear(g, x, "a", WIDTH));
	if (dropout > 0)
		y = open_value(s, ls_dropout(g, y, dropout));
	y = open_value(s, first ? ls_add(g, y, x) : ls_add(g, x, y));
	return ls_layer_norm(g, y, "n", 0);
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
	sketch s = { .graph = net_graph(), .apart = apart };
	ls_value x = text_embed(s.graph, LONGEST, 0, WIDTH, "segments");
	x = c->body(&s, ls_layer_norm(s.graph, x, "norm", 0));
	x = net_head(s.graph, ls_mean_token(s.graph, x));
	if (s.taps > 0)
		x = ls_add(s.graph, x, s.extra);
	net_check(ls_graph_finish(s.graph, x));
	return s.graph;
}

static void copy_params(const net *from, net *to)
{
	memset(to->params, 0, to->graph->params.total * sizeof(float));
	for (size_t i = 0; i < from->graph->params.count; i++) {
		const ls_param *p = &from->graph->params.rows[i];
		ls_param_export(p, LS_STORE_WHOLE, from->params, to->scratch);
		ls_param_import(text_param(to->graph, p->name), LS_STORE_WHOLE, to->scratch, to->params);
	}
}

static void same_gradients(const char *what, const net *fused, const net *apart)
{
	for (size_t i = 0; i < fused->graph->params.count; i++) {
		const ls_param *p = &fused->graph->params.rows[i];
		ls_param_export(p, LS_STORE_LIVE, fused->grads, fused->scratch);
		ls_param_export(text_param(apart->graph, p->name), LS_STORE_LIVE, apart->grads, apart->scratch);
		for (size_t k = 0; k < ls_param_elements(p); k++)
			if (!(fused->scratch[k] == apart->scratch[k])) /* 0 and -0 are the same */
				fail_msg("%s: gradient of %s[%zu] is %.9g fused, %.9g apart", what, p->name, k,
					 (double)fused->scratch[k], (double)apart->scratch[k]);
	}
}

static void assert_apart(const ls_graph *g)
{
	for (int i = 0; i < g->node_count; i++) {
		const ls_node *node = &g->nodes[i];
		assert_true(!node->relu || node->kind == LS_NODE_RELU);
		assert_true(!node->gelu || node->kind == LS_NODE_GELU);
		assert_true(node->second == LS_NONE || node->kind == LS_NODE_ADD);
		assert_true(node->probability == 0 || node->kind == LS_NODE_DROPOUT);
	}
}

static void test_fused_equals_apart(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		for (int64_t count = 5; count <= 70; count += 65) {
			text_net fused, apart;
			float a[70 * NET_CLASSES], b[70 * NET_CLASSES];
			text_init(&fused, draw(&cases[i], 0), count, 0, 1, 0);
			text_init(&apart, draw(&cases[i], 1), count, 0, 1, 0);
			if (fused.net.graph->node_count != 4 + cases[i].nodes)
				fail_msg("%s: fused into %d nodes, expected %d", cases[i].name,
					 fused.net.graph->node_count, 4 + cases[i].nodes);
			assert_apart(apart.net.graph);
			copy_params(&fused.net, &apart.net);
			assert_true(text_train(&fused, count) == text_train(&apart, count));
			same_gradients(cases[i].name, &fused.net, &apart.net);
			assert_true(text_infer(&fused, count, a) == text_infer(&apart, count, b));
			text_same(cases[i].name, a, b, (size_t)count * NET_CLASSES);
			text_release(&fused);
			text_release(&apart);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fused_equals_apart),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
