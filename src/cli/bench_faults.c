/*
 * bench_faults.c - lockstep bench --fault-every: which options go with it, and the output.
 */
#include "bench_faults.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <lockstep/names.h>

#include "command.h"
#include "stop.h"

const char *ls_bench_faults_refuses(const char *name, const char *group)
{
	static const struct {
		const char *name, *why;
	} rows[] = {
		{ "channels", "the job trains on a dataset; choose it with --data" },
		{ "image-size", "the job trains on a dataset; choose it with --data" },
		{ "classes", "the job trains on a dataset; choose it with --data" },
		{ "batch-per-device",
		  "the number of devices may change after a fault, and the job would; give --batch" },
		{ "steps",
		  "the times of the faults decide how many steps there are; --repeat is the number of faults" },
		{ "profile", "layers are timed without faults" },
		{ "nodes", NULL },
		{ "rate", NULL },
		{ "samples", NULL },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (!strcmp(rows[i].name, name))
			return rows[i].why;
	if (!strcmp(group, "Sweep"))
		return "it is for a sweep, and faults are measured one job at a time";
	return strcmp(group, "Replay") != 0 ? NULL : "the job is trained, and training cannot be simulated";
}

/* ---- the output -------------------------------------------------------------------------------------------------- */

/* json_pack() has no place for what is not known. */
static json_t *real(double value)
{
	return isfinite(value) ? json_real(value) : json_null();
}

static json_t *job_to_json(const ls_fault_bench_options *o, const ls_bench_faults_job *job,
			   const ls_fault_bench_result *r)
{
	return json_pack("{s:s, s:s, s:s, s:s, s:I, s:b, s:s?, s:s?, s:I, s:f, s:s, s:I, s:I}", "model", job->model,
			 "data", job->data, "strategy", job->strategy, "precision", job->precision, "nodes",
			 (json_int_t)r->nodes, "emulated", !o->hosts, "hosts", o->hosts, "rate", o->rate, "batch",
			 (json_int_t)r->batch, "fault_every_s", o->every, "fault_intervals", "exponential", "seed",
			 (json_int_t)o->seed, "warmup", (json_int_t)o->warmup);
}

static json_t *measured_to_json(const ls_fault_bench_result *r)
{
	char fingerprint[20];

	snprintf(fingerprint, sizeof(fingerprint), "%016" PRIx64, r->fingerprint);
	return json_pack("{s:f, s:I, s:I, s:f, s:o, s:o, s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:s, s:I}", "seconds",
			 r->seconds, "steps", (json_int_t)r->steps, "steps_again", (json_int_t)r->steps_again,
			 "samples_per_s", r->samples_per_s, "undisturbed_samples_per_s", real(r->undisturbed),
			 "work_kept", real(r->work_kept), "faults", (json_int_t)r->faults, "overtaken",
			 (json_int_t)r->overtaken, "interruptions", (json_int_t)r->interruptions, "recovery_median_s",
			 real(r->recovery_median), "recovery_worst_s", real(r->recovery_worst), "step_s",
			 real(r->step_s), "snapshot_every", real(r->snapshot_every), "snapshot_s", real(r->snapshot_s),
			 "fingerprint", fingerprint, "fingerprint_step", (json_int_t)r->fingerprint_step);
}

static int print_json(const ls_fault_bench_options *o, const ls_bench_faults_job *job, const ls_fault_bench_result *r)
{
	json_t *predicted = json_pack("{s:o, s:o, s:o}", "restart_s", real(r->restart_s), "work_kept",
				      real(r->predicted_work_kept), "samples_per_s", real(r->predicted_samples_per_s));
	json_t *object = json_pack("{s:o, s:o, s:o}", "job", job_to_json(o, job, r), "measured", measured_to_json(r),
				   "predicted", predicted);
	int bad = !object || json_dumpf(object, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(9));

	bad |= fputc('\n', stdout) == EOF;
	json_decref(object);
	return bad || fflush(stdout) != 0;
}

static void print_work(const ls_fault_bench_result *r)
{
	printf("samples/s with faults    %.1f, over %.1f s: %" PRId64 " step%s that count\n", r->samples_per_s,
	       r->seconds, r->steps, ls_plural((uint64_t)r->steps, "s"));
	if (isnan(r->undisturbed)) {
		printf("samples/s undisturbed    not known: no start trained for long enough before its fault\n");
		return;
	}
	printf("samples/s undisturbed    %.1f, between faults\n", r->undisturbed);
	printf("work kept (goodput)      %.1f %%\n", 100 * r->work_kept);
}

static void print_faults(const ls_fault_bench_result *r)
{
	printf("faults                   %" PRId64, r->faults);
	if (r->faults > 0)
		printf(", one every %.1f s", r->seconds / (double)r->faults);
	if (r->interruptions > 0)
		printf("; and %" PRId64 " other interruption%s", r->interruptions,
		       ls_plural((uint64_t)r->interruptions, "s"));
	putchar('\n');
	if (isnan(r->recovery_median))
		printf("recovery                 not known\n");
	else
		printf("recovery                 median %.2f s, worst %.2f s, from the kill to the first new step\n",
		       r->recovery_median, r->recovery_worst);
	if (r->overtaken > 0)
		printf("                         not counted: %" PRId64 " interrupted by another fault\n",
		       r->overtaken);
	printf("steps computed again     %" PRId64 "\n", r->steps_again);
}

static void print_prediction(const ls_fault_bench_options *o, const ls_fault_bench_result *r)
{
	if (isnan(r->predicted_work_kept)) {
		printf("predicted                not known: there was no recovery, or no snapshot, to predict from\n");
		return;
	}
	printf("predicted work kept      %.1f %%: %.1f samples/s, by the model of lockstep plan, with a fault every %g "
	       "s, "
	       "%.2f s per\n                         restart and a snapshot every %.0f step%s, as measured\n",
	       100 * r->predicted_work_kept, r->predicted_samples_per_s, o->every, r->restart_s, r->snapshot_every,
	       ls_plural((uint64_t)llround(r->snapshot_every), "s"));
}

static int print_text(const ls_fault_bench_options *o, const ls_bench_faults_job *job, const ls_fault_bench_result *r)
{
	printf("%s on %s, batch %" PRId64 ", %" PRId64 " %snodes%s%s, %s, %s\n", job->model, job->data, r->batch,
	       r->nodes, o->hosts ? "" : "emulated ", o->rate ? " with links of " : "", o->rate ? o->rate : "",
	       job->strategy, job->precision);
	printf("faults: kill -9 of a random node, every %g s of training on average (exponential), seed %" PRIu64
	       "; measured:\n",
	       o->every, o->seed);
	print_work(r);
	print_faults(r);
	print_prediction(o, r);
	return fflush(stdout) != 0 || ferror(stdout);
}

int ls_bench_faults(const char *command, const ls_fault_bench_options *o, const ls_bench_faults_job *job)
{
	ls_fault_bench_result result;

	fprintf(stderr,
		"Measuring until %" PRId64 " fault%s %s over: one every %g s of training on average, seed %" PRIu64
		"\n",
		o->faults, ls_plural((uint64_t)o->faults, "s"), o->faults == 1 ? "is" : "are", o->every, o->seed);
	ls_stop_on_signals(LS_STOP_FAULTS, 0);
	ls_status status = ls_fault_bench(o, &result);
	if (status == LS_EINTERRUPTED && ls_stop_signal())
		return 128 + ls_stop_signal();
	if (status != LS_OK)
		return ls_command_finish(command, status);
	if (job->json ? print_json(o, job, &result) : print_text(o, job, &result)) {
		ls_command_end(command, LS_EIO, "cannot write the result");
		return LS_EXIT_FAILURE;
	}
	return LS_EXIT_OK;
}
