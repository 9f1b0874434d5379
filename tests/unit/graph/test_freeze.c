/*
 * Frozen parameters: the others get the gradients they had, bit for bit, whichever are frozen; nothing is computed that
 * nobody needs; a batch norm that is frozen goes by its running statistics.
 */
#include "unit/graph/slopes.h"
#include "unit/test_main.h"

/* ---- nets -------------------------------------------------------------------------------------------------------- */

/* A bias in the pool, unreachable taps, a branch that meets another, a linear layer over a map. */
static ls_graph *image_net(void)
{
	ls_graph *g = net_graph();
	ls_value x = net_conv(g, ls_input(g, 3, 8, 8), "a", 20, 3, 1);
	x = ls_max_pool2d(g, ls_relu(g, x), (ls_pool_options){ .kernel = 4 });
	ls_value y = ls_relu(g, net_conv(g, x, "b", 20, 5, 1));
	x = ls_multiply(g, ls_add(g, y, x), net_conv(g, x, "c", 20, 1, 0));
	x = net_layer_norm(g, net_per_position(g, x, "d", 33), "n", 0);
	assert_ok(ls_graph_finish(g, net_head(g, x)));
	return g;
}

static ls_graph *norm_net(void)
{
	ls_graph *g = net_graph();
	ls_value x = ls_relu(g, net_norm(g, net_conv(g, ls_input(g, 3, 5, 5), "a", 20, 3, 0), "n"));
	ls_value y = net_norm(g, net_conv(g, x, "b", 20, 3, 0), "m");
	x = ls_relu(g, ls_add(g, y, x));
	assert_ok(ls_graph_finish(g, net_head(g, net_conv(g, x, "c", 16, 3, 1))));
	return g;
}

/* Attention, two layers that share the words, two losses. */
static ls_graph *text_net_graph(void)
{
	ls_graph *g = net_graph();
	ls_value words = text_embed(g, 9, 3, 32, "segments"), x = words;
	x = net_layer_norm(g, ls_add(g, net_dropout(g, text_attend(g, x, "att", 32, 2, 0.1f), 0.1f), x), "n", 0);
	x = net_layer_norm(g, ls_add(g, net_linear(g, net_gelu(g, net_linear(g, x, "f1", 48), 0), "f2", 32), x), "o",
			   0);
	ls_value masked = net_linear(g, ls_masked_positions(g, x), "t", 32);
	ls_value tokens = ls_add(g, ls_tied_linear(g, masked, words, "tied"),
				 ls_tied_linear(g, ls_masked_positions(g, x), words, "again"));
	assert_ok(ls_graph_finish_pretraining(g, net_head(g, ls_first_token(g, x)), tokens));
	return g;
}

/* ---- gradients --------------------------------------------------------------------------------------------------- */

/* The gradients of a net as parameters lie in it, with `patterns` frozen. */
typedef struct trained {
	text_net text;
	net image, *net;
} trained;

static void train(trained *t, ls_graph *g, int threads)
{
	*t = (trained){ .net = &t->image };
	if (g->tokens_max > 0) {
		text_init(&t->text, g, 5, 0, threads, 0);
		t->net = &t->text.net;
		text_train(&t->text, 5);
	} else {
		net_init(&t->image, g, 5, 0, threads, 0);
		net_train(&t->image, 5);
	}
}

static void release(trained *t)
{
	if (t->net == &t->image)
		net_release(&t->image);
	else
		text_release(&t->text);
}

static int compare(const trained *all, const trained *some, const char *what)
{
	int compared = 0;
	for (size_t i = 0; i < all->net->graph->params.count; i++) {
		const ls_param *p = &all->net->graph->params.rows[i], *q = &some->net->graph->params.rows[i];
		char name[160];
		if (!ls_param_is_trained(p) || q->is_frozen)
			continue;
		snprintf(name, sizeof(name), "'%.60s' frozen: %.60s", what, p->name);
		ls_param_export(p, LS_STORE_REACHABLE, all->net->grads, all->net->logical);
		ls_param_export(q, LS_STORE_REACHABLE, some->net->grads, all->net->scratch);
		net_same_floats(name, all->net->scratch, all->net->logical, ls_param_elements(p));
		compared++;
	}
	return compared;
}

/* Every parameter frozen alone, and trained alone, on one thread and on three. */
static void check_each(ls_graph *(*make)(void), int alone_only)
{
	trained all;
	train(&all, make(), 1);
	const ls_param_table *table = &all.net->graph->params;
	for (size_t i = 0; i < table->count; i++)
		for (int rest = 0; rest < 2 - alone_only; rest++) {
			ls_graph *g = make();
			trained some;
			if (!ls_param_is_trained(&table->rows[i])) {
				ls_graph_free(g);
				continue;
			}
			char list[2048] = "";
			for (size_t k = 0; k < table->count; k++)
				if (ls_param_is_trained(&table->rows[k]) && (rest ? k != i : k == i))
					snprintf(list + strlen(list), sizeof(list) - strlen(list), "%s%s",
						 *list ? "," : "", table->rows[k].name);
			assert_ok(ls_graph_freeze(g, list));
			train(&some, g, rest ? 3 : 1);
			assert_true(compare(&all, &some, list) > 0);
			release(&some);
		}
	release(&all);
}

static void others_keep_their_gradients(void **state)
{
	(void)state;
	check_each(image_net, 0);
	check_each(text_net_graph, 0);
	check_each(norm_net, 1); /* with both of a norm's parameters frozen it is another function */
}

/* ---- batch norms ------------------------------------------------------------------------------------------------- */

/* Gradients through a frozen norm are those of the function it is then, its running statistics constants of it. */
static void slopes_through_a_frozen_norm(void **state)
{
	int counts[2] = { 0 };
	static const char *const frozen[] = { "n.*", "m.*", "n.*,m.*,b.*", "a.*,n.*", "m.*,c.*", "n.*,m.*" };
	(void)state;
	for (size_t i = 0; i < sizeof(frozen) / sizeof(frozen[0]); i++) {
		ls_graph *g = norm_net();
		assert_ok(ls_graph_freeze(g, frozen[i]));
		slope_check_graph(g, frozen[i], 6, counts);
	}
	slope_report(counts);
}

/* A sample's logits no longer depend on the others of its micro-batch, and training computes what evaluation does. */
static void frozen_norms_are_of_evaluation(void **state)
{
	net t, e;
	(void)state;
	ls_graph *g = norm_net(), *h = norm_net();
	assert_ok(ls_graph_freeze(g, "n.*,m.*"));
	net_init(&t, g, 6, 0, 2, 0);
	net_init(&e, h, 6, 0, 1, 1);
	for (size_t i = 0; i < g->params.buffers; i++) /* a variance is positive */
		t.buffers[i] = e.buffers[i] = 0.5f + fabsf(t.buffers[i]);
	memset(t.stats, 0xff, g->params.buffers * sizeof(float));
	double loss = net_train(&t, 6);
	ls_exec_microbatch microbatch = net_microbatch(&e, 6);
	ls_exec_infer(e.exec, &microbatch, NULL);
	assert_true(loss == microbatch.loss);
	float *before = net_take(g->params.buffers * sizeof(float));
	memcpy(before, t.buffers, g->params.buffers * sizeof(float));
	ls_graph_update_running(g, t.stats, 0, g->params.buffers, 6, t.buffers);
	net_same_floats("running statistics", t.buffers, before, g->params.buffers);
	for (size_t i = 0; i < g->params.buffers; i++)
		assert_true(t.stats[i] == 0); /* not what was there before */
	free(before);
	net_release(&t);
	net_release(&e);
}

/* ---- what is not computed ---------------------------------------------------------------------------------------- */

static void backward_ends_at_the_lowest_trained_layer(void **state)
{
	size_t all, some;
	(void)state;
	ls_graph *g = image_net();
	double flop = ls_graph_describe(g).flop_per_sample;
	assert_ok(ls_exec_bytes(g, 32, 1, 0, &all));
	assert_ok(ls_graph_freeze(g, "a.*,b.*,c.*"));
	assert_ok(ls_exec_bytes(g, 32, 1, 0, &some));
	assert_true(some < all); /* nothing of these layers is kept for backward */
	for (int i = 0; i < g->node_count; i++) {
		const char *name = g->nodes[i].name;
		int below = strcmp(name, "d") != 0 && strcmp(name, "n") != 0 && strcmp(name, "head") != 0;
		assert_int_equal(g->values[g->nodes[i].output].needs_gradient, !below);
	}
	double macs = 0;
	for (int i = 0; i < g->node_count; i++)
		macs += ls_node_macs(g, &g->nodes[i], 0);
	assert_true(2 * macs == ls_graph_describe(g).flop_per_sample && 2 * macs < flop / 2);
	assert_int_equal(ls_graph_describe(g).gradient_bytes, g->params.reachable * sizeof(float));
	assert_ok(ls_graph_freeze(g, NULL));
	assert_true(ls_graph_describe(g).flop_per_sample == flop);
	ls_graph_free(g);
}

/* ---- the store --------------------------------------------------------------------------------------------------- */

static void frozen_parameters_lie_behind(void **state)
{
	(void)state;
	for (int whole = 0; whole < 2; whole++) {
		ls_graph *g = image_net(), *plain = image_net();
		assert_ok(ls_graph_freeze(g, "b.*,n.bias"));
		ls_graph_keep_unreachable(g, whole);
		const ls_param_table *table = &g->params;
		const ls_param *b = net_param(g, "b.weight"), *n = net_param(g, "n.bias");
		assert_int_equal(table->frozen, 20 * 20 * 25 + 20 + 33);
		assert_int_equal(table->trainable, plain->params.trainable);
		assert_true(b->unreachable_count > 0); /* whatever an optimizer needs of the others */
		for (size_t i = 0; i < table->count; i++)
			assert_int_equal(table->rows[i].is_frozen, table->rows[i].offset >= table->reachable);
		net t, u;
		uint64_t print[2];
		net_init(&t, g, 2, 0, 1, 0);
		net_init(&u, plain, 2, 0, 1, 0);
		assert_ok(ls_params_fingerprint(table, t.params, t.buffers, &print[0]));
		assert_ok(ls_params_fingerprint(&plain->params, u.params, u.buffers, &print[1]));
		assert_int_equal(print[0], print[1]);
		ls_param_export(n, LS_STORE_REACHABLE, NULL, t.logical); /* reads nothing */
		assert_true(t.logical[0] == 0 && t.logical[32] == 0);
		net_release(&t);
		net_release(&u);
	}
}

/* ---- patterns ---------------------------------------------------------------------------------------------------- */

static void patterns_that_cannot_be(void **state)
{
	char longest[400];
	(void)state;
	ls_graph *g = norm_net();
	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	assert_fails(ls_graph_freeze(g, "a"), LS_EINVALID, "did you mean 'a.*'?");
	assert_fails(ls_graph_freeze(g, "a.weight,hea"), LS_EINVALID, "did you mean 'hea*'?");
	assert_fails(ls_graph_freeze(g, "a.weight,haed.*"), LS_EINVALID, "did you mean 'head*'?");
	assert_fails(ls_graph_freeze(g, "something.else"), LS_EINVALID, "matches no parameter of the model");
	assert_fails(ls_graph_freeze(g, "n.running_mean"), LS_EINVALID, "matches no parameter of the model");
	assert_fails(ls_graph_freeze(g, "a.*,"), LS_EINVALID, "an empty pattern");
	assert_fails(ls_graph_freeze(g, ""), LS_EINVALID, "an empty pattern");
	assert_fails(ls_graph_freeze(g, longest), LS_EINVALID, "longer than 255 characters");
	assert_fails(ls_graph_freeze(g, "*"), LS_EINVALID, "nothing left to train");
	assert_fails(ls_graph_freeze(g, "a.*,b*,c.?*,[mn].*,head.weight,head.bias"), LS_EINVALID, "nothing left");
	assert_int_equal(g->params.frozen, 0); /* a mistake freezes nothing */
	assert_ok(ls_graph_freeze(g, "a.*,b*,c.?*,[mn].*,head.weight"));
	assert_int_equal(g->params.trainable - g->params.frozen, NET_CLASSES);
	assert_ok(ls_graph_freeze(g, NULL));
	assert_int_equal(g->params.frozen, 0);
	ls_graph_free(g);
}

TEST_MAIN(others_keep_their_gradients, slopes_through_a_frozen_norm, frozen_norms_are_of_evaluation,
	  backward_ends_at_the_lowest_trained_layer, frozen_parameters_lie_behind, patterns_that_cannot_be)
