/*
 * sketch.h - a net drawn twice, with its layers fused and with them kept apart: what the tests of fusion share.
 *
 * To keep layers apart, every value between them gets another reader: a linear layer with zero weights (of text, on the
 * mean of the rows) whose output is added to the logits. It changes no value and no gradient, but a value with two
 * readers cannot be fused away.
 */
#ifndef LS_TESTS_SKETCH_H
#define LS_TESTS_SKETCH_H

#include <math.h>

#include "unit/graph/net.h"

typedef struct sketch {
	ls_graph *graph;
	int apart;      /* read every value twice */
	int is_text;    /* values are rows of tokens */
	ls_value extra; /* sum of the other readers */
	int taps;
} sketch;

/* A value that may be fused away: `apart` gives it a second reader. */
static inline ls_value sketch_open(sketch *s, ls_value x)
{
	char name[16];
	if (!s->apart)
		return x;
	snprintf(name, sizeof(name), "tap%d", s->taps);
	ls_value t = ls_linear(s->graph, s->is_text ? ls_mean_token(s->graph, x) : x, name,
			       (ls_linear_options){ .out_features = NET_CLASSES, .no_bias = 1 });
	s->extra = s->taps++ == 0 ? t : ls_add(s->graph, s->extra, t);
	return x;
}

static inline ls_graph *sketch_finish(sketch *s, ls_value logits)
{
	assert_ok(ls_graph_finish(s->graph, s->taps > 0 ? ls_add(s->graph, logits, s->extra) : logits));
	return s->graph;
}

/* The second readers did their work. */
static inline void sketch_assert_apart(const ls_graph *g)
{
	for (int i = 0; i < g->node_count; i++) {
		const ls_node *node = &g->nodes[i];
		assert_int_equal(node->activation, LS_ACT_NONE);
		assert_int_equal(node->input_count, node->type->input_count);
		assert_true(node->dropout == 0);
		assert_true(node->type != &ls_op_max_pool2d || node->params[LS_BIAS] == LS_NONE);
	}
}

/* The same values in both nets, zeros in the other readers. */
static inline void sketch_copy_params(const net *from, net *to)
{
	memset(to->params, 0, to->graph->params.total * sizeof(float));
	for (size_t i = 0; i < from->graph->params.count; i++) {
		const ls_param *p = &from->graph->params.rows[i];
		if (p->role > LS_ROLE_NORM)
			continue;
		ls_param_export(p, LS_STORE_WHOLE, from->params, to->scratch);
		ls_param_import(net_param(to->graph, p->name), LS_STORE_WHOLE, to->scratch, to->params);
	}
}

/* Of biases alone another order of additions may be allowed; everything else must be the same, but for the sign of 0.
 */
static inline void sketch_same_gradients(const char *what, const net *fused, const net *apart, int bias_tolerance)
{
	assert_true(fused->microbatch.loss == apart->microbatch.loss);
	for (size_t i = 0; i < fused->graph->params.count; i++) {
		const ls_param *p = &fused->graph->params.rows[i], *q = net_param(apart->graph, p->name);
		if (p->role > LS_ROLE_NORM)
			continue;
		ls_param_export(p, LS_STORE_REACHABLE, fused->grads, fused->scratch);
		ls_param_export(q, LS_STORE_REACHABLE, apart->grads, apart->scratch);
		for (size_t k = 0; k < ls_param_elements(p); k++) {
			float a = fused->scratch[k], b = apart->scratch[k];
			float limit = bias_tolerance && p->role == LS_ROLE_BIAS ? 1e-5f * (1 + fabsf(b)) : 0;
			if (!(fabsf(a - b) <= limit))
				fail_msg("%s: gradient of %s[%zu] is %.9g fused, %.9g apart", what, p->name, k,
					 (double)a, (double)b);
		}
	}
}

#endif
