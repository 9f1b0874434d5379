/*
 * gpt.c - GPT-2 (Radford et al. 2019) in its published sizes and in small ones, with Hugging Face's layer names and
 * shapes.
 *
 *   embeddings  words + positions, dropout
 *   layer       x += drop(attention(norm(x)));  x += drop(linear(gelu(linear(norm(x)))))
 *   head        norm, then the words once more: what comes next, at every position
 *
 * A position sees itself and those before it. One linear layer makes query, key and value; the weights of linear layers
 * are (in, out). They start from N(0, 0.02), those that end a branch from N(0, 0.02 / sqrt(2 layers)), biases from 0.
 */
#include <math.h>

#include "base/status.h"
#include "models/family.h"

typedef struct gpt {
	int layers, hidden, heads;
} gpt;

enum { POSITIONS = 1024 };
#define DEVIATION 0.02f

static ls_value linear(ls_graph *g, ls_value x, ls_layer_name name, int out, float deviation)
{
	return ls_linear(
		g, x, name.text,
		(ls_linear_options){
			.out_features = out, .init = LS_WEIGHTS_NORMAL, .init_std = deviation, .is_transposed = 1 });
}

static ls_value norm(ls_graph *g, ls_value x, ls_layer_name name)
{
	return ls_layer_norm(g, x, name.text, (ls_layer_norm_options){ 0 });
}

/* LoRA (Hu et al. 2021): y + x A B, where B starts from 0. */
static ls_value adapt(ls_graph *g, ls_value x, ls_value y, const char *prefix, int rank, int out)
{
	ls_value a = ls_linear(g, x, ls_named(prefix, "attn.c_attn.lora_A").text,
			       (ls_linear_options){ .out_features = rank, .no_bias = 1 });
	ls_value b = ls_linear(g, a, ls_named(prefix, "attn.c_attn.lora_B").text,
			       (ls_linear_options){ .out_features = out, .no_bias = 1, .init = LS_WEIGHTS_ZERO });
	return ls_add(g, y, b);
}

static ls_value attend(ls_graph *g, ls_value x, const char *prefix, const gpt *size, const ls_model_options *o)
{
	int hidden = size->hidden;
	ls_value all = linear(g, x, ls_named(prefix, "attn.c_attn"), 3 * hidden, DEVIATION);
	if (o->text.lora > 0)
		all = adapt(g, x, all, prefix, o->text.lora, 3 * hidden);
	ls_value q = ls_slice(g, all, (ls_slice_options){ .first = 0, .channels = hidden });
	ls_value k = ls_slice(g, all, (ls_slice_options){ .first = hidden, .channels = hidden });
	ls_value v = ls_slice(g, all, (ls_slice_options){ .first = 2 * hidden, .channels = hidden });

	return ls_attention(g, q, k, v,
			    (ls_attention_options){ .num_heads = size->heads, .dropout = o->dropout, .is_causal = 1 });
}

static ls_value layer(ls_graph *g, ls_value x, int index, const gpt *size, const ls_model_options *o)
{
	const ls_dropout_options drop = { .p = o->dropout };
	float last = DEVIATION / sqrtf(2.0f * (float)size->layers);
	char prefix[64];

	snprintf(prefix, sizeof(prefix), "transformer.h.%d", index);
	ls_value y = attend(g, norm(g, x, ls_named(prefix, "ln_1")), prefix, size, o);
	y = linear(g, y, ls_named(prefix, "attn.c_proj"), size->hidden, last);
	x = ls_add(g, x, ls_dropout(g, y, drop));
	y = linear(g, norm(g, x, ls_named(prefix, "ln_2")), ls_named(prefix, "mlp.c_fc"), 4 * size->hidden, DEVIATION);
	y = ls_gelu(g, y, (ls_gelu_options){ .approximate = 1 });
	y = linear(g, y, ls_named(prefix, "mlp.c_proj"), size->hidden, last);
	return ls_add(g, x, ls_dropout(g, y, drop));
}

static ls_status build(ls_graph *g, const ls_model_options *o, gpt size)
{
	int tokens = o->text.tokens;
	ls_value words =
		ls_embedding(g, ls_text_input(g, tokens, tokens),
			     (ls_embedding_options){ .words = "transformer.wte",
						     .positions = "transformer.wpe",
						     .vocabulary = o->text.vocabulary,
						     .longest = o->text.positions ? o->text.positions : POSITIONS,
						     .width = size.hidden });
	ls_value x = ls_dropout(g, words, (ls_dropout_options){ .p = o->dropout });

	for (int i = 0; i < size.layers; i++)
		x = layer(g, x, i, &size, o);
	x = ls_masked_positions(g, norm(g, x, ls_named("transformer", "ln_f")));
	return ls_graph_finish_language(g, ls_tied_linear(g, x, words, NULL));
}

ls_status ls_model_gpt_nano(ls_graph *graph, const ls_model_options *options)
{
	return build(graph, options, (gpt){ .layers = 3, .hidden = 48, .heads = 3 });
}

ls_status ls_model_gpt_micro(ls_graph *graph, const ls_model_options *options)
{
	return build(graph, options, (gpt){ .layers = 4, .hidden = 128, .heads = 4 });
}

ls_status ls_model_gpt_mini(ls_graph *graph, const ls_model_options *options)
{
	return build(graph, options, (gpt){ .layers = 6, .hidden = 192, .heads = 6 });
}

ls_status ls_model_gpt_small(ls_graph *graph, const ls_model_options *options)
{
	return build(graph, options, (gpt){ .layers = 6, .hidden = 384, .heads = 6 });
}

ls_status ls_model_gpt2(ls_graph *graph, const ls_model_options *options)
{
	return build(graph, options, (gpt){ .layers = 12, .hidden = 768, .heads = 12 });
}

ls_status ls_model_gpt2_medium(ls_graph *graph, const ls_model_options *options)
{
	return build(graph, options, (gpt){ .layers = 24, .hidden = 1024, .heads = 16 });
}
