/*
 * Layers that were fused give what the same layers give one by one.
 *
 * To keep layers apart, every value between them gets another reader: a linear layer with zero weights whose output is
 * added to the logits. It changes no value and no gradient, but a value with two readers cannot be fused away.
 */
#include <math.h>

#include "unit/graph/net.h"

typedef struct sketch {
	ls_graph *graph;
	int apart;      /* read every value twice */
	ls_value extra; /* sum of the other readers */
	int taps;
} sketch;

/* A value that may be fused away: `apart` gives it a second reader. */
static ls_value open_value(sketch *s, ls_value x)
{
	char name[16];
	if (!s->apart)
		return x;
	snprintf(name, sizeof name, "tap%d", s->taps);
	ls_value t = ls_linear(s->graph, x, name, (ls_linear_options){ .out_features = NET_CLASSES });
	s->extra = s->taps++ == 0 ? t : ls_add(s->graph, s->extra, t);
	return x;
}

static ls_value stem(sketch *s, ls_value x)
{
	return ls_avg_pool2d(s->graph, net_conv(s->graph, x, "stem", 20, 3, 1), (ls_pool_options){ .kernel = 2 });
}

static ls_value norm_relu(sketch *s, ls_value x)
{
	return ls_relu(s->graph, open_value(s, net_norm(s->graph, net_conv(s->graph, stem(s, x), "a", 20, 3, 0), "n")));
}

static ls_value residual(sketch *s, ls_value x, int branch_first, int relu)
{
	ls_graph *g = s->graph;
	ls_value skip = stem(s, x), branch = open_value(s, net_norm(g, net_conv(g, skip, "a", 20, 3, 0), "n"));
	x = branch_first ? ls_add(g, branch, skip) : ls_add(g, skip, branch);
	return relu ? ls_relu(g, open_value(s, x)) : x;
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
	return ls_relu(s->graph, open_value(s, x));
}

static ls_value conv_relu(sketch *s, ls_value x)
{
	return ls_relu(s->graph, open_value(s, net_conv(s->graph, stem(s, x), "a", 33, 3, 1)));
}

static ls_value conv_relu_pool(sketch *s, ls_value x)
{
	x = ls_relu(s->graph, open_value(s, net_conv(s->graph, stem(s, x), "a", 33, 3, 1)));
	return ls_max_pool2d(s->graph, open_value(s, x), (ls_pool_options){ .kernel = 2 });
}

static ls_value conv_pool(sketch *s, ls_value x)
{
	x = open_value(s, net_conv(s->graph, stem(s, x), "a", 33, 3, 1));
	return ls_max_pool2d(s->graph, x, (ls_pool_options){ .kernel = 3, .stride = 1, .padding = 1 });
}

static ls_graph *draw(ls_value (*body)(sketch *s, ls_value x), int apart)
{
	sketch s = { .graph = net_graph(), .apart = apart };
	ls_value x = net_head(s.graph, body(&s, ls_input(s.graph, 3, 8, 8)));
	if (s.taps > 0)
		x = ls_add(s.graph, x, s.extra);
	net_check(ls_graph_finish(s.graph, x));
	return s.graph;
}

static const ls_param *find(const ls_graph *g, const char *name)
{
	for (size_t i = 0; i < g->params.count; i++)
		if (strcmp(g->params.rows[i].name, name) == 0)
			return &g->params.rows[i];
	fail_msg("no parameter %s", name);
	return NULL;
}

/* The second readers did their work. */
static void assert_apart(const ls_graph *g)
{
	for (int i = 0; i < g->node_count; i++) {
		const ls_node *node = &g->nodes[i];
		assert_true(!node->relu || node->kind == LS_NODE_RELU);
		assert_true(node->second == LS_NONE || node->kind == LS_NODE_ADD);
		assert_true(node->kind != LS_NODE_MAX_POOL || node->bias == LS_NONE);
	}
}

/* The same values in both nets, zeros in the other readers. */
static void copy_params(const net *from, net *to)
{
	memset(to->params, 0, to->graph->params.total * sizeof(float));
	for (size_t i = 0; i < from->graph->params.count; i++) {
		const ls_param *p = &from->graph->params.rows[i];
		if (p->role > LS_ROLE_NORM)
			continue;
		ls_param_export(p, LS_STORE_WHOLE, from->params, to->scratch);
		ls_param_import(find(to->graph, p->name), LS_STORE_WHOLE, to->scratch, to->params);
	}
}

/* A bias behind a pool sums other elements in another order; everything else must be the same bits. */
static void compare(const char *what, const net *fused, const net *apart, int bias_tolerance)
{
	assert_true(fused->leaf.loss == apart->leaf.loss);
	for (size_t i = 0; i < fused->graph->params.count; i++) {
		const ls_param *p = &fused->graph->params.rows[i], *q = find(apart->graph, p->name);
		if (p->role > LS_ROLE_NORM)
			continue;
		ls_param_export(p, LS_STORE_LIVE, fused->grads, fused->scratch);
		ls_param_export(q, LS_STORE_LIVE, apart->grads, apart->scratch);
		for (size_t k = 0; k < ls_param_elements(p); k++) {
			float a = fused->scratch[k], b = apart->scratch[k];
			float limit = bias_tolerance && p->role == LS_ROLE_BIAS ? 1e-5f * (1 + fabsf(b)) : 0;
			if (!(fabsf(a - b) <= limit))
				fail_msg("%s: gradient of %s[%zu] is %.9g fused, %.9g apart", what, p->name, k,
					 (double)a, (double)b);
		}
	}
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
};

static void test_fused_equals_apart(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		for (int64_t count = 5; count <= 70; count += 65) {
			net fused, apart;
			net_init(&fused, draw(cases[i].body, 0), count, 0, 1, 0);
			net_init(&apart, draw(cases[i].body, 1), count, 0, 1, 0);
			if (fused.graph->node_count != cases[i].nodes)
				fail_msg("%s: fused into %d nodes, expected %d", cases[i].name, fused.graph->node_count,
					 cases[i].nodes);
			assert_apart(apart.graph);
			copy_params(&fused, &apart);
			net_train(&fused, count);
			net_train(&apart, count);
			compare(cases[i].name, &fused, &apart, cases[i].bias_tolerance);
			net_release(&fused);
			net_release(&apart);
		}
}

/* Inference agrees, too. */
static void test_inference(void **state)
{
	float a[9 * NET_CLASSES], b[9 * NET_CLASSES];
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		net fused, apart;
		net_init(&fused, draw(cases[i].body, 0), 9, 0, 1, 1);
		net_init(&apart, draw(cases[i].body, 1), 9, 0, 1, 1);
		copy_params(&fused, &apart);
		memcpy(apart.buffers, fused.buffers, fused.graph->params.buffers * sizeof(float));
		ls_exec_leaf leaf = net_leaf(&fused, 9), other = net_leaf(&apart, 9);
		ls_exec_infer(fused.exec, &leaf, a);
		ls_exec_infer(apart.exec, &other, b);
		for (int k = 0; k < 9 * NET_CLASSES; k++)
			if (a[k] != b[k])
				fail_msg("%s: logit %d is %.9g fused, %.9g apart", cases[i].name, k, (double)a[k],
					 (double)b[k]);
		net_release(&fused);
		net_release(&apart);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fused_equals_apart),
		cmocka_unit_test(test_inference),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
