/*
 * transformer.c - a text classifier trained from scratch: an encoder with norms first, the mean over tokens, a linear
 * layer.
 *
 *   x += drop(attention(norm(x)));  x += drop(linear(gelu(linear(norm(x)))))
 */
#include "models/family.h"

#include "base/status.h"

typedef struct transformer {
	int layers, hidden, heads, ffn, positions;
} transformer;

/* Zeros stand for the published job's numbers. */
static transformer sizes(const ls_text_model *o)
{
	transformer t = { .layers = o->layers ? o->layers : 6,
			  .hidden = o->hidden ? o->hidden : 256,
			  .heads = o->heads ? o->heads : 4,
			  .ffn = o->ffn,
			  .positions = o->positions };
	t.ffn = t.ffn ? t.ffn : 4 * t.hidden;
	t.positions = t.positions ? t.positions : o->tokens > 256 ? o->tokens : 256;
	return t;
}

static ls_value attend(ls_graph *g, ls_value x, const char *prefix, const transformer *t, float dropout)
{
	ls_value q = ls_text_linear(g, x, ls_named(prefix, "attention.query"), t->hidden);
	ls_value k = ls_text_linear(g, x, ls_named(prefix, "attention.key"), t->hidden);
	ls_value v = ls_text_linear(g, x, ls_named(prefix, "attention.value"), t->hidden);
	x = ls_attention(g, q, k, v, (ls_attention_options){ .num_heads = t->heads, .dropout = dropout });
	return ls_text_linear(g, x, ls_named(prefix, "attention.output"), t->hidden);
}

static ls_value layer(ls_graph *g, ls_value x, int index, const transformer *t, float dropout)
{
	char prefix[64];
	snprintf(prefix, sizeof(prefix), "layers.%d", index);

	ls_value y = ls_layer_norm(g, x, ls_named(prefix, "norm1").text, (ls_layer_norm_options){ 0 });
	x = ls_add(g, x, ls_dropout(g, attend(g, y, prefix, t, dropout), (ls_dropout_options){ .p = dropout }));
	y = ls_layer_norm(g, x, ls_named(prefix, "norm2").text, (ls_layer_norm_options){ 0 });
	y = ls_gelu(g, ls_text_linear(g, y, ls_named(prefix, "linear1"), t->ffn), (ls_gelu_options){ 0 });
	return ls_add(g, x,
		      ls_dropout(g, ls_text_linear(g, y, ls_named(prefix, "linear2"), t->hidden),
				 (ls_dropout_options){ .p = dropout }));
}

ls_status ls_model_transformer(ls_graph *g, const ls_model_options *o)
{
	transformer t = sizes(&o->text);
	ls_value x = ls_embedding(g, ls_text_input(g, o->text.tokens, 0),
				  (ls_embedding_options){ .words = "words",
							  .positions = "positions",
							  .vocabulary = o->text.vocabulary,
							  .longest = t.positions,
							  .width = t.hidden });

	if (o->text.masked > 0)
		return ls_fail(LS_EINVALID,
			       "transformer classifies sentences; to pretrain on a corpus use a bert model");
	x = ls_dropout(g, x, (ls_dropout_options){ .p = o->dropout });
	for (int i = 0; i < t.layers; i++)
		x = layer(g, x, i, &t, o->dropout);
	x = ls_mean_token(g, ls_layer_norm(g, x, "norm", (ls_layer_norm_options){ 0 }));
	return ls_graph_finish(
		g, ls_linear(g, x, "fc", (ls_linear_options){ .out_features = o->classes, .init = LS_WEIGHTS_ZERO }));
}
