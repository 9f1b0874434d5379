/*
 * slopes.h - the gradient of a net against differences of its loss.
 *
 * A parameter is moved along its own gradient, each element's sign kept or turned at random: the slope of the loss must
 * be the sum of the squared elements, signs applied, over the length. That weighs every element by how much it matters,
 * so one draw checks a whole tensor; draws of single elements check those whose gradient should be zero as well. Where
 * two step lengths disagree the loss has a kink nearby (relu, max pool) and says nothing. A net with such operators has
 * many: it is moved by less, at the price of more rounding, and may be off by as much as the two step lengths are.
 */
#ifndef LS_TESTS_SLOPES_H
#define LS_TESTS_SLOPES_H

#include <math.h>

#include "unit/graph/text_net.h"

enum { SLOPE_DIRECTIONS = 3, SLOPE_ELEMENTS = 3 };
#define SLOPE_STEP 8e-3
#define SLOPE_RELATIVE 4e-3 /* of the gradient's length */
#define SLOPE_ABSOLUTE 6e-4 /* per sample: rounding of the loss over the step */

/* A net of images or of text. */
typedef struct slope_net {
	const char *name;
	net *net;
	text_net *text; /* NULL: images */
	int has_kinks;  /* relu or max pool */
	int counts[2];  /* slopes given up near a kink, and compared */
} slope_net;

static inline double slope_train(slope_net *s)
{
	return s->text ? text_train(s->text, s->net->count) : net_train(s->net, s->net->count);
}

typedef struct slope_probe {
	const ls_param *param;
	float *here, *grad, *direction;
	double length; /* of grad */
} slope_probe;

/* The loss with a parameter moved by `step` along the direction. */
static inline double slope_moved(slope_net *s, const slope_probe *p, double step)
{
	size_t count = ls_param_elements(p->param);
	for (size_t i = 0; i < count; i++)
		s->net->logical[i] = (float)((double)p->here[i] + step * (double)p->direction[i]);
	ls_param_import(p->param, LS_STORE_WHOLE, s->net->logical, s->net->params);
	return slope_train(s);
}

/* Slope along the direction against what the gradient says. */
static inline void slope_check_direction(slope_net *s, const slope_probe *p, const char *what, size_t which)
{
	size_t count = ls_param_elements(p->param);
	double expected = 0, slope[2], less = s->has_kinks ? 8 : 1;
	for (size_t i = 0; i < count; i++)
		expected += (double)p->grad[i] * (double)p->direction[i];
	for (int wide = 0; wide < 2; wide++) {
		double step = (wide ? SLOPE_STEP : SLOPE_STEP / 2) / less;
		slope[wide] = (slope_moved(s, p, step) - slope_moved(s, p, -step)) / (2 * step);
	}
	/* The error of a central difference is of second order: two steps give the limit. */
	double limit = (4 * slope[0] - slope[1]) / 3, curved = fabs(slope[1] - slope[0]);
	double allowed = SLOPE_RELATIVE * p->length + SLOPE_ABSOLUTE * less * sqrt((double)s->net->count);
	int smooth = curved <= 0.05 * p->length + allowed;
	s->counts[smooth]++;
	if (smooth && !(fabs(limit - expected) <= allowed + (s->has_kinks ? curved : 0)))
		fail_msg("seed %d: %s: gradient of %s along %s %zu is %g, the loss says %g (length %g, allowed %g)",
			 NET_SEED, s->name, p->param->name, what, which, expected, limit, p->length, allowed);
}

static inline void slope_check_directions(slope_net *s, slope_probe *p, uint64_t stream)
{
	size_t count = ls_param_elements(p->param);
	for (size_t d = 0; d < SLOPE_DIRECTIONS && p->length > 0; d++) {
		for (size_t i = 0; i < count; i++) {
			int turned = d > 0 && text_random(50 + d, stream * 1000003 + i, 2);
			p->direction[i] = (float)((turned ? -1 : 1) * (double)p->grad[i] / p->length);
		}
		slope_check_direction(s, p, "direction", d);
	}
	for (size_t k = 0; k < SLOPE_ELEMENTS; k++) {
		size_t at = text_random(60, stream * 16 + k, (uint32_t)count);
		memset(p->direction, 0, count * sizeof(float));
		p->direction[at] = 1;
		slope_check_direction(s, p, "element", at);
	}
}

static inline void slope_check_param(slope_net *s, const ls_param *param, uint64_t stream)
{
	size_t count = ls_param_elements(param);
	slope_probe p = { .param = param,
			  .here = net_take(count * sizeof(float)),
			  .grad = net_take(count * sizeof(float)),
			  .direction = net_take(count * sizeof(float)) };

	ls_param_export(param, LS_STORE_WHOLE, s->net->params, p.here);
	slope_train(s);
	ls_param_export(param, LS_STORE_REACHABLE, s->net->grads, p.grad);
	for (size_t i = 0; i < count; i++)
		p.length += (double)p.grad[i] * (double)p.grad[i];
	p.length = sqrt(p.length);
	slope_check_directions(s, &p, stream);
	ls_param_import(param, LS_STORE_WHOLE, p.here, s->net->params);
	free(p.here);
	free(p.grad);
	free(p.direction);
}

/* Every float of the gradient is written, and padding is zero. */
static inline void slope_check_padding(slope_net *s)
{
	const ls_param_table *table = &s->net->graph->params;
	float *clean = net_take(table->reachable * sizeof(float));

	slope_train(s);
	for (size_t i = 0; i < table->count; i++) {
		if (!ls_param_has_gradient(&table->rows[i]))
			continue;
		ls_param_export(&table->rows[i], LS_STORE_REACHABLE, s->net->grads, s->net->logical);
		ls_param_import(&table->rows[i], LS_STORE_REACHABLE, s->net->logical, clean);
	}
	for (size_t i = 0; i < table->reachable; i++)
		if (!(s->net->grads[i] == clean[i]))
			fail_msg("%s: gradient %zu of %zu is %g where there is padding, or was not written", s->name, i,
				 table->reachable, (double)s->net->grads[i]);
	free(clean);
}

/* Takes the graph; adds to counts. With `targets` samples have float targets in place of labels. */
static inline void slope_check_targets(ls_graph *g, const char *name, int64_t count, int targets, int counts[2])
{
	text_net text;
	net image;
	slope_net s = { .name = name, .net = g->tokens_max > 0 ? &text.net : &image };

	if (g->tokens_max > 0) {
		text_init(&text, g, count, 0, 1, 0);
		s.text = &text;
	} else {
		net_init(&image, g, count, 0, 1, 0);
	}
	if (targets)
		net_use_targets(s.net);
	for (int i = 0; i < g->node_count; i++)
		s.has_kinks |= g->nodes[i].activation == LS_ACT_RELU || g->nodes[i].type == &ls_op_relu ||
			       g->nodes[i].type == &ls_op_max_pool2d;
	slope_check_padding(&s);
	for (size_t i = 0; i < g->params.count; i++)
		if (ls_param_has_gradient(&g->params.rows[i]))
			slope_check_param(&s, &g->params.rows[i], i);
	for (int k = 0; k < 2; k++)
		counts[k] += s.counts[k];
	if (s.text)
		text_release(&text);
	else
		net_release(&image);
}

static inline void slope_check_graph(ls_graph *g, const char *name, int64_t count, int counts[2])
{
	slope_check_targets(g, name, count, 0, counts);
}

static inline void slope_report(const int counts[2])
{
	print_message("# seed %d: %d slopes compared, %d given up near a kink\n", NET_SEED, counts[1], counts[0]);
	assert_true(counts[1] > 20 * counts[0]);
}

#endif
