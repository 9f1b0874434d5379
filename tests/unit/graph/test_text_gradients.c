/*
 * Gradients of every kind of text layer, alone, fused and sharing values, against central differences of the loss.
 */
#include "unit/graph/slopes.h"
#include "unit/test_main.h"

enum { LONGEST = 9, MASKED = 4 };

typedef ls_value (*builder)(ls_graph *g, int width);

static ls_value embed(ls_graph *g, int width)
{
	return text_embed(g, LONGEST, MASKED, width, "segments");
}

/* ---- layers ------------------------------------------------------------------------------------------------------ */

static ls_value embed_first(ls_graph *g, int width)
{
	return net_head(g, ls_first_token(g, text_embed(g, LONGEST, 0, width, NULL)));
}

static ls_value embed_mean(ls_graph *g, int width)
{
	return net_head(g, ls_mean_token(g, embed(g, width)));
}

/* Words of two sizes, in one sum. */
static ls_value embed_twice(ls_graph *g, int width)
{
	ls_value tokens = ls_text_input(g, LONGEST, 0);
	ls_embedding_options a = {
		.words = "a", .positions = "b", .vocabulary = TEXT_VOCABULARY, .longest = LONGEST, .width = width
	};
	ls_embedding_options b = { .words = "c",
				   .positions = "d",
				   .segments = "e",
				   .vocabulary = TEXT_VOCABULARY + 1,
				   .longest = LONGEST + 5,
				   .width = width };
	ls_value x = ls_embedding(g, tokens, a), y = ls_embedding(g, tokens, b);
	return net_head(g, ls_mean_token(g, ls_add(g, ls_tanh(g, x), y)));
}

static ls_value linear_rows(ls_graph *g, int width)
{
	ls_value x = net_linear(g, embed(g, width), "a", 70);
	return net_head(
		g, ls_mean_token(g, ls_linear(g, x, "b", (ls_linear_options){ .out_features = 20, .no_bias = 1 })));
}

static ls_value linear_relu(ls_graph *g, int width)
{
	return net_head(g, ls_mean_token(g, ls_relu(g, net_linear(g, embed(g, width), "a", 70))));
}

static ls_value linear_gelu(ls_graph *g, int width)
{
	return net_head(g, ls_mean_token(g, net_gelu(g, net_linear(g, embed(g, width), "a", 70), 0)));
}

static ls_value linear_gelu_tanh(ls_graph *g, int width)
{
	return net_head(g, ls_mean_token(g, net_gelu(g, net_linear(g, embed(g, width), "a", 70), 1)));
}

static ls_value gelu_alone(ls_graph *g, int width)
{
	return net_head(g, ls_mean_token(g, net_gelu(g, embed(g, width), 0)));
}

static ls_value gelu_tanh_alone(ls_graph *g, int width)
{
	return net_head(g, ls_mean_token(g, net_gelu(g, embed(g, width), 1)));
}

static ls_value tanh_alone(ls_graph *g, int width)
{
	return net_head(g, ls_tanh(g, net_linear(g, ls_first_token(g, embed(g, width)), "a", width)));
}

static ls_value relu_alone(ls_graph *g, int width)
{
	return net_head(g, ls_mean_token(g, ls_relu(g, embed(g, width))));
}

static ls_value norm_alone(ls_graph *g, int width)
{
	return net_head(g, ls_mean_token(g, net_layer_norm(g, embed(g, width), "n", 0)));
}

static ls_value norm_of_samples(ls_graph *g, int width)
{
	return net_head(g, net_layer_norm(g, ls_mean_token(g, embed(g, width)), "n", 1e-12f));
}

/* [dropout ->] add -> layer_norm, the branch as first or second operand; then once more, so that dx must be given. */
static ls_value residual(ls_graph *g, int width, int first, float dropout)
{
	ls_value x = embed(g, width), y = net_dropout(g, net_linear(g, x, "a", width), dropout);
	x = net_layer_norm(g, first ? ls_add(g, y, x) : ls_add(g, x, y), "n", 0);
	y = net_dropout(g, net_linear(g, net_gelu(g, net_linear(g, x, "b", 70), 0), "c", width), dropout);
	x = net_layer_norm(g, first ? ls_add(g, y, x) : ls_add(g, x, y), "m", 1e-12f);
	return net_head(g, ls_mean_token(g, x));
}

static ls_value residual_first(ls_graph *g, int width)
{
	return residual(g, width, 1, 0);
}

static ls_value residual_second(ls_graph *g, int width)
{
	return residual(g, width, 0, 0);
}

static ls_value residual_dropped(ls_graph *g, int width)
{
	return residual(g, width, 1, 0.3f);
}

static ls_value residual_dropped_second(ls_graph *g, int width)
{
	return residual(g, width, 0, 0.3f);
}

/* Both operands dropped: one dropout rides along, the other stays. */
static ls_value both_dropped(ls_graph *g, int width)
{
	ls_value x = embed(g, width), y = net_dropout(g, net_linear(g, x, "a", width), 0.3f);
	return net_head(g, ls_mean_token(g, net_layer_norm(g, ls_add(g, y, net_dropout(g, x, 0.4f)), "n", 0)));
}

/* The dropped value is also the residual. */
static ls_value dropped_plus_itself(ls_graph *g, int width)
{
	ls_value x = net_linear(g, embed(g, width), "a", width);
	x = net_layer_norm(g, ls_add(g, net_dropout(g, x, 0.4f), x), "n", 0);
	return net_head(g, ls_mean_token(g, x));
}

static ls_value plus_itself(ls_graph *g, int width)
{
	ls_value x = net_linear(g, embed(g, width), "a", width);
	return net_head(g, ls_mean_token(g, net_layer_norm(g, ls_add(g, x, x), "n", 0)));
}

/* The residual sum is read by the norm and by the next sum: nothing is fused but the last (norms first). */
static ls_value norms_first(ls_graph *g, int width)
{
	ls_value x = net_dropout(g, embed(g, width), 0.2f);
	for (int i = 0; i < 2; i++) {
		const char *norm = i ? "n1" : "n0", *linear = i ? "l1" : "l0";
		ls_value y = net_gelu(g, net_linear(g, net_layer_norm(g, x, norm, 0), linear, width), 0);
		x = ls_add(g, x, net_dropout(g, y, 0.2f));
	}
	return net_head(g, ls_mean_token(g, net_layer_norm(g, x, "n", 0)));
}

static ls_value dropout_of_tokens(ls_graph *g, int width)
{
	return net_head(g, ls_mean_token(g, net_dropout(g, net_gelu(g, embed(g, width), 0), 0.4f)));
}

static ls_value dropout_of_samples(ls_graph *g, int width)
{
	return net_head(g, net_dropout(g, ls_first_token(g, embed(g, width)), 0.4f));
}

/* ---- attention --------------------------------------------------------------------------------------------------- */

static ls_value attend(ls_graph *g, int width, int head, float dropout)
{
	ls_value x = text_attend(g, embed(g, width), "a", width, width / head, dropout);
	return net_head(g, ls_mean_token(g, net_linear(g, x, "out", 20)));
}

static ls_value heads_16(ls_graph *g, int width)
{
	return attend(g, width, 16, 0);
}

static ls_value heads_32(ls_graph *g, int width)
{
	return attend(g, width, 32, 0);
}

static ls_value heads_64(ls_graph *g, int width)
{
	return attend(g, width, 64, 0);
}

static ls_value heads_dropped(ls_graph *g, int width)
{
	return attend(g, width, 16, 0.3f);
}

/* Operands that are not linear layers' */
static ls_value attend_to_others(ls_graph *g, int width)
{
	ls_value x = embed(g, width);
	ls_value q = net_gelu(g, net_linear(g, x, "q", width), 0), k = net_layer_norm(g, x, "k", 0);
	ls_value v = net_dropout(g, ls_add(g, x, net_linear(g, x, "v", width)), 0.2f);
	return net_head(g,
			ls_first_token(g, ls_attention(g, q, k, v, (ls_attention_options){ .num_heads = width / 16 })));
}

/* One value as all three operands, which others read as well. */
static ls_value attend_to_itself(ls_graph *g, int width)
{
	ls_value x = net_linear(g, embed(g, width), "x", width);
	ls_value y = ls_attention(g, x, x, x, (ls_attention_options){ .num_heads = width / 16 });
	return net_head(g, ls_mean_token(g, ls_add(g, y, ls_tanh(g, x))));
}

/* BERT's layer, whole. */
static ls_value encoder(ls_graph *g, ls_value x, int width, int heads, float dropout)
{
	ls_value y = net_linear(g, text_attend(g, x, "self", width, heads, dropout), "dense", width);
	x = net_layer_norm(g, ls_add(g, net_dropout(g, y, dropout), x), "norm1", 1e-12f);
	y = net_linear(g, net_gelu(g, net_linear(g, x, "up", 4 * width), 0), "down", width);
	return net_layer_norm(g, ls_add(g, net_dropout(g, y, dropout), x), "norm2", 1e-12f);
}

static ls_value bert_layer(ls_graph *g, int width)
{
	ls_value x = net_dropout(g, net_layer_norm(g, embed(g, width), "norm", 0), 0.1f);
	x = encoder(g, x, width, width / 16, 0.1f);
	return net_head(g, ls_tanh(g, net_linear(g, ls_first_token(g, x), "pooler", width)));
}

/* ---- values that several read ------------------------------------------------------------------------------------ */

static ls_value read_by_all(ls_graph *g, int width)
{
	ls_value x = net_linear(g, embed(g, width), "a", width);
	ls_value first = ls_first_token(g, x), mean = ls_mean_token(g, x), gelu = ls_mean_token(g, net_gelu(g, x, 0));
	ls_value tanh = ls_first_token(g, ls_tanh(g, x)), norm = ls_mean_token(g, net_layer_norm(g, x, "n", 0));
	ls_value drop = ls_first_token(g, net_dropout(g, x, 0.3f)), wide = net_linear(g, x, "b", width);
	ls_value sum = ls_add(g, ls_add(g, ls_add(g, first, mean), ls_add(g, gelu, tanh)), ls_add(g, norm, drop));
	return net_head(g, ls_add(g, sum, ls_mean_token(g, net_layer_norm(g, ls_add(g, wide, x), "m", 0))));
}

/* The same readers the other way round: which node writes first and which ones add changes. */
static ls_value read_by_all_reversed(ls_graph *g, int width)
{
	ls_value x = net_linear(g, embed(g, width), "a", width), wide = net_linear(g, x, "b", width);
	ls_value other = net_linear(g, x, "c", width);
	ls_value m = net_layer_norm(g, ls_add(g, wide, x), "m", 0), k = net_layer_norm(g, ls_add(g, x, other), "k", 0);
	ls_value drop = ls_first_token(g, net_dropout(g, x, 0.3f)),
		 norm = ls_mean_token(g, net_layer_norm(g, x, "n", 0));
	ls_value tanh = ls_first_token(g, ls_tanh(g, x)), gelu = ls_mean_token(g, net_gelu(g, x, 0));
	ls_value mean = ls_mean_token(g, x), first = ls_first_token(g, x);
	ls_value sum = ls_add(g, ls_add(g, ls_add(g, first, mean), ls_add(g, gelu, tanh)), ls_add(g, norm, drop));
	return net_head(g, ls_add(g, sum, ls_mean_token(g, ls_add(g, m, k))));
}

/* ---- two losses -------------------------------------------------------------------------------------------------- */

/* Logits of tokens are made from `x` by one of these. */
typedef ls_value (*token_head)(ls_graph *g, ls_value x, ls_value words, int width);

static ls_value tied(ls_graph *g, ls_value x, ls_value words, int width)
{
	x = net_layer_norm(g, net_gelu(g, net_linear(g, ls_masked_positions(g, x), "transform", width), 0), "tn", 0);
	return ls_tied_linear(g, x, words, "tied");
}

static ls_value untied(ls_graph *g, ls_value x, ls_value words, int width)
{
	(void)words, (void)width;
	return net_linear(g, ls_masked_positions(g, x), "untied", TEXT_VOCABULARY);
}

static ls_value tied_gelu(ls_graph *g, ls_value x, ls_value words, int width)
{
	(void)width;
	return net_gelu(g, ls_tied_linear(g, ls_masked_positions(g, x), words, "tied"), 1);
}

static ls_value tied_relu(ls_graph *g, ls_value x, ls_value words, int width)
{
	(void)width;
	return ls_relu(g, ls_tied_linear(g, ls_masked_positions(g, x), words, "tied"));
}

static ls_value tied_tanh(ls_graph *g, ls_value x, ls_value words, int width)
{
	(void)width;
	return ls_tanh(g, ls_tied_linear(g, ls_masked_positions(g, x), words, "tied"));
}

static ls_value tied_dropped(ls_graph *g, ls_value x, ls_value words, int width)
{
	x = net_dropout(g, net_linear(g, ls_masked_positions(g, x), "transform", width), 0.3f);
	return net_dropout(g, ls_tied_linear(g, x, words, "tied"), 0.2f);
}

static ls_value tied_norm(ls_graph *g, ls_value x, ls_value words, int width)
{
	(void)width;
	ls_value y = ls_tied_linear(g, ls_masked_positions(g, x), words, "tied");
	return net_layer_norm(g, ls_add(g, y, net_linear(g, ls_masked_positions(g, x), "other", TEXT_VOCABULARY)), "n",
			      0);
}

/* Two layers share the words. */
static ls_value tied_twice(ls_graph *g, ls_value x, ls_value words, int width)
{
	ls_value masked = ls_masked_positions(g, x);
	ls_value y = ls_tied_linear(g, ls_tanh(g, net_linear(g, masked, "t", width)), words, "tied");
	return ls_add(g, y, ls_tied_linear(g, masked, words, "again"));
}

static const token_head heads[] = {
	tied, untied, tied_gelu, tied_relu, tied_tanh, tied_dropped, tied_norm, tied_twice
};

/* ---- cases ------------------------------------------------------------------------------------------------------- */

typedef struct text_case {
	const char *name;
	builder build;
	int width;
	int64_t count;
	token_head head; /* of tokens, or NULL */
} text_case;

#define CASE(build, ...)                                                                                               \
	{                                                                                                              \
#build, build, __VA_ARGS__, NULL                                                                       \
	}
static const text_case cases[] = {
	CASE(embed_first, 16, 5),
	CASE(embed_first, 48, 5),
	CASE(embed_mean, 48, 5),
	CASE(embed_mean, 20, 5), /* padded lines */
	CASE(embed_mean, 80, 70),
	CASE(embed_twice, 48, 5),
	CASE(linear_rows, 48, 5),
	CASE(linear_rows, 130, 5),
	CASE(linear_relu, 32, 5),
	CASE(linear_gelu, 48, 5),
	CASE(linear_gelu, 64, 130), /* three tiles */
	CASE(linear_gelu_tanh, 48, 5),
	CASE(gelu_alone, 48, 5),
	CASE(gelu_tanh_alone, 48, 5),
	CASE(tanh_alone, 48, 5),
	CASE(relu_alone, 20, 5),
	CASE(norm_alone, 48, 5),
	CASE(norm_alone, 80, 70),
	CASE(norm_of_samples, 20, 6),
	CASE(residual_first, 48, 5),
	CASE(residual_second, 48, 5),
	CASE(residual_dropped, 48, 5),
	CASE(residual_dropped, 80, 70),
	CASE(residual_dropped_second, 48, 5),
	CASE(both_dropped, 48, 5),
	CASE(dropped_plus_itself, 48, 5),
	CASE(plus_itself, 48, 5),
	CASE(norms_first, 48, 5),
	CASE(dropout_of_tokens, 48, 70),
	CASE(dropout_of_samples, 48, 70),
	CASE(heads_16, 16, 5),
	CASE(heads_16, 48, 5), /* three heads in a panel of 64 */
	CASE(heads_16, 80, 5), /* the fifth in a panel of its own */
	CASE(heads_32, 32, 5),
	CASE(heads_32, 96, 5),
	CASE(heads_64, 64, 5),
	CASE(heads_64, 128, 70),
	CASE(heads_dropped, 48, 5),
	CASE(heads_dropped, 32, 70),
	CASE(attend_to_others, 48, 5),
	CASE(attend_to_itself, 48, 5),
	CASE(bert_layer, 48, 5),
	CASE(bert_layer, 32, 70),
	CASE(read_by_all, 48, 5),
	CASE(read_by_all, 20, 70),
	CASE(read_by_all_reversed, 48, 5),
};

static void test_layers(void **state)
{
	int counts[2] = { 0, 0 };
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char name[64];
		ls_graph *g = net_graph();
		snprintf(name, sizeof(name), "%s %d wide, %lld samples", cases[i].name, cases[i].width,
			 (long long)cases[i].count);
		assert_ok(ls_graph_finish(g, cases[i].build(g, cases[i].width)));
		slope_check_graph(g, name, cases[i].count, counts);
	}
	slope_report(counts);
}

/* Labels of samples and tokens to be predicted, in one loss. */
static void test_two_losses(void **state)
{
	static const int64_t sizes[] = { 6, 70 };
	int counts[2] = { 0, 0 };
	(void)state;
	for (size_t h = 0; h < sizeof(heads) / sizeof(heads[0]); h++)
		for (int s = 0; s < 2; s++) {
			char name[64];
			ls_graph *g = net_graph();
			int width = s ? 32 : 48;
			ls_value words = embed(g, width), x = net_layer_norm(g, words, "norm", 0);
			x = encoder(g, x, width, width / 16, 0.1f);
			ls_value logits = net_head(g, ls_tanh(g, ls_first_token(g, x)));
			snprintf(name, sizeof(name), "head of tokens %zu, %lld samples", h, (long long)sizes[s]);
			assert_ok(ls_graph_finish_pretraining(g, logits, heads[h](g, x, words, width)));
			slope_check_graph(g, name, sizes[s], counts);
		}
	slope_report(counts);
}

TEST_MAIN(test_layers, test_two_losses)
