#include "run/hooks.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>

#include <lockstep/train.h>

#include "base/handles.h"

/* ---- stop handles ------------------------------------------------------------------------------------------------ */

struct ls_stop {
	atomic_int requested;
};

ls_status ls_stop_new(ls_stop **out)
{
	LS_TRY(ls_argument_check(out, "out"));
	ls_stop *stop = malloc(sizeof(*stop));
	if (!stop)
		return ls_fail(LS_EMEMORY, "no memory for a " LS_STOP_KIND);
	atomic_init(&stop->requested, 0);
	ls_status status = ls_handle_add(stop, LS_STOP_KIND);
	if (status != LS_OK) {
		free(stop);
		return status;
	}
	*out = stop;
	return LS_OK;
}

void ls_stop_free(ls_stop *stop)
{
	if (stop && ls_handle_remove(stop, LS_STOP_KIND))
		free(stop);
}

/* No look at the list of handles here: a signal handler must not wait for its lock. */
void ls_stop_request(ls_stop *stop)
{
	if (stop)
		atomic_store(&stop->requested, 1);
}

void ls_stop_clear(ls_stop *stop)
{
	if (stop)
		atomic_store(&stop->requested, 0);
}

int ls_stop_is_requested(const ls_stop *stop)
{
	return stop && atomic_load(&stop->requested);
}

/* ---- watching for them ------------------------------------------------------------------------------------------- */

static atomic_uint requests_to_all;

void ls_train_stop(void)
{
	atomic_fetch_add(&requests_to_all, 1);
}

ls_status ls_stop_watch_begin(ls_stop_watch *out, const ls_stop *stop)
{
	*out = (ls_stop_watch){ .stop = stop, .before = atomic_load(&requests_to_all) };
	return stop ? ls_handle_check(stop, LS_STOP_KIND) : LS_OK;
}

int ls_stop_watch_is_requested(const ls_stop_watch *watch)
{
	return atomic_load(&requests_to_all) != watch->before || ls_stop_is_requested(watch->stop);
}

/* ---- hooks ------------------------------------------------------------------------------------------------------- */

void ls_hooks_init(ls_hooks *h, const ls_train_hooks *given)
{
	*h = (ls_hooks){ .status = LS_OK };
	if (given)
		h->hooks = *given;
}

/* Once a hook has ended the run none is called any more. */
static void keep(ls_hooks *h, ls_status status, const char *which)
{
	if (status == LS_OK)
		return;
	h->status = status;
	h->which = which;
}

/* Numbers are not right or wrong. */
static int has_accuracy(const ls_setup *s)
{
	return ls_dataset_describe(s->train_set)->task != LS_TASK_REGRESSION;
}

void ls_hooks_step(ls_hooks *h, const ls_setup *s, const ls_ckpt_progress *position, double seconds,
		   const ls_node_trainer_report *r)
{
	double samples = (double)r->samples;
	const ls_train_step step = { .step = (int64_t)position->step,
				     .steps = (int64_t)s->total_steps,
				     .epoch = (int64_t)position->epoch,
				     .samples = r->samples,
				     .loss = r->loss / samples,
				     .accuracy = has_accuracy(s) ? (double)r->correct / (double)r->answers : NAN,
				     .lr = ls_schedule_rate(&s->trainer->options.schedule, r->step),
				     .gradient_norm = r->gradient_norm,
				     .seconds = seconds };

	if (h->hooks.step && h->status == LS_OK)
		keep(h, h->hooks.step(h->hooks.context, &step), "step");
}

void ls_hooks_epoch(ls_hooks *h, const ls_setup *s, const ls_ckpt_progress *position, double seconds,
		    const ls_eval_result *test)
{
	double samples = (double)position->loss_samples;
	const ls_train_epoch epoch = {
		.epoch = (int64_t)position->epoch,
		.epochs = (int64_t)((s->total_steps + s->steps_per_epoch - 1) / s->steps_per_epoch),
		.step = (int64_t)position->step,
		.loss = position->loss_sum / samples,
		.accuracy = has_accuracy(s) ? (double)position->correct / (double)position->answers : NAN,
		.seconds = seconds,
		.is_tested = test != NULL,
		.test_loss = test ? test->loss : NAN,
		.test_accuracy = test ? test->accuracy : NAN
	};

	if (h->hooks.epoch && h->status == LS_OK)
		keep(h, h->hooks.epoch(h->hooks.context, &epoch), "epoch");
}

void ls_hooks_test(ls_hooks *h, const ls_ckpt_progress *position, uint64_t epoch, const ls_eval_result *r,
		   double metric, int is_best)
{
	const ls_train_test test = { .step = (int64_t)position->step,
				     .epoch = (int64_t)epoch,
				     .loss = r->loss,
				     .accuracy = r->accuracy,
				     .perplexity = r->perplexity,
				     .seconds = r->seconds,
				     .metric = metric,
				     .is_best = is_best,
				     .best_step = (int64_t)position->best_step,
				     .best = position->best,
				     .stale = (int64_t)position->stale };

	if (h->hooks.test && h->status == LS_OK)
		keep(h, h->hooks.test(h->hooks.context, &test), "test");
}

void ls_hooks_checkpoint(ls_hooks *h, uint64_t step, const char *run, uint64_t fingerprint)
{
	const ls_train_checkpoint checkpoint = { .step = (int64_t)step, .run = run, .fingerprint = fingerprint };

	if (h->hooks.checkpoint && h->status == LS_OK)
		keep(h, h->hooks.checkpoint(h->hooks.context, &checkpoint), "checkpoint");
}

/* ---- lines ------------------------------------------------------------------------------------------------------- */

static void put_line(void *context, ls_log_kind kind, const char *text)
{
	static const ls_train_line kinds[] = { [LS_LOG_KIND_LINE] = LS_LINE_RESULT,
					       [LS_LOG_KIND_NOTE] = LS_LINE_NOTE,
					       [LS_LOG_KIND_WARNING] = LS_LINE_WARNING };
	const ls_train_hooks *hooks = context;

	hooks->log(hooks->context, kinds[kind], text);
}

ls_log_sink ls_hooks_sink(const ls_train_hooks *given, int quiet)
{
	ls_log_sink sink = { .level = quiet ? LS_LOG_ERROR : ls_log_get_level() };

	if (given && given->log) {
		sink.put = put_line;
		sink.context = (void *)given;
	}
	return sink;
}
