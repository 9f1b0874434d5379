/*
 * trainer_handle.c - lockstep/trainer.h: making a trainer, and what is known of it. Its steps are in trainer_steps.c,
 * its files in trainer_files.c.
 */
#include "run/trainer_handle.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backends/backend.h"
#include "base/handles.h"
#include "base/options.h"
#include "optim/optimizer.h"
#include "run/hooks.h"
#include "run/memory_plan.h"
#include "run/setup.h"

/* ---- options ----------------------------------------------------------------------------------------------------- */

static ls_status check_strings(const ls_trainer_options *o)
{
	const struct {
		const char *field, *value;
	} strings[] = { { "optimizer", o->optimizer }, { "schedule", o->schedule }, { "pin", o->pin } };

	for (size_t i = 0; i < sizeof(strings) / sizeof(strings[0]); i++)
		if (!strings[i].value)
			return ls_fail(LS_EINVALID, "options.%s is NULL; start from LS_TRAINER_OPTIONS_INIT",
				       strings[i].field);
	return LS_OK;
}

/* As settings of a run, which are checked and resolved in one place. */
static ls_train_options settings_of(const ls_trainer_options *o)
{
	ls_train_options s = LS_TRAIN_OPTIONS_INIT;

	s.batch = o->batch;
	s.micro_batch = o->micro_batch;
	s.optimizer = o->optimizer;
	s.lr = o->lr;
	s.momentum = o->momentum;
	s.beta1 = o->beta1;
	s.beta2 = o->beta2;
	s.epsilon = o->epsilon;
	s.weight_decay = o->weight_decay;
	s.nesterov = o->nesterov;
	s.clip_norm = o->clip_norm;
	s.schedule = o->schedule;
	s.steps = o->steps;
	s.lr_min = o->lr_min;
	s.lr_step_every = o->lr_step_every;
	s.lr_step_factor = o->lr_step_factor;
	s.warmup = o->warmup;
	s.seed = o->seed;
	s.devices = o->devices;
	s.threads = o->threads;
	s.pin = o->pin;
	return s;
}

/* Strings of the program may not live as long: those of our tables do. */
static ls_status own_strings(ls_train_options *s, const ls_layout *layout)
{
	const ls_optimizer_kind *optimizer;
	const ls_schedule_options schedule = ls_setup_schedule(s);
	const ls_schedule_kind *kind = ls_schedule_find(s->schedule);

	if (kind && kind->needs_length && s->steps == 0)
		return ls_fail(LS_EINVALID, "options.schedule %s needs options.steps, the steps of the whole training",
			       s->schedule);
	LS_TRY(ls_schedule_check(&schedule));
	LS_TRY(ls_optimizer_find(s->optimizer, &optimizer));
	s->schedule = kind->name;
	s->optimizer = optimizer->name;
	s->pin = ls_layout_pin_at(layout->pin)->name;
	return LS_OK;
}

/* A list of the program, which may not live as long either. */
static ls_status keep_string(char **out, const char *given, const char *field)
{
	*out = given ? strdup(given) : NULL;
	return given && !*out ? ls_fail(LS_EMEMORY, "no memory for options.%s", field) : LS_OK;
}

static ls_status resolve(ls_trainer *t, const ls_trainer_options *options)
{
	ls_train_options given;

	LS_TRY(check_strings(options));
	LS_TRY(ls_transforms_check(options->augment));
	given = settings_of(options);
	LS_TRY(ls_settings_check(&given));
	LS_TRY(ls_layout_init(&t->layout, &given, NULL));
	ls_layout_fit(&t->layout, ls_settings_micro_batches(&given, (uint64_t)given.batch));
	LS_TRY(ls_layout_meet(&t->layout));
	LS_TRY(own_strings(&given, &t->layout));
	LS_TRY(ls_settings_resolve(&given, t->layout.all_devices, &t->settings));
	t->settings.threads = t->layout.threads;
	LS_TRY(keep_string(&t->freeze, options->freeze, "freeze"));
	LS_TRY(keep_string(&t->augment, options->augment, "augment"));
	t->settings.freeze = t->freeze;
	t->settings.augment = t->augment ? t->augment : "none";
	return LS_OK;
}

/* ---- making ------------------------------------------------------------------------------------------------------ */

static ls_status next(void *context, int device, const ls_microbatch **microbatch)
{
	ls_trainer *t = context;

	if (t->reads_dataset)
		return ls_batches_next(&t->batches, device, microbatch);
	return ls_arrays_next(t->arrays, device, microbatch);
}

static ls_status node_options(ls_trainer *t, const ls_train_options *job, ls_graph *graph, ls_node_trainer_options *out)
{
	int64_t batch = job->batch, size = job->micro_batch;
	ls_node_trainer_options o = ls_setup_trainer_options(job, &t->layout, graph);

	o.microbatch = batch < size ? batch : size;
	o.microbatches = (batch + size - 1) / size;
	o.next = next;
	o.next_context = t;
	*out = o;
	return ls_backend_choose(NULL, &out->backend);
}

static ls_status plan_job(void *context, const ls_train_options *job, ls_memory_plan *plan)
{
	ls_trainer *t = context;
	ls_graph *graph = t->model->trained.own_graph;
	ls_node_trainer_options o;

	LS_TRY(node_options(t, job, graph, &o));
	return ls_memory_plan_init(plan, &o, &t->layout, 0);
}

/* What the machine does not have is refused before it is asked for. */
static ls_status check_memory(ls_trainer *t)
{
	const ls_memory_advice advice = {
		.given = &t->settings, .devices = t->layout.all_devices, .tails = 1, .plan = plan_job, .context = t
	};
	ls_memory_plan plan;

	LS_TRY(plan_job(t, &t->settings, &plan));
	return ls_memory_plan_check(&plan, &advice);
}

/* The precision that is asked for, else what the model computes in. */
static ls_status take_precision(ls_trainer *t, const char *precision)
{
	ls_graph *graph = t->model->trained.own_graph;

	t->precision_before = graph->precision;
	if (precision)
		LS_TRY(ls_graph_set_precision(graph, precision));
	t->settings.precision = ls_precision_name_at(graph->precision); /* never "auto" */
	return LS_OK;
}

static ls_status make_node(ls_trainer *t, ls_model *model, const char *precision)
{
	ls_node_trainer_options o;
	const ls_optimizer_kind *kind;

	LS_TRY(node_options(t, &t->settings, model->trained.own_graph, &o));
	LS_TRY(ls_optimizer_find(o.optimizer, &kind));
	LS_TRY(ls_model_begin_training(model));
	t->model = model;
	LS_TRY(take_precision(t, precision));
	LS_TRY(ls_graph_freeze(model->trained.own_graph,
			       t->settings.freeze)); /* also undoes that of earlier training */
	ls_graph_keep_unreachable(model->trained.own_graph, ls_optimizer_needs_unreachable(kind, &o.hyper));
	LS_TRY(check_memory(t));
	LS_TRY(ls_model_lend(model, ls_node_trainer_stats_floats(&o)));
	o.params = model->trained.params;
	o.state = model->trained.buffers;
	return ls_node_trainer_new(&t->node, &o);
}

static ls_status make(ls_trainer *t, ls_model *model, const ls_trainer_options *options)
{
	LS_TRY(resolve(t, options));
	LS_TRY(make_node(t, model, options->precision));
	return ls_arrays_new(&t->arrays, model->trained.graph, t->layout.devices, t->settings.micro_batch,
			     t->settings.batch);
}

static void release(ls_trainer *t)
{
	ls_arrays_free(t->arrays);
	ls_node_trainer_free(t->node);
	if (t->model)
		ls_model_end_training(t->model);
	ls_layout_release(&t->layout);
	free(t->augment);
	free(t->freeze);
	free(t);
}

ls_status ls_trainer_new(ls_trainer **out, ls_model *model, const ls_trainer_options *options)
{
	ls_trainer_options own = LS_TRAINER_OPTIONS_INIT;

	LS_TRY(ls_argument_check(out, "out"));
	LS_TRY(ls_handle_check(model, LS_MODEL_KIND));
	LS_TRY(LS_OPTIONS_TAKE(&own, options, pin, "LS_TRAINER_OPTIONS_INIT"));
	ls_trainer *t = calloc(1, sizeof(*t));
	if (!t)
		return ls_fail(LS_EMEMORY, "no memory for a trainer");
	ls_status status = make(t, model, &own);
	if (status == LS_OK)
		status = ls_handle_add(t, LS_TRAINER_KIND);
	if (status != LS_OK) {
		if (t->model)
			model->trained.own_graph->precision = t->precision_before;
		release(t);
		return status;
	}
	ls_model_note_arithmetic(model);
	*out = t;
	return LS_OK;
}

void ls_trainer_free(ls_trainer *trainer)
{
	if (!trainer || !ls_handle_remove(trainer, LS_TRAINER_KIND))
		return;
	trainer->is_freed = 1;
	if (!trainer->use.function)
		release(trainer);
}

/* ---- calls inside calls ------------------------------------------------------------------------------------------ */

static ls_status fail_in_use(const ls_trainer *t)
{
	return ls_fail(
		LS_EINVALID,
		"this trainer is in %s(): call this when that has returned; a hook may evaluate, save, look at the "
		"trainer and set the learning rate",
		t->use.function);
}

ls_status ls_trainer_check_between_steps(const ls_trainer *t)
{
	return t->use.function && !t->use.is_in_hook ? fail_in_use(t) : LS_OK;
}

ls_status ls_trainer_check_process(const ls_trainer *t)
{
	if (!ls_devices_are_lost(t->node->devices))
		return LS_OK;
	return ls_fail(
		LS_EINVALID,
		"this process was forked from the one that made the trainer, and its threads are not in it: make "
		"the trainer in this process, or let Python's multiprocessing use the start method 'spawn'");
}

ls_status ls_trainer_begin(ls_trainer *t, const char *function, ls_trainer_use *outer)
{
	LS_TRY(ls_trainer_check_between_steps(t));
	LS_TRY(ls_trainer_check_process(t));
	*outer = t->use;
	t->use = (ls_trainer_use){ .function = function };
	return LS_OK;
}

ls_status ls_trainer_end(ls_trainer *t, const ls_trainer_use *outer, ls_status status)
{
	t->use = *outer;
	if (t->is_freed && !t->use.function)
		release(t);
	return status;
}

/* ---- what is known of it ----------------------------------------------------------------------------------------- */

ls_status ls_trainer_check(const ls_trainer *t)
{
	LS_TRY(ls_handle_check(t, LS_TRAINER_KIND));
	if (t->use.function)
		return fail_in_use(t);
	if (t->failed == LS_OK)
		return LS_OK;
	return ls_fail(t->failed,
		       "the trainer broke off in an earlier step (%s); save it, make a new one and load that", t->why);
}

ls_status ls_trainer_get_lr(const ls_trainer *t, double *lr)
{
	LS_TRY(ls_handle_check(t, LS_TRAINER_KIND));
	LS_TRY(ls_argument_check(lr, "lr"));
	*lr = ls_schedule_rate(&t->node->options.schedule, ls_node_trainer_updates(t->node));
	return LS_OK;
}

ls_status ls_trainer_set_lr(ls_trainer *t, double lr)
{
	LS_TRY(ls_handle_check(t, LS_TRAINER_KIND));
	if (!isfinite(lr) || lr < 0)
		return ls_fail(LS_EINVALID, "learning rate %g is not a number of 0 or more", lr);
	t->settings.schedule = "constant";
	t->settings.lr = lr;
	t->settings.warmup = 0;
	t->node->options.schedule = (ls_schedule_options){ .name = t->settings.schedule, .lr = lr };
	return LS_OK;
}

ls_status ls_trainer_get_position(const ls_trainer *t, ls_trainer_position *out)
{
	LS_TRY(ls_handle_check(t, LS_TRAINER_KIND));
	LS_TRY(ls_argument_check(out, "out"));
	*out = (ls_trainer_position){ .steps = (int64_t)ls_node_trainer_updates(t->node),
				      .epoch = (int64_t)t->epoch,
				      .epoch_step = (int64_t)t->epoch_step,
				      .devices = t->layout.devices,
				      .threads = t->layout.threads,
				      .micro_batch = t->settings.micro_batch };
	return LS_OK;
}

ls_status ls_trainer_set_hook(ls_trainer *t, ls_trainer_hook hook, void *context)
{
	LS_TRY(ls_handle_check(t, LS_TRAINER_KIND));
	t->hook = hook;
	t->hook_context = context;
	return LS_OK;
}

ls_status ls_trainer_set_stop(ls_trainer *t, const ls_stop *stop)
{
	LS_TRY(ls_handle_check(t, LS_TRAINER_KIND));
	if (stop)
		LS_TRY(ls_handle_check(stop, LS_STOP_KIND));
	t->stop = stop;
	return LS_OK;
}
