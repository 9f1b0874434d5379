#include "run/setup_memory.h"

#include <stdio.h>

#include "base/files.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/snapshot.h"
#include "data/dataset.h"
#include "run/snapshots.h"

/* A checkpoint is written by the first node, tensor by tensor, after a look at the weights. */
static ls_status plan_checkpoint(const ls_setup *s, ls_memory_plan *plan, int *readers)
{
	const ls_param_table *table = &s->graph->params;
	ls_evaluator_options options = ls_setup_probe_options(s);
	ls_evaluator_bytes probe;
	size_t largest = 0;

	if (!plan->trainer.keeps)
		return LS_OK;
	for (size_t i = 0; i < table->count; i++)
		largest = ls_param_elements(&table->rows[i]) > largest ? ls_param_elements(&table->rows[i]) : largest;
	LS_TRY(ls_evaluator_plan(&options, s->layout.threads, 1, &probe));
	plan->checkpoint = probe.used + largest * sizeof(float);
	plan->unused += probe.mapped - probe.used;
	*readers = probe.readers > *readers ? probe.readers : *readers;
	return LS_OK;
}

int ls_setup_saves_on_the_way(const ls_setup *s)
{
	uint64_t every = (uint64_t)s->options->ckpt_every;
	return (every > 0 ? every : s->steps_per_epoch) < s->total_steps;
}

/* Where there is no memory for it, checkpoints are written from the trainer's stores, and training waits. */
static ls_status plan_snapshot(const ls_setup *s, ls_memory_plan *plan)
{
	const ls_optimizer_kind *kind;

	if (!plan->trainer.keeps || !ls_setup_saves_on_the_way(s))
		return LS_OK;
	LS_TRY(ls_optimizer_find(plan->trainer.optimizer, &kind));
	ls_memory_plan with = *plan;
	with.snapshot = ls_snapshot_bytes(&s->graph->params, kind->slots + (plan->trainer.ema > 0));
	ls_memory_plan_add_threads(&with, 1);
	if (ls_memory_plan_fits(&with))
		*plan = with;
	return LS_OK;
}

/* The same for snapshots that a run goes on from when nodes are lost. */
static void plan_memory_snapshots(const ls_setup *s, ls_memory_plan *plan)
{
	if (!ls_snapshots_wanted(s->options))
		return;
	ls_memory_plan with = *plan;
	with.in_memory = ls_snapshots_bytes(&s->graph->params, &plan->trainer, s->layout.nodes);
	if (!ls_memory_plan_fits(&with) && s->options->resume)
		with.freed = ls_snapshots_held(s->options->run);
	if (ls_memory_plan_fits(&with))
		*plan = with;
}

static ls_status plan_evaluation(const ls_setup *s, ls_memory_plan *plan, int *readers)
{
	ls_evaluator_options options = ls_setup_test_options(s);
	ls_evaluator_bytes bytes;

	if (!s->test_set)
		return LS_OK;
	LS_TRY(ls_evaluator_plan(&options, s->layout.threads, 0, &bytes));
	size_t more = s->layout.share == LS_SHARE_AUTO ? bytes.most - bytes.used : 0;
	plan->evaluation = bytes.used;
	plan->more += more;
	plan->unused += bytes.mapped - bytes.used - more;
	*readers = bytes.readers;
	return LS_OK;
}

/* Files of weights are mapped while the first node reads them. The kernel drops their pages when it wants memory. */
static void plan_reading(const ls_setup *s, ls_memory_plan *plan)
{
	const ls_train_options *o = s->options;
	uint64_t bytes = 0;

	if (ls_setup_is_first(s) && o->resume && o->run)
		bytes = ls_ckpt_newest_bytes(o->run);
	else if (ls_setup_is_first(s) && o->init)
		bytes = ls_path_is_directory(o->init) ? ls_ckpt_newest_bytes(o->init) : plan->bytes.params;
	plan->files = (size_t)bytes;
}

/* Each device has a loader of its micro-batches, with one thread or several. */
static void plan_loaders(const ls_setup *s, const ls_settings_batches *batches, ls_memory_plan *plan)
{
	ls_loader_options options = { .microbatch = batches->microbatch,
				      .global_batch = batches->global,
				      .transforms = s->transforms.count > 0 ? &s->transforms : NULL,
				      .threads = ls_loader_threads(s->train_set, &s->transforms, s->layout.threads),
				      .one_hot = ls_transforms_mix(&s->transforms) };
	uint64_t devices = (uint64_t)s->layout.all_devices, microbatches = (uint64_t)plan->trainer.microbatches;
	uint64_t steps = s->total_steps < UINT32_MAX ? s->total_steps : UINT32_MAX;
	uint64_t of_device = steps * ((microbatches + devices - 1) / devices);
	size_t mapped = (size_t)s->layout.devices * ls_loader_bytes(s->train_set, &options, UINT64_MAX);

	plan->samples = (size_t)s->layout.devices * ls_loader_bytes(s->train_set, &options, of_device);
	plan->unused += mapped - plan->samples;
	ls_memory_plan_add_threads(plan, s->layout.devices * options.threads);
}

static ls_status plan_batches(ls_setup *s, const ls_settings_batches *batches, ls_memory_plan *plan)
{
	ls_node_trainer_options t = ls_setup_step_options(s, batches);
	int64_t rest = (int64_t)(ls_dataset_describe(s->train_set)->samples % (uint64_t)batches->global);

	LS_TRY(ls_memory_plan_init(plan, &t, &s->layout, (rest + batches->microbatch - 1) / batches->microbatch));
	plan_loaders(s, batches, plan);
	if (s->options->trace)
		plan->timeline = ls_tracing_bytes(&s->layout, (uint64_t)s->options->trace_steps, &t);
	int readers = 0; /* of evaluation or of the look at the weights, which are not at the same time */
	LS_TRY(plan_evaluation(s, plan, &readers));
	LS_TRY(plan_checkpoint(s, plan, &readers));
	ls_memory_plan_add_threads(plan, readers);
	plan_reading(s, plan);
	LS_TRY(plan_snapshot(s, plan));
	plan_memory_snapshots(s, plan);
	return LS_OK;
}

static ls_status plan_job(void *context, const ls_train_options *job, ls_memory_plan *plan)
{
	ls_setup *s = context;
	ls_settings_batches batches;

	LS_TRY(ls_settings_get_batches(job, &batches));
	LS_TRY(ls_setup_check_norms(s, &batches));
	return plan_batches(s, &batches, plan);
}

ls_status ls_setup_plan_memory(ls_setup *s, ls_memory_plan *plan)
{
	ls_memory_advice advice = {
		.given = s->given, .devices = s->layout.all_devices, .tails = 1, .plan = plan_job, .context = s
	};

	LS_TRY(plan_batches(s, &s->batches, plan));
	if (s->options->plan_memory && ls_setup_is_first(s))
		LS_TRY(ls_memory_plan_print(plan, stdout));
	return ls_memory_plan_check(plan, &advice);
}
