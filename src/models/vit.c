/*
 * vit.c - the Vision Transformer (Dosovitskiy et al. 2021) in DeiT's sizes, with Hugging Face's layer names and shapes.
 *
 *   embeddings  a convolution over patches, a token for the class in front, positions, dropout
 *   layer       x += drop(attention(norm(x)));  x += drop(linear(gelu(linear(norm(x)))))
 *   head        norm, the class's token, a linear layer
 *
 * Patches are 16x16, of images below 96 pixels 8x8 and below 64 4x4, or the next smaller size that divides the image.
 * Weights start from N(0, 0.02), biases from 0.
 */
#include "base/status.h"
#include "models/family.h"

typedef struct vit {
	int layers, hidden, heads;
} vit;

static ls_value linear(ls_graph *g, ls_value x, ls_layer_name name, int out)
{
	return ls_linear(g, x, name.text,
			 (ls_linear_options){ .out_features = out, .init = LS_WEIGHTS_NORMAL, .per_position = 1 });
}

static ls_value norm(ls_graph *g, ls_value x, ls_layer_name name)
{
	return ls_layer_norm(g, x, name.text, (ls_layer_norm_options){ .eps = 1e-12f });
}

static ls_value attend(ls_graph *g, ls_value x, const char *prefix, const vit *size, float dropout)
{
	ls_value q = linear(g, x, ls_named(prefix, "attention.attention.query"), size->hidden);
	ls_value k = linear(g, x, ls_named(prefix, "attention.attention.key"), size->hidden);
	ls_value v = linear(g, x, ls_named(prefix, "attention.attention.value"), size->hidden);
	x = ls_attention(g, q, k, v, (ls_attention_options){ .num_heads = size->heads, .dropout = dropout });
	return linear(g, x, ls_named(prefix, "attention.output.dense"), size->hidden);
}

static ls_value layer(ls_graph *g, ls_value x, int index, const vit *size, float dropout)
{
	const ls_dropout_options drop = { .p = dropout };
	char prefix[64];

	snprintf(prefix, sizeof(prefix), "vit.encoder.layer.%d", index);
	ls_value y = attend(g, norm(g, x, ls_named(prefix, "layernorm_before")), prefix, size, dropout);
	x = ls_add(g, x, ls_dropout(g, y, drop));
	y = linear(g, norm(g, x, ls_named(prefix, "layernorm_after")), ls_named(prefix, "intermediate.dense"),
		   4 * size->hidden);
	y = linear(g, ls_gelu(g, y, (ls_gelu_options){ 0 }), ls_named(prefix, "output.dense"), size->hidden);
	return ls_add(g, x, ls_dropout(g, y, drop));
}

static int usual_side(const ls_model_options *o)
{
	int smaller = o->height < o->width ? o->height : o->width;
	return smaller >= 96 ? 16 : smaller >= 64 ? 8 : 4;
}

/* The largest square that images are made of, up to the usual size. */
static int patch_side(const ls_model_options *o)
{
	int side = usual_side(o);
	while (o->height % side != 0 || o->width % side != 0)
		side--;
	return side;
}

static ls_status build(ls_graph *g, const ls_model_options *o, vit size)
{
	int patch = patch_side(o);
	ls_value x = ls_input(g, o->channels, o->height, o->width);

	if (2 * patch < usual_side(o))
		return ls_fail(
			LS_EINVALID,
			"images of %dx%d cannot be cut into patches of about %dx%d; scale them to a size that %d "
			"divides (options.image_size)",
			o->height, o->width, usual_side(o), usual_side(o), usual_side(o));
	x = ls_conv2d(
		g, x, "vit.embeddings.patch_embeddings.projection",
		(ls_conv_options){
			.out_channels = size.hidden, .kernel = patch, .stride = patch, .init = LS_WEIGHTS_NORMAL });
	x = ls_class_token(g, x, "vit.embeddings", (ls_class_token_options){ 0 });
	x = ls_dropout(g, x, (ls_dropout_options){ .p = o->dropout });
	for (int i = 0; i < size.layers; i++)
		x = layer(g, x, i, &size, o->dropout);
	x = ls_first_token(g, norm(g, x, ls_named("vit", "layernorm")));
	x = ls_linear(g, x, "classifier", (ls_linear_options){ .out_features = o->classes, .init = LS_WEIGHTS_NORMAL });
	return ls_graph_finish(g, x);
}

ls_status ls_model_vit_tiny(ls_graph *graph, const ls_model_options *options)
{
	return build(graph, options, (vit){ .layers = 12, .hidden = 192, .heads = 3 });
}

ls_status ls_model_vit_small(ls_graph *graph, const ls_model_options *options)
{
	return build(graph, options, (vit){ .layers = 12, .hidden = 384, .heads = 6 });
}

ls_status ls_model_vit_base(ls_graph *graph, const ls_model_options *options)
{
	return build(graph, options, (vit){ .layers = 12, .hidden = 768, .heads = 12 });
}
