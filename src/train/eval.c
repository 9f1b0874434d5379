/*
 * eval.c - accuracy of a run's newest checkpoint, or of weights from a file.
 */
#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <lockstep/models.h>
#include <lockstep/train.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/files.h"
#include "base/isa.h"
#include "base/log.h"
#include "base/memory.h"
#include "ckpt/checkpoint.h"
#include "ckpt/safetensors.h"
#include "train/crew.h"
#include "train/evaluate.h"

typedef struct evaluation {
	const ls_eval_options *options;
	char file[4096];                            /* the weights */
	char model[64], data[4096], data_dir[4096]; /* names, from options or from what the run says */
	uint64_t samples, seed;                     /* of the test set: the same */
	char logits_file[4096];                     /* where --logits leads, links followed */
	ls_dataset *own_set;
	const ls_dataset *set;
	ls_graph *own_graph;
	const ls_graph *graph;
	ls_crew crew;
	ls_evaluator *evaluator;
	float *params, *buffers;
	/* for --logits */
	float *logits, *images;
	int32_t *labels;
} evaluation;

static void set_name(char *to, size_t size, const char *name)
{
	if (name != NULL && to[0] == '\0')
		snprintf(to, size, "%s", name);
}

/* Model and data of a run, where the options do not say. How much of the data, with which seed and from where is the
 * run's only as long as the data is. */
static ls_status read_run_names(evaluation *e, const char *checkpoint)
{
	char *text = NULL;
	LS_TRY(ls_ckpt_settings(checkpoint, &text));
	json_t *settings = json_loads(text, 0, NULL);
	free(text);
	set_name(e->model, sizeof(e->model), json_string_value(json_object_get(settings, "model")));
	if (e->options->data == NULL) {
		set_name(e->data, sizeof(e->data), json_string_value(json_object_get(settings, "data")));
		set_name(e->data_dir, sizeof(e->data_dir), json_string_value(json_object_get(settings, "data-dir")));
		if (e->samples == 0)
			e->samples = (uint64_t)json_integer_value(json_object_get(settings, "test-samples"));
		if (json_is_integer(json_object_get(settings, "seed")))
			e->seed = (uint64_t)json_integer_value(json_object_get(settings, "seed"));
	}
	json_decref(settings);
	return LS_OK;
}

static ls_status read_file_names(evaluation *e)
{
	ls_st_reader *reader = NULL;
	LS_TRY(ls_st_open(&reader, e->file));
	set_name(e->model, sizeof(e->model), ls_st_metadata(reader, "model"));
	ls_st_close(reader);
	return LS_OK;
}

/* A run directory, a checkpoint directory, or a file. */
static ls_status find_weights(evaluation *e)
{
	const ls_eval_options *o = e->options;
	char checkpoint[4096];
	const uint64_t default_seed = ((ls_dataset_options)LS_DATASET_OPTIONS_INIT).seed;

	set_name(e->model, sizeof(e->model), o->model);
	set_name(e->data, sizeof(e->data), o->data);
	set_name(e->data_dir, sizeof(e->data_dir), o->data_dir);
	e->samples = o->samples;
	e->seed = default_seed;
	if (o->source == NULL)
		return ls_fail(LS_EINVALID, "nothing to evaluate: name a run directory or a .safetensors file");
	if (!ls_path_is_directory(o->source)) {
		snprintf(e->file, sizeof(e->file), "%s", o->source);
		return read_file_names(e);
	}
	LS_TRY(ls_path_join(e->file, sizeof(e->file), o->source, "model.safetensors"));
	snprintf(checkpoint, sizeof(checkpoint), "%s", o->source);
	if (!ls_path_exists(e->file)) {
		LS_TRY(ls_ckpt_newest(o->source, checkpoint, sizeof(checkpoint)));
		LS_TRY(ls_path_join(e->file, sizeof(e->file), checkpoint, "model.safetensors"));
	}
	return read_run_names(e, checkpoint);
}

static ls_status open_data(evaluation *e)
{
	ls_dataset_options d = LS_DATASET_OPTIONS_INIT;

	e->set = e->options->set;
	if (e->set != NULL)
		return LS_OK;
	if (e->data[0] == '\0')
		return ls_fail(LS_EINVALID, "%s does not say which data it was trained on; add --data NAME", e->file);
	d.name = e->data;
	d.dir = e->data_dir[0] != '\0' ? e->data_dir : NULL;
	d.split = LS_SPLIT_TEST;
	d.samples = e->samples;
	d.seed = e->seed;
	LS_TRY(ls_dataset_open(&e->own_set, &d));
	e->set = e->own_set;
	return LS_OK;
}

static ls_status build_graph(evaluation *e)
{
	const ls_dataset_info *info = ls_dataset_describe(e->set);
	ls_model_options model = { .name = e->model,
				   .channels = info->channels,
				   .height = info->height,
				   .width = info->width,
				   .classes = info->classes };

	e->graph = e->options->graph;
	if (e->graph == NULL) {
		if (e->model[0] == '\0')
			return ls_fail(LS_EINVALID, "%s does not say which model it is; add --model NAME", e->file);
		LS_TRY(ls_model_build(&e->own_graph, &model));
		e->graph = e->own_graph;
	}
	return ls_graph_fits(e->graph, info);
}

static ls_status load(evaluation *e)
{
	const ls_param_table *table = &e->graph->params;
	int64_t ignored;

	LS_TRY(ls_floats_new(&e->params, table->total, "parameters"));
	LS_TRY(ls_floats_new(&e->buffers, table->buffers, "running statistics"));
	return ls_ckpt_load_weights(e->file, table, e->params, e->buffers, &ignored);
}

/* Publishing replaces what has the name: only a regular file may be replaced, never the weights, and a link leads to
 * what it names instead of being replaced itself. */
static ls_status check_logits(evaluation *e)
{
	const char *name = e->options->logits;
	struct stat there, weights;
	char resolved[PATH_MAX];

	snprintf(e->logits_file, sizeof(e->logits_file), "%s", name);
	if (stat(name, &there) != 0) {
		if (errno != ENOENT || lstat(name, &there) == 0)
			return ls_fail_errno(LS_EIO, "cannot write the logits to %s", name);
		return LS_OK;
	}
	if (!S_ISREG(there.st_mode))
		return ls_fail(LS_EINVALID, "cannot write the logits to %s: it is not a regular file", name);
	if (stat(e->file, &weights) == 0 && weights.st_dev == there.st_dev && weights.st_ino == there.st_ino)
		return ls_fail(LS_EINVALID, "cannot write the logits to %s: the weights are read from it", name);
	if (realpath(name, resolved) == NULL)
		return ls_fail_errno(LS_EIO, "cannot find where %s leads", name);
	if ((size_t)snprintf(e->logits_file, sizeof(e->logits_file), "%s", resolved) >= sizeof(e->logits_file))
		return ls_fail(LS_EINVALID, "the path %s is too long", resolved);
	return LS_OK;
}

static ls_status make_sink(evaluation *e)
{
	const ls_dataset_info *info = ls_dataset_describe(e->set);
	size_t classes = (size_t)e->graph->values[e->graph->logits].channels, n = info->samples;

	e->logits = malloc(n * classes * sizeof(float));
	e->labels = malloc(n * sizeof(int32_t));
	e->images = malloc(n * (size_t)(info->channels * info->height * info->width) * sizeof(float));
	if (e->logits == NULL || e->labels == NULL || e->images == NULL)
		return ls_fail(LS_EMEMORY, "no memory to keep the logits of %zu samples; use --samples", n);
	return LS_OK;
}

/* Leaves come in no order, but the samples of one are neighbours: each has its place. */
static void keep_leaf(void *context, const ls_leaf *leaf, const float *logits)
{
	evaluation *e = context;
	const ls_dataset_info *info = ls_dataset_describe(e->set);
	size_t classes = (size_t)e->graph->values[e->graph->logits].channels, count = (size_t)leaf->count;
	size_t image = (size_t)(info->channels * info->height * info->width), first = leaf->samples[0];

	memcpy(e->logits + first * classes, logits, count * classes * sizeof(float));
	memcpy(e->labels + first, leaf->labels, count * sizeof(int32_t));
	memcpy(e->images + first * image, leaf->images, count * image * sizeof(float));
}

static ls_status fill_kept(void *context, size_t i, void *data)
{
	const evaluation *e = context;
	const ls_dataset_info *info = ls_dataset_describe(e->set);
	size_t classes = (size_t)e->graph->values[e->graph->logits].channels;
	size_t image = (size_t)(info->channels * info->height * info->width);
	const void *from[3] = { e->logits, e->labels, e->images };
	size_t bytes[3] = { classes * sizeof(float), sizeof(int32_t), image * sizeof(float) };

	memcpy(data, from[i], info->samples * bytes[i]);
	return LS_OK;
}

/* logits (n, classes), labels (n), images (n, C, H, W): enough for another framework to check us. */
static ls_status write_kept(evaluation *e)
{
	const ls_dataset_info *info = ls_dataset_describe(e->set);
	int64_t n = (int64_t)info->samples, classes = e->graph->values[e->graph->logits].channels;
	int64_t image = (int64_t)info->channels * info->height * info->width;
	ls_st_tensor tensors[3] = {
		{ .name = "logits",
		  .dtype = LS_F32,
		  .rank = 2,
		  .shape = { n, classes },
		  .bytes = (size_t)(n * classes) * 4 },
		{ .name = "labels", .dtype = LS_I32, .rank = 1, .shape = { n }, .bytes = (size_t)n * 4 },
		{ .name = "images",
		  .dtype = LS_F32,
		  .rank = 4,
		  .shape = { n, info->channels, info->height, info->width },
		  .bytes = (size_t)(n * image) * 4 },
	};
	ls_st_pair metadata[] = { { "data", info->name }, { "weights", e->file } };

	return ls_st_write(e->logits_file, tensors, 3, metadata, 2, fill_kept, e, NULL);
}

static ls_status check(const ls_eval_options *o)
{
	if (o->batch < 1 || o->threads < 1 || o->threads > LS_THREADS_MAX)
		return ls_fail(LS_EINVALID, "eval: batch must be at least 1, threads between 1 and %d", LS_THREADS_MAX);
	if (o->devices < 0 || o->devices > LS_THREADS_MAX / o->threads)
		return ls_fail(LS_EINVALID, "eval: --devices %lld of %lld threads: at most %d threads",
			       (long long)o->devices, (long long)o->threads, LS_THREADS_MAX);
	return LS_OK;
}

/* All cores, but no more devices than there are leaves for them. */
static int device_count(const evaluation *e)
{
	const ls_eval_options *o = e->options;
	int64_t cores = ls_pin_cores() / o->threads, wanted = o->devices > 0 ? o->devices : cores > 0 ? cores : 1;
	uint64_t leaves = ls_loader_steps(ls_dataset_describe(e->set)->samples, o->batch);

	return (uint64_t)wanted > leaves && leaves > 0 ? (int)leaves : (int)wanted;
}

static ls_status make_evaluator(evaluation *e)
{
	LS_TRY(ls_crew_init(&e->crew, device_count(e), (int)e->options->threads, LS_PIN_AUTO));
	ls_evaluator_options options = { .graph = e->graph,
					 .dataset = e->set,
					 .batch = e->options->batch,
					 .devices = e->crew.devices,
					 .team = e->crew.team,
					 .drivers = e->crew.drivers,
					 .pin = e->crew.pin };
	return ls_evaluator_new(&e->evaluator, &options);
}

static ls_status run(evaluation *e, ls_eval_result *result)
{
	const ls_eval_options *o = e->options;

	LS_TRY(ls_isa_check());
	LS_TRY(ls_gemm_check());
	LS_TRY(check(o));
	LS_TRY(find_weights(e));
	if (o->logits != NULL)
		LS_TRY(check_logits(e));
	LS_TRY(open_data(e));
	LS_TRY(build_graph(e));
	LS_TRY(load(e));
	LS_TRY(make_evaluator(e));
	if (o->logits != NULL)
		LS_TRY(make_sink(e));
	LS_TRY(ls_evaluator_run(e->evaluator, e->params, e->buffers, o->logits != NULL ? keep_leaf : NULL, e, result));
	LS_TRY(ls_params_fingerprint(&e->graph->params, e->params, e->buffers, &result->fingerprint));
	return o->logits != NULL ? write_kept(e) : LS_OK;
}

static void release(evaluation *e)
{
	free(e->images);
	free(e->labels);
	free(e->logits);
	ls_evaluator_free(e->evaluator);
	ls_crew_release(&e->crew);
	if (e->buffers != NULL)
		ls_floats_free(e->buffers, e->graph->params.buffers);
	if (e->params != NULL)
		ls_floats_free(e->params, e->graph->params.total);
	ls_graph_free(e->own_graph);
	ls_dataset_free(e->own_set);
}

ls_status ls_eval(const ls_eval_options *options, ls_eval_result *result)
{
	evaluation e = { .options = options };
	ls_eval_result r = { 0 };
	ls_log_level level = ls_log_get_level();

	if (options->quiet)
		ls_log_set_level(LS_LOG_ERROR);
	ls_status status = run(&e, &r);
	release(&e);
	ls_log_set_level(level);
	if (status == LS_OK && result != NULL)
		*result = r;
	return status;
}
