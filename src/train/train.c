/*
 * train.c - the step loop: the one place where data, model, optimizer, checkpoints and metrics meet.
 *
 *     setup -> (resume) -> { leaves of a step -> update -> watch -> (checkpoint) } -> epoch: evaluate, checkpoint -> ...
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

typedef struct loop {
	ls_setup setup;
	ls_run_lock lock;
	ls_ckpt_progress position;
	ls_watch watch;
	ls_loader *loader;
	ls_eval_result test;
	int tested;
	uint64_t saved_step; /* of the newest checkpoint written or resumed from */
	double started, first_step_s, last_loss;
} loop;

static ls_status open_loader(loop *l)
{
	const ls_setup *s = &l->setup;
	ls_loader_options options = { .seed = s->options->seed, .shuffle = 1, .leaf = s->batches.leaf,
		                      .global_batch = s->batches.global, .start_epoch = l->position.epoch,
		                      .start_step = l->position.epoch_step };
	return ls_loader_new(&l->loader, s->train_set, &options);
}

/* All leaves of the next step. */
static ls_status gather_step(loop *l, int *last_in_epoch)
{
	const ls_leaf *leaf = NULL;
	do {
		LS_TRY(ls_loader_next(l->loader, &leaf));
		LS_TRY(ls_leaf_check(leaf, ls_dataset_describe(l->setup.train_set)));
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

static ls_status evaluate(loop *l)
{
	const ls_trainer *t = l->setup.trainer;
	LS_TRY(ls_evaluator_run(l->setup.evaluator, t->params, t->buffers, NULL, NULL, &l->test));
	l->tested = 1;
	return LS_OK;
}

/* The epoch's last step is done: evaluate, report, move to the next epoch, checkpoint. */
static ls_status end_epoch(loop *l)
{
	const ls_setup *s = &l->setup;
	ls_ckpt_progress *p = &l->position;
	uint64_t epoch = p->epoch;
	int test = s->evaluator != NULL && (epoch + 1) % (uint64_t)s->options->eval_every == 0;

	if (test)
		LS_TRY(evaluate(l));
	LS_TRY(ls_watch_epoch(&l->watch, p, epoch, test ? &l->test : NULL));
	l->last_loss = p->loss_sum / (double)p->loss_samples;
	*p = (ls_ckpt_progress){ .step = p->step, .epoch = epoch + 1, .batches_tracked = p->batches_tracked };
	return s->options->ckpt_every == 0 ? save(l) : LS_OK;
}

static ls_status run_steps(loop *l)
{
	const ls_setup *s = &l->setup;
	uint64_t every = (uint64_t)s->options->ckpt_every;
	int last = 0;

	while (l->position.step < s->total_steps && !atomic_load(&stop_requested)) {
		LS_TRY(one_step(l, &last));
		if (last)
			LS_TRY(end_epoch(l));
		if (every > 0 && l->position.step % every == 0)
			LS_TRY(save(l));
	}
	return LS_OK;
}

/* A run that ends inside an epoch (by --steps) still says how good it is. */
static ls_status finish(loop *l)
{
	const ls_ckpt_progress *p = &l->position;
	int stopped = p->step < l->setup.total_steps;

	if (p->loss_samples > 0)
		l->last_loss = p->loss_sum / (double)p->loss_samples;
	if (!stopped && !l->tested && l->setup.evaluator != NULL) {
		LS_TRY(evaluate(l));
		ls_log_line("Test time %.2f sec, test accuracy: %.4f", l->test.seconds, l->test.accuracy);
	}
	if (l->saved_step != p->step)
		LS_TRY(save(l));
	return LS_OK;
}

static ls_status report(loop *l, ls_train_result *result)
{
	const ls_train_options *o = l->setup.options;
	uint64_t fingerprint = 0;

	LS_TRY(ls_trainer_fingerprint(l->setup.trainer, &fingerprint));
	ls_log_line("parameters xxh64 %016llx", (unsigned long long)fingerprint);
	if (result != NULL)
		*result = (ls_train_result){ .steps = (int64_t)l->position.step, .fingerprint = fingerprint,
			                     .train_loss = l->last_loss, .test_loss = l->tested ? l->test.loss : NAN,
			                     .test_accuracy = l->tested ? l->test.accuracy : NAN,
			                     .samples_per_s = ls_rate_median(&l->watch.rate),
			                     .first_step_s = l->first_step_s };
	if (l->position.step >= l->setup.total_steps)
		return LS_OK;
	return ls_fail(LS_EINTERRUPTED, "stopped after step %llu of %llu%s%s%s", (unsigned long long)l->position.step,
	               (unsigned long long)l->setup.total_steps, o->run != NULL ? "; continue with --run " : "",
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
		if (!options->plan_memory)
			status = run(&l, result);
		ls_watch_end(&l.watch);
		ls_loader_free(l.loader);
		ls_run_lock_drop(&l.lock);
		ls_setup_release(&l.setup);
	}
	ls_log_set_level(level);
	return status;
}
