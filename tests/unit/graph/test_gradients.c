/*
 * Gradients of every kind of layer, alone, fused and sharing values, against central differences of the loss.
 *
 * A difference is taken with two steps and on both sides. Where they disagree the loss has a kink nearby (relu, max
 * pool) and says nothing; few draws may be given up for that.
 */
#include <math.h>

#include "unit/graph/net.h"
#include "unit/test_main.h"

#define DRAWS 8 /* elements of a parameter */
#define STEP 4e-3
#define RELATIVE 2e-2
#define ABSOLUTE 4e-3

typedef ls_value (*builder)(ls_graph *g, ls_value x);

static ls_value linear_only(ls_graph *g, ls_value x)
{
	return net_head(g, x);
}

static ls_value linear_relu(ls_graph *g, ls_value x)
{
	return net_head(g, ls_relu(g, net_linear(g, x, "fc1", 70)));
}

static ls_value linear_without_bias(ls_graph *g, ls_value x)
{
	return ls_linear(g, net_linear(g, x, "fc1", 20), "fc2",
			 (ls_linear_options){ .out_features = NET_CLASSES, .no_bias = 1 });
}

static ls_value conv_twice(ls_graph *g, ls_value x)
{
	return net_head(g, net_conv(g, net_conv(g, x, "a", 20, 3, 1), "b", 33, 3, 0));
}

static ls_value conv_odd(ls_graph *g, ls_value x)
{
	x = ls_conv2d(g, x, "a",
		      (ls_conv_options){ .out_channels = 18, .kernel_h = 2, .kernel_w = 3, .stride = 2, .padding = 1 });
	x = ls_conv2d(
		g, x, "b",
		(ls_conv_options){
			.out_channels = 20, .kernel_h = 3, .kernel_w = 1, .stride = 1, .padding = 2, .no_bias = 1 });
	x = ls_conv2d(g, x, "c", (ls_conv_options){ .out_channels = 6, .kernel = 2, .stride = 3, .padding = 3 });
	return net_head(g, x);
}

static ls_value conv_unreachable_taps(ls_graph *g, ls_value x)
{
	x = ls_conv2d(g, x, "a",
		      (ls_conv_options){ .out_channels = 20, .kernel = 3, .stride = 2, .padding = 1, .no_bias = 1 });
	x = ls_conv2d(g, x, "b",
		      (ls_conv_options){ .out_channels = 20, .kernel = 3, .stride = 2, .padding = 1, .no_bias = 1 });
	return net_head(g, net_conv(g, x, "c", 20, 3, 1));
}

static ls_value conv_relu(ls_graph *g, ls_value x)
{
	x = ls_relu(g, net_conv(g, x, "a", 20, 3, 0));
	return net_head(g, ls_relu(g, net_conv(g, x, "b", 16, 3, 1)));
}

static ls_value conv_relu_read_twice(ls_graph *g, ls_value x)
{
	x = ls_relu(g, net_conv(g, x, "a", 20, 3, 1));
	return net_head(g, ls_add(g, net_conv(g, x, "b", 16, 3, 1), net_conv(g, x, "c", 16, 1, 0)));
}

static ls_value conv_relu_pool(ls_graph *g, ls_value x)
{
	const ls_pool_options half = { .kernel = 2, .stride = 2 };
	x = ls_max_pool2d(g, ls_relu(g, net_conv(g, x, "a", 20, 3, 1)), half);
	return net_head(g, ls_max_pool2d(g, ls_relu(g, net_conv(g, x, "b", 16, 3, 1)), half));
}

static ls_value conv_pool(ls_graph *g, ls_value x)
{
	const ls_pool_options overlapping = { .kernel = 3, .stride = 2, .padding = 1 };
	return net_head(g, ls_max_pool2d(g, net_conv(g, x, "a", 20, 3, 1), overlapping));
}

static ls_value conv_relu_pool_no_bias(ls_graph *g, ls_value x)
{
	const ls_pool_options half = { .kernel = 2 };
	return net_head(g, ls_max_pool2d(g, ls_relu(g, net_conv(g, x, "a", 20, 3, 0)), half));
}

static ls_value pool_then_relu(ls_graph *g, ls_value x)
{
	const ls_pool_options half = { .kernel = 2 };
	return net_head(g, ls_relu(g, ls_max_pool2d(g, net_conv(g, x, "a", 20, 3, 1), half)));
}

static ls_value averages(ls_graph *g, ls_value x)
{
	x = ls_avg_pool2d(g, net_conv(g, x, "a", 20, 3, 1),
			  (ls_pool_options){ .kernel = 3, .stride = 2, .padding = 1 });
	return net_head(g, ls_global_avg_pool(g, net_conv(g, x, "b", 70, 3, 0)));
}

static ls_value norm_alone(ls_graph *g, ls_value x)
{
	return net_head(g, net_norm(g, net_conv(g, x, "a", 20, 3, 0), "n"));
}

static ls_value norm_after_biased_conv(ls_graph *g, ls_value x)
{
	return net_head(g, ls_relu(g, net_norm(g, net_conv(g, x, "a", 20, 3, 1), "n")));
}

static ls_value norm_relu(ls_graph *g, ls_value x)
{
	x = ls_relu(g, net_norm(g, net_conv(g, x, "a", 20, 3, 0), "n"));
	return net_head(g, ls_relu(g, net_norm(g, net_conv(g, x, "b", 70, 1, 0), "m")));
}

/* A residual that is not kept: its memory is gone by the time backward comes, so the sum must have been kept. */
static ls_value residual_not_kept(ls_graph *g, ls_value x)
{
	x = net_conv(g, x, "a", 20, 3, 0);
	ls_value r = ls_avg_pool2d(g, x, (ls_pool_options){ .kernel = 1, .stride = 1 });
	x = ls_relu(g, ls_add(g, net_norm(g, net_conv(g, x, "b", 20, 3, 0), "n"), r));
	for (int i = 0; i < 4; i++) {
		char conv[16], norm[16];
		snprintf(conv, sizeof(conv), "c%d", i);
		snprintf(norm, sizeof(norm), "m%d", i);
		x = ls_relu(g, net_norm(g, net_conv(g, x, conv, 20, 3, 0), norm));
	}
	return net_head(g, x);
}

static ls_value norm_relu_pool(ls_graph *g, ls_value x)
{
	x = ls_relu(g, net_norm(g, net_conv(g, x, "a", 20, 3, 0), "n"));
	return net_head(g, ls_max_pool2d(g, x, (ls_pool_options){ .kernel = 3, .stride = 2, .padding = 1 }));
}

static ls_value norm_after_relu(ls_graph *g, ls_value x)
{
	return net_head(g, net_norm(g, ls_relu(g, net_conv(g, x, "a", 20, 3, 1)), "n"));
}

static ls_value norm_after_pool(ls_graph *g, ls_value x)
{
	x = ls_avg_pool2d(g, net_conv(g, x, "a", 20, 3, 1), (ls_pool_options){ .kernel = 2 });
	return net_head(g, net_norm(g, x, "n"));
}

static ls_value two_norms_of_one_conv(ls_graph *g, ls_value x)
{
	x = net_conv(g, x, "a", 20, 3, 0);
	return net_head(g, ls_add(g, ls_relu(g, net_norm(g, x, "n")), net_norm(g, x, "m")));
}

/* The residual block, with the branch as first or second operand, with and without relu, projected or not. */
static ls_value block(ls_graph *g, ls_value x, int branch_first, int relu, int project)
{
	ls_value skip = ls_relu(g, net_conv(g, x, "stem", 20, 3, 1));
	ls_value branch = ls_relu(g, net_norm(g, net_conv(g, skip, "a", 20, 3, 0), "n"));
	branch = net_norm(g, net_conv(g, branch, "b", 20, 3, 0), "m");
	if (project)
		skip = net_norm(g, net_conv(g, skip, "down", 20, 1, 0), "k");
	x = branch_first ? ls_add(g, branch, skip) : ls_add(g, skip, branch);
	return net_head(g, relu ? ls_relu(g, x) : x);
}

static ls_value block_first(ls_graph *g, ls_value x)
{
	return block(g, x, 1, 1, 0);
}

static ls_value block_second(ls_graph *g, ls_value x)
{
	return block(g, x, 0, 1, 0);
}

static ls_value block_no_relu(ls_graph *g, ls_value x)
{
	return block(g, x, 1, 0, 0);
}

static ls_value block_projected(ls_graph *g, ls_value x)
{
	return block(g, x, 1, 1, 1);
}

static ls_value block_projected_second(ls_graph *g, ls_value x)
{
	return block(g, x, 0, 0, 1);
}

static ls_value two_blocks(ls_graph *g, ls_value x)
{
	x = ls_relu(g, net_conv(g, x, "stem", 70, 3, 1));
	x = ls_relu(g, ls_add(g, net_norm(g, net_conv(g, x, "a", 70, 1, 0), "n"), x));
	x = ls_relu(g, ls_add(g, x, net_norm(g, net_conv(g, x, "b", 70, 3, 0), "m")));
	return net_head(g, ls_global_avg_pool(g, x));
}

/* A norm whose input is also the residual it is added to. */
static ls_value norm_plus_its_input(ls_graph *g, ls_value x)
{
	x = net_conv(g, x, "a", 20, 3, 1);
	return net_head(g, ls_add(g, net_norm(g, x, "n"), x));
}

static ls_value input_plus_its_norm_relu(ls_graph *g, ls_value x)
{
	x = net_conv(g, x, "a", 20, 3, 1);
	return net_head(g, ls_relu(g, ls_add(g, x, net_norm(g, x, "n"))));
}

static ls_value norm_plus_its_input_and_more(ls_graph *g, ls_value x)
{
	x = net_conv(g, x, "a", 20, 3, 1);
	ls_value y = ls_relu(g, ls_add(g, net_norm(g, x, "n"), x));
	return net_head(g, ls_add(g, y, net_conv(g, x, "b", 20, 1, 0)));
}

static ls_value add_relu(ls_graph *g, ls_value x)
{
	return net_head(g, ls_relu(g, ls_add(g, net_conv(g, x, "a", 20, 3, 1), net_conv(g, x, "b", 20, 1, 0))));
}

static ls_value add_itself(ls_graph *g, ls_value x)
{
	x = net_conv(g, x, "a", 20, 3, 1);
	return net_head(g, ls_add(g, x, x));
}

static ls_value add_itself_relu(ls_graph *g, ls_value x)
{
	x = net_norm(g, net_conv(g, x, "a", 20, 3, 1), "n");
	return net_head(g, ls_relu(g, ls_add(g, x, x)));
}

/* One value read by three kinds; order decides which one writes its gradient and which ones add. */
static ls_value thrice_relu_dropout_norm(ls_graph *g, ls_value x)
{
	x = net_conv(g, x, "a", 20, 3, 1);
	ls_value r = ls_relu(g, x), d = net_dropout(g, x, 0.3f), n = net_norm(g, x, "n");
	return net_head(g, ls_add(g, ls_add(g, r, d), n));
}

static ls_value thrice_norm_relu_dropout(ls_graph *g, ls_value x)
{
	x = net_conv(g, x, "a", 20, 3, 1);
	ls_value n = net_norm(g, x, "n"), r = ls_relu(g, x), d = net_dropout(g, x, 0.3f);
	return net_head(g, ls_add(g, ls_relu(g, n), ls_add(g, r, d)));
}

static ls_value thrice_pools_flatten(ls_graph *g, ls_value x)
{
	x = net_conv(g, x, "a", 20, 3, 1);
	ls_value f = net_linear(g, net_dropout(g, ls_flatten(g, x), 0.2f), "f", 20);
	ls_value m = ls_global_avg_pool(g, ls_max_pool2d(g, x, (ls_pool_options){ .kernel = 2, .stride = 1 }));
	return net_head(g, ls_add(g, ls_add(g, m, f), ls_global_avg_pool(g, x)));
}

static ls_value thrice_flatten_conv_add(ls_graph *g, ls_value x)
{
	x = net_conv(g, x, "a", 20, 3, 1);
	ls_value y = ls_add(g, x, net_conv(g, x, "b", 20, 3, 0));
	ls_value f = net_norm(g, ls_flatten(g, x), "n");
	return ls_add(g, net_head(g, y), net_linear(g, f, "other", NET_CLASSES));
}

static ls_value flatten_norm(ls_graph *g, ls_value x)
{
	return net_head(g, ls_relu(g, net_norm(g, ls_flatten(g, net_conv(g, x, "a", 5, 3, 1)), "n")));
}

static ls_value flatten_dropout(ls_graph *g, ls_value x)
{
	return net_head(g, net_dropout(g, ls_flatten(g, net_conv(g, x, "a", 20, 3, 1)), 0.4f));
}

/* The linear layer looks through the flatten; the norm does not. */
static ls_value flatten_read_twice(ls_graph *g, ls_value x)
{
	x = ls_flatten(g, net_conv(g, x, "a", 5, 3, 1));
	return ls_add(g, net_head(g, x), net_linear(g, net_norm(g, x, "n"), "other", NET_CLASSES));
}

static ls_value flatten_input(ls_graph *g, ls_value x)
{
	return net_head(g, ls_relu(g, net_linear(g, ls_flatten(g, x), "a", 20)));
}

static ls_value dropout_relu(ls_graph *g, ls_value x)
{
	x = net_dropout(g, ls_relu(g, net_linear(g, x, "a", 70)), 0.5f);
	return net_head(g, net_dropout(g, net_linear(g, x, "b", 20), 0.25f));
}

static ls_value dropout_of_input(ls_graph *g, ls_value x)
{
	return net_head(g, net_dropout(g, x, 0.5f));
}

static ls_value input_to_max_pool(ls_graph *g, ls_value x)
{
	return net_head(g, ls_max_pool2d(g, x, (ls_pool_options){ .kernel = 2 }));
}

static ls_value input_to_avg_pool(ls_graph *g, ls_value x)
{
	return net_head(g,
			net_conv(g, ls_avg_pool2d(g, x, (ls_pool_options){ .kernel = 2, .padding = 1 }), "a", 9, 3, 1));
}

static ls_value input_to_relu(ls_graph *g, ls_value x)
{
	return net_head(g, net_conv(g, ls_relu(g, x), "a", 9, 3, 1));
}

static ls_value input_to_norm(ls_graph *g, ls_value x)
{
	return net_head(g, ls_relu(g, net_norm(g, x, "n")));
}

static ls_value input_to_many(ls_graph *g, ls_value x)
{
	ls_value a = net_conv(g, ls_add(g, x, x), "a", 9, 3, 1), b = net_conv(g, x, "b", 9, 3, 1);
	return ls_add(g, net_head(g, ls_add(g, a, b)), net_linear(g, x, "direct", NET_CLASSES));
}

/* Layers that end in the loss themselves. */
static ls_value end_in_average(ls_graph *g, ls_value x)
{
	return ls_global_avg_pool(g, ls_relu(g, net_conv(g, x, "a", NET_CLASSES, 3, 1)));
}

static ls_value end_in_norm_relu(ls_graph *g, ls_value x)
{
	return ls_relu(g, net_norm(g, net_linear(g, x, "a", NET_CLASSES), "n"));
}

static ls_value end_in_dropout(ls_graph *g, ls_value x)
{
	return net_dropout(g, net_head(g, x), 0.3f);
}

static ls_value end_in_flatten(ls_graph *g, ls_value x)
{
	return ls_flatten(g, ls_max_pool2d(g, net_conv(g, x, "a", 3, 3, 1), (ls_pool_options){ .kernel = 3 }));
}

static ls_value end_in_norm_add(ls_graph *g, ls_value x)
{
	ls_value a = net_linear(g, x, "a", NET_CLASSES);
	return ls_add(g, a, net_norm(g, net_linear(g, x, "b", NET_CLASSES), "n"));
}

typedef struct net_case {
	const char *name;
	builder build;
	int channels, height, width;
	int64_t count;
} net_case;

#define CASE(build, ...)                                                                                               \
	{                                                                                                              \
#build, build, __VA_ARGS__                                                                             \
	}
static const net_case cases[] = {
	CASE(linear_only, 3, 4, 5, 6),
	CASE(linear_only, 20, 3, 3, 6),
	CASE(linear_relu, 1, 6, 6, 7),
	CASE(linear_relu, 1, 6, 6, 150), /* three tiles */
	CASE(linear_without_bias, 70, 1, 1, 5),
	CASE(conv_twice, 1, 6, 6, 4),
	CASE(conv_twice, 20, 5, 3, 4), /* packed */
	CASE(conv_odd, 3, 7, 5, 5),
	CASE(conv_odd, 17, 7, 5, 3),
	CASE(conv_unreachable_taps, 3, 4, 4, 5),
	CASE(conv_unreachable_taps, 16, 2, 2, 5),
	CASE(conv_relu, 3, 5, 5, 4),
	CASE(conv_relu_read_twice, 3, 5, 5, 4),
	CASE(conv_relu_pool, 1, 8, 8, 5),
	CASE(conv_relu_pool, 1, 8, 8, 70), /* two tiles */
	CASE(conv_pool, 3, 7, 5, 4),
	CASE(conv_relu_pool_no_bias, 3, 6, 6, 4),
	CASE(pool_then_relu, 3, 6, 6, 4),
	CASE(averages, 3, 6, 7, 4),
	CASE(norm_alone, 3, 4, 4, 6),
	CASE(norm_after_biased_conv, 3, 4, 4, 6),
	CASE(norm_relu, 3, 4, 4, 6),
	CASE(residual_not_kept, 3, 4, 4, 6),
	CASE(norm_relu, 3, 3, 3, 70), /* batch statistics: one tile whatever the micro-batch */
	CASE(norm_relu_pool, 3, 7, 7, 5),
	CASE(norm_after_relu, 3, 4, 4, 6),
	CASE(norm_after_pool, 3, 6, 6, 6),
	CASE(two_norms_of_one_conv, 3, 4, 4, 5),
	CASE(block_first, 3, 4, 4, 5),
	CASE(block_second, 3, 4, 4, 5),
	CASE(block_no_relu, 3, 4, 4, 5),
	CASE(block_projected, 3, 4, 4, 5),
	CASE(block_projected_second, 3, 4, 4, 5),
	CASE(two_blocks, 3, 3, 3, 6),
	CASE(norm_plus_its_input, 3, 4, 4, 5),
	CASE(input_plus_its_norm_relu, 3, 4, 4, 5),
	CASE(norm_plus_its_input_and_more, 3, 4, 4, 5),
	CASE(add_relu, 3, 4, 4, 5),
	CASE(add_itself, 3, 4, 4, 5),
	CASE(add_itself_relu, 3, 4, 4, 5),
	CASE(thrice_relu_dropout_norm, 3, 4, 4, 5),
	CASE(thrice_norm_relu_dropout, 3, 4, 4, 5),
	CASE(thrice_pools_flatten, 3, 4, 4, 5),
	CASE(thrice_flatten_conv_add, 3, 3, 3, 5),
	CASE(flatten_norm, 3, 4, 5, 6),
	CASE(flatten_dropout, 3, 4, 5, 5),
	CASE(flatten_read_twice, 3, 4, 5, 6),
	CASE(flatten_input, 3, 4, 5, 6),
	CASE(flatten_input, 20, 2, 3, 6),
	CASE(dropout_relu, 1, 5, 5, 6),
	CASE(dropout_relu, 1, 5, 5, 70),
	CASE(dropout_of_input, 3, 4, 4, 5),
	CASE(input_to_max_pool, 3, 6, 6, 5),
	CASE(input_to_avg_pool, 20, 6, 5, 4),
	CASE(input_to_relu, 3, 4, 4, 5),
	CASE(input_to_norm, 3, 4, 4, 6),
	CASE(input_to_many, 3, 4, 4, 5),
	CASE(end_in_average, 3, 5, 5, 5),
	CASE(end_in_norm_relu, 3, 4, 4, 9),
	CASE(end_in_dropout, 3, 4, 4, 9),
	CASE(end_in_flatten, 3, 6, 3, 6),
	CASE(end_in_norm_add, 3, 4, 4, 6),
};

/* The loss with element `at` of a parameter moved by `step`. */
static double moved(net *t, const ls_param *p, size_t at, double step)
{
	float kept = t->logical[at];
	t->logical[at] = (float)(kept + step);
	ls_param_import(p, LS_STORE_WHOLE, t->logical, t->params);
	double loss = net_train(t, t->count);
	t->logical[at] = kept;
	ls_param_import(p, LS_STORE_WHOLE, t->logical, t->params);
	return loss;
}

static int agree(double a, double b, double slope)
{
	return fabs(a - b) <= (ABSOLUTE + RELATIVE * fabs(slope)) / 2;
}

/* Slope of the loss; 0 is returned where it has a kink nearby: two step lengths, or the two sides, that disagree. */
static int difference(net *t, const ls_param *p, size_t at, double width, double *out)
{
	double here = moved(t, p, at, 0), slope[2], side[2][2];

	for (int wide = 0; wide < 2; wide++) {
		double step = wide ? width : width / 2, up = moved(t, p, at, step), down = moved(t, p, at, -step);
		slope[wide] = (up - down) / (2 * step);
		side[wide][0] = (up - here) / step;
		side[wide][1] = (here - down) / step;
	}
	*out = slope[0];
	return agree(slope[1], slope[0], slope[0]) && agree(side[0][0], side[0][1], 2 * slope[0]) &&
	       agree(side[1][0], side[1][1], 2 * slope[0]);
}

/* DRAWS elements of one parameter; counts those taken and those given up. */
static void check_param(net *t, const net_case *c, const ls_param *p, uint64_t stream, int counts[2])
{
	size_t count = ls_param_elements(p);
	uint32_t words[4];

	ls_param_export(p, LS_STORE_WHOLE, t->params, t->logical);
	for (uint64_t draw = 0; draw < DRAWS && draw < count; draw++) {
		ls_rng_words(ls_rng_make(NET_SEED, LS_RNG_TEST, 7), stream, draw, words);
		size_t at = count <= DRAWS ? draw : ls_rng_below(words[0], (uint32_t)count);
		double expected;
		int smooth = difference(t, p, at, STEP, &expected) || difference(t, p, at, STEP / 4, &expected);
		counts[smooth]++;
		if (!smooth)
			continue;
		net_train(t, t->count);
		ls_param_export(p, LS_STORE_REACHABLE, t->grads, t->scratch);
		if (!(fabs(t->scratch[at] - expected) <= ABSOLUTE + RELATIVE * fabs(expected)))
			fail_msg("seed %d: %s (%dx%dx%d, %lld samples): gradient of %s[%zu] is %g, the loss says %g",
				 NET_SEED, c->name, c->channels, c->height, c->width, (long long)c->count, p->name, at,
				 (double)t->scratch[at], expected);
	}
}

static void check_case(const net_case *c, int counts[2])
{
	net t;
	ls_graph *g = net_graph();
	assert_ok(ls_graph_finish(g, c->build(g, ls_input(g, c->channels, c->height, c->width))));
	net_init(&t, g, c->count, 0, 1, 0);
	for (size_t i = 0; i < g->params.count; i++)
		if (g->params.rows[i].role <= LS_ROLE_NORM)
			check_param(&t, c, &g->params.rows[i], i, counts);
	net_train(&t, t.count);
	for (size_t i = 0; i < g->params.reachable; i++)
		if (!isfinite(t.grads[i]))
			fail_msg("%s: gradient %zu of %zu was not written", c->name, i, g->params.reachable);
	net_release(&t);
}

static void test_gradients(void **state)
{
	int counts[2] = { 0, 0 };
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		check_case(&cases[i], counts);
	print_message("# seed %d: %d gradients compared, %d given up near a kink\n", NET_SEED, counts[1], counts[0]);
	assert_true(counts[1] > 10 * counts[0]);
}

/* Whether a tap of a 3-tap filter with stride 2 or 1 and padding 1 ever meets the image, of which all of `size` pixels'
 * outputs are made: pixel = output * stride + tap - 1. */
static int tap_is_reachable(int tap, int size, int stride)
{
	for (int output = 0; output < (size - 1) / stride + 1; output++)
		if (output * stride + tap - 1 >= 0 && output * stride + tap - 1 < size)
			return 1;
	return 0;
}

/* A tap that meets the image has some gradient, one that does not has zeros and nothing else. */
static void check_taps(net *t, const char *name, int size, int stride)
{
	const ls_param *p = net_param(t->graph, name);
	const size_t filters = ls_param_elements(p) / 9;
	int unreachable = 0;

	ls_param_export(p, LS_STORE_REACHABLE, t->grads, t->logical); /* (filters, 3, 3) */
	for (int tap = 0; tap < 9; tap++) {
		int reachable = tap_is_reachable(tap / 3, size, stride) && tap_is_reachable(tap % 3, size, stride);
		size_t zeros = 0;
		for (size_t f = 0; f < filters; f++)
			zeros += t->logical[9 * f + (size_t)tap] == 0;
		if (reachable ? zeros == filters : zeros != filters)
			fail_msg("%s, tap %d: %zu of %zu gradients are zero", name, tap, zeros, filters);
		unreachable += !reachable;
	}
	assert_true(unreachable > 0 && unreachable < 9);
}

/* With unreachable weights trained as well (coupled weight decay wants that) their gradient is zero, not what was there
 * before. */
static void test_unreachable_weights_kept(void **state)
{
	net t;
	ls_graph *g = net_graph();
	(void)state;
	assert_ok(ls_graph_finish(g, conv_unreachable_taps(g, ls_input(g, 16, 2, 2))));
	ls_graph_keep_unreachable(g, 1);
	assert_int_equal(g->params.reachable, g->params.total);
	net_init(&t, g, 5, 0, 1, 0);
	net_train(&t, 5);
	for (size_t i = 0; i < g->params.reachable; i++)
		if (!isfinite(t.grads[i]))
			fail_msg("gradient %zu of %zu was not written", i, g->params.reachable);
	check_taps(&t, "a.weight", 2, 2);
	check_taps(&t, "b.weight", 1, 2);
	check_taps(&t, "c.weight", 1, 1);
	net_release(&t);
}

TEST_MAIN(test_gradients, test_unreachable_weights_kept)
