/*
 * cmd_bench.c - lockstep bench: how fast a model trains on data in memory, here, under a launcher, or on hosts.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include <lockstep/bench.h>
#include <lockstep/launch.h>

#include "args.h"
#include "bench_print.h"
#include "command.h"
#include "on_hosts.h"

/* The library's options, with whole numbers as rows hold them. */
typedef struct bench_options {
	ls_bench_options bench;
	int64_t channels, size, classes;
	int json;
} bench_options;

#define BENCH(member) offsetof(bench_options, bench) + offsetof(ls_bench_options, member)
#define OWN(member) offsetof(bench_options, member)

/* In the order of help. Rows that only have a name are training's. */
static const ls_setting rows[] = {
	{ .name = "model" },
	{ "channels", 0, "N", "Model and data", "channels", LS_SETTING_INT, OWN(channels), 1, 4096, 0 },
	{ "size", 0, "N", "Model and data", "height and width", LS_SETTING_INT, OWN(size), 1, 4096, 0 },
	{ "classes", 0, "N", "Model and data", "classes", LS_SETTING_INT, OWN(classes), 1, 1000000, 0 },
	{ "data", 'd', "NAME", "Model and data", "text to read", LS_SETTING_STRING, BENCH(data), 0, 0,
	  LS_SETTING_COMMON },
	{ .name = "data-dir" },
	{ .name = "dropout" },
	{ .name = "vocab" },
	{ .name = "seq-len" },
	{ .name = "layers" },
	{ .name = "width" },
	{ .name = "heads" },
	{ .name = "ffn" },
	{ .name = "batch" },
	{ .name = "global-batch" },
	{ .name = "leaf" },
	{ .name = "optimizer" },
	{ .name = "seed" },
	{ .name = "devices" },
	{ .name = "threads" },
	{ .name = "pin" },
	{ .name = "hosts" },
	{ .name = "placement" },
	{ .name = "servers" },
	{ .name = "staleness" },
	{ .name = "wire" },
	{ .name = "share" },
	{ .name = "exchange" },
	{ .name = "bucket-bytes" },
	{ .name = "timeout" },
	{ "warmup", 0, "N", "Measurement", "steps not counted", LS_SETTING_INT, BENCH(warmup), 0, 1e9,
	  LS_SETTING_COMMON },
	{ "steps", 0, "N", "Measurement", "steps timed", LS_SETTING_INT, BENCH(steps), 1, 1e9, LS_SETTING_COMMON },
	{ "repeat", 0, "N", "Measurement", "times; median", LS_SETTING_INT, BENCH(repeat), 1, 1e6, LS_SETTING_COMMON },
	{ "profile", 0, NULL, "Measurement", "time every layer", LS_SETTING_FLAG, BENCH(profile), 0, 1,
	  LS_SETTING_COMMON },
	{ "json", 0, NULL, "Measurement", "as JSON", LS_SETTING_FLAG, OWN(json), 0, 1, LS_SETTING_COMMON },
	{ "profile-out", 0, "FILE", "Replay", "keep a profile", LS_SETTING_STRING, BENCH(profile_out), 0, 0, 0 },
	{ "replay", 0, "FILE", "Replay", "sleep through it", LS_SETTING_STRING, BENCH(replay), 0, 0, 0 },
	{ "replay-speed", 0, "X", "Replay", "0.5: twice as long", LS_SETTING_REAL, BENCH(replay_speed), 1e-6, 1e6, 0 },
};
#define ROWS (sizeof rows / sizeof rows[0])

static const ls_setting *training_row(const char *name)
{
	const ls_setting *row;
	for (size_t i = 0; (row = ls_train_setting_at(i)); i++)
		if (!strcmp(row->name, name))
			break;
	return row;
}

/* Training's rows say where a field is in its options, which are part of these. */
static const ls_setting *row_at(size_t i)
{
	static ls_setting moved[ROWS];
	if (i >= ROWS || rows[i].help)
		return i < ROWS ? &rows[i] : NULL;
	const ls_setting *row = training_row(rows[i].name);
	if (row) {
		moved[i] = *row;
		moved[i].offset += BENCH(job);
	}
	return row ? &moved[i] : NULL;
}

static const ls_args args = {
	.command = "lockstep bench",
	.purpose = "Measure training speed on data in memory: warm-up excluded, median of repeats.",
	.example = "lockstep bench --model cnn --batch 64 --threads 2 --profile",
	.columns = 2,
	.brief = 1,
	.at = row_at,
};

/* One node tells what went wrong; the others have no words for it. */
static int finish(ls_status status)
{
	if (status != LS_OK && !ls_last_error()[0])
		return LS_EXIT_FAILURE;
	return ls_command_finish(args.command, status);
}

static int bench_here(const bench_options *options)
{
	ls_bench_result result;
	if (ls_launched_by_us()) {
		signal(SIGUSR1, SIG_DFL); /* the launcher's way to ask for an end; there is nothing to save */
		ls_launch_report();
	}
	ls_status status = ls_bench(&options->bench, &result);
	if (status != LS_OK)
		return finish(status);
	int failed = 0;
	if (result.node == 0)
		failed = options->json ? ls_bench_print_json(&options->bench, &result, stdout)
				       : ls_bench_print_text(&options->bench, &result, stdout);
	ls_bench_result_release(&result);
	if (failed)
		fprintf(stderr, "%s: cannot write the result\n", args.command);
	return failed ? LS_EXIT_FAILURE : LS_EXIT_OK;
}

int ls_cmd_bench(int argc, char **argv)
{
	bench_options options = { .bench = LS_BENCH_OPTIONS_INIT };
	ls_bench_options *bench = &options.bench;
	bench->job.devices = 1;
	options.channels = bench->channels, options.size = bench->height, options.classes = bench->classes;
	int code = ls_args_parse(&args, &options, NULL, argc, argv);
	if (code != LS_ARGS_GO)
		return code;
	bench->channels = (int)options.channels, bench->classes = (int)options.classes;
	bench->height = bench->width = (int)options.size;
	ls_on_hosts_options hosts = { .command = args.command,
				      .hosts = bench->job.hosts,
				      .timeout = (double)bench->job.timeout,
				      .argc = argc,
				      .argv = argv };
	code = ls_on_hosts(&hosts, &bench->job.devices);
	return code == LS_ON_HOSTS_HERE ? bench_here(&options) : code;
}
