/*
 * eval.c - accuracy of a run's newest checkpoint, or of weights from a file.
 */
#include <lockstep/train.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "backends/devices.h"
#include "base/files.h"
#include "base/handles.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/options.h"
#include "checkpoint/checkpoint.h"
#include "data/dataset.h"
#include "data/normalise.h"
#include "evaluation/class_report.h"
#include "evaluation/confusion.h"
#include "evaluation/logits.h"
#include "evaluation/target_report.h"
#include "run/hooks.h"
#include "run/sample_hash.h"
#include "settings/effects.h"
#include "settings/model.h"
#include "settings/settings.h"
#include "trained/class_names.h"
#include "trained/trained.h"
#include "trainer/evaluate.h"
#include "trainer/token_targets.h"

typedef struct evaluation {
	const ls_eval_options *options;
	ls_stop_watch watch;
	ls_trained trained;
	ls_dataset *own_set;
	const ls_dataset *set;
	const ls_backend *backend; /* of the devices */
	ls_devices *devices;
	ls_evaluator *evaluator;
	ls_logits *logits;       /* for --logits */
	ls_confusion *confusion; /* for options.counts, metrics and save */
	double *scale;           /* units of the targets of a table; NULL: none */
	char saved[4096];        /* for options.save: where */
} evaluation;

/* The run's, but for a folder that is not there: the run may be of another machine. */
static const char *choose_cache(const char *of_run)
{
	int is_folder = of_run && strcmp(of_run, "auto") != 0 && strcmp(of_run, "off") != 0;

	return is_folder && !ls_path_is_directory(of_run) ? "auto" : of_run;
}

/* How much of the data, with which seed and from where is the run's only as long as the data is. */
static void choose_data(evaluation *e)
{
	const ls_eval_options *o = e->options;
	ls_train_options *s = &e->trained.settings;

	s->phrases = 0; /* are for training */
	s->cache = o->cache ? o->cache : choose_cache(s->cache);
	s->skip_bad = o->skip_bad > 0 ? o->skip_bad : s->skip_bad;
	if (o->data) {
		s->data = o->data;
		s->data_dir = NULL;
		s->test_samples = 0;
		s->seed = ((ls_dataset_options)LS_DATASET_OPTIONS_INIT).seed;
	}
	s->data_dir = o->data_dir ? o->data_dir : s->data_dir;
	s->test_samples = o->samples != 0 ? o->samples : s->test_samples;
}

static ls_status open_data(evaluation *e)
{
	ls_dataset_info shape = { 0 };
	int has_shape = 0;
	ls_data_wanted wanted = { .split = LS_SPLIT_TEST,
				  .samples = e->trained.settings.test_samples,
				  .classes = e->trained.classes,
				  .normalisation =
					  e->trained.normalisation.channels > 0 ? &e->trained.normalisation : NULL,
				  .columns = e->trained.columns };

	e->set = e->options->set;
	if (e->set)
		return ls_handle_check(e->set, LS_DATASET_KIND);
	if (!e->trained.settings.data)
		return ls_fail(LS_EINVALID, "%s does not say which data it was trained on; add options.data NAME",
			       e->trained.weights.file);
	if (!e->trained.graph) /* images of any size are scaled to what the weights take */
		LS_TRY(ls_weights_read_input(e->trained.weights.file, &shape, &has_shape));
	wanted.shape = has_shape && shape.channels > 0 ? &shape : NULL;
	LS_TRY(ls_train_open_data(&e->own_set, &e->trained.settings, &wanted));
	e->set = e->own_set;
	return LS_OK;
}

/* Options that were given, by the names that training has for them. */
static void warn_of_idle_options(const evaluation *e)
{
	const ls_eval_options *o = e->options;
	const struct {
		const char *name;
		int given;
	} options[] = { { "data-dir", o->data_dir != NULL },
			{ "vocab", o->vocab != NULL },
			{ "cased", o->cased },
			{ "seq-len", o->seq_len != 0 },
			{ "replace-invalid", o->replace_invalid },
			{ "skip-bad", o->skip_bad != 0 },
			{ "cache", o->cache != NULL } };
	ls_train_options settings = e->trained.settings;
	ls_effects run = { .options = &settings, .is_text = ls_dataset_describe(e->set)->tokens_max > 0, .nodes = 1 };

	settings.train_set = o->set;
	memset(settings.given, 0, sizeof(settings.given));
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
		if (options[i].given)
			ls_settings_give(&settings, ls_train_setting_of(options[i].name));
	ls_effects_warn(&run);
	if (e->own_set)
		ls_data_warn_of_samples(e->own_set, "options.samples", o->samples, LS_SPLIT_TEST);
}

/* Accuracies are compared with the run's own. */
static ls_status check_data(const evaluation *e)
{
	const ls_eval_options *o = e->options;
	uint64_t was = ls_settings_get_test_hash(e->trained.stored.owner), now = 0;

	int is_read_otherwise = o->vocab || o->cased || o->replace_invalid || o->seq_len != 0;
	if (!e->own_set || o->data || o->samples != 0 || is_read_otherwise || was == 0)
		return LS_OK;
	LS_TRY(ls_sample_hash(e->own_set, &now));
	if (now != was)
		ls_log_warning("the test set of %s has changed since the run: its samples are not those that it was "
			       "tested on (hash %016llx, now %016llx)",
			       e->trained.settings.data, (unsigned long long)was, (unsigned long long)now);
	return LS_OK;
}

/* An output must not replace the weights it is computed with; and a file that cannot be written is reported before the
 * work. */
static ls_status check_output(const evaluation *e, const char *what, const char *name)
{
	struct stat there, weights;

	if (!name)
		return LS_OK;
	if (stat(name, &there) == 0 && stat(e->trained.weights.file, &weights) == 0 && weights.st_dev == there.st_dev &&
	    weights.st_ino == there.st_ino)
		return ls_fail(LS_EINVALID, "cannot write the %s to %s: the weights are read from it", what, name);
	return ls_file_check(name);
}

static ls_status check_outputs(evaluation *e)
{
	const ls_eval_options *o = e->options;

	if (o->logits && o->metrics && !strcmp(o->logits, o->metrics))
		return ls_fail(LS_EINVALID, "options.logits and options.metrics are the same file, %s", o->logits);
	LS_TRY(check_output(e, "logits", o->logits));
	LS_TRY(check_output(e, "metrics", o->metrics));
	if (!o->save)
		return LS_OK;
	if (e->trained.weights.run[0] == '\0')
		return ls_fail(LS_EINVALID,
			       "options.save is for a run directory, and %s is none: use options.metrics FILE",
			       o->source);
	LS_TRY(ls_path_join(e->saved, sizeof(e->saved), e->trained.weights.run, "eval.json"));
	return ls_file_check(e->saved);
}

static ls_status check(const ls_eval_options *o)
{
	if (o->batch < 1 || o->threads < 1 || o->threads > LS_THREADS_MAX)
		return ls_fail(LS_EINVALID, "eval: batch must be at least 1, threads between 1 and %d", LS_THREADS_MAX);
	if (o->devices < 0 || o->devices > LS_THREADS_MAX / o->threads)
		return ls_fail(LS_EINVALID, "eval: options.devices %lld of %lld threads: at most %d threads",
			       (long long)o->devices, (long long)o->threads, LS_THREADS_MAX);
	return LS_OK;
}

/* All cores, but no more devices than there are micro-batches for them. */
static int device_count(const evaluation *e)
{
	const ls_eval_options *o = e->options;
	int64_t cores = ls_pin_cores() / o->threads, wanted = o->devices > 0 ? o->devices : cores > 0 ? cores : 1;
	uint64_t microbatches = ls_loader_steps(ls_dataset_describe(e->set)->samples, o->batch);

	return (uint64_t)wanted > microbatches && microbatches > 0 ? (int)microbatches : (int)wanted;
}

static int is_stopping(void *context)
{
	return ls_stop_watch_is_requested(context);
}

static ls_status make_evaluator(evaluation *e)
{
	ls_devices_options devices = { .count = device_count(e), .threads = (int)e->options->threads };

	LS_TRY(ls_target_scales(e->set, &e->scale));
	LS_TRY(ls_devices_open(&e->devices, e->backend, &devices));
	ls_evaluator_options options = { .graph = e->trained.graph,
					 .dataset = e->set,
					 .batch = e->options->batch,
					 .backend = e->backend,
					 .devices = devices.count,
					 .on = e->devices,
					 .scale = e->scale };
	LS_TRY(ls_evaluator_new(&e->evaluator, &options));
	ls_evaluator_set_stop(e->evaluator, is_stopping, &e->watch);
	return LS_OK;
}

/* Finite weights may still overflow on the way. */
static ls_status check_result(const evaluation *e, const ls_eval_result *r)
{
	double loss = r->loss + r->token_loss;

	if (isfinite(loss))
		return LS_OK;
	return ls_fail(LS_ENUMERIC, "the loss of %s on %s is %s: these weights do not work on this data",
		       e->trained.weights.file, ls_dataset_describe(e->set)->name, isnan(loss) ? "NaN" : "infinite");
}

/* A language model has logits for every token, and its classes are its vocabulary. */
static ls_status check_classes(const evaluation *e)
{
	const ls_eval_options *o = e->options;

	if (!e->trained.graph->predicts_next || (!o->logits && !o->counts && !o->metrics))
		return LS_OK;
	return ls_fail(LS_EUNSUPPORTED, "options.%s is for models that classify, and this one predicts the next token",
		       o->logits    ? "logits"
		       : o->metrics ? "metrics"
				    : "counts");
}

/* Logits are written, counted, or both. */
static void take_logits(void *context, const ls_microbatch *microbatch, const float *logits)
{
	evaluation *e = context;

	if (e->logits)
		ls_logits_keep(e->logits, microbatch, logits);
	if (e->confusion)
		ls_confusion_count(e->confusion, microbatch, logits);
}

static ls_status take_counts(evaluation *e, const ls_eval_result *result)
{
	const ls_eval_options *o = e->options;
	const ls_graph *graph = e->trained.graph;
	const char *data = ls_dataset_describe(e->set)->name;
	const char *const *names = ls_class_names_of(e->set, e->own_set ? e->trained.settings.data : NULL,
						     graph->values[graph->logits].channels);
	ls_class_counts counts;

	LS_TRY(ls_confusion_take(e->confusion, names, &counts));
	ls_status status = o->metrics ? ls_class_report_write(data, result, &counts, o->metrics) : LS_OK;
	if (status == LS_OK && o->save)
		status = ls_class_report_write(data, result, &counts, e->saved);
	if (status == LS_OK && o->counts)
		*o->counts = counts;
	else
		ls_class_counts_release(&counts);
	return status;
}

/* Numbers or labels to predict: there is nothing to confuse. */
static int has_targets(const evaluation *e)
{
	return ls_dataset_describe(e->set)->task != LS_TASK_CLASSIFICATION;
}

static ls_status take_scores(evaluation *e, const ls_eval_result *result)
{
	const ls_eval_options *o = e->options;
	ls_target_scores scores;

	if (!o->scores && !o->metrics && !o->save)
		return LS_OK;
	LS_TRY(ls_target_scores_make(&scores, e->set, ls_evaluator_sums(e->evaluator), e->scale));
	ls_status status = o->metrics ? ls_target_report_write(result, &scores, o->metrics) : LS_OK;
	if (status == LS_OK && o->save)
		status = ls_target_report_write(result, &scores, e->saved);
	if (status == LS_OK && o->scores)
		*o->scores = scores;
	else
		ls_target_scores_release(&scores);
	return status;
}

/* There is one right class per sample. */
static int has_labels(const evaluation *e)
{
	return !e->trained.graph->predicts_next && !has_targets(e);
}

/* Counts per class, for whoever asks for them. What is saved goes without them where there are too many classes. */
static ls_status begin_counts(evaluation *e)
{
	const ls_eval_options *o = e->options;
	int64_t classes = e->trained.graph->values[e->trained.graph->logits].channels;

	if (!o->counts && !o->metrics && !o->save)
		return LS_OK;
	if (o->counts || o->metrics || classes <= LS_CONFUSION_CLASSES_MAX)
		return ls_confusion_new(&e->confusion, classes);
	ls_log_note("%s has loss and accuracy alone: counts per class are kept for at most %d classes", e->saved,
		    LS_CONFUSION_CLASSES_MAX);
	return LS_OK;
}

static ls_status run(evaluation *e, ls_eval_result *result)
{
	const ls_eval_options *o = e->options;

	LS_TRY(ls_backend_choose(NULL, &e->backend));
	LS_TRY(check(o));
	LS_TRY(ls_trained_find(&e->trained, o));
	choose_data(e);
	LS_TRY(check_outputs(e));
	LS_TRY(open_data(e));
	LS_TRY(ls_class_names_check(e->trained.weights.run, e->set));
	LS_TRY(check_data(e));
	warn_of_idle_options(e);
	LS_TRY(ls_trained_load(&e->trained, ls_dataset_describe(e->set)));
	LS_TRY(ls_token_targets_check_set(e->trained.graph, e->set));
	LS_TRY(check_classes(e));
	LS_TRY(make_evaluator(e));
	if (o->logits)
		LS_TRY(ls_logits_new(&e->logits, e->trained.graph, e->set));
	if (has_labels(e))
		LS_TRY(begin_counts(e));
	int takes = e->logits || e->confusion;
	LS_TRY(ls_evaluator_run(e->evaluator, e->trained.params, e->trained.buffers, takes ? take_logits : NULL, e,
				result));
	LS_TRY(check_result(e, result));
	LS_TRY(ls_params_fingerprint(&e->trained.graph->params, e->trained.params, e->trained.buffers,
				     &result->fingerprint));
	if (o->logits)
		LS_TRY(ls_logits_write(e->logits, o->logits, e->trained.weights.file));
	if (has_targets(e))
		return take_scores(e, result);
	if (e->confusion)
		return take_counts(e, result);
	return o->save ? ls_class_report_write(ls_dataset_describe(e->set)->name, result, NULL, e->saved) : LS_OK;
}

static void release(evaluation *e)
{
	ls_logits_free(e->logits);
	ls_confusion_free(e->confusion);
	free(e->scale);
	ls_evaluator_free(e->evaluator);
	ls_devices_close(e->devices);
	ls_dataset_free(e->own_set);
	ls_trained_release(&e->trained);
}

ls_status ls_eval(const ls_eval_options *options, ls_eval_result *result)
{
	ls_eval_options own = LS_EVAL_OPTIONS_INIT;
	evaluation e = { .options = &own };
	ls_eval_result r = { 0 };

	LS_TRY(LS_OPTIONS_TAKE_FILLED(&own, options, metrics, "LS_EVAL_OPTIONS_INIT"));
	LS_TRY(ls_stop_watch_begin(&e.watch, own.stop));
	const ls_log_sink sink = ls_hooks_sink(NULL, own.quiet), *before = ls_log_use(&sink);
	ls_status status = run(&e, &r);

	release(&e);
	ls_log_use(before);
	if (status == LS_OK && result)
		*result = r;
	return status;
}
