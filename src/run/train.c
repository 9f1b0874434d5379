/*
 * train.c - the step loop: the one place that knows data, model, optimizer, checkpoints and metrics.
 *
 *     setup -> (resume, evaluate what is owed) -> { step -> account -> report -> (checkpoint) }
 *           -> epoch: checkpoint, evaluate -> ...
 *
 * Which evaluation is the best, and whether the run ends because none is any more, is in best.h.
 *
 * What differs where nodes do not complete steps together (ps-async) is in async.h.
 *
 * `position` says where the next step is that is not accounted for. On one node that is the next one; on several the
 * step under way overlaps the end of the one before, until something needs whole weights and all nodes drain: then
 * what is saved and what is resumed are the same thing.
 */
#include <lockstep/train.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/names.h"
#include "base/options.h"
#include "cluster/faults.h"
#include "cluster/launched.h"
#include "comm/collectives.h"
#include "comm/init.h"
#include "run/async.h"
#include "run/banner.h"
#include "run/best.h"
#include "run/hooks.h"
#include "run/node.h"
#include "run/reporter.h"
#include "run/saver.h"
#include "run/summary.h"
#include "trainer/audit.h"
#include "trainer/state_transfer.h"

/* The newest evaluation. */
typedef struct tested {
	ls_eval_result result;
	int is_known, has_failed;
	uint64_t step; /* of its weights */
} tested;

typedef struct loop {
	ls_setup setup;
	ls_ckpt_progress position; /* of the next step that is not accounted for */
	ls_reporter reporter;
	ls_saver saver;
	tested test;
	ls_best best;
	ls_async async;
	ls_hooks hooks;
	ls_stop_watch watch;
	uint64_t stop_after; /* a step; UINT64_MAX: as options say */
	int stops;           /* all nodes have agreed to end here */
	int reached;         /* the test accuracy that options.to_accuracy asks for */
	int together;        /* all nodes fail with what fails now */
	double started, first_step_s, last_loss;
	double mark; /* when the last step was done */
} loop;

static int is_stopping(void *context)
{
	const loop *l = context;
	return ls_stop_watch_is_requested(&l->watch) || l->hooks.status != LS_OK || l->position.step > l->stop_after;
}

static int wants_to_end(loop *l)
{
	return is_stopping(l) || l->saver.where != LS_RUN_THERE;
}

/* No update is to blame for the loss of the weights that a run starts with. */
static ls_status useless_start(const loop *l, double loss)
{
	const char *init = l->setup.options->init;

	return ls_fail(LS_ENUMERIC, "the loss is %s at step 1, before any update: %s%s give no finite loss on %s",
		       isnan(loss) ? "NaN" : "infinite", init ? "the weights of options.init " : "the initial weights",
		       init ? init : "", ls_dataset_describe(l->setup.train_set)->name);
}

static ls_status diverged(loop *l, double loss)
{
	return ls_fail(LS_ENUMERIC, "the loss became %s at step %llu (epoch %llu): %s; " LS_DIVERGED,
		       isnan(loss) ? "NaN" : "infinite", (unsigned long long)l->position.step + 1,
		       (unsigned long long)l->position.epoch + 1, ls_saver_kept(&l->saver));
}

static ls_status check_loss(loop *l, const ls_node_trainer_report *r)
{
	double loss = r->loss / (double)r->samples;

	if (isfinite(loss))
		return LS_OK;
	if (!ls_async_is_on(&l->async))
		return l->position.step == 0 ? useless_start(l, loss) : diverged(l, loss);
	if (!ls_async_has_loss(&l->async, r))
		return LS_OK;
	l->async.found_alone = 1;
	return diverged(l, loss);
}

static void advance(ls_ckpt_progress *p, const ls_node_trainer_report *r)
{
	p->step++;
	p->epoch_step++;
	p->loss_sum += r->loss;
	p->loss_samples += (uint64_t)r->samples;
	p->correct += (uint64_t)r->correct;
	p->answers += (uint64_t)r->answers;
	p->batches_tracked++;
}

/* Account for the next step: add up its report, adapt the assignment to it, print it. */
static ls_status account(loop *l, double seconds)
{
	ls_node_trainer_report r;

	LS_TRY(ls_node_trainer_report_of(l->setup.trainer, l->position.step, &r));
	LS_TRY(check_loss(l, &r));
	advance(&l->position, &r);
	if (ls_async_is_on(&l->async)) {
		LS_TRY(ls_async_learn(&l->async, &r, wants_to_end(l)));
	} else {
		l->stops |= r.stops;
		LS_TRY(ls_batches_learn(&l->setup.train_batches, &r));
	}
	if (r.samples == 0)
		return LS_OK;
	LS_TRY(ls_reporter_step(&l->reporter, &l->position, seconds, &r));
	ls_hooks_step(&l->hooks, &l->setup, &l->position, seconds, &r);
	return LS_OK;
}

static ls_status account_until(loop *l, uint64_t step)
{
	if (l->position.step >= step)
		return LS_OK;
	LS_TRY(ls_node_trainer_report_of(l->setup.trainer, step - 1, &(ls_node_trainer_report){ 0 }));
	double now = ls_clock_seconds(), each = (now - l->mark) / (double)(step - l->position.step);
	l->mark = now;
	if (l->first_step_s == 0)
		l->first_step_s = now - l->started;
	while (l->position.step < step)
		LS_TRY(account(l, each));
	return LS_OK;
}

static int is_due(uint64_t every, uint64_t step)
{
	return every > 0 && step % every == 0;
}

/* By steps, else at the ends of epochs. */
static int is_test_due(const loop *l, uint64_t step, int ends_epoch, uint64_t epochs)
{
	const ls_train_options *o = l->setup.options;

	if (!l->setup.evaluator)
		return 0;
	return o->eval_steps > 0 ? is_due((uint64_t)o->eval_steps, step)
				 : ends_epoch && is_due((uint64_t)o->eval_every, epochs);
}

static int is_audit_due(const loop *l, uint64_t done)
{
	return l->setup.layout.nodes > 1 && is_due((uint64_t)l->setup.options->audit_every, done);
}

/* Something after this step looks at weights or counts, so all nodes complete it first. */
static int must_drain(const loop *l, uint64_t done, int last_in_epoch)
{
	return last_in_epoch || l->stops || done >= l->setup.total_steps || ls_saver_is_due(&l->saver, done) ||
	       is_test_due(l, done, 0, 0) || is_audit_due(l, done) || ls_async_is_due(&l->async, done) ||
	       ls_snapshots_is_due(&l->saver.memory, done) || ls_tracing_is_due(l->setup.tracing, 0);
}

/* One step begun; on one node it is complete, on several the one before is. */
static ls_status one_step(loop *l, int *last_in_epoch)
{
	ls_node_trainer *t = l->setup.trainer;
	ls_node_trainer_assignment assign;

	if (t->step == l->position.step)
		l->mark = ls_clock_seconds();
	ls_batches_begin(&l->setup.train_batches, &assign, last_in_epoch);
	assign.wants_stop = wants_to_end(l);
	if (assign.wants_stop && l->setup.layout.comm)
		ls_comm_hurry(l->setup.layout.comm);
	ls_tracing_begin_step(l->setup.tracing, t->step);
	LS_TRY(ls_node_trainer_step(t, &assign));
	ls_tracing_end_step(l->setup.tracing);
	LS_TRY(account_until(l, t->nodes == 1 ? t->step : t->step - 1));
	if (!must_drain(l, t->step, *last_in_epoch))
		return LS_OK;
	LS_TRY(ls_node_trainer_drain(t));
	LS_TRY(account_until(l, t->step));
	return ls_async_exchange(&l->async, &l->stops);
}

/* The weights as they are now, on all nodes. A request to stop abandons it: then l->test stays as it was, and all nodes
 * end here. */
static ls_status evaluate(loop *l, uint64_t epoch)
{
	const ls_assigner *assigner = &l->setup.train_batches.assigner;
	ls_ckpt_progress *p = &l->position;
	int is_due = is_test_due(l, p->step, p->epoch_step == 0, p->epoch);

	if (assigner->known)
		ls_evaluator_set_weights(l->setup.evaluator, assigner->weight);
	ls_status status = ls_best_evaluate(&l->best, p, is_due, &l->test.result);
	if (status == LS_EINTERRUPTED) {
		l->stops = 1;
		return LS_OK;
	}
	l->test.has_failed = status != LS_OK;
	LS_TRY(status);
	ls_saver_look(&l->saver); /* it may have taken long */
	l->test.is_known = 1;
	l->test.step = l->position.step;
	if (!isfinite(l->test.result.loss) &&
	    ls_setup_is_first(&l->setup)) /* the next epoch may mend it: the last one decides */
		ls_log_warning("the test loss after step %llu is %s", (unsigned long long)l->position.step,
			       isnan(l->test.result.loss) ? "NaN" : "infinite");
	LS_TRY(ls_reporter_test(&l->reporter, &l->position, epoch, &l->test.result, &l->best));
	if (l->best.is_new && l->setup.options->keep_best)
		LS_TRY(ls_saver_keep_best(&l->saver, l->best.metric->name));
	ls_hooks_test(&l->hooks, &l->position, epoch, &l->test.result, l->best.value, l->best.is_new);
	double target = l->setup.options->to_accuracy;
	l->reached = target > 0 && l->test.result.accuracy >= target;
	return LS_OK;
}

static int is_tested(const loop *l)
{
	return l->test.is_known && l->test.step == l->position.step;
}

static int is_save_due(const loop *l, int end_of_epoch)
{
	return ls_saver_is_due(&l->saver, l->position.step) || (end_of_epoch && l->setup.options->ckpt_every <= 0);
}

/* What outlasts this process: on disk, in memory, or both. */
static ls_status save(loop *l, int end_of_epoch)
{
	ls_snapshots *memory = &l->saver.memory;

	if (is_save_due(l, end_of_epoch))
		LS_TRY(ls_saver_save(&l->saver, 1));
	if (!ls_snapshots_is_due(memory, l->position.step))
		return LS_OK;
	LS_TRY(ls_snapshots_take(memory, &l->position, ls_reporter_seconds(&l->reporter)));
	return ls_reporter_snapshot(&l->reporter, l->position.step, memory->next - l->position.step, memory->cost_s);
}

/* The epoch's last step is done: move to the next epoch, checkpoint, evaluate, report. In this order a kill during the
 * evaluation costs no training. */
static ls_status end_epoch(loop *l)
{
	const ls_setup *s = &l->setup;
	ls_ckpt_progress *p = &l->position, done = *p;
	uint64_t epoch = p->epoch;

	LS_TRY(ls_reporter_epoch(&l->reporter, p));
	l->last_loss = p->loss_sum / (double)p->loss_samples;
	p->epoch++;
	p->epoch_step = p->loss_samples = p->correct = p->answers = 0;
	p->loss_sum = 0;
	LS_TRY(save(l, 1));
	if (is_test_due(l, p->step, 1, p->epoch))
		LS_TRY(evaluate(l, epoch));
	ls_reporter_epoch_line(&l->reporter, epoch, is_tested(l) ? &l->test.result : NULL);
	ls_hooks_epoch(&l->hooks, s, &done, l->reporter.epoch_s, is_tested(l) ? &l->test.result : NULL);
	return LS_OK;
}

/* A step is done that ends no epoch. */
static ls_status end_step(loop *l)
{
	const ls_ckpt_progress *p = &l->position;

	LS_TRY(save(l, 0));
	if (!is_test_due(l, p->step, 0, 0))
		return LS_OK;
	LS_TRY(evaluate(l, p->epoch));
	if (is_tested(l))
		ls_reporter_step_test_line(&l->reporter, p->step, &l->test.result);
	return LS_OK;
}

/* Steps between two looks for the run directory; each costs a call of stat(). */
enum { LOOK_EVERY = 16 };

/* On one node at once; on several all end after the same step. */
static int ends_here(loop *l)
{
	return l->setup.layout.nodes == 1 ? wants_to_end(l) : l->stops;
}

/* The run ended between a checkpoint and the record of its test: the first node has the records. At the end of a run
 * finish() tests in any case. A run with a target may have reached it already, and what is the best may not count the
 * test yet. */
static ls_status evaluate_owed(loop *l)
{
	const ls_ckpt_progress *p = &l->position;
	const ls_setup *s = &l->setup;
	int is_counted = !l->best.metric || p->eval_step == p->step;
	int owed = !l->reporter.has_test || s->options->to_accuracy > 0 || !is_counted;

	if (!s->options->resume || p->step == 0 || p->step >= s->total_steps ||
	    !is_test_due(l, p->step, p->epoch_step == 0, p->epoch))
		return LS_OK;
	LS_TRY(ls_comm_broadcast(s->layout.comm, 0, &owed, sizeof(owed), "check for a missing evaluation"));
	if (!owed)
		return LS_OK;
	if (ls_setup_is_first(s) && !l->reporter.has_test && p->epoch_step == 0)
		ls_log_note("epoch %llu was not tested before the run ended: testing it now",
			    (unsigned long long)p->epoch); /* people count from 1 */
	LS_TRY(evaluate(l, ls_last_epoch(p)));
	if (is_tested(l))
		ls_reporter_test_line(&l->reporter, &l->test.result);
	return LS_OK;
}

/* All steps are done, or the target is reached, or better weights are not to be expected. */
static int is_complete(const loop *l)
{
	return l->position.step >= l->setup.total_steps || l->reached || ls_best_has_ended(&l->best, &l->position);
}

static ls_status run_steps(loop *l)
{
	int last = 0;

	while (!is_complete(l) && !ends_here(l)) {
		LS_TRY(one_step(l, &last));
		ls_reporter_trains(&l->reporter, l->position.step);
		LS_TRY(ls_saver_collect(&l->saver, 0));
		if (is_due(LOOK_EVERY, l->position.step))
			ls_saver_look(&l->saver);
		if (l->setup.trainer->step != l->position.step)
			continue;
		if (ls_tracing_is_due(l->setup.tracing, 0))
			LS_TRY(ls_tracing_write(l->setup.tracing));
		if (is_audit_due(l, l->position.step))
			LS_TRY(ls_audit(l->setup.trainer, &l->setup.layout, l->position.step));
		if (last)
			LS_TRY(end_epoch(l));
		else
			LS_TRY(end_step(l));
	}
	LS_TRY(ls_node_trainer_drain(l->setup.trainer));
	return ls_tracing_is_due(l->setup.tracing, 1) ? ls_tracing_write(l->setup.tracing) : LS_OK;
}

/* A run that ends inside an epoch, or between two evaluations, still says how good its last weights are. */
static ls_status finish(loop *l)
{
	const ls_ckpt_progress *p = &l->position;

	if (p->loss_samples > 0)
		l->last_loss = p->loss_sum / (double)p->loss_samples;
	LS_TRY(ls_saver_collect(&l->saver, 1));
	ls_saver_look(&l->saver);
	int unsaved = l->saver.saved_step != p->step;
	LS_TRY(ls_comm_broadcast(l->setup.layout.comm, 0, &unsaved, sizeof(unsaved), "last checkpoint"));
	if (unsaved)
		LS_TRY(ls_saver_save(&l->saver, 0));
	if (is_complete(l) && l->setup.evaluator && !is_tested(l)) {
		LS_TRY(evaluate(l, ls_last_epoch(p)));
		if (is_tested(l))
			ls_reporter_test_line(&l->reporter, &l->test.result);
		if (l->best.is_new) /* a run that is prolonged must know */
			LS_TRY(ls_saver_save(&l->saver, 0));
	}
	LS_TRY(ls_reporter_best(&l->reporter, p, &l->best));
	if (l->setup.options->to_accuracy > 0 && is_tested(l))
		return ls_reporter_target(&l->reporter, p, l->test.result.accuracy);
	return LS_OK;
}

/* A model in memory gets the weights that the run is evaluated with. */
static ls_status leave_weights(loop *l, uint64_t *fingerprint)
{
	ls_node_trainer *t = l->setup.trainer;
	const ls_param_table *table = &t->graph->params;

	LS_TRY(ls_state_share_average(t, l->setup.layout.comm));
	if (t->average && l->setup.lender)
		memcpy(t->params, t->average, table->total * sizeof(*t->params));
	return ls_params_fingerprint(table, ls_node_trainer_weights(t), t->buffers, fingerprint);
}

static ls_status report(loop *l, ls_train_result *result)
{
	const ls_train_options *o = l->setup.options;
	uint64_t fingerprint = 0;

	LS_TRY(leave_weights(l, &fingerprint));
	if (ls_setup_is_first(&l->setup))
		ls_log_line("parameters xxh64 %016llx", (unsigned long long)fingerprint);
	if (result)
		*result = (ls_train_result){ .steps = (int64_t)l->position.step,
					     .fingerprint = fingerprint,
					     .train_loss = l->last_loss,
					     .test_loss = is_tested(l) ? l->test.result.loss : NAN,
					     .test_accuracy = is_tested(l) ? l->test.result.accuracy : NAN,
					     .samples_per_s = ls_rate_median(&l->reporter.rate),
					     .first_step_s = l->first_step_s,
					     .best_step = (int64_t)l->position.best_step,
					     .best = l->position.best,
					     .stopped_early = ls_best_has_ended(&l->best, &l->position) };
	LS_TRY(ls_reporter_conclude(&l->reporter, l->position.step, fingerprint));
	int is_moved = 0;
	ls_status status = ls_saver_report(&l->saver, &is_moved);
	l->together |= is_moved;
	LS_TRY(status);
	if (l->hooks.status != LS_OK) {
		l->together = 1;
		return ls_fail(l->hooks.status, "the program's %s hook ended the run after step %llu of %llu%s%s%s",
			       l->hooks.which, (unsigned long long)l->position.step,
			       (unsigned long long)l->setup.total_steps, o->run ? "; continue with options.run " : "",
			       o->run ? o->run : "", o->run ? " options.resume" : "");
	}
	if (is_complete(l)) {
		if (is_tested(l) && !isfinite(l->test.result.loss))
			return ls_fail(LS_ENUMERIC,
				       "the trained weights give no finite loss on the test set: %s; " LS_DIVERGED,
				       ls_saver_kept(&l->saver));
		if (!l->setup.evaluator || is_tested(l))
			return LS_OK;
		return ls_fail(LS_EINTERRUPTED, "stopped after the last step, %llu, before its evaluation was done",
			       (unsigned long long)l->position.step);
	}
	return ls_fail(LS_EINTERRUPTED, "stopped after step %llu of %llu%s%s%s", (unsigned long long)l->position.step,
		       (unsigned long long)l->setup.total_steps, o->run ? "; continue with options.run " : "",
		       o->run ? o->run : "", o->run ? " options.resume" : "");
}

static int is_restart(const ls_train_options *o)
{
	return o->elastic && o->resume;
}

/* A start of an elastic run: the timeline gets it, and where faults are injected, its fault. Nodes then meet first, so
 * that all count from the same moment. */
static ls_status begin_start(loop *l)
{
	const ls_layout *layout = &l->setup.layout;
	uint64_t start = l->saver.memory.generation;
	ls_faults faults;

	LS_TRY(ls_faults_given(&faults));
	ls_fault fault = ls_faults_draw(&faults, start, layout->nodes);
	if (faults.every > 0)
		LS_TRY(ls_comm_barrier(layout->comm, "begin of a start with faults"));
	if (faults.every > 0 && start > faults.count)
		l->stop_after = l->position.step;
	LS_TRY(ls_reporter_start(&l->reporter, l->saver.lock.generation, l->saver.memory.is_used, &fault));
	return fault.node == layout->node ? ls_fault_arm(fault.after) : LS_OK; /* once the timeline has the start */
}

static ls_status run(loop *l, ls_train_result *result)
{
	/* one link after the other: where a lost node is waited for, too long */
	LS_TRY(ls_banner(&l->setup.layout, l->setup.trainer, !is_restart(l->setup.options)));
	if (ls_setup_is_first(&l->setup))
		ls_layout_note_modes(&l->setup.layout);
	l->together = 1;
	LS_TRY(ls_saver_begin(&l->saver));
	l->together = 0;
	if (ls_setup_is_first(&l->setup) && l->setup.options->resume && l->position.step >= l->setup.total_steps)
		ls_log_note("the run is complete: %llu step%s done", (unsigned long long)l->position.step,
			    ls_plural(l->position.step, "s"));
	if (l->position.step < l->setup.total_steps)
		ls_summary(&l->setup, l->position.step);
	ls_node_trainer_start_at(l->setup.trainer, l->position.step, l->position.batches_tracked);
	if (l->position.step < l->setup.total_steps)
		LS_TRY(ls_setup_batches(&l->setup, l->position.epoch, l->position.epoch_step,
					l->setup.total_steps - l->position.step, l->saver.lock.generation));
	LS_TRY(ls_reporter_begin(&l->reporter, &l->setup, l->position.step, l->started));
	if (l->saver.memory.is_used) /* no checkpoint says how long the steps before have taken */
		l->reporter.earlier_s = l->saver.memory.found.seconds;
	if (l->setup.options->elastic)
		LS_TRY(begin_start(l));
	LS_TRY(evaluate_owed(l));
	ls_status status = run_steps(l);
	LS_TRY(ls_saver_rescue(&l->saver, status, l->test.has_failed));
	status = finish(l);
	LS_TRY(ls_saver_rescue(&l->saver, status, l->test.has_failed));
	LS_TRY(ls_comm_barrier(l->setup.layout.comm, "end of the run")); /* others may still need our messages */
	return report(l, result);
}

static ls_status run_node(loop *l, const ls_train_options *options, ls_comm *comm, ls_train_result *result,
			  int *together)
{
	ls_status status = ls_setup_make(&l->setup, options, comm);

	if (status == LS_OK)
		status = ls_best_begin(&l->best, &l->setup);
	*together = status != LS_OK;
	if (status != LS_OK)
		return status;
	if (l->setup.evaluator)
		ls_evaluator_set_stop(l->setup.evaluator, is_stopping, l);
	if (!options->plan_memory)
		status = run(l, result);
	else if (result)
		*result = (ls_train_result){ .train_loss = NAN, .test_loss = NAN, .test_accuracy = NAN };
	*together = l->together || status == LS_EMISMATCH || (status == LS_ENUMERIC && !l->async.found_alone) ||
		    status == LS_EINTERRUPTED;
	return status;
}

/* Another node may be lost after the run is complete: the process must fail, but nothing of the run is. */
static ls_status part(ls_comm *comm, const ls_train_options *options, ls_status status, int together)
{
	ls_status end = ls_comm_finalize(comm, status, together);

	if (status != LS_OK || end == LS_OK || options->plan_memory)
		return end;
	return ls_fail(end, "%s; the run is complete%s", ls_last_error(), options->run ? " and saved" : "");
}

static ls_status train_node(const ls_train_options *options, ls_comm *comm, const ls_stop_watch *watch,
			    ls_train_result *result)
{
	loop l = { .started = ls_clock_seconds(), .watch = *watch, .stop_after = UINT64_MAX };
	int together = 0;

	ls_hooks_init(&l.hooks, options->hooks);
	l.async.setup = &l.setup;
	l.saver = (ls_saver){ .setup = &l.setup,
			      .reporter = &l.reporter,
			      .hooks = &l.hooks,
			      .position = &l.position,
			      .lock = LS_RUN_LOCK_INIT };
	ls_status status = run_node(&l, options, comm, result, &together);

	status = ls_saver_end(&l.saver, status);
	if (comm)
		status = part(comm, options, status, together);
	ls_best_end(&l.best);
	ls_reporter_end(&l.reporter);
	ls_run_lock_drop(&l.saver.lock);
	ls_setup_release(&l.setup);
	return status;
}

ls_status ls_train_node(const ls_train_options *options, ls_comm *comm, ls_train_result *result)
{
	ls_stop_watch watch;

	LS_TRY(ls_stop_watch_begin(&watch, options->stop));
	return train_node(options, comm, &watch, result);
}

/* To start takes seconds, in which a request to stop may come. */
static ls_status train_among(const ls_train_options *options, int nodes, const ls_stop_watch *watch,
			     ls_train_result *result)
{
	ls_comm *comm = NULL;

	LS_TRY(ls_comm_init(&comm, nodes, (double)options->timeout));
	return train_node(options, comm, watch, result);
}

ls_status ls_train(const ls_train_options *options, ls_train_result *result)
{
	ls_train_options own = LS_TRAIN_OPTIONS_INIT;
	ls_train_hooks hooks = LS_TRAIN_HOOKS_INIT;
	ls_stop_watch watch;
	int nodes = ls_mpi_launched();

	LS_TRY(LS_OPTIONS_TAKE_FILLED(&own, options, label_smoothing, "LS_TRAIN_OPTIONS_INIT"));
	if (own.hooks)
		LS_TRY(LS_OPTIONS_TAKE(&hooks, own.hooks, log, "LS_TRAIN_HOOKS_INIT"));
	own.hooks = own.hooks ? &hooks : NULL;
	LS_TRY(ls_stop_watch_begin(&watch, own.stop));
	const ls_log_sink sink = ls_hooks_sink(own.hooks, own.quiet), *before = ls_log_use(&sink);
	ls_status status =
		nodes > 1 ? train_among(&own, nodes, &watch, result) : train_node(&own, NULL, &watch, result);

	ls_log_use(before);
	return status;
}
