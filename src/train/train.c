/*
 * train.c - the step loop: the one place where data, model, optimizer, checkpoints and metrics meet.
 *
 *     setup -> (resume) -> { leaves of a step -> update -> watch -> (checkpoint) } -> epoch: checkpoint, evaluate ->
 * ...
 *
 * `position` always says where the *next* step is, so that what is saved and what is resumed are the same thing.
 */
#include <lockstep/train.h>
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "train/keep.h"
#include "train/watch.h"

static atomic_int stop_requested;

void ls_train_stop(void)
{
	atomic_store(&stop_requested, 1);
}

static int is_stopping(void)
{
	return atomic_load(&stop_requested);
}

typedef struct loop {
	ls_setup setup;
	ls_run_lock lock;
	ls_ckpt_progress position;
	ls_watch watch;
	ls_loader *loader;
	ls_eval_result test;
	int tested;
	uint64_t tested_step; /* of the weights that `test` is about */
	uint64_t saved_step;  /* of the newest checkpoint written or resumed from */
	double started, first_step_s, last_loss;
} loop;

static ls_status open_loader(loop *l)
{
	const ls_setup *s = &l->setup;
	ls_loader_options options = { .seed = s->options->seed,
				      .shuffle = 1,
				      .leaf = s->batches.leaf,
				      .global_batch = s->batches.global,
				      .start_epoch = l->position.epoch,
				      .start_step = l->position.epoch_step };
	return ls_loader_new(&l->loader, s->train_set, &options);
}

/* All leaves of the next step. */
static ls_status gather_step(loop *l, int *last_in_epoch)
{
	const ls_leaf *leaf = NULL;
	do {
		LS_TRY(ls_loader_next(l->loader, &leaf));
		ls_trainer_leaf(l->setup.trainer, leaf);
	} while (!leaf->last_in_step);
	*last_in_epoch = leaf->last_in_epoch;
	return LS_OK;
}

static const char *what_is_kept(const loop *l)
{
	if (l->setup.options->run == NULL)
		return "there is no run directory, so nothing is kept";
	return l->saved_step == 0 ? "no checkpoint had been written yet" : "the last checkpoint is kept";
}

#define DIVERGED "try a smaller --lr, --warmup or --clip-norm"

static ls_status not_finite(const loop *l, double loss)
{
	return ls_fail(LS_ENUMERIC, "the loss became %s at step %llu (epoch %llu): %s; " DIVERGED,
		       isnan(loss) ? "NaN" : "infinite", (unsigned long long)l->position.step + 1,
		       (unsigned long long)l->position.epoch, what_is_kept(l));
}

/* Called before the update, which clears the trainer's sums. */
static void advance(ls_ckpt_progress *p, const ls_trainer *t)
{
	p->step++;
	p->epoch_step++;
	p->loss_sum += t->loss;
	p->loss_samples += (uint64_t)t->samples;
	p->correct += (uint64_t)t->correct;
	p->batches_tracked = t->batches_tracked + 1;
}

static ls_status one_step(loop *l, int *last_in_epoch)
{
	ls_trainer *t = l->setup.trainer;
	double start = ls_clock_seconds();

	LS_TRY(gather_step(l, last_in_epoch));
	int64_t samples = t->samples;
	double loss = t->loss / (double)samples;
	if (!isfinite(loss))
		return not_finite(l, loss);
	advance(&l->position, t);
	ls_trainer_update(t);
	double now = ls_clock_seconds();
	if (l->first_step_s == 0)
		l->first_step_s = now - l->started;
	return ls_watch_step(&l->watch, &l->position, now - start, samples, loss);
}

/* A loss can still be finite when the weights it led to are useless: those must not replace a good checkpoint. */
static ls_status save(loop *l)
{
	const ls_trainer *t = l->setup.trainer;
	int usable = 1;

	if (l->setup.options->run == NULL)
		return LS_OK;
	LS_TRY(ls_evaluator_probe(l->setup.probe, t->params, t->buffers, &usable));
	if (!usable || !ls_trainer_finite(t))
		return ls_fail(LS_ENUMERIC, "the weights of step %llu (epoch %llu) give no finite loss: %s; " DIVERGED,
			       (unsigned long long)l->position.step, (unsigned long long)l->position.epoch,
			       what_is_kept(l));
	LS_TRY(ls_keep_save(&l->setup, &l->position));
	l->saved_step = l->position.step;
	return ls_metrics_flush(l->watch.metrics);
}

/* The weights as they are now. Somebody who wants to stop does not wait for it: then l->test stays as it was. */
static ls_status evaluate(loop *l, uint64_t epoch)
{
	const ls_trainer *t = l->setup.trainer;
	ls_status status = ls_evaluator_run(l->setup.evaluator, t->params, t->buffers, NULL, NULL, &l->test);

	if (status == LS_EINTERRUPTED)
		return LS_OK;
	LS_TRY(status);
	l->tested = 1;
	l->tested_step = l->position.step;
	return ls_watch_test(&l->watch, l->position.step, epoch, &l->test);
}

static int is_tested(const loop *l)
{
	return l->tested && l->tested_step == l->position.step;
}

static int is_due(const loop *l, int end_of_epoch)
{
	uint64_t every = (uint64_t)l->setup.options->ckpt_every;
	return every > 0 ? l->position.step % every == 0 : end_of_epoch;
}

/* The epoch's last step is done: move to the next epoch, checkpoint, evaluate, report. In this order a kill during the
 * evaluation costs no training. */
static ls_status end_epoch(loop *l)
{
	const ls_setup *s = &l->setup;
	ls_ckpt_progress *p = &l->position;
	uint64_t epoch = p->epoch;

	LS_TRY(ls_watch_epoch(&l->watch, p));
	l->last_loss = p->loss_sum / (double)p->loss_samples;
	*p = (ls_ckpt_progress){ .step = p->step, .epoch = epoch + 1, .batches_tracked = p->batches_tracked };
	if (is_due(l, 1))
		LS_TRY(save(l));
	if (s->evaluator != NULL && (epoch + 1) % (uint64_t)s->options->eval_every == 0)
		LS_TRY(evaluate(l, epoch));
	ls_watch_epoch_line(&l->watch, epoch, is_tested(l) ? &l->test : NULL);
	return LS_OK;
}

static ls_status run_steps(loop *l)
{
	int last = 0;

	while (l->position.step < l->setup.total_steps && !is_stopping()) {
		LS_TRY(one_step(l, &last));
		if (last)
			LS_TRY(end_epoch(l));
		else if (is_due(l, 0))
			LS_TRY(save(l));
	}
	return LS_OK;
}

/* A run that ends inside an epoch, or between two evaluations, still says how good its last weights are. */
static ls_status finish(loop *l)
{
	const ls_ckpt_progress *p = &l->position;

	if (p->loss_samples > 0)
		l->last_loss = p->loss_sum / (double)p->loss_samples;
	if (l->saved_step != p->step)
		LS_TRY(save(l));
	if (p->step < l->setup.total_steps || l->setup.evaluator == NULL || is_tested(l))
		return LS_OK;
	LS_TRY(evaluate(l, p->epoch_step > 0 || p->epoch == 0 ? p->epoch : p->epoch - 1));
	if (is_tested(l))
		ls_log_line("Test time %.2f sec, test accuracy: %.4f", l->test.seconds, l->test.accuracy);
	return LS_OK;
}

static ls_status report(loop *l, ls_train_result *result)
{
	const ls_train_options *o = l->setup.options;
	uint64_t fingerprint = 0;

	LS_TRY(ls_trainer_fingerprint(l->setup.trainer, &fingerprint));
	ls_log_line("parameters xxh64 %016llx", (unsigned long long)fingerprint);
	if (result != NULL)
		*result = (ls_train_result){ .steps = (int64_t)l->position.step,
					     .fingerprint = fingerprint,
					     .train_loss = l->last_loss,
					     .test_loss = is_tested(l) ? l->test.loss : NAN,
					     .test_accuracy = is_tested(l) ? l->test.accuracy : NAN,
					     .samples_per_s = ls_rate_median(&l->watch.rate),
					     .first_step_s = l->first_step_s };
	if (l->position.step >= l->setup.total_steps) {
		if (l->setup.evaluator == NULL || is_tested(l))
			return LS_OK;
		return ls_fail(LS_EINTERRUPTED, "stopped before the last evaluation was done; all %llu steps are",
			       (unsigned long long)l->position.step);
	}
	return ls_fail(LS_EINTERRUPTED, "stopped after step %llu of %llu%s%s%s", (unsigned long long)l->position.step,
		       (unsigned long long)l->setup.total_steps,
		       o->run != NULL ? "; continue with the same options and --run " : "",
		       o->run != NULL ? o->run : "", o->run != NULL ? " --resume" : "");
}

static ls_status run(loop *l, ls_train_result *result)
{
	LS_TRY(ls_keep_begin(&l->setup, &l->lock, &l->position));
	l->saved_step = l->position.step;
	if (l->setup.options->resume && l->position.step >= l->setup.total_steps)
		ls_log_note("the run is complete: %llu steps done", (unsigned long long)l->position.step);
	LS_TRY(open_loader(l));
	LS_TRY(ls_watch_begin(&l->watch, &l->setup, l->position.step));
	LS_TRY(run_steps(l));
	LS_TRY(finish(l));
	return report(l, result);
}

ls_status ls_train(const ls_train_options *options, ls_train_result *result)
{
	loop l = { .started = ls_clock_seconds(), .lock = LS_RUN_LOCK_INIT };
	ls_log_level level = ls_log_get_level();

	atomic_store(&stop_requested, 0);
	if (options->quiet)
		ls_log_set_level(LS_LOG_ERROR);
	ls_status status = ls_setup_make(&l.setup, options);
	if (status == LS_OK) {
		if (l.setup.evaluator != NULL)
			ls_evaluator_set_stop(l.setup.evaluator, is_stopping);
		if (!options->plan_memory)
			status = run(&l, result);
		else if (result != NULL)
			*result = (ls_train_result){ .train_loss = NAN, .test_loss = NAN, .test_accuracy = NAN };
		ls_watch_end(&l.watch);
		ls_loader_free(l.loader);
		ls_run_lock_drop(&l.lock);
		ls_setup_release(&l.setup);
	}
	ls_log_set_level(level);
	return status;
}
