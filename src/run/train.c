/*
 * train.c - the step loop: the one place where data, model, optimizer, checkpoints and metrics meet.
 *
 *     setup -> (resume, evaluate what is owed) -> { step -> account -> report -> (checkpoint) }
 *           -> epoch: checkpoint, evaluate -> ...
 *
 * `position` says where the next step is that is not accounted for. On one node that is the next one; on several the
 * step under way overlaps the end of the one before, until something needs whole weights and all nodes settle: then
 * what is saved and what is resumed are the same thing.
 */
#include <lockstep/train.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/names.h"
#include "cluster/launched.h"
#include "comm/collectives.h"
#include "comm/init.h"
#include "run/banner.h"
#include "run/node.h"
#include "run/reporter.h"
#include "run/run_dir.h"
#include "run/summary.h"
#include "trainer/audit.h"

static atomic_int stop_requested;

void ls_train_stop(void)
{
	atomic_store(&stop_requested, 1);
}

static int is_stopping(void)
{
	return atomic_load(&stop_requested);
}

/* With staleness there is no common step: what nodes agree on, they agree on when they meet. */
typedef struct tidings {
	int64_t microbatches; /* of this node since the last meeting */
	double seconds;       /* its devices computed them, summed over micro-batches */
	int64_t stops;        /* somebody wants to end */
} tidings;

typedef struct loop {
	ls_setup setup;
	ls_run_lock lock;
	ls_ckpt_progress position;
	ls_reporter reporter;
	ls_eval_result test;
	int tested, test_failed;
	int stops;            /* all nodes have agreed to end here */
	tidings since;        /* staleness: what this node has to tell when all meet */
	int found_alone;      /* staleness: what this node ends for, others have not seen */
	int together;         /* a failure now is everybody's */
	uint64_t tested_step; /* of the weights that `test` is about */
	uint64_t saved_step;  /* of the newest checkpoint written or resumed from */
	double started, first_step_s, last_loss;
	double mark;        /* when the last step was done */
	ls_run_where where; /* the run directory is; only the first node looks */
	int restored;       /* made anew after it was removed */
	const char *was;    /* its name before it was moved */
	char place[4096];   /* and since */
} loop;

#define NOTHING_SAVED UINT64_MAX /* any more: the directory was removed */

/* A run whose directory is not where it was ends with the step it is at: what it would write there, nobody would find.
 */
static void look_for_run(loop *l)
{
	const char *run = l->setup.options->run;

	if (!run || !ls_setup_is_first(&l->setup) || l->where != LS_RUN_THERE)
		return;
	l->where = ls_run_lock_where(&l->lock, run, l->place, sizeof(l->place));
	if (l->where == LS_RUN_THERE)
		return;
	ls_log_warning("the run directory %s was %s%s during the run: stopping", run,
		       l->where == LS_RUN_MOVED ? "moved to " : "removed", l->place);
	l->was = run;
	if (l->where == LS_RUN_MOVED)
		l->setup.resolved.run = l->place;
	else
		l->saved_step = NOTHING_SAVED;
}

static int wants_to_end(const loop *l)
{
	return is_stopping() || l->where != LS_RUN_THERE;
}

static const char *what_is_kept(const loop *l)
{
	if (!l->setup.options->run)
		return "there is no run directory, so nothing is kept";
	if (l->where == LS_RUN_REMOVED && l->saved_step == NOTHING_SAVED)
		return "the run directory was removed, and nothing is kept";
	return l->saved_step == 0 ? "no checkpoint had been written yet" : "the last checkpoint is kept";
}

#define DIVERGED "try a smaller --lr, --warmup or --clip-norm"

/* No update is to blame for the loss of the weights that a run starts with. */
static ls_status useless_start(const loop *l, double loss)
{
	const char *init = l->setup.options->init;

	return ls_fail(LS_ENUMERIC, "the loss is %s at step 1, before any update: %s%s give no finite loss on %s",
		       isnan(loss) ? "NaN" : "infinite", init ? "the weights of --init " : "the initial weights",
		       init ? init : "", ls_dataset_describe(l->setup.train_set)->name);
}

static ls_status not_finite(const loop *l, double loss)
{
	if (l->position.step == 0 && l->setup.layout.staleness == 0)
		return useless_start(l, loss);
	return ls_fail(LS_ENUMERIC, "the loss became %s at step %llu (epoch %llu): %s; " DIVERGED,
		       isnan(loss) ? "NaN" : "infinite", (unsigned long long)l->position.step + 1,
		       (unsigned long long)l->position.epoch + 1, what_is_kept(l));
}

/* `epoch` is that of the next step. */
static uint64_t epoch_of_last_step(const ls_ckpt_progress *p)
{
	return p->epoch_step > 0 || p->epoch == 0 ? p->epoch : p->epoch - 1;
}

static void advance(ls_ckpt_progress *p, const ls_trainer_report *r)
{
	p->step++;
	p->epoch_step++;
	p->loss_sum += r->loss;
	p->loss_samples += (uint64_t)r->samples;
	p->correct += (uint64_t)r->correct;
	p->batches_tracked++;
}

/* A worker's report tells of all samples since its last one; a server has none. */
static ls_status account_apart(loop *l, double seconds, const ls_trainer_report *r)
{
	const ls_layout *layout = &l->setup.layout;
	double loss = r->loss / (double)r->samples;

	if (!ls_layout_is_server(layout) && r->samples > 0 && !isfinite(loss)) {
		l->found_alone = 1;
		return not_finite(l, loss);
	}
	advance(&l->position, r);
	l->since.stops |= r->stops || wants_to_end(l);
	l->since.microbatches += r->microbatches[layout->node];
	l->since.seconds += r->node_s[layout->node];
	LS_TRY(ls_batches_skip(&l->setup.train_batches));
	return r->samples > 0 ? ls_reporter_step(&l->reporter, &l->position, seconds, r) : LS_OK;
}

/* The next step that is not accounted for: what it came to counts, is learned from and shown. */
static ls_status account(loop *l, double seconds)
{
	ls_trainer_report r;

	LS_TRY(ls_trainer_report_of(l->setup.trainer, l->position.step, &r));
	if (l->setup.layout.staleness > 0)
		return account_apart(l, seconds, &r);
	double loss = r.loss / (double)r.samples;
	if (!isfinite(loss))
		return not_finite(l, loss);
	advance(&l->position, &r);
	l->stops |= r.stops;
	LS_TRY(ls_batches_learn(&l->setup.train_batches, &r));
	return ls_reporter_step(&l->reporter, &l->position, seconds, &r);
}

static ls_status account_until(loop *l, uint64_t step)
{
	if (l->position.step >= step)
		return LS_OK;
	LS_TRY(ls_trainer_report_of(l->setup.trainer, step - 1, &(ls_trainer_report){ 0 }));
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

static int is_audit_due(const loop *l, uint64_t done)
{
	return l->setup.layout.nodes > 1 && is_due((uint64_t)l->setup.options->audit_every, done);
}

/* Steps after which nodes without a common step meet for the first time, to learn of each other's speed. */
enum { FIRST_MEETING = 8 };

static int is_meeting_due(const loop *l, uint64_t done)
{
	const ls_layout *layout = &l->setup.layout;
	return layout->staleness > 0 && layout->share == LS_SHARE_AUTO &&
	       done == l->setup.trainer->first_step + FIRST_MEETING;
}

static void learn_together(loop *l, const tidings *all, int64_t *microbatches, double *seconds)
{
	for (int n = 0; n < l->setup.layout.nodes; n++) {
		microbatches[n] = all[n].microbatches;
		seconds[n] = all[n].seconds;
		l->stops |= all[n].stops != 0;
	}
	ls_batches_learn_together(&l->setup.train_batches, microbatches, seconds);
	l->since = (tidings){ 0 };
}

static ls_status meet(loop *l)
{
	ls_layout *layout = &l->setup.layout;
	size_t nodes = (size_t)layout->nodes;

	if (layout->staleness == 0)
		return LS_OK;
	tidings *all = calloc(nodes, sizeof(*all));
	int64_t *microbatches = calloc(nodes, sizeof(*microbatches));
	double *seconds = calloc(nodes, sizeof(*seconds));
	ls_status status =
		!all || !microbatches || !seconds
			? ls_fail(LS_EMEMORY, "no memory for a meeting of %zu nodes", nodes)
			: ls_comm_allgather(layout->comm, &l->since, sizeof(l->since), all, "speeds and wishes");
	if (status == LS_OK)
		learn_together(l, all, microbatches, seconds);
	free(seconds);
	free(microbatches);
	free(all);
	return status;
}

/* Something after this step looks at weights or counts, so all nodes complete it first. */
static int must_settle(const loop *l, uint64_t done, int last_in_epoch)
{
	const ls_train_options *o = l->setup.options;
	return last_in_epoch || l->stops || done >= l->setup.total_steps || is_due((uint64_t)o->ckpt_every, done) ||
	       is_audit_due(l, done) || is_meeting_due(l, done) || ls_tracing_is_due(l->setup.tracing, 0);
}

/* One step begun; on one node it is complete, on several the one before is. */
static ls_status one_step(loop *l, int *last_in_epoch)
{
	ls_trainer *t = l->setup.trainer;
	ls_trainer_assignment assign;

	if (t->step == l->position.step)
		l->mark = ls_clock_seconds();
	ls_batches_begin(&l->setup.train_batches, &assign, last_in_epoch);
	assign.wants_stop = wants_to_end(l);
	if (assign.wants_stop && l->setup.layout.comm)
		ls_comm_hurry(l->setup.layout.comm);
	ls_tracing_begin_step(l->setup.tracing, t->step);
	LS_TRY(ls_trainer_step(t, &assign));
	ls_tracing_end_step(l->setup.tracing);
	LS_TRY(account_until(l, t->nodes == 1 ? t->step : t->step - 1));
	if (!must_settle(l, t->step, *last_in_epoch))
		return LS_OK;
	LS_TRY(ls_trainer_drain(t));
	LS_TRY(account_until(l, t->step));
	return meet(l);
}

/* The first node looks, for all. */
static ls_status look_at_weights(loop *l, int *usable)
{
	const ls_trainer *t = l->setup.trainer;

	*usable = 1;
	if (l->setup.probe) {
		LS_TRY(ls_evaluator_probe(l->setup.probe, t->params, t->buffers, usable));
		*usable = *usable && ls_trainer_finite(t);
	}
	return ls_comm_broadcast(l->setup.layout.comm, 0, usable, sizeof(*usable), "look at the weights");
}

static ls_status restore(loop *l)
{
	LS_TRY(ls_keep_restore(&l->setup, &l->lock));
	LS_TRY(ls_metrics_restore(l->reporter.metrics, l->setup.options->run, l->position.step));
	l->restored = 1;
	return LS_OK;
}

/* On the first node, which has all of it by now. */
static ls_status write_checkpoint(loop *l)
{
	uint64_t fingerprint = 0;

	if (l->where == LS_RUN_REMOVED && !l->restored)
		LS_TRY(restore(l));
	LS_TRY(ls_metrics_flush(l->reporter.metrics)); /* what led to a checkpoint outlasts a power cut as it does */
	LS_TRY(ls_keep_save(&l->setup, &l->position, &fingerprint));
	return ls_reporter_checkpoint(&l->reporter, l->position.step, fingerprint);
}

/* Once more where the directory is by now, if it was moved or removed while it was written to. */
static ls_status write_checkpoint_somewhere(loop *l)
{
	ls_run_where where = l->where;
	ls_status status = write_checkpoint(l);

	if (status == LS_OK || where != LS_RUN_THERE)
		return status;
	look_for_run(l);
	return l->where == LS_RUN_THERE ? status : write_checkpoint(l);
}

/* A loss can still be finite when the weights it led to are useless: those must not replace a good checkpoint. */
static ls_status save(loop *l)
{
	int usable;

	if (!l->setup.options->run)
		return LS_OK;
	look_for_run(l);
	LS_TRY(look_at_weights(l, &usable));
	if (!usable)
		return ls_fail(LS_ENUMERIC, "the weights of step %llu (epoch %llu) give no finite loss: %s; " DIVERGED,
			       (unsigned long long)l->position.step,
			       (unsigned long long)epoch_of_last_step(&l->position) + 1, what_is_kept(l));
	LS_TRY(ls_keep_gather(&l->setup));
	if (ls_setup_is_first(&l->setup))
		LS_TRY(write_checkpoint_somewhere(l));
	l->saved_step = l->position.step;
	return LS_OK;
}

/* The weights as they are now, on all nodes. Somebody who wants to stop does not wait for it: then l->test stays as it
 * was, and all end here. */
static ls_status evaluate(loop *l, uint64_t epoch)
{
	const ls_trainer *t = l->setup.trainer;
	const ls_assigner *assigner = &l->setup.train_batches.assigner;

	if (assigner->known)
		ls_evaluator_set_weights(l->setup.evaluator, assigner->weight);
	ls_status status = ls_evaluator_run(l->setup.evaluator, t->params, t->buffers, NULL, NULL, &l->test);
	if (status == LS_EINTERRUPTED) {
		l->stops = 1;
		return LS_OK;
	}
	l->test_failed = status != LS_OK;
	LS_TRY(status);
	l->tested = 1;
	l->tested_step = l->position.step;
	if (!isfinite(l->test.loss) &&
	    ls_setup_is_first(&l->setup)) /* the next epoch may mend it: the last one decides */
		ls_log_warning("the test loss after step %llu is %s", (unsigned long long)l->position.step,
			       isnan(l->test.loss) ? "NaN" : "infinite");
	return ls_reporter_test(&l->reporter, l->position.step, epoch, &l->test);
}

/* On one node, data that cannot be read any more leave the weights as they were after the last step: what has been
 * trained is saved before the run ends. */
static ls_status rescue(loop *l, ls_status status)
{
	const ls_trainer *t = l->setup.trainer;
	char why[1024];

	if (status == LS_OK || l->setup.layout.nodes > 1 || !l->setup.options->run ||
	    !(atomic_load(&t->data_failed) || l->test_failed) || t->step != l->position.step)
		return status;
	snprintf(why, sizeof(why), "%s", ls_last_error());
	if (l->saved_step != l->position.step) {
		if (!ls_trainer_finite(t) || write_checkpoint_somewhere(l) != LS_OK)
			return ls_fail(status, "%s; %s", why, what_is_kept(l));
		l->saved_step = l->position.step;
	}
	return ls_fail(status, "%s; step %llu is saved: with the data whole again, continue with --run %s --resume",
		       why, (unsigned long long)l->position.step, l->setup.options->run);
}

static int is_tested(const loop *l)
{
	return l->tested && l->tested_step == l->position.step;
}

static int is_save_due(const loop *l, int end_of_epoch)
{
	uint64_t every = (uint64_t)l->setup.options->ckpt_every;
	return every > 0 ? is_due(every, l->position.step) : end_of_epoch;
}

/* The epoch's last step is done: move to the next epoch, checkpoint, evaluate, report. In this order a kill during the
 * evaluation costs no training. */
static ls_status end_epoch(loop *l)
{
	const ls_setup *s = &l->setup;
	ls_ckpt_progress *p = &l->position;
	uint64_t epoch = p->epoch;

	LS_TRY(ls_reporter_epoch(&l->reporter, p));
	l->last_loss = p->loss_sum / (double)p->loss_samples;
	*p = (ls_ckpt_progress){ .step = p->step, .epoch = epoch + 1, .batches_tracked = p->batches_tracked };
	if (is_save_due(l, 1))
		LS_TRY(save(l));
	if (s->evaluator && (epoch + 1) % (uint64_t)s->options->eval_every == 0)
		LS_TRY(evaluate(l, epoch));
	ls_reporter_epoch_line(&l->reporter, epoch, is_tested(l) ? &l->test : NULL);
	return LS_OK;
}

/* Steps between two looks for the run directory; each costs a call of stat(). */
enum { LOOK_EVERY = 16 };

/* On one node at once; on several all end after the same step. */
static int ends_here(const loop *l)
{
	return l->setup.layout.nodes == 1 ? wants_to_end(l) : l->stops;
}

/* The run ended between an epoch's checkpoint and the record of its test: the first node has the records. At the end of
 * a run finish() tests in any case. */
static ls_status evaluate_owed(loop *l)
{
	const ls_ckpt_progress *p = &l->position;
	const ls_setup *s = &l->setup;
	int owed = p->step > 0 && p->step < s->total_steps && p->epoch_step == 0 && !l->reporter.has_test;

	if (!s->options->resume || !s->evaluator || p->epoch % (uint64_t)s->options->eval_every != 0)
		return LS_OK;
	LS_TRY(ls_comm_broadcast(s->layout.comm, 0, &owed, sizeof(owed), "evaluation that is owed"));
	if (!owed)
		return LS_OK;
	if (ls_setup_is_first(s))
		ls_log_note("epoch %llu was not tested before the run ended: testing it now",
			    (unsigned long long)p->epoch); /* people count from 1 */
	LS_TRY(evaluate(l, p->epoch - 1));
	if (is_tested(l))
		ls_reporter_test_line(&l->reporter, &l->test);
	return LS_OK;
}

static ls_status run_steps(loop *l)
{
	int last = 0;

	while (l->position.step < l->setup.total_steps && !ends_here(l)) {
		LS_TRY(one_step(l, &last));
		if (is_due(LOOK_EVERY, l->position.step))
			look_for_run(l);
		if (l->setup.trainer->step != l->position.step)
			continue;
		if (ls_tracing_is_due(l->setup.tracing, 0))
			LS_TRY(ls_tracing_write(l->setup.tracing));
		if (is_audit_due(l, l->position.step))
			LS_TRY(ls_audit(l->setup.trainer, &l->setup.layout, l->position.step));
		if (last)
			LS_TRY(end_epoch(l));
		else if (is_save_due(l, 0))
			LS_TRY(save(l));
	}
	LS_TRY(ls_trainer_drain(l->setup.trainer));
	return ls_tracing_is_due(l->setup.tracing, 1) ? ls_tracing_write(l->setup.tracing) : LS_OK;
}

/* A run that ends inside an epoch, or between two evaluations, still says how good its last weights are. */
static ls_status finish(loop *l)
{
	const ls_ckpt_progress *p = &l->position;

	if (p->loss_samples > 0)
		l->last_loss = p->loss_sum / (double)p->loss_samples;
	look_for_run(l);
	int unsaved = l->saved_step != p->step;
	LS_TRY(ls_comm_broadcast(l->setup.layout.comm, 0, &unsaved, sizeof(unsaved), "last checkpoint"));
	if (unsaved)
		LS_TRY(save(l));
	if (p->step < l->setup.total_steps || !l->setup.evaluator || is_tested(l))
		return LS_OK;
	LS_TRY(evaluate(l, epoch_of_last_step(p)));
	if (is_tested(l))
		ls_reporter_test_line(&l->reporter, &l->test);
	return LS_OK;
}

/* A run whose directory was moved or removed has saved what it could, and fails: on all nodes, for the same reason. */
static ls_status report_place(loop *l)
{
	ls_run_where where = l->where;
	const char *run = l->setup.options->run;
	unsigned long long step = l->position.step;

	LS_TRY(ls_comm_broadcast(l->setup.layout.comm, 0, &where, sizeof(where), "place of the run"));
	if (where == LS_RUN_THERE)
		return LS_OK;
	l->together = 1;
	if (!ls_setup_is_first(&l->setup))
		return ls_fail(LS_EIO, "the run directory was %s during the run: stopped after step %llu",
			       where == LS_RUN_MOVED ? "moved" : "removed", step);
	if (where == LS_RUN_MOVED)
		return ls_fail(LS_EIO,
			       "the run directory %s was moved to %s during the run: stopped after step %llu, which "
			       "is saved there; continue with --run %s --resume",
			       l->was, run, step, run);
	return ls_fail(
		LS_EIO,
		"the run directory %s was removed during the run: stopped after step %llu; the directory "
		"was created again with run.json, metrics.jsonl and a checkpoint of that step, earlier checkpoints are "
		"lost; continue with --run %s --resume",
		run, step, run);
}

static ls_status report(loop *l, ls_train_result *result)
{
	const ls_train_options *o = l->setup.options;
	uint64_t fingerprint = 0;

	LS_TRY(ls_trainer_fingerprint(l->setup.trainer, &fingerprint));
	if (ls_setup_is_first(&l->setup))
		ls_log_line("parameters xxh64 %016llx", (unsigned long long)fingerprint);
	if (result)
		*result = (ls_train_result){ .steps = (int64_t)l->position.step,
					     .fingerprint = fingerprint,
					     .train_loss = l->last_loss,
					     .test_loss = is_tested(l) ? l->test.loss : NAN,
					     .test_accuracy = is_tested(l) ? l->test.accuracy : NAN,
					     .samples_per_s = ls_rate_median(&l->reporter.rate),
					     .first_step_s = l->first_step_s };
	LS_TRY(ls_reporter_conclude(&l->reporter, l->position.step, fingerprint));
	LS_TRY(report_place(l));
	if (l->position.step >= l->setup.total_steps) {
		if (is_tested(l) && !isfinite(l->test.loss))
			return ls_fail(LS_ENUMERIC,
				       "the trained weights give no finite loss on the test set: %s; " DIVERGED,
				       what_is_kept(l));
		if (!l->setup.evaluator || is_tested(l))
			return LS_OK;
		return ls_fail(LS_EINTERRUPTED, "stopped after the last step, %llu, before its evaluation was done",
			       (unsigned long long)l->position.step);
	}
	return ls_fail(LS_EINTERRUPTED, "stopped after step %llu of %llu%s%s%s", (unsigned long long)l->position.step,
		       (unsigned long long)l->setup.total_steps, o->run ? "; continue with --run " : "",
		       o->run ? o->run : "", o->run ? " --resume" : "");
}

static ls_status run(loop *l, ls_train_result *result)
{
	LS_TRY(ls_banner(&l->setup.layout, l->setup.trainer));
	if (ls_setup_is_first(&l->setup))
		ls_layout_note_modes(&l->setup.layout);
	l->together = 1;
	LS_TRY(ls_keep_begin(&l->setup, &l->lock, &l->position));
	l->together = 0;
	l->saved_step = l->position.step;
	if (ls_setup_is_first(&l->setup) && l->setup.options->resume && l->position.step >= l->setup.total_steps)
		ls_log_note("the run is complete: %llu step%s done", (unsigned long long)l->position.step,
			    ls_plural(l->position.step, "s"));
	if (l->position.step < l->setup.total_steps)
		ls_summary(&l->setup, l->position.step);
	ls_trainer_start_at(l->setup.trainer, l->position.step, l->position.batches_tracked);
	if (l->position.step < l->setup.total_steps)
		LS_TRY(ls_setup_batches(&l->setup, l->position.epoch, l->position.epoch_step,
					l->setup.total_steps - l->position.step));
	LS_TRY(ls_reporter_begin(&l->reporter, &l->setup, l->position.step));
	LS_TRY(evaluate_owed(l));
	LS_TRY(rescue(l, run_steps(l)));
	LS_TRY(rescue(l, finish(l)));
	LS_TRY(ls_comm_barrier(l->setup.layout.comm, "end of the run")); /* others may still need our messages */
	return report(l, result);
}

static ls_status run_node(loop *l, const ls_train_options *options, ls_comm *comm, ls_train_result *result,
			  int *together)
{
	ls_status status = ls_setup_make(&l->setup, options, comm);

	*together = status != LS_OK;
	if (status != LS_OK)
		return status;
	if (l->setup.evaluator)
		ls_evaluator_set_stop(l->setup.evaluator, is_stopping);
	if (!options->plan_memory)
		status = run(l, result);
	else if (result)
		*result = (ls_train_result){ .train_loss = NAN, .test_loss = NAN, .test_accuracy = NAN };
	*together = l->together || status == LS_EMISMATCH || (status == LS_ENUMERIC && !l->found_alone) ||
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

ls_status ls_train_node(const ls_train_options *options, ls_comm *comm, ls_train_result *result)
{
	loop l = { .started = ls_clock_seconds(), .lock = LS_RUN_LOCK_INIT };
	int together = 0;
	ls_status status = run_node(&l, options, comm, result, &together);

	if (comm)
		status = part(comm, options, status, together);
	ls_reporter_end(&l.reporter);
	ls_run_lock_drop(&l.lock);
	ls_setup_release(&l.setup);
	return status;
}

static ls_status train_among(const ls_train_options *options, int nodes, ls_train_result *result)
{
	ls_comm *comm = NULL;

	LS_TRY(ls_comm_init(&comm, nodes, (double)options->timeout));
	return ls_train_node(options, comm, result);
}

ls_status ls_train(const ls_train_options *options, ls_train_result *result)
{
	ls_log_level level = ls_log_get_level();
	int nodes = ls_mpi_launched();

	atomic_store(&stop_requested, 0);
	if (options->quiet)
		ls_log_set_level(LS_LOG_ERROR);
	ls_status status = nodes > 1 ? train_among(options, nodes, result) : ls_train_node(options, NULL, result);
	ls_log_set_level(level);
	return status;
}
