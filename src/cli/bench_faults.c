/*
 * bench_faults.c - lockstep bench --fault-every: which options go with it, the job as lockstep train takes it, and the
 * output.
 */
#include "bench_faults.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lockstep/faults.h>
#include <lockstep/launch.h>
#include <lockstep/models.h>
#include <lockstep/names.h>

#include "args.h"
#include "command.h"
#include "duration.h"
#include "stop.h"

/* What is printed beside the figures. */
typedef struct shown_job {
	const char *model, *data, *strategy, *precision;
	int json;
} shown_job;

/* ---- options ----------------------------------------------------------------------------------------------------- */

/* Why an option has no effect, as an ending of "--profile with --fault-every: ..."; NULL: it has one. */
static const char *refusal(const char *name, const char *group)
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

int ls_bench_faults_check(const char *command, const ls_setting *row, const char *value, const char *usual,
			  int may_list)
{
	const char *why = refusal(row->name, row->group);

	if (why && strcmp(value, usual) != 0)
		return ls_usage_error(command, "--%s with --fault-every: %s", row->name, why);
	may_list |= !strcmp(row->name, "nodes") || !strcmp(row->name, "rate");
	if (may_list && strchr(value, ','))
		return ls_usage_error(command, "--fault-every measures one job, and --%s lists several: '%s'",
				      row->name, value);
	return LS_ARGS_GO;
}

/* How often, and on how many nodes. */
static ls_status take_numbers(ls_fault_bench_options *o, const ls_bench_faults_options *options)
{
	const ls_setting every = { .name = "fault-every", .kind = LS_SETTING_REAL, .max = 1e9 };
	const ls_setting nodes = { .name = "nodes", .kind = LS_SETTING_INT, .min = 1, .max = 1e6 };
	const ls_train_options *job = &options->bench->job;
	const ls_strategy_info *strategy = ls_strategy_of(job->strategy);
	ls_status status = ls_duration_set(&every, 1, &o->every, options->every);

	if (status == LS_OK && options->nodes)
		status = ls_setting_set(&nodes, &o->nodes, options->nodes);
	if (strategy && strategy->has_servers)
		o->servers = job->servers > 0 ? job->servers : 1;
	o->hosts = job->hosts, o->rate = options->rate, o->devices = job->devices, o->seed = job->seed;
	o->faults = options->bench->repeat, o->warmup = options->bench->warmup, o->timeout = job->timeout;
	return status;
}

static int check_numbers(const char *command, const ls_bench_faults_options *options, const ls_fault_bench_options *o)
{
	if (!o->hosts && !options->nodes)
		return ls_usage_error(command, "--fault-every needs several nodes, for one alone has nobody to go on "
					       "with: give --nodes 3, or --hosts");
	if (options->nodes && o->nodes + o->servers < 2)
		return ls_usage_error(command,
				      "--nodes %s with --fault-every: two or more, for one alone has nobody to "
				      "go on with",
				      options->nodes);
	if (o->every < 1)
		return ls_usage_error(command, "--fault-every %s: it must be at least 1 s", options->every);
	return LS_ARGS_GO;
}

/* ---- the job ----------------------------------------------------------------------------------------------------- */

/* Options of lockstep train, as a command line has them. */
typedef struct train_words {
	char **word; /* (count), malloc'd each; then NULL */
	size_t count;
	int no_memory; /* for one of them */
} train_words;

static void add_word(train_words *w, const char *word)
{
	char *copy = strdup(word), **more = copy ? realloc(w->word, (w->count + 2) * sizeof(*more)) : NULL;

	if (!more) {
		w->no_memory = 1;
		free(copy);
		return;
	}
	w->word = more;
	w->word[w->count++] = copy;
	w->word[w->count] = NULL;
}

static void free_words(train_words *w)
{
	for (size_t i = 0; i < w->count; i++)
		free(w->word[i]);
	free(w->word);
}

static void add_option(train_words *w, const char *name, const char *value)
{
	char option[64];

	snprintf(option, sizeof(option), "--%s", name);
	add_word(w, option);
	if (value)
		add_word(w, value);
}

static void add_number(train_words *w, const char *name, int64_t value)
{
	char text[32];

	snprintf(text, sizeof(text), "%" PRId64, value);
	add_option(w, name, text);
}

/* What was given, but for where it runs. */
static void add_given(train_words *w, const ls_train_options *job)
{
	static const char *const where[] = { "model", "hosts", "timeout", "devices", "threads" };
	const ls_setting *row;
	char value[4096 + 256]; /* a path at most */

	for (size_t i = 0; (row = ls_train_setting_at(i)); i++) {
		int is_where = 0;
		for (size_t k = 0; k < sizeof(where) / sizeof(where[0]); k++)
			is_where |= !strcmp(row->name, where[k]);
		if (is_where || !ls_train_setting_is_given(job, row))
			continue;
		ls_setting_format(row, job, value, sizeof(value));
		add_option(w, row->name, row->arg ? value : NULL);
	}
}

/* Devices of hosts that are named without. */
static ls_status add_place(train_words *w, const ls_train_options *job)
{
	ls_host *hosts = NULL;
	size_t count = 0;

	add_number(w, "threads", job->threads);
	if (!job->hosts)
		return LS_OK;
	ls_status status = ls_hosts_parse(&hosts, &count, job->hosts);
	if (status == LS_OK && hosts[0].devices == 0)
		add_number(w, "devices", job->devices);
	ls_hosts_free(hosts);
	return status;
}

static ls_status make_job(train_words *w, const ls_bench_faults_options *options, const shown_job *shown)
{
	ls_status status = add_place(w, &options->bench->job);

	add_option(w, "model", shown->model);
	add_option(w, "data", shown->data);
	if (options->samples > 0)
		add_number(w, "samples", options->samples);
	add_given(w, &options->bench->job);
	return status;
}

static shown_job job_of(const ls_bench_faults_options *options)
{
	const ls_train_options *job = &options->bench->job;
	const ls_model_row *model = ls_model_row_of(job->model);
	const char *usual = model && model->is_text ? "babble" : "glyphs";

	return (shown_job){ .model = job->model,
			    .data = options->bench->data ? options->bench->data : usual,
			    .strategy = job->strategy,
			    .precision = job->precision,
			    .json = options->json };
}

/* ---- the output -------------------------------------------------------------------------------------------------- */

/* json_pack() has no place for what is not known. */
static json_t *real(double value)
{
	return isfinite(value) ? json_real(value) : json_null();
}

static json_t *job_to_json(const ls_fault_bench_options *o, const shown_job *job, const ls_fault_bench_result *r)
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

static int print_json(const ls_fault_bench_options *o, const shown_job *job, const ls_fault_bench_result *r)
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

static int print_text(const ls_fault_bench_options *o, const shown_job *job, const ls_fault_bench_result *r)
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

static int measure(const char *command, const ls_fault_bench_options *o, const shown_job *job)
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

/* What train refuses it says itself. */
int ls_bench_faults(const char *command, const ls_bench_faults_options *options)
{
	ls_fault_bench_options o = LS_FAULT_BENCH_OPTIONS_INIT;
	const shown_job job = job_of(options);
	train_words train = { 0 };
	ls_status status = take_numbers(&o, options);

	if (status == LS_OK)
		status = make_job(&train, options, &job);
	int code = status == LS_OK ? check_numbers(command, options, &o) : ls_command_finish(command, status);
	if (code == LS_ARGS_GO && train.no_memory) {
		ls_command_end(command, LS_EMEMORY, "no memory for the options of the job");
		code = LS_EXIT_FAILURE;
	}
	o.train = train.word;
	if (code == LS_ARGS_GO)
		code = measure(command, &o, &job);
	free_words(&train);
	return code;
}
