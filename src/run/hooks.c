#include "run/hooks.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/handles.h"

/* ---- stop handles --------------------------------------------------------------------------------------------------- */

struct ls_stop {
	atomic_int requested;
};

ls_status ls_stop_new(ls_stop **out)
{
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

/* ---- hooks ---------------------------------------------------------------------------------------------------------- */

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

void ls_hooks_step(ls_hooks *h, const ls_setup *s, const ls_ckpt_progress *position, double seconds,
		   const ls_node_trainer_report *r)
{
	double samples = (double)r->samples;
	const ls_train_step step = { .step = (int64_t)position->step,
				     .steps = (int64_t)s->total_steps,
				     .epoch = (int64_t)position->epoch,
				     .samples = r->samples,
				     .loss = r->loss / samples,
				     .accuracy = (double)r->correct / (double)r->answers,
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
	const ls_train_epoch epoch = { .epoch = (int64_t)position->epoch,
				       .epochs = (int64_t)((s->total_steps + s->steps_per_epoch - 1) /
							   s->steps_per_epoch),
				       .step = (int64_t)position->step,
				       .loss = position->loss_sum / samples,
				       .accuracy = (double)position->correct / ls_setup_answers(s, samples),
				       .seconds = seconds,
				       .is_tested = test != NULL,
				       .test_loss = test ? test->loss : NAN,
				       .test_accuracy = test ? test->accuracy : NAN };

	if (h->hooks.epoch && h->status == LS_OK)
		keep(h, h->hooks.epoch(h->hooks.context, &epoch), "epoch");
}

void ls_hooks_checkpoint(ls_hooks *h, uint64_t step, const char *run, uint64_t fingerprint)
{
	const ls_train_checkpoint checkpoint = { .step = (int64_t)step, .run = run, .fingerprint = fingerprint };

	if (h->hooks.checkpoint && h->status == LS_OK)
		keep(h, h->hooks.checkpoint(h->hooks.context, &checkpoint), "checkpoint");
}

/* ---- lines ---------------------------------------------------------------------------------------------------------- */

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
