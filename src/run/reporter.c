#include "run/reporter.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/names.h"
#include "cluster/launched.h"
#include "trained/weights.h"

enum { TEST_VALUES_MAX = 11 }; /* what an evaluation measured, and how it compares with the best */

/* From metrics.jsonl, what the processes before this one came to. */
static ls_status recall(ls_reporter *w, const char *run)
{
	ls_metric step[] = { { "step", (double)w->first_step }, { "seconds", NAN } };
	ls_metric target[] = {
		{ "target", w->setup->options->to_accuracy }, { "accuracy", 0 }, { "epochs", 0 }, { "seconds", 0 }
	};
	int found;

	LS_TRY(ls_metrics_find(run, "test", step, 1, &w->has_test));
	LS_TRY(ls_metrics_find(run, "end", step, 1, &w->has_end));
	LS_TRY(ls_metrics_find(run, "checkpoint", step, 2, &found));
	w->earlier_s = step[1].value;
	LS_TRY(ls_metrics_find(run, "target", target, 4, &w->has_target));
	w->target_accuracy = target[1].value;
	w->target_epochs = target[2].value;
	w->target_s = target[3].value;
	return LS_OK;
}

double ls_reporter_seconds(const ls_reporter *w)
{
	return w->earlier_s + (ls_clock_seconds() - w->started);
}

ls_status ls_reporter_begin(ls_reporter *w, const ls_setup *setup, uint64_t first_step, double started)
{
	*w = (ls_reporter){
		.setup = setup, .epoch_start = ls_clock_seconds(), .first_step = first_step, .started = started
	};
	if (!ls_setup_is_first(setup))
		return LS_OK;
	const char *run = setup->options->run;
	if (run && setup->options->resume) /* drops the lines of later steps */
		LS_TRY(ls_metrics_continue(&w->metrics, run, first_step, &w->reached));
	else
		LS_TRY(ls_metrics_open(&w->metrics, run, first_step));
	if (run && setup->options->resume && first_step > 0)
		LS_TRY(recall(w, run));
	w->progress = ls_progress_begin();
	return LS_OK;
}

void ls_reporter_trains(ls_reporter *w, uint64_t step)
{
	if (w->has_trained || step <= w->first_step)
		return;
	w->has_trained = 1;
	if (w->setup->options->elastic && ls_setup_is_first(w->setup))
		ls_launch_report_trains();
}

ls_status ls_reporter_start(ls_reporter *w, uint64_t generation, int from_memory, const ls_fault *fault)
{
	const ls_layout *l = &w->setup->layout;
	uint64_t again = w->reached > w->first_step ? w->reached - w->first_step : 0;
	const char *hosts = ls_mpi_launched_hosts();
	const ls_metric_text texts[] = { { "source", w->first_step == 0 ? "new"
						     : from_memory      ? "snapshot"
									: "checkpoint" },
					 { "hosts", hosts } };
	const ls_metric values[] = { { "generation", (double)generation },
				     { "nodes", l->nodes },
				     { "devices", l->all_devices },
				     { "steps_again", (double)again },
				     { "batch", (double)w->setup->batches.global },
				     { "samples", (double)ls_dataset_describe(w->setup->train_set)->samples },
				     { "fault_node", fault->node },
				     { "fault_s", fault->after } };

	if (!ls_setup_is_first(w->setup))
		return LS_OK;
	if (w->setup->options->resume)
		ls_log_line("Elastic: training from step %llu (%s), %llu step%s computed again",
			    (unsigned long long)w->first_step,
			    w->first_step == 0 ? "there was no checkpoint"
			    : from_memory      ? "snapshots in memory"
					       : "checkpoint on disk",
			    (unsigned long long)again, ls_plural(again, "s"));
	return ls_metrics_record_texts(w->metrics, LS_METRICS_START, w->first_step, texts, hosts ? 2 : 1, values,
				       fault->node < 0 ? 6 : 8);
}

ls_status ls_reporter_snapshot(ls_reporter *w, uint64_t step, uint64_t every, double cost_s)
{
	const ls_metric values[] = { { "every", (double)every }, { "cost_s", cost_s } };

	return ls_metrics_record_texts(w->metrics, LS_METRICS_SNAPSHOT, step, NULL, 0, values, 2);
}

void ls_reporter_mute(ls_reporter *w)
{
	ls_metrics_close(w->metrics);
	w->metrics = NULL;
}

void ls_reporter_end(ls_reporter *w)
{
	ls_progress_end(w->progress);
	ls_metrics_close(w->metrics);
	w->progress = NULL;
	w->metrics = NULL;
}

/* Steps and time left are the run's; the epoch only says where in it they are. */
static void show(ls_reporter *w, const ls_ckpt_progress *at, double loss)
{
	const ls_setup *s = w->setup;
	uint64_t epochs = (s->total_steps + s->steps_per_epoch - 1) / s->steps_per_epoch;
	double rate = ls_rate_median(&w->rate);
	double left = rate > 0 ? (double)(s->total_steps - at->step) * (double)s->batches.global / rate : 0;
	char title[48], detail[64];

	snprintf(title, sizeof(title), "epoch %llu/%llu", (unsigned long long)at->epoch + 1,
		 (unsigned long long)epochs);
	snprintf(detail, sizeof(detail), "loss %.4f  %.0f data/sec", loss, rate);
	ls_progress_update(w->progress, title, at->step, s->total_steps, detail, left);
}

/* Curves want more points than a terminal wants lines. */
static uint64_t record_every(int64_t log_every)
{
	return log_every > 20 ? (uint64_t)log_every / 20 : 1;
}

enum { STEP_VALUES = 10, VALUE_NAME = 32 };

/* Tokens that were there; and as many as there would have been, had every sample been padded to the longest: published
 * rates count those. */
static size_t text_values(const ls_setup *s, double seconds, const ls_node_trainer_report *r, ls_metric *values)
{
	size_t count = 0;
	int longest = ls_dataset_describe(s->train_set)->tokens_max;

	if (r->tokens == 0)
		return 0;
	values[count++] = (ls_metric){ "tokens_per_s", (double)r->tokens / seconds };
	values[count++] = (ls_metric){ "padded_tokens_per_s", (double)r->samples * longest / seconds };
	if (r->masked > 0) {
		values[count++] = (ls_metric){ "token_loss", r->token_loss / (double)r->masked };
		values[count++] = (ls_metric){ "token_accuracy", (double)r->token_correct / (double)r->masked };
	}
	return count;
}

/* Loss, rate and waits; on several nodes also how long each node's devices computed: which nodes waited for which. */
static ls_status record_step(ls_reporter *w, uint64_t step, double seconds, const ls_node_trainer_report *r)
{
	const ls_node_trainer *t = w->setup->trainer;
	const ls_layout *l = &w->setup->layout;
	ls_metric values[STEP_VALUES + LS_REPORTER_NODES];
	char names[LS_REPORTER_NODES][VALUE_NAME];
	size_t count = 0;

	values[count++] = (ls_metric){ "loss", r->loss / (double)r->samples };
	values[count++] = (ls_metric){ "samples_per_s", (double)r->samples / seconds };
	values[count++] = (ls_metric){ "lr", ls_schedule_rate(&t->options.schedule, r->step) };
	count += text_values(w->setup, seconds, r, values + count);
	if (t->options.clip_norm > 0)
		values[count++] = (ls_metric){ "gradient_norm", r->gradient_norm };
	if (t->exchange)
		values[count++] = (ls_metric){ "wait_s", r->wait_s };
	if (l->nodes > 1)
		values[count++] = (ls_metric){ "exposed_s", r->exposed_s };
	for (int i = 0; l->nodes > 1 && i < l->nodes - l->servers && i < LS_REPORTER_NODES; i++) {
		snprintf(names[i], sizeof(names[i]), "node%d_compute_s", i);
		values[count++] = (ls_metric){ names[i], r->node_s[i] / l->devices_of[i] };
	}
	return ls_metrics_record(w->metrics, "step", step, values, count);
}

static void log_rate(const ls_reporter *w, uint64_t step, uint64_t since, const ls_node_trainer_report *r)
{
	double rate = ls_rate_mean_since(&w->rate, since);
	int longest = ls_dataset_describe(w->setup->train_set)->tokens_max;
	char text[128] = "";
	int used = 0;

	int is_language = w->setup->graph->predicts_next;

	if (is_language)
		snprintf(text, sizeof(text), ", %.0f tokens/sec, accuracy %.3f", ls_rate_mean_since(&w->tokens, since),
			 (double)r->correct / (double)r->answers);
	else if (r->tokens > 0)
		used = snprintf(text, sizeof(text), ", %.0f tokens/sec (padded: %.0f)",
				ls_rate_mean_since(&w->tokens, since), rate * longest);
	if (r->masked > 0 && !is_language)
		snprintf(text + used, sizeof(text) - (size_t)used, ", masked loss %.3f accuracy %.3f",
			 r->token_loss / (double)r->masked, (double)r->token_correct / (double)r->masked);
	ls_log_line("Step%llu: %.2f data/sec, loss %.4f%s", (unsigned long long)step, rate,
		    r->loss / (double)r->samples, text);
}

ls_status ls_reporter_step(ls_reporter *w, const ls_ckpt_progress *at, double seconds, const ls_node_trainer_report *r)
{
	uint64_t log_every = (uint64_t)w->setup->options->log_every;

	ls_rate_add(&w->rate, seconds, (double)r->samples);
	ls_rate_add(&w->tokens, seconds, (double)r->tokens);
	if (!ls_setup_is_first(w->setup))
		return LS_OK;
	show(w, at, r->loss / (double)r->samples);
	if (log_every == 0)
		return LS_OK;
	uint64_t since = at->step - w->first_step < log_every ? at->step - w->first_step : log_every;
	if (at->step % log_every == 0)
		log_rate(w, at->step, since, r);
	if (at->step % record_every((int64_t)log_every) != 0)
		return LS_OK;
	return record_step(w, at->step, seconds, r);
}

ls_status ls_reporter_epoch(ls_reporter *w, const ls_ckpt_progress *at)
{
	double samples = (double)at->loss_samples;

	w->epoch_s = ls_clock_seconds() - w->epoch_start;
	ls_metric train[] = { { "loss", at->loss_sum / samples },
			      { "seconds", w->epoch_s },
			      { "epoch", (double)at->epoch },
			      { "accuracy", (double)at->correct / (double)at->answers } };
	int has_accuracy = ls_dataset_describe(w->setup->train_set)->task != LS_TASK_REGRESSION;
	return ls_metrics_record(w->metrics, "epoch", at->step, train, has_accuracy ? 4 : 3);
}

static const char *accuracy_name(const ls_eval_result *test)
{
	return test->perplexity > 0 ? "next-token" : test->masked > 0 ? "next-sentence" : "test";
}

/* "MAE 1.2, RMSE 2.3, R2: 0.8502", or "micro F1 0.7, macro F1 0.6, subset accuracy: 0.8502". */
static void describe_targets(char *out, size_t size, const ls_eval_result *test)
{
	if (test->task == LS_TASK_REGRESSION)
		snprintf(out, size, "test MAE %.6g, RMSE %.6g, R2: %.4f", test->mae, test->rmse, test->r2);
	else
		snprintf(out, size, "test micro F1 %.4f, macro F1 %.4f, subset accuracy: %.4f", test->micro_f1,
			 test->macro_f1, test->accuracy);
}

/* "test time 0.72 sec, test accuracy: 0.8502". In pretraining the labels are next sentences: "test time 0.72 sec,
 * masked loss 5.1, masked accuracy 0.1, next-sentence accuracy: 0.52". Of language models: "test time 0.72 sec, loss
 * 3.2110, perplexity 24.80, next-token accuracy: 0.3521". */
static void describe_test(char *out, size_t size, const ls_eval_result *test)
{
	int used = snprintf(out, size, "test time %.2f sec, ", test->seconds);

	if (test->task != LS_TASK_CLASSIFICATION) {
		describe_targets(out + used, size - (size_t)used, test);
		return;
	}
	if (test->perplexity > 0)
		used += snprintf(out + used, size - (size_t)used, "loss %.4f, perplexity %.2f, ", test->loss,
				 test->perplexity);
	else if (test->masked > 0)
		used += snprintf(out + used, size - (size_t)used, "masked loss %.4f, masked accuracy %.4f, ",
				 test->token_loss, test->token_accuracy);
	snprintf(out + used, size - (size_t)used, "%s accuracy: %.4f", accuracy_name(test), test->accuracy);
}

void ls_reporter_epoch_line(ls_reporter *w, uint64_t epoch, const ls_eval_result *test)
{
	char text[160];

	if (!ls_setup_is_first(w->setup))
		return;
	if (test)
		describe_test(text, sizeof(text), test);
	ls_log_line("Epoch %llu in %.2f sec%s%s", (unsigned long long)epoch + 1, w->epoch_s, test ? ", " : "",
		    test ? text : "");
	w->epoch_start = ls_clock_seconds();
}

void ls_reporter_test_line(ls_reporter *w, const ls_eval_result *test)
{
	char text[160];

	if (!ls_setup_is_first(w->setup))
		return;
	describe_test(text, sizeof(text), test);
	ls_log_line("T%s", text + 1);
	w->epoch_start += test->seconds;
}

void ls_reporter_step_test_line(ls_reporter *w, uint64_t step, const ls_eval_result *test)
{
	char text[160];

	w->epoch_start += test->seconds;
	if (!ls_setup_is_first(w->setup))
		return;
	describe_test(text, sizeof(text), test);
	ls_log_line("Step%llu: %s", (unsigned long long)step, text);
}

ls_status ls_reporter_checkpoint(ls_reporter *w, uint64_t step, uint64_t fingerprint, double seconds, double stall_s)
{
	const ls_metric times[] = { { "seconds", seconds }, { "stall_s", stall_s } };
	return ls_metrics_record_fingerprint(w->metrics, "checkpoint", step, fingerprint, times, 2);
}

/* A run that was complete already when it was resumed has said so. */
ls_status ls_reporter_conclude(ls_reporter *w, uint64_t step, uint64_t fingerprint)
{
	if (!w->metrics)
		return LS_OK;
	const ls_metric time = { "seconds", ls_reporter_seconds(w) };
	if (!w->has_end || step != w->first_step)
		LS_TRY(ls_metrics_record_fingerprint(w->metrics, "end", step, fingerprint, &time, 1));
	LS_TRY(ls_metrics_flush(w->metrics));
	ls_status status = ls_run_conclude(w->setup->options->run, step, fingerprint);
	if (status != LS_ENOTFOUND && status != LS_EFORMAT)
		return status;
	ls_log_warning("%s: the end of the run is recorded in metrics.jsonl alone", ls_last_error());
	return LS_OK;
}

/* What an evaluation measured, in `values`; returns how many. */
static size_t test_values(ls_metric *values, const ls_eval_result *test, uint64_t epoch)
{
	int is_regression = test->task == LS_TASK_REGRESSION;
	const ls_metric of_targets[] = {
		{ "loss", test->loss },
		{ "seconds", test->seconds },
		{ "epoch", (double)epoch },
		{ is_regression ? "mae" : "micro_f1", is_regression ? test->mae : test->micro_f1 },
		{ is_regression ? "rmse" : "macro_f1", is_regression ? test->rmse : test->macro_f1 },
		{ is_regression ? "r2" : "accuracy", is_regression ? test->r2 : test->accuracy }
	};
	const ls_metric of_classes[] = { { "loss", test->loss },
					 { "accuracy", test->accuracy },
					 { "seconds", test->seconds },
					 { "epoch", (double)epoch },
					 { "token_loss", test->token_loss },
					 { "token_accuracy", test->token_accuracy },
					 { "perplexity", test->perplexity } };
	int has_targets = test->task != LS_TASK_CLASSIFICATION;
	size_t count = has_targets ? 6 : test->perplexity > 0 ? 7 : test->masked > 0 ? 6 : 4;

	memcpy(values, has_targets ? of_targets : of_classes, count * sizeof(*values));
	return count;
}

ls_status ls_reporter_test(ls_reporter *w, const ls_ckpt_progress *at, uint64_t epoch, const ls_eval_result *test,
			   const ls_best *best)
{
	ls_metric values[TEST_VALUES_MAX];
	size_t count = test_values(values, test, epoch);

	if (w->has_test && at->step == w->first_step)
		return LS_OK;
	values[count++] = (ls_metric){ "elapsed_s", ls_reporter_seconds(w) };
	if (best->tally)
		values[count++] = (ls_metric){ best->metric->name, best->value };
	if (best->metric) {
		values[count++] = (ls_metric){ "is_best", best->is_new };
		values[count++] = (ls_metric){ "stale", (double)at->stale };
	}
	LS_TRY(ls_metrics_record(w->metrics, "test", at->step, values, count));
	return ls_metrics_flush(w->metrics);
}

ls_status ls_reporter_best(ls_reporter *w, const ls_ckpt_progress *at, const ls_best *best)
{
	const ls_train_options *o = w->setup->options;
	ls_metric values[] = { { "best", at->best },
			       { "best_step", (double)at->best_step },
			       { "stale", (double)at->stale } };
	int has_ended = ls_best_has_ended(best, at), found = 0;
	ls_metric step = { "step", (double)at->step };

	if (!best->metric || !ls_setup_is_first(w->setup))
		return LS_OK;
	if (has_ended)
		ls_log_line("Stopped early after step %llu: no better %s in %llu evaluation%s",
			    (unsigned long long)at->step, best->metric->title, (unsigned long long)at->stale,
			    ls_plural(at->stale, "s"));
	if (at->best_step > 0)
		ls_log_line("Best %s: %.4f after step %llu%s%s%s", best->metric->title, at->best,
			    (unsigned long long)at->best_step, o->keep_best && o->run ? ", saved as " : "",
			    o->keep_best && o->run ? o->run : "", o->keep_best && o->run ? "/" LS_WEIGHTS_BEST : "");
	if (!has_ended || !o->run)
		return LS_OK;
	LS_TRY(ls_metrics_find(o->run, "early_stop", &step, 1, &found));
	return found ? LS_OK : ls_metrics_record(w->metrics, "early_stop", at->step, values, 3);
}

static void log_target(double target, double epochs, double seconds, const char *since, double accuracy)
{
	char time[64] = "";

	if (isfinite(seconds))
		snprintf(time, sizeof(time), " and %.2f sec%s", seconds, since);
	ls_log_line("Target accuracy %g reached after %.4g epoch%s%s, test accuracy: %.4f", target, epochs,
		    epochs == 1 ? "" : "s", time, accuracy);
}

ls_status ls_reporter_target(ls_reporter *w, const ls_ckpt_progress *at, double accuracy)
{
	double target = w->setup->options->to_accuracy;
	double epochs = (double)at->step / (double)w->setup->steps_per_epoch;
	int is_whole = isfinite(w->earlier_s);
	double seconds = is_whole ? ls_reporter_seconds(w) : ls_clock_seconds() - w->started;
	const char *since = is_whole ? "" : " since the resume";
	ls_metric values[] = { { "target", target },
			       { "accuracy", accuracy },
			       { "epochs", epochs },
			       { "seconds", is_whole ? seconds : NAN } };

	if (!ls_setup_is_first(w->setup))
		return LS_OK;
	if (w->has_target) {
		log_target(target, w->target_epochs, w->target_s, "", w->target_accuracy);
		return LS_OK;
	}
	if (accuracy < target) {
		ls_log_warning("test accuracy %.4f is below the target of %g after %.4g epoch%s and %.2f sec%s",
			       accuracy, target, epochs, epochs == 1 ? "" : "s", seconds, since);
		return LS_OK;
	}
	log_target(target, epochs, seconds, since, accuracy);
	LS_TRY(ls_metrics_record(w->metrics, "target", at->step, values, 4));
	return ls_metrics_flush(w->metrics);
}
