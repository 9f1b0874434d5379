/*
 * text_dump.c - what Lockstep makes of a micro-batch of text, for torch_text.py to compare with: one step without
 * dropout.
 *
 *     text_dump MODEL DATA TOKENS SAMPLES OUT [WEIGHTS [LORA]]
 *
 * The micro-batch is the first SAMPLES training samples of DATA with at most TOKENS tokens, in order, seed 1. Weights
 * are those of the file, or else the initial ones; LORA is the rank of GPT's adapters. OUT becomes a safetensors file:
 * the packed micro-batch (params/packed.h) as it is, `labels`, `logits`, `token_logits` (of one tile, where there are
 * some), `loss` (samples', tokens', weight of the latter), `weight.NAME` unless they were given, and `grad.NAME`, the
 * gradient of the summed loss.
 */
#include <lockstep/models.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cpu/exec_plan.h"
#include "base/memory.h"
#include "checkpoint/safetensors.h"
#include "data/loader.h"

enum { SEED = 1, OTHERS = 10, THREADS = 2 };

typedef struct dump {
	ls_dataset *set;
	ls_loader *loader;
	const ls_microbatch *microbatch;
	ls_graph *graph;
	ls_team *team;
	float *params, *grads, *logits, *token_logits;
	double loss[3];
	ls_st_tensor *tensors; /* `source` of each stands beside it */
	const void **source;
	size_t count, params_from; /* tensors, and the first that is a parameter's */
} dump;

static ls_status open_microbatch(dump *d, const char *model, const char *data, int tokens, int64_t samples)
{
	const ls_model_row *row = ls_model_row_of(model);
	ls_dataset_options o = LS_DATASET_OPTIONS_INIT;
	o.next_token = row && row->predicts_next;
	o.name = data;
	o.tokens = tokens;
	o.samples = (uint64_t)samples;
	o.seed = SEED;
	LS_TRY(ls_dataset_open(&d->set, &o));
	ls_loader_options l = { .seed = SEED, .microbatch = samples, .global_batch = samples, .single_pass = 1 };
	LS_TRY(ls_loader_new(&d->loader, d->set, &l));
	return ls_loader_next(d->loader, &d->microbatch);
}

static ls_status build(dump *d, const char *model, int lora)
{
	const ls_dataset_info *info = ls_dataset_describe(d->set);
	ls_model_options o = { .size = sizeof(ls_model_options),
			       .name = model,
			       .classes = info->classes,
			       .text = { .tokens = info->tokens_max,
					 .masked = info->masked_max,
					 .vocabulary = info->vocabulary,
					 .lora = lora } };
	LS_TRY(ls_model_build(&d->graph, &o));
	LS_TRY(ls_floats_new(&d->params, d->graph->params.total, "parameters"));
	LS_TRY(ls_floats_new(&d->grads, d->graph->params.reachable, "gradients"));
	return ls_params_init(&d->graph->params, SEED, d->params, NULL);
}

static ls_status load_param(dump *d, const ls_st_reader *reader, const ls_param *p)
{
	const ls_st_tensor *t = ls_st_find(reader, p->name);
	size_t bytes = ls_param_elements(p) * sizeof(float);
	if (!t || t->bytes != bytes || t->rank != p->rank ||
	    memcmp(t->shape, p->shape, sizeof(int64_t) * (size_t)p->rank) != 0)
		return ls_fail(LS_EMISMATCH, "'%s' is missing or of another shape", p->name);
	float *values = malloc(bytes);
	if (!values)
		return ls_fail(LS_EMEMORY, "no memory for '%s'", p->name);
	ls_status status = ls_st_to_float(t, values);
	if (status == LS_OK)
		ls_param_import(p, LS_STORE_WHOLE, values, d->params);
	free(values);
	return status;
}

/* Every parameter from the file, by its name and shape. */
static ls_status load(dump *d, const char *file)
{
	ls_st_reader *reader = NULL;
	ls_status status = ls_st_open(&reader, file);
	for (size_t i = 0; i < d->graph->params.count && status == LS_OK; i++)
		status = load_param(d, reader, &d->graph->params.rows[i]);
	ls_st_close(reader);
	return status;
}

/* The loss of masked positions is the last one. */
static void copy_token_logits(dump *d, const ls_exec *exec)
{
	const ls_op *loss = &exec->losses[exec->loss_count - 1];
	const ls_tensor *t = loss->in[0];
	int64_t masked = d->microbatch->text->masked_start[d->microbatch->count];
	for (int64_t i = 0; i < masked; i++)
		for (int64_t c = 0; c < t->channels; c++)
			d->token_logits[i * t->channels + c] =
				loss->x[0][(c / t->panel * masked + i) * t->panel + c % t->panel];
}

static ls_status run(dump *d)
{
	ls_exec *train = NULL, *infer = NULL;
	LS_TRY(ls_team_new(&d->team, THREADS));
	ls_exec_options o = { .sizes = { d->microbatch->count }, .team = d->team };
	LS_TRY(ls_exec_new(&train, d->graph, &o));
	o.inference = 1;
	LS_TRY(ls_exec_new(&infer, d->graph, &o));
	int64_t masked = d->microbatch->text->step_masked;
	ls_exec_microbatch microbatch = { .count = d->microbatch->count,
					  .text = d->microbatch->text,
					  .token_weight =
						  masked > 0 ? (double)d->microbatch->step_samples / (double)masked : 0,
					  .labels = d->microbatch->labels,
					  .samples = d->microbatch->samples,
					  .grads = d->grads,
					  .seed = SEED };
	ls_exec_set_params(infer, d->params, NULL);
	ls_exec_set_params(train, d->params, NULL);
	ls_exec_infer(infer, &microbatch, d->graph->predicts_next ? NULL : d->logits);
	if (d->token_logits)
		copy_token_logits(d, infer);
	ls_exec_train(train, &microbatch);
	d->loss[0] = microbatch.loss - microbatch.token_weight * microbatch.token_loss;
	d->loss[1] = microbatch.token_loss;
	d->loss[2] = microbatch.token_weight;
	ls_exec_free(infer);
	ls_exec_free(train);
	return LS_OK;
}

/* ---- the file ---------------------------------------------------------------------------------------------------- */

static void add(dump *d, const char *name, ls_dtype dtype, int64_t rows, int64_t columns, const void *source)
{
	ls_st_tensor t = { .name = name, .dtype = dtype, .rank = columns > 0 ? 2 : 1, .shape = { rows, columns } };
	t.bytes = (size_t)(rows * (columns > 0 ? columns : 1)) * ls_dtype_bytes(dtype);
	d->source[d->count] = source;
	d->tensors[d->count++] = t;
}

static int token_classes(const ls_graph *graph)
{
	return graph->values[graph->losses[graph->loss_count - 1].inputs[0]].channels;
}

static void add_microbatch(dump *d)
{
	const ls_packed *text = d->microbatch->text;
	int64_t n = d->microbatch->count, tokens = text->start[n], masked = text->masked_start[n];
	add(d, "start", LS_I32, n + 1, 0, text->start);
	add(d, "masked_start", LS_I32, n + 1, 0, text->masked_start);
	add(d, "token", LS_I32, tokens, 0, text->token);
	add(d, "segment", LS_I32, tokens, 0, text->segment);
	add(d, "masked_positions", LS_I32, masked, 0, text->masked_at);
	add(d, "target", LS_I32, masked, 0, text->target);
	add(d, "labels", LS_I32, n, 0, d->microbatch->labels);
	add(d, "loss", LS_F64, 3, 0, d->loss);
	if (!d->graph->predicts_next)
		add(d, "logits", LS_F32, n, d->graph->values[d->graph->logits].channels, d->logits);
	if (d->token_logits)
		add(d, "token_logits", LS_F32, masked, token_classes(d->graph), d->token_logits);
}

static void add_params(dump *d, const char *prefix)
{
	for (size_t i = 0; i < d->graph->params.count; i++) {
		const ls_param *p = &d->graph->params.rows[i];
		char name[256];
		snprintf(name, sizeof(name), "%s.%s", prefix, p->name);
		add(d, strdup(name), LS_F32, p->shape[0], p->rank > 1 ? p->shape[1] : 0, NULL);
	}
}

static ls_status fill(void *context, size_t i, void *data)
{
	const dump *d = context;
	const ls_param_table *table = &d->graph->params;
	if (d->source[i])
		memcpy(data, d->source[i], d->tensors[i].bytes);
	else if (i < d->params_from || d->tensors[i].bytes == 0)
		return LS_OK;
	else if (i - d->params_from < table->count)
		ls_param_export(&table->rows[i - d->params_from], LS_STORE_REACHABLE, d->grads, data);
	else
		ls_param_export(&table->rows[i - d->params_from - table->count], LS_STORE_WHOLE, d->params, data);
	return LS_OK;
}

static ls_status make_room(dump *d)
{
	const ls_graph *g = d->graph;
	size_t most = OTHERS + 2 * g->params.count, n = (size_t)d->microbatch->count;
	int tokens = g->masked_max > 0 && n <= LS_TILE;
	d->tensors = calloc(most, sizeof(*d->tensors));
	d->source = calloc(most, sizeof(*d->source));
	d->logits = calloc(n * (size_t)g->values[g->logits].channels, sizeof(float));
	if (tokens)
		d->token_logits =
			calloc((size_t)d->microbatch->text->masked_start[n] * (size_t)token_classes(g), sizeof(float));
	if (!d->tensors || !d->source || !d->logits || (tokens && !d->token_logits))
		return ls_fail(LS_EMEMORY, "no memory for the results");
	return LS_OK;
}

static ls_status work(dump *d, char **arguments, const char *weights, int lora)
{
	LS_TRY(open_microbatch(d, arguments[0], arguments[1], atoi(arguments[2]), atoll(arguments[3])));
	LS_TRY(build(d, arguments[0], lora));
	if (weights)
		LS_TRY(load(d, weights));
	LS_TRY(make_room(d));
	LS_TRY(run(d));
	add_microbatch(d);
	d->params_from = d->count; /* from here names are its own */
	add_params(d, "grad");
	if (!weights)
		add_params(d, "weight");
	return ls_st_write(arguments[4], d->tensors, d->count, NULL, 0, fill, d, NULL);
}

static void release(dump *d)
{
	for (size_t i = d->params_from; i < d->count; i++)
		free((char *)d->tensors[i].name);
	void *all[] = { d->tensors, d->source, d->logits, d->token_logits };
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		free(all[i]);
	if (d->graph) {
		ls_floats_free(d->params, d->graph->params.total);
		ls_floats_free(d->grads, d->graph->params.reachable);
	}
	ls_graph_free(d->graph);
	ls_team_free(d->team);
	ls_loader_free(d->loader);
	ls_dataset_free(d->set);
}

int main(int argc, char **argv)
{
	dump d = { 0 };
	if (argc < 6 || argc > 8) {
		fprintf(stderr, "usage: text_dump MODEL DATA TOKENS SAMPLES OUT [WEIGHTS [LORA]]\n");
		return 2;
	}
	ls_status status = work(&d, argv + 1, argc > 6 ? argv[6] : NULL, argc > 7 ? atoi(argv[7]) : 0);
	if (status != LS_OK)
		fprintf(stderr, "text_dump: %s\n", ls_last_error());
	release(&d);
	return status != LS_OK;
}
