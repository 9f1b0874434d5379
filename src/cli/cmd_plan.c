/*
 * cmd_plan.c - lockstep plan: predict how fast a job would train on a cluster, from a profile, from a measurement that
 * it makes itself, or from measured rows of a table.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lockstep/plan.h>
#include <lockstep/text.h>

#include "args.h"
#include "command.h"
#include "duration.h"
#include "plan_measure.h"
#include "plan_print.h"

/* Numbers whose default is that of the cluster; parsed as texts, so that NULL means "not given". */
enum { LATENCY, SPREAD, MTBF, CHECKPOINT_EVERY, CHECKPOINT_COST, RESTART_COST, SNAPSHOT_COST, CLUSTER_NUMBERS };

/* The library's options, with whole numbers as rows hold them. */
typedef struct plan_options {
	ls_forecast_options plan;
	ls_bench_options bench;
	int64_t channels, size, classes;
	const char *fit;
	const char *text[CLUSTER_NUMBERS];
	int json;
} plan_options;

#define PLAN(member) offsetof(plan_options, plan) + offsetof(ls_forecast_options, member)
#define BENCH(member) offsetof(plan_options, bench) + offsetof(ls_bench_options, member)
#define JOB(member) BENCH(job) + offsetof(ls_train_options, member)
#define OWN(member) offsetof(plan_options, member)

#define MEASURE "Measure" /* the group of options of a measurement */

static const ls_setting rows[] = {
	{ "model", 'm', "NAME", MEASURE, "instead of PROFILE: measure this model here first", LS_SETTING_STRING,
	  JOB(model), 0, 0, 0 },
	{ "batch-per-device", 0, "N", MEASURE, "use N samples per device and step (default 128)", LS_SETTING_INT,
	  JOB(batch_per_device), 0, 1e9, LS_SETTING_NOT_0 },
	{ "optimizer", 0, "NAME", MEASURE, "update by {values}", LS_SETTING_STRING, JOB(optimizer), 0, 0, 0 },
	{ "threads", 't', "N", MEASURE, "use N threads", LS_SETTING_INT, JOB(threads), 1, LS_THREADS_MAX, 0 },
	{ "precision", 0, "TYPE", MEASURE, "multiply in {values}", LS_SETTING_STRING, JOB(precision), 0, 0, 0 },
	{ "channels", 0, "N", MEASURE, "image channels", LS_SETTING_INT, OWN(channels), 1, 4096, 0 },
	{ "image-size", 0, "N", MEASURE, "image height and width in pixels", LS_SETTING_INT, OWN(size), 1, 4096, 0 },
	{ "classes", 0, "N", MEASURE, "number of classes", LS_SETTING_INT, OWN(classes), 1, 1000000, 0 },
	{ "seq-len", 0, "N", MEASURE, "text: use samples of N tokens (default 128)", LS_SETTING_INT, JOB(seq_len), 0,
	  LS_TOKENS_MAX, LS_SETTING_NOT_0 },
	{ "layers", 0, "N", MEASURE, "transformer: number of layers (default 6)", LS_SETTING_INT, JOB(layers), 0, 1000,
	  LS_SETTING_NOT_0 },
	{ "width", 0, "N", MEASURE, "transformer: hidden size (default 256)", LS_SETTING_INT, JOB(width), 0, 65536,
	  LS_SETTING_NOT_0 },
	{ "heads", 0, "N", MEASURE, "transformer: number of attention heads (default 4)", LS_SETTING_INT, JOB(heads), 0,
	  4096, LS_SETTING_NOT_0 },
	{ "ffn", 0, "N", MEASURE, "transformer: feed-forward size (default 4 x width)", LS_SETTING_INT, JOB(ffn), 0,
	  1 << 20, LS_SETTING_NOT_0 },
	{ "profile-out", 0, "FILE", MEASURE, "keep the measured profile in FILE", LS_SETTING_STRING, BENCH(profile_out),
	  0, 0, 0 },
	{ "fit", 0, "TABLE", "Fit", "instead of PROFILE: predict a table from its rows of one node", LS_SETTING_STRING,
	  OWN(fit), 0, 0, 0 },
	{ "cluster", 0, "FILE", "Cluster", "read the cluster from FILE or a probe", LS_SETTING_STRING, PLAN(cluster), 0,
	  0, 0 },
	{ "nodes", 0, "LIST", "Cluster", "predict for these numbers of nodes: 2,4,8,16", LS_SETTING_STRING, PLAN(nodes),
	  0, 0, 0 },
	{ "devices", 0, "N", "Cluster", "devices per node (default: the cluster's, else 1)", LS_SETTING_INT,
	  PLAN(devices), 0, 100000, 0 },
	{ "rate", 0, "LIST", "Cluster", "link rates: 1gbit, or 1gbit,10gbit", LS_SETTING_STRING, PLAN(rate), 0, 0, 0 },
	{ "latency", 0, "US", "Cluster", "one-way message latency in microseconds", LS_SETTING_STRING,
	  OWN(text[LATENCY]), 0, 0, 0 },
	{ "spread", 0, "X", "Cluster", "let speeds of identical nodes vary: 0.05 is 5 %", LS_SETTING_STRING,
	  OWN(text[SPREAD]), 0, 0, 0 },
	{ "mtbf", 0, "TIME", "Cluster", "mean time between failures of a node: 500 (hours), 30d", LS_SETTING_STRING,
	  OWN(text[MTBF]), 0, 0, 0 },
	{ "restart-cost", 0, "TIME", "Cluster", "from a failure until training continues (default 30 s)",
	  LS_SETTING_STRING, OWN(text[RESTART_COST]), 0, 0, 0 },
	{ "strategy", 0, "LIST", "Job", "predict {values} (default: all)", LS_SETTING_STRING, PLAN(strategy), 0, 0, 0 },
	{ "servers", 0, "N", "Job", "number of parameter servers (default: 1 in 8 nodes)", LS_SETTING_INT,
	  PLAN(servers), 0, 1e7, 0 },
	{ "wire", 0, "LIST", "Job", "numbers between nodes: {values}", LS_SETTING_STRING, PLAN(wire), 0, 0, 0 },
	{ "bucket-bytes", 0, "LIST", "Job", "bytes of gradient sent together: 262144,1048576", LS_SETTING_STRING,
	  PLAN(bucket), 0, 0, 0 },
	{ "micro-batches", 0, "N", "Job", "micro-batches per device and step", LS_SETTING_INT, PLAN(microbatches), 1,
	  10000, 0 },
	{ "share", 0, "HOW", "Job", "split a batch over nodes: {values}", LS_SETTING_STRING, PLAN(share), 0, 0, 0 },
	{ "checkpoint-every", 0, "TIME", "Job", "seconds between checkpoints, or 10m; 0: the best interval",
	  LS_SETTING_STRING, OWN(text[CHECKPOINT_EVERY]), 0, 0, 0 },
	{ "checkpoint-cost", 0, "TIME", "Job", "how long a checkpoint stops training (default 1 s)", LS_SETTING_STRING,
	  OWN(text[CHECKPOINT_COST]), 0, 0, 0 },
	{ "snapshot-cost", 0, "TIME", "Job", "how long a snapshot in memory stops training: 0.02", LS_SETTING_STRING,
	  OWN(text[SNAPSHOT_COST]), 0, 0, 0 },
	{ "after", 0, NULL, "Job", "exchange gradients only after backward", LS_SETTING_FLAG, PLAN(after), 0, 1, 0 },
	{ "replayed", 0, NULL, "Lab", "simulate compute: devices sleep, as in a replay", LS_SETTING_FLAG,
	  PLAN(replayed), 0, 1, 0 },
	{ "shared-cores", 0, "N", "Lab", "all nodes run on one machine with N cores", LS_SETTING_INT,
	  PLAN(shared_cores), 0, 1e6, 0 },
	{ "json", 0, NULL, "Output", "print JSON, which 'lockstep report' reads", LS_SETTING_FLAG, OWN(json), 0, 1, 0 },
};
LS_ARGS_TABLE(row_at, rows)

/* Of the strategies, those that can be simulated. */
static int value_at(const ls_setting *row, size_t i, ls_setting_value *out)
{
	const ls_strategy_info *strategy;
	if (strcmp(row->name, "strategy") != 0)
		return ls_setting_value_at(row, i, out);
	for (size_t k = 0; (strategy = ls_strategy_at(k)); k++)
		if (!strategy->unplanned && i-- == 0) {
			*out = (ls_setting_value){ strategy->name, strategy->summary };
			return 1;
		}
	return 0;
}

static const ls_args args = {
	.command = "lockstep plan",
	.operands = "[PROFILE]",
	.purpose = "Predict how a job would scale on a cluster, by simulating its steps. The job is\n"
		   "a PROFILE of one device (lockstep bench --profile-out), a --model, which is\n"
		   "measured here first, or rows to --fit: results.json, a CSV, a built-in table.",
	.example = "lockstep plan --model resnet18 --nodes 2,8,32 --rate 1gbit,10gbit\n"
		   "         lockstep plan --fit oneflow-bert",
	.operands_max = 1,
	.at = row_at,
	.value_at = value_at,
};

static plan_options defaults(void)
{
	plan_options o = { .plan = LS_FORECAST_OPTIONS_INIT, .bench = LS_BENCH_OPTIONS_INIT };
	o.bench.job.model = NULL;
	o.bench.job.devices = o.bench.job.threads = 1;
	o.channels = o.bench.channels;
	o.size = o.bench.height;
	o.classes = o.bench.classes;
	return o;
}

static int is_given(const plan_options *options, const ls_setting *row)
{
	char value[1024], usual[1024];
	const plan_options plain = defaults();

	ls_setting_format(row, options, value, sizeof(value));
	ls_setting_format(row, &plain, usual, sizeof(usual));
	return strcmp(value, usual) != 0;
}

/* What a table does not leave open. */
static int applies_to_fit(const char *name)
{
	static const char *const names[] = { "fit",     "nodes",  "devices",      "rate",
					     "latency", "spread", "bucket-bytes", "json" };
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(name, names[i]))
			return 1;
	return 0;
}

/* One of PROFILE, --model and --fit, and no option of another. */
static int check_source(const plan_options *o)
{
	int sources = (o->plan.profile != NULL) + (o->bench.job.model != NULL) + (o->fit != NULL);

	if (sources != 1)
		return ls_usage_error(args.command, sources == 0 ? "PROFILE, --model or --fit is missing"
								 : "PROFILE, --model and --fit exclude each other");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (!is_given(o, &rows[i]))
			continue;
		if (o->fit && !applies_to_fit(rows[i].name))
			return ls_usage_error(args.command, "--%s has no effect with --fit: the table says it",
					      rows[i].name);
		if (!o->bench.job.model && !strcmp(rows[i].group, MEASURE))
			return ls_usage_error(args.command, "--%s is about a measurement, which --model asks for",
					      rows[i].name);
	}
	return LS_ARGS_GO;
}

static ls_status take_numbers(plan_options *o)
{
	const struct {
		const char *name;
		double max, *to;
		double unit; /* of a time, in seconds; 0: no time */
	} numbers[CLUSTER_NUMBERS] = {
		[LATENCY] = { "latency", 1e7, &o->plan.latency_us, 0 },
		[SPREAD] = { "spread", 1, &o->plan.spread, 0 },
		[MTBF] = { "mtbf", 1e9, &o->plan.mtbf_hours, 3600 },
		[CHECKPOINT_EVERY] = { "checkpoint-every", 1e9, &o->plan.interval_s, 1 },
		[CHECKPOINT_COST] = { "checkpoint-cost", 1e6, &o->plan.checkpoint_s, 1 },
		[RESTART_COST] = { "restart-cost", 1e6, &o->plan.restart_s, 1 },
		[SNAPSHOT_COST] = { "snapshot-cost", 1e6, &o->plan.snapshot_s, 1 },
	};
	for (int i = 0; i < CLUSTER_NUMBERS; i++) {
		const ls_setting row = { .name = numbers[i].name, .kind = LS_SETTING_REAL, .max = numbers[i].max };
		ls_status status =
			o->text[i] ? ls_duration_set(&row, numbers[i].unit, numbers[i].to, o->text[i]) : LS_OK;
		if (status != LS_OK)
			return status;
	}
	return LS_OK;
}

static int print_json(char *text)
{
	int failed = !text || printf("%s\n", text) < 0;
	free(text);
	return failed;
}

/* Advice is about the last combination of nodes and rate, usually the largest. */
static ls_status print_text(const ls_forecast_options *options, const ls_forecast *forecast)
{
	const ls_forecast_row *last = &forecast->row[forecast->count - 1];
	char *advice = NULL;
	int best = ls_forecast_best(forecast, last->nodes, last->rate);
	ls_status status = ls_forecast_advise(options, forecast, best, &advice);

	if (status != LS_OK)
		return status;
	ls_forecast_print(forecast, best, advice, stdout);
	free(advice);
	return LS_OK;
}

static int predict(const plan_options *o)
{
	ls_forecast forecast;
	ls_status status = ls_forecast_make(&forecast, &o->plan);
	int failed = 0;

	if (status != LS_OK)
		return ls_command_finish(args.command, status);
	if (o->json)
		failed = print_json(ls_forecast_to_json(&forecast));
	else
		status = print_text(&o->plan, &forecast);
	ls_forecast_release(&forecast);
	return failed ? LS_EXIT_FAILURE : ls_command_finish(args.command, status);
}

static int measure(plan_options *o)
{
	char *profile = NULL;

	o->bench.channels = (int)o->channels, o->bench.classes = (int)o->classes;
	o->bench.height = o->bench.width = (int)o->size;
	ls_status status = ls_plan_measure(args.command, &o->bench, &profile);
	if (status != LS_OK)
		return ls_command_finish(args.command, status);
	o->plan.profile_text = profile;
	int code = predict(o);
	free(profile);
	return code;
}

static ls_status take_bucket(const plan_options *o, int64_t *out)
{
	const ls_setting row = { .name = "bucket-bytes", .kind = LS_SETTING_INT, .min = 1, .max = 1e12 };
	return o->plan.bucket ? ls_setting_set(&row, out, o->plan.bucket) : LS_OK;
}

static int fit(const plan_options *o)
{
	ls_fit_options options = LS_FIT_OPTIONS_INIT;
	ls_fit result;
	int failed = 0;

	options.table = o->fit, options.nodes = o->plan.nodes, options.rate = o->plan.rate;
	options.devices = o->plan.devices, options.latency_us = o->plan.latency_us, options.spread = o->plan.spread;
	ls_status status = take_bucket(o, &options.bucket_bytes);
	if (status == LS_OK)
		status = ls_fit_make(&result, &options);
	if (status != LS_OK)
		return ls_command_finish(args.command, status);
	ls_fit_print_left_out(args.command, &result, stderr);
	if (o->json)
		failed = print_json(ls_fit_to_json(&result));
	else
		ls_fit_print(&result, stdout);
	ls_fit_release(&result);
	return failed ? LS_EXIT_FAILURE : LS_EXIT_OK;
}

int ls_cmd_plan(int argc, char **argv)
{
	plan_options options = defaults();
	int code = ls_args_parse(&args, &options, &options.plan.profile, argc, argv);

	if (code == LS_ARGS_GO)
		code = check_source(&options);
	if (code != LS_ARGS_GO)
		return code;
	ls_status status = take_numbers(&options);
	if (status != LS_OK)
		return ls_command_finish(args.command, status);
	return options.fit ? fit(&options) : options.bench.job.model ? measure(&options) : predict(&options);
}
