#include "run/setup.h"
#include "comm/agree.h"
#include "run/setup_memory.h"
#include "settings/model.h"

#include <lockstep/models.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/handles.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/names.h"
#include "data/dataset.h"
#include "data/normalise.h"
#include "data/task.h"
#include "evaluation/target_report.h"
#include "run/auto_precision.h"
#include "run/handshake.h"
#include "run/remembered.h"
#include "run/sample_hash.h"
#include "settings/class_weights.h"
#include "settings/effects.h"
#include "trained/columns.h"
#include "trained/model_handle.h"
#include "trained/normalisation.h"
#include "trained/vocabulary.h"

#define EVAL_BATCH 256
#define PROBE_BATCH 16

static ls_status check(const ls_train_options *o)
{
	LS_TRY(ls_layout_check(o));
	if (o->init && o->resume && !o->elastic) /* a later start of an elastic run has the command line of the first */
		return ls_fail(
			LS_EINVALID,
			"options.init and options.resume: a resumed run has its weights already; give one of them");
	if (o->elastic && (o->batch_per_device > 0 || o->lr_scale_workers))
		return ls_fail(
			LS_EINVALID,
			"options.elastic: the number of devices changes, and with %s the result would, too; give "
			"options.batch and options.micro_batch instead",
			o->batch_per_device > 0 ? "options.batch_per_device" : "options.lr_scale_workers");
	if (o->init && o->model_handle)
		return ls_fail(
			LS_EINVALID,
			"options.init and options.model_handle: a model in memory has its weights; give one of them");
	if (o->lora > 0 && ls_train_predicts_next(o) && !o->init && !o->resume && !o->model_handle && !o->plan_memory)
		return ls_fail(
			LS_EINVALID,
			"options.lora needs options.init: adapters alone are trained, and all other weights would stay "
			"random; name the weights to adapt, or leave options.lora out");
	if (o->trace && !o->run)
		return ls_fail(LS_EINVALID,
			       "options.trace needs options.run, the directory that trace.json is written to");
	return LS_OK;
}

/* What each node finds out by itself. */
static ls_status open_layout(ls_setup *s, ls_comm *comm)
{
	LS_TRY(ls_settings_check(s->options));
	LS_TRY(ls_backend_choose(NULL, &s->backend));
	LS_TRY(check(s->options));
	return ls_layout_init(&s->layout, s->options, comm);
}

static void warn_of_threads(const ls_layout *l)
{
	int cores = ls_pin_cores(), threads = l->devices * l->threads;
	if (threads > cores)
		ls_log_warning("%d threads on %d core%s: oversubscribed, expect slow training; give fewer "
			       "options.devices or options.threads",
			       threads, cores, ls_plural((uint64_t)cores, "s"));
}

/* What a run keeps of the sets it opened itself, taken while they are whole: a checkpoint must not need them. */
static ls_status hash_data(ls_setup *s)
{
	if (!s->options->run)
		return LS_OK;
	if (s->own_train)
		LS_TRY(ls_sample_hash(s->own_train, &s->train_hash));
	return s->own_test ? ls_sample_hash(s->own_test, &s->test_hash) : LS_OK;
}

/* Images are read as the weights of a model in memory are used to. */
static const ls_normalisation *known_normalisation(const ls_model *model)
{
	const ls_normalisation *n = &model->trained.normalisation;
	return n->channels > 0 ? n : NULL;
}

/* Settings that compare evaluations. */
static ls_status check_test(const ls_setup *s)
{
	const ls_train_options *o = s->options;
	char what[64] = "";

	if (o->to_accuracy > 0)
		snprintf(what, sizeof(what), "to_accuracy %g", o->to_accuracy);
	else if (o->early_stop > 0)
		snprintf(what, sizeof(what), "early_stop %lld", (long long)o->early_stop);
	else if (o->keep_best)
		snprintf(what, sizeof(what), "keep_best %.32s", o->keep_best);
	if (what[0] == '\0' || s->test_set)
		return LS_OK;
	return ls_fail(LS_EINVALID, "options.%s needs a test set%s", what,
		       o->eval_every > 0 ? "" : " and evaluations: options.eval_every is 0");
}

static ls_status open_data(ls_setup *s)
{
	const ls_train_options *o = s->options;
	ls_data_wanted wanted = { .split = LS_SPLIT_TRAIN, .samples = o->samples };

	wanted.normalisation = s->normalisation.channels > 0 ? &s->normalisation
			       : o->model_handle             ? known_normalisation(o->model_handle)
							     : NULL;
	wanted.columns = s->columns ? s->columns : o->model_handle ? o->model_handle->trained.columns : NULL;
	s->train_set = o->train_set;
	s->test_set = o->eval_every > 0 ? o->test_set : NULL;
	if (!s->train_set) {
		LS_TRY(ls_train_open_data(&s->own_train, o, &wanted));
		s->train_set = s->own_train;
	}
	if (!s->test_set && !o->train_set && o->eval_every > 0) {
		wanted.split = LS_SPLIT_TEST;
		wanted.samples = o->test_samples;
		wanted.normalisation = ls_dataset_normalisation(s->train_set);
		wanted.shape = ls_dataset_describe(s->train_set);
		wanted.columns = ls_dataset_columns(s->train_set);
		LS_TRY(ls_train_open_data(&s->own_test, o, &wanted));
		s->test_set = s->own_test;
	}
	if (ls_dataset_describe(s->train_set)->samples == 0)
		return ls_fail(LS_EINVALID, "dataset %s has no samples to train on",
			       ls_dataset_describe(s->train_set)->name);
	LS_TRY(ls_transforms_init(&s->transforms, o->augment, s->train_set, o->seed));
	LS_TRY(check_test(s));
	if (o->to_accuracy > 0 && ls_dataset_describe(s->train_set)->task == LS_TASK_REGRESSION)
		return ls_fail(LS_EINVALID, "options.to_accuracy %g: regression has no accuracy", o->to_accuracy);
	return hash_data(s);
}

/* Data that have but one label can be listed and looked at; there is nothing to learn from
 * them, but to predict tokens. */
static ls_status check_classes(const ls_dataset *set, const ls_train_options *o)
{
	const ls_dataset_info *info = ls_dataset_describe(set);

	if (ls_train_predicts_next(o) || info->classes >= 2 || info->masked_max > 0 || info->targets > 0)
		return LS_OK;
	if (info->classes == 1 && set->class_names)
		return ls_fail(LS_EFORMAT, "%s: all samples are of class '%s'; training needs at least two classes",
			       info->name, set->class_names[0]);
	return ls_fail(LS_EFORMAT, "%s: all its labels are 0; training needs samples of at least two classes (0 and 1)",
		       set->label_file ? set->label_file : info->name);
}

static ls_status build_graph(ls_setup *s)
{
	const ls_dataset_info *info = ls_dataset_describe(s->train_set);

	s->graph = s->options->graph;
	if (s->options->model_handle) { /* before anything lays its graph out */
		LS_TRY(ls_model_begin_training(s->options->model_handle));
		s->lender = s->options->model_handle;
	}
	LS_TRY(check_classes(s->train_set, s->options));
	if (!s->graph) {
		LS_TRY(ls_train_build_model(&s->own_graph, s->options, info));
		s->graph = s->own_graph;
	}
	LS_TRY(ls_graph_fits_set(s->graph, s->train_set));
	LS_TRY(ls_graph_set_precision(s->graph, s->options->precision));
	s->resolved.precision = ls_precision_name_at(s->graph->precision); /* never "auto" */
	LS_TRY(ls_graph_set_conv(s->graph, s->options->conv));
	if (s->lender)
		ls_model_note_arithmetic(s->lender);
	LS_TRY(ls_graph_freeze(s->graph, s->options->freeze));
	return s->test_set ? ls_graph_fits_set(s->graph, s->test_set) : LS_OK;
}

static ls_status count_steps(ls_setup *s)
{
	const ls_train_options *o = s->options;
	uint64_t samples = ls_dataset_describe(s->train_set)->samples;

	LS_TRY(ls_settings_get_batches(o, &s->batches));
	s->steps_per_epoch = ls_loader_steps(samples, s->batches.global);
	s->total_steps = (uint64_t)o->steps;
	if (o->steps == 0 && __builtin_mul_overflow(s->steps_per_epoch, (uint64_t)o->epochs, &s->total_steps))
		return ls_fail(LS_EINVALID, "options.epochs %lld of %llu step%s each are too many",
			       (long long)o->epochs, (unsigned long long)s->steps_per_epoch,
			       ls_plural(s->steps_per_epoch, "s"));
	return LS_OK;
}

/* Micro-batches of one sample: all of them, the last one of every step, or the last one of an epoch where the run gets
 * that far. */
ls_status ls_setup_check_norms(const ls_setup *s, const ls_settings_batches *batches)
{
	int64_t samples = (int64_t)ls_dataset_describe(s->train_set)->samples, global = batches->global;
	int64_t step = samples < global ? samples : global,
		size = step < batches->microbatch ? step : batches->microbatch;
	char where[128], advice[128];

	snprintf(where, sizeof(where), "a micro-batch of this run (%lld sample%s, batch %lld)", (long long)samples,
		 ls_plural((uint64_t)samples, "s"), (long long)global);
	LS_TRY(ls_train_check_norms(s->graph, size, where, "give a larger options.batch or options.micro_batch"));
	snprintf(where, sizeof(where), "the last micro-batch of a step (%lld sample%s, %lld per micro-batch)",
		 (long long)step, ls_plural((uint64_t)step, "s"), (long long)size);
	if (samples >= global)
		LS_TRY(ls_train_check_norms(s->graph, global % size, where,
					    "options.micro_batch must divide the batch"));
	snprintf(where, sizeof(where), "the last micro-batch of an epoch (%lld sample%s, %lld per micro-batch)",
		 (long long)samples, ls_plural((uint64_t)samples, "s"), (long long)size);
	snprintf(advice, sizeof(advice), "use options.samples %lld or another options.batch", (long long)samples - 1);
	return s->options->steps == 0 || (uint64_t)s->options->steps >= ls_loader_steps((uint64_t)samples, global)
		       ? ls_train_check_norms(s->graph, samples % global % size, where, advice)
		       : LS_OK;
}

ls_schedule_options ls_setup_schedule(const ls_train_options *o)
{
	return (ls_schedule_options){ .name = o->schedule,
				      .lr = o->lr * (o->lr_scale_workers ? (double)o->devices : 1),
				      .lr_min = o->lr_min,
				      .warmup = (uint64_t)o->warmup,
				      .total = (uint64_t)o->steps,
				      .every = (uint64_t)o->lr_step_every,
				      .factor = o->lr_step_factor };
}

ls_node_trainer_options ls_setup_trainer_options(const ls_train_options *o, const ls_layout *layout, ls_graph *graph)
{
	const ls_schedule_options schedule = ls_setup_schedule(o);

	return (ls_node_trainer_options){
		.graph = graph,
		.devices = layout->devices,
		.threads = layout->threads,
		.pin = layout->pin,
		.comm = layout->comm,
		.servers = layout->servers,
		.strategy = layout->strategy,
		.codec = layout->codec,
		.staleness = layout->staleness,
		.bucket = (size_t)o->bucket_bytes / sizeof(float),
		.optimizer = o->optimizer,
		.hyper = { .lr = schedule.lr,
			   .momentum = o->momentum,
			   .beta1 = o->beta1,
			   .beta2 = o->beta2,
			   .epsilon = o->epsilon,
			   .weight_decay = o->weight_decay,
			   .nesterov = o->nesterov },
		.schedule = schedule,
		.clip_norm = o->clip_norm,
		.ema = o->ema,
		.seed = o->seed,
	};
}

ls_node_trainer_options ls_setup_step_options(ls_setup *s, const ls_settings_batches *batches)
{
	int64_t samples = (int64_t)ls_dataset_describe(s->train_set)->samples, microbatch = batches->microbatch;
	int64_t first = samples < batches->global ? samples : batches->global;
	ls_node_trainer_options t = ls_setup_trainer_options(s->options, &s->layout, s->graph);

	t.microbatch = first < microbatch ? first : microbatch;
	t.tails[0] = first % microbatch;
	t.tails[1] = samples % batches->global % microbatch;
	t.microbatches = (first + microbatch - 1) / microbatch;
	t.backend = s->backend;
	t.next = ls_batches_next;
	t.next_context = &s->train_batches;
	t.schedule.total = s->total_steps;
	t.keeps = s->options->run && ls_setup_is_first(s);
	return t;
}

ls_evaluator_options ls_setup_test_options(const ls_setup *s)
{
	return (ls_evaluator_options){ .graph = s->graph,
				       .dataset = s->test_set,
				       .batch = EVAL_BATCH,
				       .backend = s->backend,
				       .devices = s->layout.devices,
				       .comm = s->layout.comm,
				       .devices_of = s->layout.devices_of,
				       .weight = s->layout.weight };
}

ls_evaluator_options ls_setup_probe_options(const ls_setup *s)
{
	return (ls_evaluator_options){
		.graph = s->graph, .dataset = s->train_set, .batch = PROBE_BATCH, .backend = s->backend, .devices = 1
	};
}

static ls_status make_probe(ls_setup *s)
{
	ls_evaluator_options options = ls_setup_probe_options(s);

	options.on = s->trainer->devices;
	return ls_evaluator_new(&s->probe, &options);
}

static ls_status make_evaluator(ls_setup *s)
{
	ls_evaluator_options options = ls_setup_test_options(s);
	double *scale = NULL;

	LS_TRY(ls_target_scales(s->test_set, &scale));
	options.on = s->trainer->devices;
	options.scale = scale;
	ls_status status = ls_evaluator_new(&s->evaluator, &options);
	free(scale);
	return status;
}

static ls_status make_evaluators(ls_setup *s)
{
	if (ls_setup_is_first(s) && s->options->run)
		LS_TRY(make_probe(s));
	return s->test_set ? make_evaluator(s) : LS_OK;
}

static void choose_vocabulary(ls_setup *s)
{
	ls_vocabulary_choose(s->vocab, sizeof(s->vocab), s->options);
	if (s->vocab[0] == '\0')
		return;
	s->resolved.vocab = s->vocab;
	if (s->options->init && ls_setup_is_first(s))
		ls_log_note("text is read with the vocabulary of the weights, %s", s->vocab);
}

/* The data, and what follows from its size: how many devices have work. */
static ls_status open_all_data(ls_setup *s)
{
	s->given = s->options;
	s->resolved = *s->options;
	s->options = &s->resolved;
	choose_vocabulary(s);
	LS_TRY(open_data(s));
	ls_layout_fit(&s->layout, ls_settings_micro_batches(s->given, ls_dataset_describe(s->train_set)->samples));
	warn_of_threads(&s->layout);
	return LS_OK;
}

/* Numbers and several labels are learned as they are. */
static void warn_of_smoothing(const ls_setup *s)
{
	const ls_dataset_info *info = ls_dataset_describe(s->train_set);

	if (s->given->label_smoothing > 0 && !s->given->graph && info->task != LS_TASK_CLASSIFICATION)
		ls_log_warning("options.label_smoothing has no effect: dataset %s is for %s", info->name,
			       ls_task_title(info->task));
}

/* The settings that follow from the devices of all nodes, and the model. */
static ls_status resolve(ls_setup *s)
{
	LS_TRY(ls_settings_resolve(s->given, s->layout.all_devices, &s->resolved));
	s->resolved.threads = s->layout.threads;
	if (s->vocab[0] != '\0')
		s->resolved.vocab = s->vocab;
	LS_TRY(ls_class_weights_resolve(&s->class_weights, s->given, s->train_set));
	if (s->class_weights)
		s->resolved.class_weights = s->class_weights;
	warn_of_smoothing(s);
	LS_TRY(build_graph(s));
	LS_TRY(count_steps(s));
	return ls_setup_check_norms(s, &s->batches);
}

/* A model in memory lends its stores, in the layout of the optimizer. */
static ls_status borrow_stores(ls_setup *s, ls_node_trainer_options *t)
{
	ls_model *model = s->lender;
	const ls_optimizer_kind *kind;

	if (!model)
		return LS_OK;
	LS_TRY(ls_optimizer_find(t->optimizer, &kind));
	ls_graph_keep_unreachable(s->graph, ls_optimizer_needs_unreachable(kind, &t->hyper));
	LS_TRY(ls_model_lend(model, ls_node_trainer_stats_floats(t)));
	LS_TRY(ls_model_learn_data(model, s->train_set));
	t->params = model->trained.params;
	t->state = model->trained.buffers;
	return LS_OK;
}

static ls_status build(ls_setup *s)
{
	ls_memory_plan plan;
	ls_node_trainer_options t = ls_setup_step_options(s, &s->batches);

	LS_TRY(ls_setup_plan_memory(s, &plan));
	if (s->options->plan_memory)
		return LS_OK;
	if (s->options->trace)
		LS_TRY(ls_tracing_new(&s->tracing, &s->layout, s->options->run, (uint64_t)s->options->trace_steps, &t));
	t.sum_buffers = plan.most;
	LS_TRY(borrow_stores(s, &t));
	LS_TRY(ls_node_trainer_new(&s->trainer, &t));
	s->has_snapshot = plan.snapshot > 0;
	s->has_memory = plan.in_memory > 0;
	s->frees_memory = plan.in_memory > 0 && plan.freed > 0;
	if (t.keeps && ls_setup_saves_on_the_way(s) && !s->has_snapshot)
		ls_log_note("there is no memory to spare for a copy of the weights: training waits for checkpoints");
	return make_evaluators(s);
}

/* What the program brings is alive. */
static ls_status check_handles(const ls_train_options *o)
{
	if (o->graph)
		LS_TRY(ls_handle_check(o->graph, LS_GRAPH_KIND));
	if (o->train_set)
		LS_TRY(ls_handle_check(o->train_set, LS_DATASET_KIND));
	return o->test_set ? ls_handle_check(o->test_set, LS_DATASET_KIND) : LS_OK;
}

/* The graph is the model's, and its name goes into what the run keeps. */
static ls_status use_model(ls_setup *s)
{
	ls_train_options *o = &s->asked;

	LS_TRY(check_handles(o));
	if (!o->model_handle)
		return LS_OK;
	LS_TRY(ls_handle_check(o->model_handle, LS_MODEL_KIND));
	if (o->graph)
		return ls_fail(
			LS_EINVALID,
			"options.graph and options.model_handle are both set; a model in memory brings its own graph");
	o->graph = o->model_handle->trained.own_graph;
	ls_train_copy_model(o, &o->model_handle->trained.settings);
	return LS_OK;
}

/* After each stage nodes learn whether all got through it, so that all fail for the same reason. */
static ls_status make(ls_setup *s, ls_comm *comm)
{
	LS_TRY(ls_handshake_version(comm));
	LS_TRY(ls_recall(&s->asked, &s->stored, s->options, comm));
	s->options = &s->asked;
	LS_TRY(ls_comm_agree(comm, use_model(s)));
	LS_TRY(ls_comm_agree(comm, open_layout(s, comm)));
	LS_TRY(ls_auto_precision(&s->asked.precision, comm));
	LS_TRY(ls_normalisation_find(&s->normalisation, s->options, comm, ls_setup_is_first(s)));
	LS_TRY(ls_columns_find(&s->columns, s->options, comm, ls_setup_is_first(s)));
	LS_TRY(ls_comm_agree(comm, open_all_data(s)));
	LS_TRY(ls_layout_meet(&s->layout));
	LS_TRY(ls_comm_agree(comm, resolve(s)));
	LS_TRY(ls_handshake_settings(comm, s->options, s->train_set, s->test_set));
	return ls_comm_agree(comm, build(s));
}

static void warn_of_samples(const ls_setup *s)
{
	const ls_train_options *o = s->options;

	if (s->own_train)
		ls_data_warn_of_samples(s->own_train, "options.samples", o->samples, LS_SPLIT_TRAIN);
	if (s->own_test)
		ls_data_warn_of_samples(s->own_test, "options.test_samples", o->test_samples, LS_SPLIT_TEST);
}

static void warn_of_lr(const ls_train_options *o)
{
	if (o->lr == 0 && o->lr_min == 0)
		ls_log_warning("options.lr is 0: nothing will be learned");
}

/* A learning rate that only rises. */
static void warn_of_warmup(const ls_setup *s)
{
	const ls_train_options *o = s->options;
	int is_constant = strcmp(o->schedule, "constant") == 0;

	if ((uint64_t)o->warmup > s->total_steps)
		ls_log_warning(
			"options.warmup %lld is longer than the run of %llu step%s: the learning rate never reaches "
			"options.lr%s%s%s",
			(long long)o->warmup, (unsigned long long)s->total_steps, ls_plural(s->total_steps, "s"),
			is_constant ? "" : ", and options.schedule ", is_constant ? "" : o->schedule,
			is_constant ? "" : " has no effect");
}

static void warn_of_idle_settings(const ls_setup *s)
{
	ls_effects run = { .options = &s->asked,
			   .is_text = ls_dataset_describe(s->train_set)->tokens_max > 0,
			   .has_test = s->test_set != NULL,
			   .has_exchange = !s->trainer || s->trainer->exchange, /* a plan makes none */
			   .nodes = s->layout.nodes };
	ls_effects_warn(&run);
	warn_of_samples(s);
	warn_of_lr(s->options);
	warn_of_warmup(s);
	ls_layout_warn_idle(&s->layout, s->batches.global, s->batches.microbatch,
			    ls_dataset_describe(s->train_set)->samples, s->options->resume);
}

ls_status ls_setup_make(ls_setup *setup, const ls_train_options *options, ls_comm *comm)
{
	*setup = (ls_setup){ .options = options };
	LS_TRY(make(setup, comm));
	if (ls_setup_is_first(setup))
		warn_of_idle_settings(setup);
	return LS_OK;
}

ls_status ls_setup_batches(ls_setup *s, uint64_t epoch, uint64_t epoch_step, uint64_t steps, uint64_t generation)
{
	ls_batches_options options = { .layout = &s->layout,
				       .dataset = s->train_set,
				       .graph = s->graph,
				       .seed = s->options->seed,
				       .microbatch = s->batches.microbatch,
				       .global_batch = s->batches.global,
				       .start_epoch = epoch,
				       .start_step = epoch_step,
				       .transforms = s->transforms.count > 0 ? &s->transforms : NULL,
				       .steps = steps,
				       .sample_log = getenv("LOCKSTEP_SAMPLE_LOG"),
				       .generation = generation };
	return ls_batches_open(&s->train_batches, &options);
}

void ls_setup_release(ls_setup *s)
{
	ls_evaluator_free(s->evaluator);
	ls_evaluator_free(s->probe);
	ls_batches_close(&s->train_batches);
	ls_transforms_release(&s->transforms);
	ls_node_trainer_free(s->trainer);
	if (s->lender)
		ls_model_end_training(s->lender);
	ls_tracing_free(s->tracing);
	ls_graph_free(s->own_graph);
	ls_dataset_free(s->own_test);
	ls_dataset_free(s->own_train);
	ls_normalisation_release(&s->normalisation);
	free(s->columns);
	free(s->class_weights);
	ls_layout_release(&s->layout);
	ls_train_stored_release(&s->stored);
	*s = (ls_setup){ 0 };
}
