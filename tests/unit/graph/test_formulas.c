/*
 * Operators by their formulas, in double: what finite differences cannot see (a wrong scale is its own gradient's). An
 * operator is a line: y[c] from rows a and b of n channels; or a loss's term of channel c, whose target is t.
 */
#include <math.h>

#include "unit/graph/net.h"
#include "unit/test_main.h"

enum { N = 9, CHANNELS = 21 };

typedef struct formula {
	const ls_op_type *type;
	double (*y)(const double *a, const double *b, int n, int c);
	double (*term)(const double *x, int n, int c, double t);
	const void *attributes;
} formula;

static double log_sum_exp(const double *x, int n)
{
	double sum = 0;
	for (int c = 0; c < n; c++)
		sum += exp(x[c]);
	return log(sum);
}

#define VALUES(ROW, LOSS)                                                                                              \
	ROW(relu, a[c] > 0 ? a[c] : 0)                                                                                 \
	ROW(gelu, a[c] * 0.5 * (1 + erf(a[c] / sqrt(2))))                                                              \
	ROW(tanh, tanh(a[c]))                                                                                          \
	ROW(silu, a[c] / (1 + exp(-a[c])))                                                                             \
	ROW(sigmoid, 1 / (1 + exp(-a[c])))                                                                             \
	ROW(add, a[c] + b[c])                                                                                          \
	ROW(multiply, a[c] * b[c])                                                                                     \
	ROW(concat, c < n ? a[c] : b[c - n])                                                                           \
	LOSS(binary_cross_entropy, (log(1 + exp(x[c])) - t * x[c]) / n)                                                \
	LOSS(mean_squared_error, (x[c] - t) * (x[c] - t) / n)                                                          \
	LOSS(cross_entropy, (log_sum_exp(x, n) - x[c]) * t)

#define FUNCTION(op, expression)                                                                                       \
	static double formula_##op(const double *a, const double *b, int n, int c)                                     \
	{                                                                                                              \
		(void)a, (void)b, (void)n;                                                                             \
		return expression;                                                                                     \
	}
#define TERM(op, expression)                                                                                           \
	static double formula_##op(const double *x, int n, int c, double t)                                            \
	{                                                                                                              \
		(void)n;                                                                                               \
		return expression;                                                                                     \
	}
VALUES(FUNCTION, TERM)

/* Attributes, where an operator has some, are all zero. */
static const char zeros[64];
#define ROW(op, expression) { &ls_op_##op, formula_##op, NULL, zeros },
#define LOSS(op, expression) { &ls_op_##op, NULL, formula_##op, zeros },
static const formula formulas[] = { VALUES(ROW, LOSS) };

static void check_close(const formula *f, double got, double expected)
{
	if (!(fabs(got - expected) <= 1e-5 * (1 + fabs(expected))))
		fail_msg("%s is %.8g, its formula %.8g", f->type->name, got, expected);
}

/* A net whose output or loss is the operator of its input `a` and of b = tanh(a). */
static void make_net(const formula *f, int channels, net *t)
{
	ls_graph *g = net_graph();
	ls_value a = ls_input(g, channels, 1, 1), b = ls_tanh(g, a);
	ls_value packed = ls_graph_add(g, &ls_op_pack, NULL, &a, NULL);
	ls_value y = ls_graph_add(g, f->type, NULL, (ls_value[]){ packed, b }, f->attributes);
	assert_ok(ls_graph_finish(g, f->term ? packed : y));
	net_init(t, g, N, 0, 2, 1);
	for (int i = 0; i < N && channels == 1; i++)
		t->labels[i] = i % 2;
}

static void check_formula(const formula *f, int channels)
{
	net t;
	double a[CHANNELS], b[CHANNELS], loss = 0;
	float logits[N * 2 * CHANNELS];

	make_net(f, channels, &t);
	int width = t.graph->values[t.graph->logits].channels;
	ls_exec_microbatch microbatch = net_microbatch(&t, N);
	ls_exec_infer(t.exec, &microbatch, logits);
	for (int i = 0; i < N; i++) {
		for (int c = 0; c < channels; c++) {
			a[c] = (double)t.images[i * channels + c];
			b[c] = tanh(a[c]);
		}
		for (int c = 0; c < width && f->y; c++)
			check_close(f, (double)logits[i * width + c], f->y(a, b, channels, c));
		for (int c = 0; c < channels && f->term; c++)
			loss += f->term(a, channels, c, channels == 1 ? t.labels[i] : t.labels[i] == c);
	}
	if (f->term)
		check_close(f, microbatch.loss, loss);
	net_release(&t);
}

static void test_formulas(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(formulas) / sizeof(formulas[0]); i++)
		check_formula(&formulas[i], CHANNELS);
	for (size_t i = 0; i < sizeof(formulas) / sizeof(formulas[0]); i++)
		if (formulas[i].term && formulas[i].type != &ls_op_cross_entropy) /* which needs two classes */
			check_formula(&formulas[i], 1);
}

/* Float targets against the formula, and what counts as right. */
static void check_targets(const formula *f, int channels)
{
	net t;
	double a[CHANNELS], loss = 0;
	int64_t right = 0;

	make_net(f, channels, &t);
	net_use_targets(&t);
	ls_exec_microbatch microbatch = net_microbatch(&t, N);
	ls_exec_infer(t.exec, &microbatch, NULL);
	for (int i = 0; i < N; i++) {
		const float *wanted = t.targets + i * channels;
		int best = 0, most = 0, all = 1;
		for (int c = 0; c < channels; c++) {
			a[c] = (double)t.images[i * channels + c];
			best = a[c] > a[best] ? c : best;
			most = wanted[c] > wanted[most] ? c : most;
			all &= (a[c] > 0) == (wanted[c] > 0.5f);
		}
		for (int c = 0; c < channels; c++)
			loss += f->term(a, channels, c, (double)wanted[c]);
		right += f->type == &ls_op_binary_cross_entropy ? all
			 : channels == 1                        ? fabs(a[0] - (double)wanted[0]) < 0.5
								: best == most;
	}
	check_close(f, microbatch.loss, loss);
	assert_int_equal(microbatch.correct, right);
	net_release(&t);
}

static void test_targets(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(formulas) / sizeof(formulas[0]); i++) {
		if (!formulas[i].term)
			continue;
		check_targets(&formulas[i], CHANNELS);
		if (formulas[i].type != &ls_op_cross_entropy)
			check_targets(&formulas[i], 1);
	}
}

/* Targets of 0 and 1 are what a label is, to the bit. */
static void check_one_hot(const formula *f, int channels)
{
	net t;

	make_net(f, channels, &t);
	ls_exec_microbatch labels = net_microbatch(&t, N);
	ls_exec_infer(t.exec, &labels, NULL);
	net_use_targets(&t);
	for (int i = 0; i < N * channels; i++)
		t.targets[i] = channels == 1 ? (float)t.labels[i] : (float)(t.labels[i / channels] == i % channels);
	ls_exec_microbatch targets = net_microbatch(&t, N);
	ls_exec_infer(t.exec, &targets, NULL);
	assert_true(labels.loss == targets.loss);
	net_release(&t);
}

static void test_one_hot(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(formulas) / sizeof(formulas[0]); i++)
		if (formulas[i].term && formulas[i].type != &ls_op_cross_entropy)
			for (int channels = 1; channels <= CHANNELS; channels += CHANNELS - 1)
				check_one_hot(&formulas[i], channels);
}

/* PyTorch's cross_entropy with weight and label_smoothing, of probabilities and of labels: the loss by its formula. */
static void check_weighted_and_smooth(int has_targets)
{
	static const float weights[4] = { 1, 2, 0.5f, 3 };
	const ls_cross_entropy_options options = { .label_smoothing = 0.1f, .class_weights = weights };
	const formula f = { &ls_op_cross_entropy, NULL, formula_cross_entropy, &options };
	double a[4], loss = 0;
	net t;

	make_net(&f, 4, &t);
	if (has_targets)
		net_use_targets(&t);
	ls_exec_microbatch microbatch = net_microbatch(&t, N);
	ls_exec_infer(t.exec, &microbatch, NULL);
	for (int i = 0; i < N; i++) {
		for (int c = 0; c < 4; c++)
			a[c] = (double)t.images[i * 4 + c];
		for (int c = 0; c < 4; c++) {
			double wanted = has_targets ? (double)t.targets[i * 4 + c] : t.labels[i] == c;
			loss += (double)weights[c] * (0.9 * wanted + 0.1 / 4) * (log_sum_exp(a, 4) - a[c]);
		}
	}
	check_close(&f, microbatch.loss, loss);
	net_release(&t);
}

static void test_weighted_and_smooth(void **state)
{
	(void)state;
	check_weighted_and_smooth(0);
	check_weighted_and_smooth(1);
}

TEST_MAIN(test_formulas, test_targets, test_one_hot, test_weighted_and_smooth)
