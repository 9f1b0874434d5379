/*
 * Every row of the table of operators: its cases against differences of the loss, on any number of threads, and its
 * line in docs/operators.md. A row without a case fails.
 */
#include "unit/graph/slopes.h"
#include "unit/test_main.h"

enum { MASKED = 3 };

/* A trained layer that makes an input of the operator; a tanh keeps the two apart (graph/fuse.c). */
static ls_value make_input(ls_graph *g, ls_value x, const ls_op_type *type, const ls_op_case *c, int k)
{
	const char name[] = { 'i', 'n', (char)('0' + k), 0 };
	if (c->raw)
		return x;
	x = c->domain == LS_SAMPLES ? net_conv(g, x, name, c->channels, 1, 1) : net_linear(g, x, name, c->channels);
	return type->is_loss ? x : ls_tanh(g, x);
}

/* From the operator's output, or a loss's input, to the end. */
static ls_status finish(ls_graph *g, ls_value y, ls_value words, int is_loss)
{
	ls_domain domain = g->values[y.id].domain;

	if (domain == LS_MASKED) {
		ls_value logits = net_head(g, ls_first_token(g, words));
		if (!is_loss)
			return ls_graph_finish_pretraining(g, logits,
							   net_linear(g, ls_tanh(g, y), "tokens", TEXT_VOCABULARY));
		ls_cross_entropy(g, logits, (ls_cross_entropy_options){ 0 });
		return ls_graph_finish(g, logits);
	}
	if (is_loss)
		return ls_graph_finish(g, y);
	y = ls_tanh(g, y);
	return ls_graph_finish(g, net_head(g, domain == LS_TOKENS ? ls_mean_token(g, y) : y));
}

static ls_graph *make_graph(const ls_op_type *type, const ls_op_case *c)
{
	ls_graph *g = net_graph();
	ls_value inputs[LS_INPUTS_MAX], words = { LS_NONE }, x;

	if (c->domain == LS_SAMPLES)
		x = ls_input(g, c->raw ? c->channels : 3, c->height, c->width);
	else if (c->raw)
		x = ls_text_input(g, c->height, MASKED);
	else
		x = words = text_embed(g, c->height, MASKED, 20, NULL);
	if (c->domain == LS_MASKED)
		x = ls_masked_positions(g, x);
	for (int k = 0; k < type->input_count; k++)
		inputs[k] = make_input(g, x, type, c, k);
	ls_value y = ls_graph_add(g, type, type->named ? "op" : NULL, inputs, c->attributes);
	assert_ok(finish(g, type->is_loss ? inputs[0] : y, words, type->is_loss));
	for (int i = 0; i < g->node_count; i++)
		if (g->nodes[i].type == type)
			return g;
	for (int i = 0; i < g->loss_count; i++)
		if (g->losses[i].type == type)
			return g;
	fail_msg("%s was fused away: its case does not test it", type->name);
	return NULL;
}

static void test_gradients(void **state)
{
	int counts[2] = { 0, 0 };
	(void)state;
	for (int i = 0; ls_op_type_at(i); i++) {
		const ls_op_type *type = ls_op_type_at(i);
		if (type->cases[0].channels == 0)
			fail_msg("%s has no case for the gradient check", type->name);
		for (int k = 0; k < LS_OP_CASES_MAX && type->cases[k].channels > 0; k++) {
			char name[64];
			snprintf(name, sizeof(name), "%s, case %d", type->name, k);
			int targets = type->cases[k].targets;
			slope_check_targets(make_graph(type, &type->cases[k]), name, 6, targets, counts);
			slope_check_targets(make_graph(type, &type->cases[k]), name, 70, targets,
					    counts); /* two tiles */
		}
	}
	slope_report(counts);
}

/* One micro-batch of a case on a team of `threads`; returns its gradients, and their number. */
static float *gradients_of(const ls_op_type *type, const ls_op_case *c, int threads, double *loss, size_t *count)
{
	text_net text;
	net image;
	ls_graph *g = make_graph(type, c);
	int is_text = g->tokens_max > 0;
	net *t = is_text ? &text.net : &image;

	*count = g->params.reachable;
	if (is_text)
		text_init(&text, g, 9, 0, threads, 0);
	else
		net_init(&image, g, 9, 0, threads, 0);
	if (c->targets)
		net_use_targets(t);
	*loss = is_text ? text_train(&text, 9) : net_train(&image, 9);
	float *grads = t->grads;
	t->grads = NULL;
	if (is_text)
		text_release(&text);
	else
		net_release(&image);
	return grads;
}

static void test_threads(void **state)
{
	(void)state;
	for (int i = 0; ls_op_type_at(i); i++)
		for (int k = 0; k < LS_OP_CASES_MAX && ls_op_type_at(i)->cases[k].channels > 0; k++) {
			const ls_op_type *type = ls_op_type_at(i);
			double loss, other;
			size_t count;
			float *one = gradients_of(type, &type->cases[k], 1, &loss, &count);
			float *three = gradients_of(type, &type->cases[k], 3, &other, &count);
			assert_true(loss == other);
			net_same_floats(type->name, three, one, count);
			free(one);
			free(three);
		}
}

/* A vision transformer of one layer: operators of text on the positions of images. */
static ls_graph *vision_transformer(void)
{
	enum { WIDTH = 48 };
	ls_graph *g = net_graph();
	ls_value x = ls_conv2d(g, ls_input(g, 3, 8, 12), "patches",
			       (ls_conv_options){ .out_channels = WIDTH, .kernel = 4, .stride = 4 });
	ls_value y = net_layer_norm(g, x, "norm1", 0);
	ls_value q = net_per_position(g, y, "q", WIDTH), k = net_per_position(g, y, "k", WIDTH);
	y = ls_attention(g, q, k, net_per_position(g, y, "v", WIDTH), (ls_attention_options){ .num_heads = 3 });
	y = net_dropout(g, net_per_position(g, y, "out", WIDTH), 0.1f);
	x = net_layer_norm(g, ls_add(g, x, y), "norm2", 0);
	y = net_per_position(g, net_gelu(g, net_per_position(g, x, "up", 2 * WIDTH), 0), "down", WIDTH);
	x = net_layer_norm(g, ls_add(g, x, y), "norm3", 0);
	assert_ok(ls_graph_finish(g, net_head(g, ls_mean_token(g, x))));
	return g;
}

static void test_vision_transformer(void **state)
{
	int counts[2] = { 0, 0 };
	(void)state;
	slope_check_graph(vision_transformer(), "vision transformer", 6, counts);
	slope_check_graph(vision_transformer(), "vision transformer", 70, counts);
	slope_report(counts);
}

/* The page has a line for each operator, as its row has it, and none else. */
static void test_docs(void **state)
{
	char line[512], expected[512];
	int lines = 0, rows = 0;
	FILE *page = fopen(LS_GOLDEN_DIR "/../../docs/operators.md", "r");
	(void)state;
	assert_non_null(page);
	while (fgets(line, sizeof(line), page))
		lines += strncmp(line, "| `", 3) == 0;
	for (const ls_op_type *type; (type = ls_op_type_at(rows)); rows++) {
		int found = 0;
		snprintf(expected, sizeof(expected), "| `%s` | %s | %s | %s |\n", type->name, type->formula,
			 type->inputs, type->attributes ? type->attributes : "");
		rewind(page);
		while (!found && fgets(line, sizeof(line), page))
			found = strcmp(line, expected) == 0;
		if (!found)
			fail_msg("docs/operators.md lacks the line %s", expected);
	}
	fclose(page);
	assert_int_equal(lines, rows);
}

TEST_MAIN(test_gradients, test_threads, test_vision_transformer, test_docs)
