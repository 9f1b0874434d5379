/*
 * Outcomes: the output of a bench and of a run becomes a point; errors name what is missing.
 */
#include "tools/sweep/outcome.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "tools/sweep/command.h"
#include "unit/test_main.h"

#define NUMBERS                                                                                                        \
	"\"tokens_per_s\": 0, \"compute_ms\": 3, \"exposed_ms\": 1, \"wait_ms\": 0.5, \"update_ms\": 0.1, "            \
	"\"gradient_bytes\": 1.5e6, \"gflop_per_s\": 20, \"peak_rss_bytes\": 1000000"
#define NODES                                                                                                          \
	"\"nodes\": [{\"host\": \"a\", \"devices\": 2, \"compute_ms\": 1, \"exposed_ms\": 2, \"wait_ms\": 3, "         \
	"\"sent_bytes\": 4, \"received_bytes\": 5}]"

static ls_child child_of(const char *out)
{
	return (ls_child){ .out = (char *)out, .bytes = strlen(out), .seconds = 12.5 };
}

static void test_bench(void **state)
{
	(void)state;
	ls_child child = child_of("{" NUMBERS ", " NODES ", \"repeats\": [{\"samples_per_s\": 30, \"step_ms\": 3}, "
				  "{\"samples_per_s\": 10, \"step_ms\": 5}, {\"samples_per_s\": 20, \"step_ms\": 4}]}");
	ls_point p = { 0 };
	assert_int_equal(ls_outcome_bench(&p, &child), LS_OK);
	assert_int_equal(ls_point_summarize(&p), LS_OK);
	assert_int_equal(p.repeat_count, 3);
	assert_float_equal(p.samples_per_s, 20, 0);
	assert_float_equal(p.samples_per_s_min, 10, 0);
	assert_float_equal(p.samples_per_s_max, 30, 0);
	assert_float_equal(p.step_ms, 4, 0);
	assert_float_equal(p.wall_s, 12.5, 0);
	assert_float_equal(p.gradient_bytes, 1.5e6, 0);
	assert_int_equal(p.node_count, 1);
	assert_string_equal(p.nodes[0].host, "a");
	assert_float_equal(p.nodes[0].received_bytes, 5, 0);
	ls_point_release(&p);
}

static void bench_fails(const char *out, const char *reason)
{
	ls_child child = child_of(out);
	ls_point p = { 0 };
	assert_int_not_equal(ls_outcome_bench(&p, &child), LS_OK);
	if (!strstr(ls_last_error(), reason))
		fail_msg("'%s' does not say '%s'", ls_last_error(), reason);
	ls_point_release(&p);
}

static void test_bench_malformed(void **state)
{
	(void)state;
	bench_fails("", "JSON");
	bench_fails("{}", "tokens_per_s");
	bench_fails("{" NUMBERS ", " NODES "}", "repeats");
	bench_fails("{" NUMBERS ", " NODES ", \"repeats\": []}", "repeats");
	bench_fails("{" NUMBERS ", " NODES ", \"repeats\": [{\"samples_per_s\": 1}]}", "repeats[0].step_ms");
	bench_fails("{" NUMBERS ", " NODES ", \"repeats\": [{\"samples_per_s\": 0, \"step_ms\": 1}]}", "not above 0");
	bench_fails("{" NUMBERS ", \"repeats\": [{\"samples_per_s\": 1, \"step_ms\": 1}]}", "nodes");
}

/* ---- training ---------------------------------------------------------------------------------------------------- */

static char run[] = "/tmp/lockstep-outcome-XXXXXX";

static void write_metrics(const char *text)
{
	char path[128];
	snprintf(path, sizeof(path), "%s/metrics.jsonl", run);
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static int make_run(void **state)
{
	(void)state;
	return !mkdtemp(run);
}

static int remove_run(void **state)
{
	(void)state;
	return ls_path_remove_tree(run) != LS_OK;
}

static ls_point two_nodes(void)
{
	return (ls_point){ .job = { .kind = "train", .shape = "3+2", .nodes = 2, .devices = 5, .batch = 10 } };
}

static void test_train(void **state)
{
	(void)state;
	write_metrics("{\"kind\": \"step\", \"step\": 200, \"loss\": 0.5, \"samples_per_s\": 90, \"wait_s\": 0.01, "
		      "\"exposed_s\": 0.02, \"node0_compute_s\": 0.1, \"node1_compute_s\": 0.3}\n"
		      "{\"kind\": \"step\", \"step\": 300, \"loss\": null, \"samples_per_s\": 100, \"wait_s\": 0.01, "
		      "\"exposed_s\": 0.02, \"node0_compute_s\": 0.1, \"node1_compute_s\": 0.3}\n"
		      "{\"kind\": \"epoch\", \"step\": 300, \"seconds\": 7, \"epoch\": 0}\n"
		      "{\"kind\": \"test\", \"step\": 300, \"seconds\": 2, \"epoch\": 0, \"accuracy\": 0.75, "
		      "\"loss\": 0.9}\n");
	ls_child child = child_of("Step200: 95.50 data/sec\nStep400: 97 data/sec, 12 tokens/sec\nEpoch 1 in 7 sec\n");
	ls_point p = two_nodes();
	for (int k = 0; k < 2; k++) /* curves are of the last repeat, and do not add up */
		assert_int_equal(ls_outcome_train(&p, &child, run), LS_OK);
	assert_int_equal(ls_point_summarize(&p), LS_OK);
	assert_int_equal(p.repeat_count, 2);
	assert_float_equal(p.samples_per_s, 95, 1e-9);
	assert_float_equal(p.step_ms, 1e3 * 50 / 95, 1e-9);
	assert_float_equal(p.wall_s, 12.5, 0);
	assert_int_equal(p.rate_count, 2);
	assert_int_equal(p.rates[0].step, 200);
	assert_float_equal(p.rates[0].samples_per_s, 95.5, 0);
	assert_float_equal(p.rates[0].loss, 0.5, 0);
	assert_true(isnan(p.rates[1].loss));
	assert_int_equal(p.epoch_count, 1);
	assert_float_equal(p.epochs[0].seconds, 7, 0);
	assert_float_equal(p.epochs[0].test_seconds, 2, 0);
	assert_float_equal(p.epochs[0].accuracy, 0.75, 0);
	assert_float_equal(p.accuracy, 0.75, 0);
	assert_int_equal(p.node_count, 2);
	assert_int_equal(p.nodes[1].devices, 2);
	assert_float_equal(p.nodes[1].compute_ms, 300, 1e-9);
	assert_float_equal(p.compute_ms, (3 * 100 + 2 * 300) / 5.0, 1e-9);
	assert_float_equal(p.exposed_ms, 20, 1e-9);
	ls_point_release(&p);
}

/* Where every worker reads all data, an epoch of five devices is five passes: times add up, the test is the last
 * one. */
static void test_epochs_of_workers(void **state)
{
	(void)state;
	char text[4096];
	size_t used =
		(size_t)snprintf(text, sizeof(text), "{\"kind\": \"step\", \"step\": 1, \"samples_per_s\": 90}\n");
	for (int pass = 0; pass < 10; pass++) {
		used += (size_t)snprintf(text + used, sizeof(text) - used,
					 "{\"kind\": \"epoch\", \"step\": 1, \"seconds\": %d, \"epoch\": %d}\n",
					 pass + 1, pass);
		if (pass % 5 == 4)
			used += (size_t)snprintf(text + used, sizeof(text) - used,
						 "{\"kind\": \"test\", \"step\": 1, \"seconds\": 2, \"epoch\": %d, "
						 "\"accuracy\": 0.%d, \"loss\": 0.9}\n",
						 pass, pass);
	}
	write_metrics(text);
	ls_child child = child_of("");
	ls_point p = two_nodes();
	snprintf(p.job.epoch, sizeof(p.job.epoch), "worker");
	assert_int_equal(ls_outcome_train(&p, &child, run), LS_OK);
	assert_int_equal(p.epoch_count, 2);
	assert_int_equal(p.epochs[1].epoch, 1);
	assert_float_equal(p.epochs[0].seconds, 15, 0);
	assert_float_equal(p.epochs[1].seconds, 40, 0);
	assert_float_equal(p.epochs[1].test_seconds, 2, 0);
	assert_float_equal(p.epochs[0].accuracy, 0.4, 1e-9);
	assert_float_equal(p.epochs[1].accuracy, 0.9, 1e-9);
	ls_point_release(&p);
}

/* A run that ends before it logs a step has the rates of its epochs. */
static void test_short_run(void **state)
{
	(void)state;
	ls_child child = child_of("");
	ls_point p = two_nodes();
	double batch = (double)(p.job.batch * p.job.devices);
	write_metrics("{\"kind\": \"epoch\", \"step\": 4, \"seconds\": 2, \"epoch\": 0}\n"
		      "{\"kind\": \"epoch\", \"step\": 8, \"seconds\": 4, \"epoch\": 1}\n");
	assert_int_equal(ls_outcome_train(&p, &child, run), LS_OK);
	assert_int_equal(ls_point_summarize(&p), LS_OK);
	assert_float_equal(p.samples_per_s, (4 * batch / 2 + 4 * batch / 4) / 2, 1e-9);
	ls_point_release(&p);
}

static void test_train_malformed(void **state)
{
	(void)state;
	ls_child child = child_of("");
	ls_point p = two_nodes();
	write_metrics("{\"kind\": \"test\", \"step\": 1, \"seconds\": 7, \"epoch\": 0, \"accuracy\": 0.5}\n");
	assert_int_equal(ls_outcome_train(&p, &child, run), LS_EFORMAT);
	assert_non_null(strstr(ls_last_error(), "no step with a rate"));
	write_metrics("{\"kind\": \"step\", \"step\": 1}\n{\"kind\": \n");
	assert_int_equal(ls_outcome_train(&p, &child, run), LS_EFORMAT);
	assert_non_null(strstr(ls_last_error(), "metrics.jsonl:2"));
	assert_int_not_equal(ls_outcome_train(&p, &child, "/nowhere"), LS_OK);
	ls_point_release(&p);
}

/* ---- commands ---------------------------------------------------------------------------------------------------- */

/* Words joined by blanks. */
static const char *joined(char **argv)
{
	static char text[4096];
	size_t used = 0;
	for (; *argv; argv++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s", used ? " " : "", *argv);
	return text;
}

static ls_sweep_point point_of(const char *devices, const char *strategy, const char *arguments)
{
	ls_sweep_point p = { .job = { .kind = "bench",
				      .model = "cnn",
				      .optimizer = "adam",
				      .batch = 8,
				      .threads = 1,
				      .wire = "fp32",
				      .warmup = 2,
				      .steps = 3 } };
	snprintf(p.job.strategy, sizeof(p.job.strategy), "%s", strategy);
	snprintf(p.job.arguments, sizeof(p.job.arguments), "%s", arguments);
	assert_int_equal(ls_sweep_point_shape(&p, devices, 1), LS_OK);
	assert_int_equal(ls_sweep_point_normalise(&p), LS_OK);
	return p;
}

static void test_commands(void **state)
{
	(void)state;
	ls_arena arena = LS_ARENA_INIT;
	ls_lab lab = { .tool = "lab", .name = "x" };
	char **argv;
	ls_sweep_point p = point_of("2", "allreduce", "--vocab 'a b' --cased");
	ls_sweep_target target = { .program = "lockstep", .repeat = 7 };
	assert_int_equal(ls_sweep_bench_command(&arena, &p, &target, &argv), LS_OK);
	assert_string_equal(joined(argv),
			    "lockstep bench --json --model cnn --batch-per-device 8 --optimizer adam --threads 1 "
			    "--devices 2 --warmup 2 --steps 3 --repeat 7 --vocab a b --cased");
	p = point_of("3+2", "ps", "");
	target = (ls_sweep_target){ .program = "lockstep", .repeat = 1, .lab = &lab, .profile = "p.json" };
	assert_int_equal(ls_sweep_bench_command(&arena, &p, &target, &argv), LS_OK);
	assert_string_equal(joined(argv),
			    "lab run --name x lockstep bench --json --replay p.json --optimizer adam --threads 1 "
			    "--hosts node1:3,node2:2,node3:1 --timeout 45 --strategy ps --wire fp32 --servers 1 "
			    "--warmup 2 --steps 3 --repeat 1");
	target = (ls_sweep_target){ .program = "lockstep", .hosts = "lm1:9,lm6:9,lm7:9", .run = "r" };
	assert_int_equal(ls_sweep_train_command(&arena, &p, &target, &argv), LS_OK);
	assert_non_null(strstr(joined(argv), "--hosts lm1:3,lm6:2,lm7:1 "));
	snprintf(p.on, sizeof(p.on), "3,1,2");
	assert_int_equal(ls_sweep_point_normalise(&p), LS_OK);
	assert_int_equal(ls_sweep_train_command(&arena, &p, &target, &argv), LS_OK);
	assert_non_null(strstr(joined(argv), "--hosts lm7:3,lm1:2,lm6:1 "));
	p.job.epochs = 4;
	snprintf(p.job.epoch, sizeof(p.job.epoch), "worker");
	assert_int_equal(ls_sweep_train_command(&arena, &p, &target, &argv), LS_OK);
	assert_non_null(strstr(joined(argv), "--epochs 20 "));
	assert_non_null(strstr(joined(argv), "--eval-every 5"));
	snprintf(p.job.arguments, sizeof(p.job.arguments), "--eval-every=2");
	assert_int_equal(ls_sweep_train_command(&arena, &p, &target, &argv), LS_OK);
	assert_non_null(strstr(joined(argv), "--eval-every=2 --eval-every 10"));
	p = point_of("1", "allreduce", "--vocab 'a");
	assert_int_equal(ls_sweep_bench_command(&arena, &p, &target, &argv), LS_EINVALID);
	ls_arena_release(&arena);
}

TEST_MAIN_GROUP(make_run, remove_run, test_bench, test_bench_malformed, test_train, test_short_run,
		test_train_malformed, test_commands, test_epochs_of_workers)
