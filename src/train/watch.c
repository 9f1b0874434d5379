#include "train/watch.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"

ls_status ls_watch_begin(ls_watch *w, const ls_setup *setup, uint64_t first_step)
{
	*w = (ls_watch){ .setup = setup, .epoch_start = ls_clock_seconds(), .first_step = first_step };
	LS_TRY(ls_metrics_open(&w->metrics, setup->options->run, first_step));
	w->progress = ls_progress_begin();
	return LS_OK;
}

void ls_watch_end(ls_watch *w)
{
	ls_progress_end(w->progress);
	ls_metrics_close(w->metrics);
	w->progress = NULL;
	w->metrics = NULL;
}

static void show(ls_watch *w, const ls_ckpt_progress *at, double loss)
{
	const ls_setup *s = w->setup;
	uint64_t epochs = (s->total_steps + s->steps_per_epoch - 1) / s->steps_per_epoch;
	double rate = ls_rate_median(&w->rate);
	double left = rate > 0 ? (double)(s->total_steps - at->step) * (double)s->batches.global / rate : 0;
	char title[48], detail[64];

	snprintf(title, sizeof(title), "epoch %llu/%llu", (unsigned long long)at->epoch + 1,
		 (unsigned long long)epochs);
	snprintf(detail, sizeof(detail), "loss %.4f  %.0f data/sec", loss, rate);
	ls_progress_update(w->progress, title, at->epoch_step, s->steps_per_epoch, detail, left);
}

/* Curves want more points than a terminal wants lines. */
static uint64_t record_every(int64_t log_every)
{
	return log_every > 20 ? (uint64_t)log_every / 20 : 1;
}

ls_status ls_watch_step(ls_watch *w, const ls_ckpt_progress *at, double seconds, int64_t samples, double loss)
{
	const ls_trainer *t = w->setup->trainer;
	uint64_t log_every = (uint64_t)w->setup->options->log_every;

	ls_rate_add(&w->rate, seconds, (double)samples);
	show(w, at, loss);
	if (log_every == 0)
		return LS_OK;
	uint64_t since = at->step - w->first_step < log_every ? at->step - w->first_step : log_every;
	double rate = ls_rate_mean_since(&w->rate, since);
	if (at->step % log_every == 0)
		ls_log_line("Step%llu: %.2f data/sec", (unsigned long long)at->step, rate);
	if (at->step % record_every((int64_t)log_every) != 0)
		return LS_OK;
	ls_metric values[] = { { "loss", loss },
			       { "samples_per_s", (double)samples / seconds },
			       { "lr", ls_schedule_rate(&t->schedule, at->step - 1) },
			       { "gradient_norm", t->gradient_norm } };
	return ls_metrics_record(w->metrics, "step", at->step, values, t->clip_norm > 0 ? 4 : 3);
}

ls_status ls_watch_epoch(ls_watch *w, const ls_ckpt_progress *at)
{
	double samples = (double)at->loss_samples;

	w->epoch_s = ls_clock_seconds() - w->epoch_start;
	ls_metric train[] = { { "loss", at->loss_sum / samples },
			      { "accuracy", (double)at->correct / samples },
			      { "seconds", w->epoch_s },
			      { "epoch", (double)at->epoch } };
	return ls_metrics_record(w->metrics, "epoch", at->step, train, 4);
}

void ls_watch_epoch_line(ls_watch *w, uint64_t epoch, const ls_eval_result *test)
{
	if (test != NULL)
		ls_log_line("Epoch %llu in %.2f sec, test time %.2f sec, test accuracy: %.4f",
			    (unsigned long long)epoch, w->epoch_s, test->seconds, test->accuracy);
	else
		ls_log_line("Epoch %llu in %.2f sec", (unsigned long long)epoch, w->epoch_s);
	w->epoch_start = ls_clock_seconds();
}

ls_status ls_watch_test(ls_watch *w, uint64_t step, uint64_t epoch, const ls_eval_result *test)
{
	ls_metric values[] = { { "loss", test->loss },
			       { "accuracy", test->accuracy },
			       { "seconds", test->seconds },
			       { "epoch", (double)epoch } };

	LS_TRY(ls_metrics_record(w->metrics, "test", step, values, 4));
	return ls_metrics_flush(w->metrics);
}
