/*
 * operator_dump.c - graphs of operators that no model of the table has, for onnx_compare.py.
 *
 *     operator_dump DIRECTORY
 *
 * Each is trained for a few steps on random samples, so that no weight is as it started. DIRECTORY gets NAME.onnx, and
 * NAME.safetensors with samples and the logits that Lockstep computes.
 */
#include <lockstep/trainer.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "checkpoint/safetensors.h"

enum {
	SEED = 20,
	SAMPLES = 24, /* as in onnx_compare.py */
	STEPS = 30,
	CHANNELS = 3,
	SIDE = 13,
	PIXELS = CHANNELS * SIDE * SIDE,
	WORDS = 60,
	LONGEST = 15,
	CLASSES = 7
};

/* ---- graphs ------------------------------------------------------------------------------------------------------ */

static ls_value conv(ls_graph *g, ls_value x, const char *name, int channels, int kernel)
{
	return ls_conv2d(g, x, name,
			 (ls_conv_options){ .out_channels = channels, .kernel = kernel, .padding = kernel / 2 });
}

static ls_value linear(ls_graph *g, ls_value x, const char *name, int features)
{
	return ls_linear(g, x, name, (ls_linear_options){ .out_features = features });
}

static ls_value slice(ls_graph *g, ls_value x, int first, int channels)
{
	return ls_slice(g, x, (ls_slice_options){ .first = first, .channels = channels });
}

/* silu(a) b, with a and b the halves of x's channels. */
static ls_value gate(ls_graph *g, ls_value x, int channels)
{
	return ls_multiply(g, ls_silu(g, slice(g, x, 0, channels)), slice(g, x, channels, channels));
}

/* Maps, and rows behind them; channels that do not fill a panel. */
static ls_status build_images(ls_graph *g)
{
	const ls_pool_options overlapping = { .kernel = 3, .stride = 2, .padding = 1 }, halving = { .kernel = 2 };
	ls_value x = conv(g, ls_input(g, CHANNELS, SIDE, SIDE), "conv1", 22, 3);
	ls_value y = ls_concat(g, gate(g, x, 11), ls_silu(g, x));

	x = ls_avg_pool2d(g, ls_multiply(g, y, ls_sigmoid(g, conv(g, y, "conv2", 33, 1))), overlapping);
	x = ls_batch_norm(g, x, "norm", (ls_batch_norm_options){ 0 });
	x = ls_gelu(g, ls_concat(g, ls_avg_pool2d(g, x, halving), ls_max_pool2d(g, x, halving)),
		    (ls_gelu_options){ .approximate = 1 });
	x = linear(g, x, "fc1", 26);
	x = ls_concat(g, gate(g, x, 13), ls_tanh(g, slice(g, x, 5, 9)));
	return ls_graph_finish(g, linear(g, ls_sigmoid(g, x), "fc2", CLASSES));
}

static ls_status build_text(ls_graph *g)
{
	const ls_embedding_options tables = {
		.words = "words", .positions = "positions", .vocabulary = WORDS, .longest = LONGEST, .width = 32
	};
	ls_value x = ls_embedding(g, ls_text_input(g, LONGEST, 0), tables);
	ls_value y = linear(g, ls_concat(g, x, gate(g, linear(g, x, "up", 38), 19)), "down", 32);

	x = ls_layer_norm(g, ls_multiply(g, y, ls_sigmoid(g, linear(g, x, "gate", 32))), "norm",
			  (ls_layer_norm_options){ 0 });
	x = ls_attention(g, x, x, ls_silu(g, y), (ls_attention_options){ .num_heads = 2 });
	x = gate(g, linear(g, ls_mean_token(g, ls_tanh(g, x)), "fc1", 22), 11);
	return ls_graph_finish(g, linear(g, x, "fc2", CLASSES));
}

/* ---- samples ----------------------------------------------------------------------------------------------------- */

typedef struct samples {
	float images[SAMPLES * PIXELS], logits[SAMPLES * CLASSES];
	int32_t starts[SAMPLES + 1], tokens[SAMPLES * LONGEST], segments[SAMPLES * LONGEST], labels[SAMPLES];
	ls_text_sample text[SAMPLES];
} samples;

/* From 0 to below n. */
static int draw(uint64_t *state, int n)
{
	return (int)(ls_mix64((*state)++) % (uint64_t)n);
}

/* What is to be learned depends on the sample. */
static void fill(samples *s)
{
	uint64_t rng = SEED;

	memset(s, 0, sizeof(*s));
	for (int i = 0; i < SAMPLES; i++) {
		const int length = 1 + draw(&rng, LONGEST);
		s->labels[i] = draw(&rng, CLASSES);
		s->starts[i + 1] = s->starts[i] + length;
		s->text[i] = (ls_text_sample){ .tokens = s->tokens + s->starts[i],
					       .segments = s->segments + s->starts[i],
					       .length = length,
					       .label = s->labels[i] };
		for (int k = 0; k < length; k++)
			s->tokens[s->starts[i] + k] = draw(&rng, WORDS);
		for (int k = 0; k < PIXELS; k++)
			s->images[i * PIXELS + k] = (float)draw(&rng, 2001) / 500 - 2;
	}
}

/* ---- training and files ------------------------------------------------------------------------------------------ */

static ls_status train(ls_model *model, const samples *s, int is_text)
{
	ls_trainer_options options = LS_TRAINER_OPTIONS_INIT;
	ls_batch batch = LS_BATCH_INIT;
	ls_trainer *trainer = NULL;
	ls_trainer_report report = { 0 };

	options.batch = batch.count = SAMPLES;
	options.lr = 0.02;
	options.devices = 1;
	batch.text = is_text ? s->text : NULL;
	batch.images = is_text ? NULL : s->images;
	batch.labels = is_text ? NULL : s->labels;
	LS_TRY(ls_trainer_new(&trainer, model, &options));
	ls_status status = LS_OK;
	for (int i = 0; i < STEPS && status == LS_OK; i++)
		status = ls_trainer_step(trainer, &batch, &report);
	ls_trainer_free(trainer);
	return status;
}

static ls_status fill_tensor(void *context, size_t i, void *data)
{
	const samples *s = context;
	const void *const source[] = { s->logits, s->images, s->starts, s->tokens, s->segments };
	const size_t bytes[] = { sizeof(s->logits), sizeof(s->images), sizeof(s->starts), sizeof(s->tokens),
				 sizeof(s->segments) };

	memcpy(data, source[i], bytes[i]);
	return LS_OK;
}

static ls_st_tensor tensor(const char *name, ls_dtype dtype, size_t bytes, int64_t columns)
{
	const int64_t elements = (int64_t)(bytes / ls_dtype_bytes(dtype));
	ls_st_tensor t = { .name = name, .dtype = dtype, .rank = columns > 0 ? 2 : 1, .bytes = bytes };

	t.shape[0] = columns > 0 ? elements / columns : elements;
	t.shape[1] = columns;
	return t;
}

static ls_status write_samples(samples *s, const char *path, int is_text)
{
	ls_st_tensor tensors[] = { tensor("logits", LS_F32, sizeof(s->logits), CLASSES),
				   tensor("images", LS_F32, sizeof(s->images), PIXELS),
				   tensor("starts", LS_I32, sizeof(s->starts), 0),
				   tensor("tokens", LS_I32, sizeof(s->tokens), 0),
				   tensor("segments", LS_I32, sizeof(s->segments), 0) };

	if (is_text)
		tensors[1].name = "unused"; /* whose samples are images is known by their name */
	else
		tensors[1] = (ls_st_tensor){ .name = "images",
					     .dtype = LS_F32,
					     .rank = 4,
					     .shape = { SAMPLES, CHANNELS, SIDE, SIDE },
					     .bytes = sizeof(s->images) };
	return ls_st_write(path, tensors, sizeof(tensors) / sizeof(tensors[0]), NULL, 0, fill_tensor, s, NULL);
}

static ls_status dump(samples *s, ls_graph *graph, const char *directory, const char *name, int is_text)
{
	char onnx[4096], tensors[4096];
	ls_model *model = NULL;

	snprintf(onnx, sizeof(onnx), "%s/%s.onnx", directory, name);
	snprintf(tensors, sizeof(tensors), "%s/%s.safetensors", directory, name);
	LS_TRY(ls_model_new(&model, graph, SEED));
	ls_status status = train(model, s, is_text);
	if (status == LS_OK)
		status = is_text ? ls_model_predict_text(model, s->text, SAMPLES, s->logits)
				 : ls_model_predict(model, s->images, SAMPLES, s->logits);
	if (status == LS_OK)
		status = ls_model_export_onnx(model, onnx);
	if (status == LS_OK)
		status = write_samples(s, tensors, is_text);
	ls_model_free(model);
	return status;
}

static ls_status work(const char *directory)
{
	static samples s;

	fill(&s);
	for (int is_text = 0; is_text < 2; is_text++) {
		ls_graph *graph = NULL;
		LS_TRY(ls_graph_new(&graph));
		LS_TRY(is_text ? build_text(graph) : build_images(graph));
		LS_TRY(dump(&s, graph, directory, is_text ? "text" : "images", is_text));
	}
	return LS_OK;
}

int main(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr, "usage: operator_dump DIRECTORY\n");
		return 2;
	}
	ls_status status = work(argv[1]);
	if (status != LS_OK)
		fprintf(stderr, "operator_dump: %s\n", ls_last_error());
	return status != LS_OK;
}
