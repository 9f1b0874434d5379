/*
 * cmd_plan.c - lockstep plan: how fast a job would train on a cluster that need not be there.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lockstep/plan.h>

#include "args.h"
#include "command.h"
#include "plan_print.h"

typedef struct plan_options {
	ls_forecast_options plan;
	int json;
} plan_options;

#define PLAN(member) offsetof(plan_options, plan) + offsetof(ls_forecast_options, member)
#define OWN(member) offsetof(plan_options, member)

static const ls_setting rows[] = {
	{ "cluster", 0, "FILE", "Cluster", "its description, or what 'lockstep probe --json' printed",
	  LS_SETTING_STRING, PLAN(cluster), 0, 0, 0 },
	{ "nodes", 0, "LIST", "Cluster", "how many: 16, or 2,4,8,16", LS_SETTING_STRING, PLAN(nodes), 0, 0, 0 },
	{ "devices", 0, "N", "Cluster", "of each node; 0: the cluster's, or 1", LS_SETTING_INT, PLAN(devices), 0,
	  100000, 0 },
	{ "rate", 0, "LIST", "Cluster", "of links: 1gbit, or 1gbit,10gbit", LS_SETTING_STRING, PLAN(rate), 0, 0, 0 },
	{ "latency", 0, "US", "Cluster", "of a letter; -1: the cluster's, or 150", LS_SETTING_REAL, PLAN(latency_us),
	  -1, 1e7, 0 },
	{ "spread", 0, "X", "Cluster", "0.05: speeds of like nodes vary by 5 %; -1: the cluster's", LS_SETTING_REAL,
	  PLAN(spread), -1, 1, 0 },
	{ "mtbf", 0, "HOURS", "Cluster", "between failures of a node; 0: none; -1: the cluster's", LS_SETTING_REAL,
	  PLAN(mtbf_hours), -1, 1e9, 0 },
	{ "placement", 0, "LIST", "Job", "allreduce, ps; both by default", LS_SETTING_STRING, PLAN(placement), 0, 0,
	  0 },
	{ "servers", 0, "N", "Job", "the last N nodes, with ps; 0: one in eight", LS_SETTING_INT, PLAN(servers), 0, 1e7,
	  0 },
	{ "wire", 0, "LIST", "Job", "fp32, bf16", LS_SETTING_STRING, PLAN(wire), 0, 0, 0 },
	{ "bucket-bytes", 0, "LIST", "Job", "that go out together: 262144,1048576", LS_SETTING_STRING, PLAN(bucket), 0,
	  0, 0 },
	{ "leaves", 0, "N", "Job", "of the profile's batch, a device and step", LS_SETTING_INT, PLAN(microbatches), 1,
	  10000, 0 },
	{ "share", 0, "HOW", "Job", "equal, or auto: by the speed of nodes", LS_SETTING_STRING, PLAN(share), 0, 0, 0 },
	{ "checkpoint-every", 0, "S", "Job", "seconds; 0: what loses least; -1: the cluster's", LS_SETTING_REAL,
	  PLAN(interval_s), -1, 1e9, 0 },
	{ "after", 0, NULL, "Job", "as trainers that exchange only after backward", LS_SETTING_FLAG, PLAN(after), 0, 1,
	  0 },
	{ "rehearsed", 0, NULL, "Lab", "devices sleep through the profile, as in a replay", LS_SETTING_FLAG,
	  PLAN(rehearsed), 0, 1, 0 },
	{ "shared-cores", 0, "N", "Lab", "all nodes run on one machine with N cores", LS_SETTING_INT,
	  PLAN(shared_cores), 0, 1e6, 0 },
	{ "json", 0, NULL, "Output", "as JSON, which 'lockstep report' reads", LS_SETTING_FLAG, OWN(json), 0, 1, 0 },
};
LS_ARGS_TABLE(row_at, rows)

static const ls_args args = {
	.command = "lockstep plan",
	.operands = "PROFILE",
	.purpose = "Predict how a job would scale on a cluster, from a profile of one device\n"
		   "(lockstep bench --profile-out PROFILE), by simulating its steps.",
	.example = "lockstep plan resnet18.json --nodes 2,8,32 --rate 1gbit,10gbit",
	.operands_min = 1,
	.operands_max = 1,
	.at = row_at,
};

static int print_json(const ls_forecast *forecast)
{
	char *text = ls_forecast_to_json(forecast);
	int failed = !text || printf("%s\n", text) < 0;
	free(text);
	return failed;
}

/* About the last combination of nodes and rate, which is the largest as people write lists. */
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
	ls_status status = ls_forecast_make(&forecast, &options.plan);
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
