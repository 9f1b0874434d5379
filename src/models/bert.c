/*
 * bert.c - BERT (Devlin et al. 2019) in its published sizes, with Hugging Face's layer names and shapes.
 *
 *   embeddings  words + positions + segments, norm, dropout
 *   layer       attention, then two linear layers with a gelu between; after each the input is added and normed
 *   heads       pretraining: masked tokens (words tied to the embedding) and next sentence, both
 *               otherwise: a classifier on the first token
 *
 * Weights start from N(0, 0.02), biases from 0.
 */
#include "models/family.h"

typedef struct bert {
	int layers, hidden, heads;
} bert;

enum { POSITIONS = 512 };

static ls_value norm(ls_graph *g, ls_value x, ls_layer_name name)
{
	return ls_layer_norm(g, x, name.text, (ls_layer_norm_options){ .eps = 1e-12f });
}

static ls_value embeddings(ls_graph *g, const ls_model_options *o, const bert *size)
{
	ls_value tokens = ls_text_input(g, o->text.tokens, o->text.masked);
	return ls_embedding(g, tokens,
			    (ls_embedding_options){ .words = "bert.embeddings.word_embeddings",
						    .positions = "bert.embeddings.position_embeddings",
						    .segments = "bert.embeddings.token_type_embeddings",
						    .vocabulary = o->text.vocabulary,
						    .longest = POSITIONS,
						    .width = size->hidden });
}

static ls_value layer(ls_graph *g, ls_value x, int index, const bert *size, float dropout)
{
	char prefix[64];
	snprintf(prefix, sizeof(prefix), "bert.encoder.layer.%d", index);

	ls_value q = ls_text_linear(g, x, ls_named(prefix, "attention.self.query"), size->hidden);
	ls_value k = ls_text_linear(g, x, ls_named(prefix, "attention.self.key"), size->hidden);
	ls_value v = ls_text_linear(g, x, ls_named(prefix, "attention.self.value"), size->hidden);
	ls_value y = ls_attention(g, q, k, v, (ls_attention_options){ .num_heads = size->heads, .dropout = dropout });
	y = ls_dropout(g, ls_text_linear(g, y, ls_named(prefix, "attention.output.dense"), size->hidden),
		       (ls_dropout_options){ .p = dropout });
	x = norm(g, ls_add(g, y, x), ls_named(prefix, "attention.output.LayerNorm"));

	y = ls_gelu(g, ls_text_linear(g, x, ls_named(prefix, "intermediate.dense"), 4 * size->hidden),
		    (ls_gelu_options){ 0 });
	y = ls_dropout(g, ls_text_linear(g, y, ls_named(prefix, "output.dense"), size->hidden),
		       (ls_dropout_options){ .p = dropout });
	return norm(g, ls_add(g, y, x), ls_named(prefix, "output.LayerNorm"));
}

static ls_value pooled(ls_graph *g, ls_value x, const bert *size)
{
	return ls_tanh(g, ls_text_linear(g, ls_first_token(g, x), ls_named("bert.pooler", "dense"), size->hidden));
}

static ls_status finish_pretraining(ls_graph *g, ls_value x, ls_value words, const bert *size)
{
	ls_value next = ls_text_linear(g, pooled(g, x, size), ls_named("cls", "seq_relationship"), 2);
	ls_value y = ls_text_linear(g, ls_masked_positions(g, x), ls_named("cls.predictions.transform", "dense"),
				    size->hidden);

	y = norm(g, ls_gelu(g, y, (ls_gelu_options){ 0 }), ls_named("cls.predictions.transform", "LayerNorm"));
	return ls_graph_finish_pretraining(g, next, ls_tied_linear(g, y, words, "cls.predictions"));
}

static ls_status build(ls_graph *g, const ls_model_options *o, bert size)
{
	ls_value words = embeddings(g, o, &size);
	ls_value x = ls_dropout(g, norm(g, words, ls_named("bert.embeddings", "LayerNorm")),
				(ls_dropout_options){ .p = o->dropout });

	for (int i = 0; i < size.layers; i++)
		x = layer(g, x, i, &size, o->dropout);
	if (o->text.masked > 0)
		return finish_pretraining(g, x, words, &size);
	x = ls_dropout(g, pooled(g, x, &size), (ls_dropout_options){ .p = o->dropout });
	return ls_graph_finish(g,
			       ls_linear(g, x, "classifier",
					 (ls_linear_options){ .out_features = o->classes, .init = LS_WEIGHTS_NORMAL }));
}

ls_status ls_model_bert_tiny(ls_graph *graph, const ls_model_options *options)
{
	return build(graph, options, (bert){ .layers = 2, .hidden = 128, .heads = 2 });
}

ls_status ls_model_bert_mini(ls_graph *graph, const ls_model_options *options)
{
	return build(graph, options, (bert){ .layers = 4, .hidden = 256, .heads = 4 });
}

ls_status ls_model_bert_small(ls_graph *graph, const ls_model_options *options)
{
	return build(graph, options, (bert){ .layers = 4, .hidden = 512, .heads = 8 });
}

ls_status ls_model_bert_medium(ls_graph *graph, const ls_model_options *options)
{
	return build(graph, options, (bert){ .layers = 8, .hidden = 512, .heads = 8 });
}

ls_status ls_model_bert_base(ls_graph *graph, const ls_model_options *options)
{
	return build(graph, options, (bert){ .layers = 12, .hidden = 768, .heads = 12 });
}

ls_status ls_model_bert_large(ls_graph *graph, const ls_model_options *options)
{
	return build(graph, options, (bert){ .layers = 24, .hidden = 1024, .heads = 16 });
}
