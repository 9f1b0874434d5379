/*
 * cmd_plan.c - lockstep plan: predict how fast a job would train on a cluster.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lockstep/plan.h>

#include "args.h"
#include "command.h"
#include "plan_print.h"

/* Numbers whose default is that of the cluster; parsed as texts, so that NULL means "not given". */
enum { LATENCY, SPREAD, MTBF, CHECKPOINT_EVERY, CLUSTER_NUMBERS };

typedef struct plan_options {
	ls_forecast_options plan;
	const char *text[CLUSTER_NUMBERS];
	int json;
} plan_options;

#define PLAN(member) offsetof(plan_options, plan) + offsetof(ls_forecast_options, member)
#define OWN(member) offsetof(plan_options, member)

static const ls_setting rows[] = {
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
	{ "mtbf", 0, "HOURS", "Cluster", "mean time between failures of a node in hours", LS_SETTING_STRING,
	  OWN(text[MTBF]), 0, 0, 0 },
	{ "strategy", 0, "LIST", "Job", "predict {values} (default: all)", LS_SETTING_STRING, PLAN(strategy), 0, 0, 0 },
	{ "servers", 0, "N", "Job", "number of parameter servers (default: 1 in 8 nodes)", LS_SETTING_INT,
	  PLAN(servers), 0, 1e7, 0 },
	{ "wire", 0, "LIST", "Job", "numbers between nodes: {values}", LS_SETTING_STRING, PLAN(wire), 0, 0, 0 },
	{ "bucket-bytes", 0, "LIST", "Job", "bytes of gradient sent together: 262144,1048576", LS_SETTING_STRING,
	  PLAN(bucket), 0, 0, 0 },
	{ "micro-batches", 0, "N", "Job", "micro-batches per device and step", LS_SETTING_INT, PLAN(microbatches), 1,
	  10000, 0 },
	{ "share", 0, "HOW", "Job", "share micro-batches between nodes: {values}", LS_SETTING_STRING, PLAN(share), 0, 0,
	  0 },
	{ "checkpoint-every", 0, "S", "Job", "seconds between checkpoints; 0: the best interval", LS_SETTING_STRING,
	  OWN(text[CHECKPOINT_EVERY]), 0, 0, 0 },
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
	.operands = "PROFILE",
	.purpose = "Predict how a job would scale on a cluster, from a profile of one device\n"
		   "(lockstep bench --profile-out PROFILE), by simulating its steps.",
	.example = "lockstep plan resnet18.json --nodes 2,8,32 --rate 1gbit,10gbit",
	.operands_min = 1,
	.operands_max = 1,
	.at = row_at,
	.value_at = value_at,
};

static ls_status take_numbers(plan_options *o)
{
	const struct {
		const char *name;
		double max, *to;
	} numbers[CLUSTER_NUMBERS] = {
		[LATENCY] = { "latency", 1e7, &o->plan.latency_us },
		[SPREAD] = { "spread", 1, &o->plan.spread },
		[MTBF] = { "mtbf", 1e9, &o->plan.mtbf_hours },
		[CHECKPOINT_EVERY] = { "checkpoint-every", 1e9, &o->plan.interval_s },
	};
	for (int i = 0; i < CLUSTER_NUMBERS; i++) {
		const ls_setting row = { .name = numbers[i].name, .kind = LS_SETTING_REAL, .max = numbers[i].max };
		ls_status status = o->text[i] ? ls_setting_set(&row, numbers[i].to, o->text[i]) : LS_OK;
		if (status != LS_OK)
			return status;
	}
	return LS_OK;
}

static int print_json(const ls_forecast *forecast)
{
	char *text = ls_forecast_to_json(forecast);
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

int ls_cmd_plan(int argc, char **argv)
{
	plan_options options = { .plan = LS_FORECAST_OPTIONS_INIT };
	ls_forecast forecast;
	int code = ls_args_parse(&args, &options, &options.plan.profile, argc, argv);

	if (code != LS_ARGS_GO)
		return code;
	ls_status status = take_numbers(&options);
	if (status == LS_OK)
		status = ls_forecast_make(&forecast, &options.plan);
	if (status != LS_OK)
		return ls_command_finish(args.command, status);
	int failed = 0;
	if (options.json)
		failed = print_json(&forecast);
	else
		status = print_text(&options.plan, &forecast);
	ls_forecast_release(&forecast);
	return failed ? LS_EXIT_FAILURE : ls_command_finish(args.command, status);
}
