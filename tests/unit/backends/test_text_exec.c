/*
 * The executor on text: no dependence on threads, neighbours, stale memory or tiles; a plan that holds the largest
 * micro-batch; logits of tokens whose gradient takes their place; what `ready` promises of shared words.
 */
#include "unit/backends/exec_checks.h"
#include "unit/graph/text_net.h"
#include "unit/test_main.h"

enum { LONGEST = 11, MASKED = 3, WIDTH = 48 };

static ls_value bert_layer(ls_graph *g, ls_value x, const char *name, float dropout)
{
	char names[5][32];
	static const char *const parts[5] = { "dense", "norm1", "up", "down", "norm2" };
	for (int i = 0; i < 5; i++)
		snprintf(names[i], sizeof(names[i]), "%s.%s", name, parts[i]);
	ls_value y = net_linear(g, text_attend(g, x, name, WIDTH, 3, dropout), names[0], WIDTH);
	x = net_layer_norm(g, ls_add(g, net_dropout(g, y, dropout), x), names[1], 1e-12f);
	y = net_linear(g, net_gelu(g, net_linear(g, x, names[2], 3 * WIDTH), 0), names[3], WIDTH);
	return net_layer_norm(g, ls_add(g, net_dropout(g, y, dropout), x), names[4], 1e-12f);
}

/* Pretraining with shared words, everything that rides along, dropout everywhere. */
static ls_graph *pretraining(void)
{
	ls_graph *g = net_graph();
	ls_value words = text_embed(g, LONGEST, MASKED, WIDTH, "segments");
	ls_value x = net_dropout(g, net_layer_norm(g, words, "norm", 0), 0.1f);
	x = bert_layer(g, bert_layer(g, x, "a", 0.2f), "b", 0.1f);
	ls_value logits = net_head(g, ls_tanh(g, net_linear(g, ls_first_token(g, x), "pooler", WIDTH)));
	ls_value y = net_gelu(g, net_linear(g, ls_masked_positions(g, x), "transform", WIDTH), 1);
	y = net_dropout(g, net_layer_norm(g, y, "transform.norm", 0), 0.2f);
	assert_ok(ls_graph_finish_pretraining(g, logits, ls_tied_linear(g, y, words, "tied")));
	return g;
}

/* A classifier with norms first, relu, sums that are read twice and logits of a mean. */
static ls_graph *classifier(void)
{
	ls_graph *g = net_graph();
	ls_value x = net_dropout(g, text_embed(g, LONGEST, 0, WIDTH, NULL), 0.1f);
	for (int i = 0; i < 2; i++) {
		const char *names[] = { i ? "n0" : "n1", i ? "a0" : "a1", i ? "o0" : "o1" };
		ls_value y = text_attend(g, net_layer_norm(g, x, names[0], 0), names[1], WIDTH, 3, 0.1f);
		x = ls_add(g, x, net_dropout(g, ls_relu(g, net_linear(g, y, names[2], WIDTH)), 0.1f));
	}
	x = ls_mean_token(g, net_layer_norm(g, x, "n", 0));
	assert_ok(ls_graph_finish(g, net_head(g, net_dropout(g, x, 0.2f))));
	return g;
}

static const exec_maker makers[] = { pretraining, classifier };

EXEC_SUBJECT(text_net, text_init, text_microbatch, text_release);

EXEC_TESTS(makers, 1, 5, 70, 150)

/* Samples of a micro-batch one by one: the same losses, logits and dropped elements, wherever a sample stood and
 * however long its neighbours are. */
static void check_neighbours(exec_maker make, const uint64_t *samples, int64_t count, int training)
{
	text_net all, one;
	float *logits = net_take(sizeof(float) * (size_t)count * NET_CLASSES), alone[NET_CLASSES];

	text_init(&all, make(), count, 0, 2, !training);
	text_init(&one, make(), 1, 0, 1, !training);
	text_fill(&all, samples, count);
	if (training)
		text_train(&all, count);
	else
		text_infer(&all, count, logits);
	for (int64_t i = 0; i < count; i++) {
		int32_t first = all.masked_start[i], masked = all.masked_start[i + 1] - first;
		text_fill(&one, samples + i, 1);
		if (training)
			text_train(&one, 1);
		else
			text_infer(&one, 1, alone);
		assert_int_equal(one.masked_start[1], masked);
		net_same_floats("loss of a sample alone", one.net.exec->losses[0].loss,
				all.net.exec->losses[0].loss + i, 1);
		net_same_floats("loss of its tokens", one.net.exec->losses[1].loss,
				all.net.exec->losses[1].loss + first, (size_t)masked);
		if (!training)
			net_same_floats("its logits", alone, logits + i * NET_CLASSES, NET_CLASSES);
	}
	free(logits);
	text_release(&one);
	text_release(&all);
}

static void test_neighbours(void **state)
{
	uint64_t samples[70];
	(void)state;
	for (uint64_t i = 0; i < 70; i++)
		samples[i] = i * 37 % 101;
	for (int m = 0; m < 2; m++)
		for (int training = 0; training < 2; training++)
			check_neighbours(makers[m], samples, 70, training);
}

/* The largest micro-batch there can be: every sample at its longest, with all its masked positions. */
static void test_capacity(void **state)
{
	uint64_t samples[70];
	(void)state;
	for (uint64_t i = 0; i < 70; i++)
		samples[i] = TEXT_FULL + i;
	for (int m = 0; m < 2; m++)
		for (int training = 0; training < 2; training++) {
			check_neighbours(makers[m], samples, 64, training);
			check_neighbours(makers[m], samples, 70, training);
		}
}

/* Every gradient of a parameter is zero, or some is not. */
static void check_gradient(net *t, const char *name, int zero)
{
	const ls_param *p = net_param(t->graph, name);
	size_t zeros = 0, count = ls_param_elements(p);
	ls_param_export(p, LS_STORE_REACHABLE, t->grads, t->logical);
	for (size_t i = 0; i < count; i++)
		zeros += t->logical[i] == 0;
	if (zero ? zeros != count : zeros == count)
		fail_msg("%zu of %zu gradients of %s are zero", zeros, count, name);
}

/* ... and the smallest: one token each, nothing to be predicted, so that what predicts has no gradient. */
static void test_shortest(void **state)
{
	static const char *const predicts[] = { "transform.weight", "transform.bias", "transform.norm.weight",
						"transform.norm.bias", "tied.bias" };
	const uint64_t samples[3] = { 0, 0, 0 };
	text_net t;
	(void)state;
	text_init(&t, pretraining(), 3, 0, 2, 0);
	text_fill(&t, samples, 3);
	t.masked_start[1] = t.masked_start[2] = t.masked_start[3] = 0;
	text_train(&t, 3);
	assert_true(t.net.microbatch.token_loss == 0 && t.net.microbatch.token_correct == 0 &&
		    t.net.microbatch.loss > 0);
	for (size_t i = 0; i < t.net.graph->params.reachable; i++)
		assert_true(isfinite(t.net.grads[i]));
	for (size_t i = 0; i < sizeof(predicts) / sizeof(predicts[0]); i++)
		check_gradient(&t.net, predicts[i], 1);
	check_gradient(&t.net, "pooler.weight", 0);
	check_gradient(&t.net, "a.up.weight", 0);
	text_release(&t);
	check_neighbours(classifier, samples, 3, 1);
}

/* A micro-batch of 100 is a tile of 64 and one of 36. */
static void test_tiles(void **state)
{
	(void)state;
	for (int m = 0; m < 2; m++) {
		text_net whole, part;
		uint64_t samples[100];
		double loss = 0, token_loss = 0;
		text_init(&whole, makers[m](), 100, 0, 1, 0);
		text_init(&part, makers[m](), 64, 36, 1, 0);
		text_train(&whole, 100);
		size_t reachable = whole.net.graph->params.reachable;
		float *sum = net_take(reachable * sizeof(float));
		for (uint64_t i = 0; i < 100; i++)
			samples[i] = i;
		for (int64_t first = 0; first < 100; first += 64) {
			int64_t count = first == 0 ? 64 : 36;
			text_fill(&part, samples + first, count);
			loss += text_train(&part, count);
			token_loss += part.net.microbatch.token_loss;
			for (size_t i = 0; i < reachable; i++)
				sum[i] += part.net.grads[i];
		}
		assert_true(fabs(loss - whole.net.microbatch.loss) < 1e-9 * loss);
		assert_true(fabs(token_loss - whole.net.microbatch.token_loss) <= 1e-9 * token_loss);
		exec_check_tile_sums(&whole.net, sum);
		free(sum);
		text_release(&part);
		text_release(&whole);
	}
}

/* The loss is that of the samples plus `weight` times that of the tokens; a weight of 0 leaves the words' own
 * part. */
static void test_token_weight(void **state)
{
	text_net t;
	double losses[3], tokens[3];
	static const double weights[3] = { 0, 1, 2.5 };
	(void)state;
	text_init(&t, pretraining(), 20, 0, 1, 0);
	for (int i = 0; i < 3; i++) {
		t.token_weight = weights[i];
		losses[i] = text_train(&t, 20);
		tokens[i] = t.net.microbatch.token_loss;
	}
	assert_true(tokens[0] == tokens[1] && tokens[1] == tokens[2] && tokens[0] > 1);
	for (int i = 0; i < 3; i++)
		assert_true(fabs(losses[i] - losses[0] - weights[i] * tokens[0]) < 1e-9 * losses[i]);
	text_release(&t);
}

/* When the layer that made them has gone backward, the place of the tokens' logits holds their gradient: rows that sum
 * to zero. Later it may be anything's. */
static void after_node(void *context, const char *node, int is_backward, double begin_s, double end_s)
{
	text_net *t = context;
	const ls_tensor *out = t->net.exec->losses[1].in[0];
	int64_t masked = t->masked_start[t->net.count];
	double most = 0;

	(void)begin_s, (void)end_s;
	if (!is_backward || strcmp(node, "tied") != 0)
		return;
	for (int64_t i = 0; i < masked; i++) {
		double sum = 0;
		for (int64_t c = 0; c < out->channels; c++) {
			int64_t at = (c / out->panel * masked + i) * out->panel + c % out->panel;
			double d = (double)t->net.exec->losses[1].x[0][at];
			sum += d;
			most = fmax(most, fabs(d));
		}
		assert_true(fabs(sum) < 1e-5);
	}
	assert_true(most > 0.1 && most <= TEXT_WEIGHT * 1.0001);
	t->packed.step_masked = -1; /* it was seen */
}

/* Logits of tokens are not there twice. */
static void test_own_gradient(void **state)
{
	text_net t;
	(void)state;
	text_init(&t, pretraining(), 20, 0, 1, 0);
	assert_ptr_equal(t.net.exec->losses[1].x[0], t.net.exec->losses[1].dx[0]);
	t.net.microbatch = text_microbatch(&t, 20);
	t.net.microbatch.span = after_node;
	t.net.microbatch.span_context = &t;
	ls_exec_train(t.net.exec, &t.net.microbatch);
	assert_int_equal(t.packed.step_masked, -1);
	text_release(&t);

	/* Where backward reads the logits again they stay. */
	ls_graph *g = net_graph();
	ls_value words = text_embed(g, LONGEST, MASKED, WIDTH, NULL);
	ls_value y = ls_relu(g, ls_tied_linear(g, ls_masked_positions(g, words), words, "tied"));
	assert_ok(ls_graph_finish_pretraining(g, net_head(g, ls_first_token(g, words)), y));
	text_init(&t, g, 20, 0, 1, 0);
	assert_ptr_not_equal(t.net.exec->losses[1].x[0], t.net.exec->losses[1].dx[0]);
	text_release(&t);
}

/* Inference gives the same by a plan of its own, which is smaller, and by training's. */
static void test_inference_plans(void **state)
{
	(void)state;
	for (int m = 0; m < 2; m++) {
		text_net train, infer;
		float a[70 * NET_CLASSES], b[70 * NET_CLASSES];
		text_init(&train, makers[m](), 70, 0, 1, 0);
		text_init(&infer, makers[m](), 70, 0, 3, 1);
		assert_true(text_infer(&train, 70, a) == text_infer(&infer, 70, b));
		net_same_floats("logits", b, a, 70 * NET_CLASSES);
		assert_true(ls_exec_workspace(infer.net.exec) < ls_exec_workspace(train.net.exec));
		text_release(&infer);
		text_release(&train);
	}
}

static void test_bytes(void **state)
{
	static const int64_t counts[] = { 1, 17, 64, 100, 0 };
	(void)state;
	for (int m = 0; m < 2; m++)
		exec_check_bytes(&subject, makers[m], counts);
}

/* Every gradient is announced once, when it is final: words that are shared, after both had their part. */
static void test_ready(void **state)
{
	(void)state;
	for (int m = 0; m < 2; m++)
		for (int threads = 1; threads <= 3; threads++)
			exec_check_ready(&subject, makers[m], threads, 0);
}

/* ---- where layers write ------------------------------------------------------------------------------------------ */

/* The memory after each layer, at capacity, against what it was: changes lie in what the plan gave the layer. */
typedef struct watch {
	const ls_exec *exec;
	char *before, *allowed; /* (workspace) */
	int events;             /* layers forward, then backward, of each tile */
} watch;

/* The span that begins at p and lives at that time. */
static void allow(watch *w, const void *p, int time)
{
	const ls_exec *exec = w->exec;
	for (size_t i = 0; i < exec->span_count && p; i++) {
		const ls_span *span = &exec->spans[i];
		if (exec->workspace + span->offset == (const char *)p && span->bytes > 0 && span->from <= time &&
		    time <= span->to)
			memset(w->allowed + span->offset, 1, span->bytes);
	}
}

static void watch_layer(void *context, const char *name, int is_backward, double begin_s, double end_s)
{
	watch *w = context;
	const ls_exec *exec = w->exec;
	int count = exec->op_count, event = w->events++ % (2 * count),
	    i = event < count ? event : 2 * count - 1 - event;
	int time = is_backward ? 2 * count - i : i;
	const ls_op *op = &exec->ops[i];
	size_t planned = exec->workspace_bytes + exec->scratch_bytes;

	(void)begin_s, (void)end_s;
	assert_string_equal(name, op->node->name);
	memset(w->allowed, 0, planned);
	const void *forward[] = { op->y, op->aux };
	for (int k = 0; k < 2 && !is_backward; k++)
		allow(w, forward[k], time);
	if (is_backward)
		allow(w, op->dy, time);
	for (int k = 0; k < LS_INPUTS_MAX && is_backward; k++) {
		allow(w, op->dx[k], time);
		allow(w, op->dx_target[k], time);
	}
	for (int k = 0; k < exec->loss_count && event == count; k++) /* and the losses, just before */
		allow(w, exec->losses[k].dx[0], count);
	if (op->type->scratch_bytes)
		memset(w->allowed + exec->workspace_bytes, 1, op->type->scratch_bytes(op, exec->largest));
	for (size_t at = 0; at < planned; at++)
		if (exec->workspace[at] != w->before[at] && !w->allowed[at])
			fail_msg("%s, %s: byte %zu of %zu (%zu of scratch) changed, which is not its own", name,
				 is_backward ? "backward" : "forward", at, exec->workspace_bytes, exec->scratch_bytes);
	memcpy(w->before, exec->workspace, planned);
}

static void test_writes(void **state)
{
	uint64_t samples[70];
	(void)state;
	for (uint64_t i = 0; i < 70; i++)
		samples[i] = TEXT_FULL + i;
	for (int m = 0; m < 2; m++) {
		text_net t;
		text_init(&t, makers[m](), 70, 0, 1, 0);
		text_fill(&t, samples, 70);
		size_t bytes = ls_exec_workspace(t.net.exec);
		watch w = { .exec = t.net.exec, .before = net_take(bytes), .allowed = net_take(bytes) };
		memset(t.net.exec->workspace, 0x7f, bytes);
		memcpy(w.before, t.net.exec->workspace, bytes);
		t.net.microbatch = text_microbatch(&t, 70);
		t.net.microbatch.span = watch_layer;
		t.net.microbatch.span_context = &w;
		ls_exec_train(t.net.exec, &t.net.microbatch);
		assert_int_equal(w.events, 4 * t.net.exec->op_count);
		free(w.before);
		free(w.allowed);
		text_release(&t);
	}
}

TEST_MAIN(test_threads, test_stale_memory, test_neighbours, test_capacity, test_shortest, test_writes, test_tiles,
	  test_token_weight, test_own_gradient, test_inference_plans, test_bytes, test_no_allocation, test_ready)
