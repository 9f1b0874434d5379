/*
 * cmd_bench.c - lockstep bench: how fast a model trains on data in memory.
 */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>

#include <lockstep/bench.h>

#include "args.h"
#include "command.h"
#include "table.h"

/* The library's options, with whole numbers as rows hold them. */
typedef struct bench_options {
	ls_bench_options bench;
	int64_t channels, size, classes;
	int json;
} bench_options;

#define BENCH(member) offsetof(bench_options, bench) + offsetof(ls_bench_options, member)
#define OWN(member) offsetof(bench_options, member)

static const ls_setting rows[] = {
	{ "model", 'm', "NAME", "What", "a row of 'lockstep models'", LS_SETTING_STRING, BENCH(model), 0, 0, 0 },
	{ "channels", 0, "N", "What", "channels of an image", LS_SETTING_INT, OWN(channels), 1, 4096, 0 },
	{ "size", 0, "N", "What", "its height and width", LS_SETTING_INT, OWN(size), 1, 4096, 0 },
	{ "classes", 0, "N", "What", "classes to tell apart", LS_SETTING_INT, OWN(classes), 1, 1000000, 0 },
	{ "batch", 'b', "N", "What", "samples a device a step", LS_SETTING_INT, BENCH(batch), 1, 1e9, 0 },
	{ "optimizer", 0, "NAME", "What", "sgd, adam or adamw", LS_SETTING_STRING, BENCH(optimizer), 0, 0, 0 },
	{ "seed", 's', "N", "What", "of weights and data", LS_SETTING_SEED, BENCH(seed), 0, 0x1p53, 0 },
	{ "devices", 0, "N", "Machine", "teams of threads", LS_SETTING_INT, BENCH(devices), 1, 4096, 0 },
	{ "threads", 't', "N", "Machine", "threads a device", LS_SETTING_INT, BENCH(threads), 1, LS_THREADS_MAX, 0 },
	{ "warmup", 0, "N", "Measurement", "steps not counted before each repeat", LS_SETTING_INT, BENCH(warmup), 0,
	  1e9, 0 },
	{ "steps", 0, "N", "Measurement", "steps timed in each repeat", LS_SETTING_INT, BENCH(steps), 1, 1e9, 0 },
	{ "repeat", 0, "N", "Measurement", "repeats; the median is reported", LS_SETTING_INT, BENCH(repeat), 1, 1e6,
	  0 },
	{ "profile", 0, NULL, "Measurement", "also time every layer", LS_SETTING_FLAG, BENCH(profile), 0, 1, 0 },
	{ "json", 0, NULL, "Measurement", "print one JSON object", LS_SETTING_FLAG, OWN(json), 0, 1, 0 },
};
LS_ARGS_TABLE(row_at, rows)

static const ls_args args = {
	.command = "lockstep bench",
	.purpose = "Measure training speed on data in memory: warm-up excluded, median of repeats.",
	.example = "lockstep bench --model cnn --batch 64 --threads 2 --profile",
	.columns = 1,
	.at = row_at,
};

static json_t *layers_to_json(const ls_bench_result *result)
{
	json_t *list = json_array();
	for (size_t i = 0; i < result->layer_count; i++) {
		const ls_bench_layer *layer = &result->layers[i];
		json_array_append_new(list, json_pack("{s:s, s:f, s:f, s:f}", "name", layer->name, "forward_ms",
						      layer->forward_ms, "backward_ms", layer->backward_ms, "flop",
						      layer->flop));
	}
	return list;
}

static json_t *job_to_json(const ls_bench_options *job)
{
	return json_pack("{s:s, s:i, s:i, s:i, s:i, s:I, s:I, s:I, s:I, s:I, s:I, s:s, s:I}", "model", job->model,
			 "channels", job->channels, "height", job->height, "width", job->width, "classes", job->classes,
			 "batch", (json_int_t)job->batch, "devices", (json_int_t)job->devices, "threads",
			 (json_int_t)job->threads, "warmup", (json_int_t)job->warmup, "steps", (json_int_t)job->steps,
			 "repeat", (json_int_t)job->repeat, "optimizer", job->optimizer, "seed", (json_int_t)job->seed);
}

static json_t *result_to_json(const ls_bench_result *result)
{
	return json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:I, s:s, s:s, s:s}", "samples_per_s",
			 result->samples_per_s, "samples_per_s_min", result->samples_per_s_min, "samples_per_s_max",
			 result->samples_per_s_max, "step_ms", result->step_ms, "update_ms", result->update_ms,
			 "flop_per_sample", result->flop_per_sample, "gflop_per_s", result->gflop_per_s,
			 "peak_rss_bytes", (json_int_t)result->peak_rss_bytes, "kernels", result->kernels, "isa",
			 result->isa, "version", ls_version());
}

static int print_json(const ls_bench_options *job, const ls_bench_result *result)
{
	json_t *object = job_to_json(job), *numbers = result_to_json(result);
	int bad = !object || !numbers || json_object_update(object, numbers);
	if (!bad && job->profile)
		bad = json_object_set_new(object, "layers", layers_to_json(result));
	if (!bad)
		bad = json_dumpf(object, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
	putchar('\n');
	json_decref(object);
	json_decref(numbers);
	if (bad)
		fprintf(stderr, "%s: cannot write the result as JSON\n", args.command);
	return bad ? LS_EXIT_FAILURE : LS_EXIT_OK;
}

static int print_layers(const ls_bench_result *result)
{
	ls_table table = { .columns = 4, .heads = { "<layer", "forward ms", "backward ms", "GFLOP/s" } };
	for (size_t i = 0; i < result->layer_count; i++) {
		const ls_bench_layer *layer = &result->layers[i];
		double ms = layer->forward_ms + layer->backward_ms;
		ls_table_add(&table, "%s", layer->name);
		ls_table_add(&table, "%.3f", layer->forward_ms);
		ls_table_add(&table, "%.3f", layer->backward_ms);
		ls_table_add(&table, "%.1f", ms > 0 ? layer->flop / ms / 1e6 : 0.0);
	}
	putchar('\n');
	int failed = ls_table_print(&table, stdout);
	ls_table_release(&table);
	return failed ? LS_EXIT_FAILURE : LS_EXIT_OK;
}

static int print_text(const ls_bench_options *job, const ls_bench_result *result)
{
	printf("%s, %d x %d x %d, batch %" PRId64 ", %s, devices %" PRId64 ", threads %" PRId64 ", %s kernels (%s)\n",
	       job->model, job->channels, job->height, job->width, job->batch, job->optimizer, job->devices,
	       job->threads, result->kernels, result->isa);
	printf("samples/s  %.1f, median of %" PRId64 " (%.1f to %.1f)\n", result->samples_per_s, job->repeat,
	       result->samples_per_s_min, result->samples_per_s_max);
	printf("step       %.2f ms, of it %.2f ms update\n", result->step_ms, result->update_ms);
	printf("GFLOP/s    %.1f, at %.4f GFLOP a sample\n", result->gflop_per_s, result->flop_per_sample / 1e9);
	printf("peak RSS   %.0f MB\n", (double)result->peak_rss_bytes / 1e6);
	return job->profile ? print_layers(result) : LS_EXIT_OK;
}

int ls_cmd_bench(int argc, char **argv)
{
	bench_options options = { .bench = LS_BENCH_OPTIONS_INIT };
	ls_bench_options *job = &options.bench;
	options.channels = job->channels, options.size = job->height, options.classes = job->classes;
	int code = ls_args_parse(&args, &options, NULL, argc, argv);
	if (code != LS_ARGS_GO)
		return code;
	job->channels = (int)options.channels, job->classes = (int)options.classes;
	job->height = job->width = (int)options.size;
	ls_bench_result result;
	ls_status status = ls_bench(job, &result);
	if (status)
		return ls_command_finish(args.command, status);
	code = options.json ? print_json(job, &result) : print_text(job, &result);
	ls_bench_result_release(&result);
	return code;
}
