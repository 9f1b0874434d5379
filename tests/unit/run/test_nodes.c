/*
 * Runs on several nodes, which are threads of this process: the same bits as on one, resuming on another layout,
 * refusal of nodes that would do something else, and one end for all.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files.h"
#include "base/log.h"
#include "unit/exchange/lost_end.h"
#include "unit/run/train_gang.h"
#include "unit/temp_dir.h"

static ls_train_options job(const char *model)
{
	ls_train_options o = short_run(model, 150, 63, 7);
	o.test_samples = 20;
	o.steps = 5;
	return o;
}

static uint64_t alone(const ls_train_options *options)
{
	ls_train_result result;
	ls_train_options o = *options;
	o.strategy = "allreduce";
	o.servers = 0;
	o.share = "auto";
	if (ls_train_node(&o, NULL, &result) != LS_OK)
		fail_msg("alone: %s", ls_last_error());
	return result.fingerprint;
}

/* All nodes must come to an end; the fingerprint of the first. */
static uint64_t together(const ls_train_options *options, int count, const int *devices)
{
	node *nodes = calloc((size_t)count, sizeof(*nodes));
	for (int i = 0; i < count; i++) {
		nodes[i].options = *options;
		nodes[i].options.devices = devices[i];
	}
	train_nodes(nodes, count);
	for (int i = 0; i < count; i++)
		if (nodes[i].gang.status != LS_OK)
			print_error("node %d: %s, %s\n", i, ls_status_name(nodes[i].gang.status),
				    nodes[i].gang.message);
	for (int i = 0; i < count; i++)
		if (nodes[i].gang.status != LS_OK)
			fail_msg("node %d of %d (%s): %s", i, count, options->strategy, nodes[i].gang.message);
	uint64_t fingerprint = nodes[0].result.fingerprint;
	int workers = count - (int)options->servers;
	for (int i = 1; i < workers; i++)
		assert_int_equal(nodes[i].result.fingerprint, fingerprint);
	free(nodes);
	return fingerprint;
}

static void test_same_bits(void **state)
{
	static const struct {
		int nodes, devices[GANG_MAX], servers;
		const char *share;
		double clip;
		const char *model, *optimizer;
	} rows[] = {
		{ 2, { 1, 1 }, 0, "auto", 0, "mlp", "adam" },
		{ 2, { 1, 2 }, 0, "equal", 0, "cnn", "adam" },
		{ 3, { 1, 1, 1 }, 0, "5:1:2", 0, "cnn", "adam" },
		{ 3, { 2, 1, 1 }, 1, "auto", 0, "cnn", "adam" },
		{ 4, { 1, 1, 1, 1 }, 1, "equal", 0, "mlp", "adam" },
		{ 2, { 2, 2 }, 0, "1:8", 0.05, "mlp", "adam" },
		{ 4, { 1, 2, 1, 1 }, 2, "equal", 0.05, "cnn", "adam" },
		{ 2, { 1, 1 }, 0, "equal", 0, "resnet18", "adam" },
		{ 5, { 1, 1, 1, 1, 1 }, 0, "auto", 0, "mlp", "adam" },
		{ 2, { 2, 1 }, 0, "equal", 0, "cnn", "lamb" },
		{ 4, { 1, 2, 1, 1 }, 2, "5:1", 0, "cnn", "lamb" },
		{ 3, { 1, 1, 1 }, 0, "auto", 0.05, "mlp", "lamb" },
		{ 4, { 1, 1, 2, 1 }, 1, "equal", 0.05, "cnn", "lamb" },
		{ 2, { 1, 1 }, 0, "equal", 0, "resnet18", "lamb" },
	};
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		ls_train_options o = job(rows[i].model);
		if (strcmp(o.model, "resnet18") == 0)
			o.samples = 24, o.batch = 12, o.micro_batch = 4, o.steps = 3;
		o.clip_norm = rows[i].clip;
		o.optimizer = rows[i].optimizer;
		o.weight_decay = strcmp(o.optimizer, "lamb") == 0 ? 0.01 : 0;
		uint64_t expected = alone(&o);
		o.servers = rows[i].servers;
		o.strategy = o.servers > 0 ? "ps" : "allreduce";
		o.share = rows[i].share;
		o.bucket_bytes = 64 * 1024;
		uint64_t got = together(&o, rows[i].nodes, rows[i].devices);
		if (got != expected)
			fail_msg("row %zu: %016llx, alone %016llx", i, (unsigned long long)got,
				 (unsigned long long)expected);
	}
}

/* What a test on all devices comes to is known to every node, and the same everywhere. */
static void test_same_evaluation(void **state)
{
	static const struct {
		int nodes, devices[GANG_MAX], servers;
	} rows[] = { { 2, { 1, 2 }, 0 }, { 3, { 2, 1, 1 }, 1 } };
	ls_train_options o = job("cnn");
	ls_train_result expected;
	(void)state;
	o.test_samples = 900; /* four micro-batches */
	assert_int_equal(ls_train_node(&o, NULL, &expected), LS_OK);
	for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
		node nodes[GANG_MAX] = { 0 };
		for (int i = 0; i < rows[r].nodes; i++) {
			nodes[i].options = o;
			nodes[i].options.devices = rows[r].devices[i];
			nodes[i].options.servers = rows[r].servers;
			nodes[i].options.strategy = rows[r].servers > 0 ? "ps" : "allreduce";
		}
		train_nodes(nodes, rows[r].nodes);
		for (int i = 0; i < rows[r].nodes; i++) {
			assert_int_equal(nodes[i].gang.status, LS_OK);
			assert_true(nodes[i].result.test_loss == expected.test_loss);
			assert_true(nodes[i].result.test_accuracy == expected.test_accuracy);
		}
	}
}

/* A checkpoint of any layout goes on with any other. */
static void test_resume_elsewhere(void **state)
{
	const int one[] = { 1, 1, 1 }, two[] = { 2, 1 };
	char directory[600];
	ls_train_options o = job("cnn"), ps;
	uint64_t expected;

	o.steps = 9;
	expected = alone(&o);
	snprintf(directory, sizeof(directory), "%s/run", (char *)*state);
	o.run = directory;
	o.steps = 2;
	together(&o, 2, two);
	o.resume = 1;
	o.steps = 4;
	ps = o;
	ps.strategy = "ps";
	ps.servers = 1;
	together(&ps, 3, one);
	o.steps = 6;
	alone(&o);
	o.steps = 9;
	assert_int_equal(together(&o, 3, one), expected);
}

/* Nodes that are given only the run's directory, which the first node alone can read, have its settings. */
static void test_recall(void **state)
{
	const int one[] = { 1, 1 };
	char directory[600];
	node nodes[2];
	ls_train_options o = job("mlp");

	o.steps = 6;
	o.lr = 0.002;
	uint64_t expected = alone(&o);
	snprintf(directory, sizeof(directory), "%s/run", (char *)*state);
	o.run = directory;
	o.steps = 3;
	together(&o, 2, one);
	memset(nodes, 0, sizeof(nodes));
	for (int i = 0; i < 2; i++) {
		ls_train_options bare = LS_TRAIN_OPTIONS_INIT;
		bare.resume = 1;
		bare.steps = 6;
		bare.run = i == 0 ? directory : "/nowhere/to/be/seen";
		nodes[i].options = bare;
	}
	train_nodes(nodes, 2);
	for (int i = 0; i < 2; i++) {
		if (nodes[i].gang.status != LS_OK)
			fail_msg("node %d: %s", i, nodes[i].gang.message);
		assert_int_equal(nodes[i].result.fingerprint, expected);
	}
	nodes[1].options.resume = 0; /* one does not: no hang, and the difference is named */
	train_nodes(nodes, 2);
	assert_int_equal(nodes[0].gang.status, LS_EMISMATCH);
	nodes[1].options.resume = 1;
	nodes[1].options.lr = 0.5;
	train_nodes(nodes, 2);
	assert_int_equal(nodes[0].gang.status, LS_EMISMATCH);
	assert_non_null(strstr(nodes[0].gang.message, "options.lr"));
}

/* Lines of metrics.jsonl that hold `part`; with `drop` they are taken out. */
static int count_lines(const char *run, const char *part, int drop)
{
	char path[700], kept[8192] = "", line[1024];
	int count = 0;
	snprintf(path, sizeof(path), "%s/metrics.jsonl", run);
	FILE *stream = fopen(path, "r");
	assert_non_null(stream);
	while (fgets(line, sizeof(line), stream)) {
		int has = strstr(line, part) != NULL;
		count += has;
		if (!has)
			strncat(kept, line, sizeof(kept) - strlen(kept) - 1);
	}
	fclose(stream);
	if (drop)
		assert_int_equal(ls_file_put(path, kept, strlen(kept)), LS_OK);
	return count;
}

/* Killed between an epoch's checkpoint and the record of its test: all nodes test when they are resumed, once. */
static void test_owed_evaluation(void **state)
{
	const int one[] = { 1, 1, 1 };
	char directory[600];
	ls_train_options o = job("mlp");

	snprintf(directory, sizeof(directory), "%s/run", (char *)*state);
	o.run = directory;
	o.steps = 3; /* an epoch */
	together(&o, 2, one);
	assert_int_equal(count_lines(directory, "\"kind\": \"test\", \"step\": 3,", 1), 1);
	o.resume = 1;
	o.steps = 4;
	together(&o, 3, one);
	assert_int_equal(count_lines(directory, "\"kind\": \"test\", \"step\": 3,", 0), 1);
	o.steps = 6;
	together(&o, 2, one);
	together(&o, 2, one); /* is complete */
	assert_int_equal(count_lines(directory, "\"kind\": \"test\", \"step\": 3,", 0), 1);
	assert_int_equal(count_lines(directory, "\"kind\": \"test\", \"step\": 6,", 0), 1);
	assert_int_equal(count_lines(directory, "\"kind\": \"end\", \"step\": 6,", 0), 1);
}

static void *move_when_saved(void *argument)
{
	const char *run = argument;
	char saved[700], to[700];
	glob_t found = { 0 };
	snprintf(saved, sizeof(saved), "%s/ckpt/step-*", run); /* any: old ones are removed while the run goes on */
	snprintf(to, sizeof(to), "%s-elsewhere", run);
	for (double end = ls_clock_seconds() + 60; glob(saved, 0, NULL, &found) != 0 && ls_clock_seconds() < end;)
		usleep(1000);
	globfree(&found);
	assert_int_equal(rename(run, to), 0);
	return NULL;
}

/* The first node's directory is moved away: all nodes end, after the same step, which is saved where it is now. */
static void test_moved_directory(void **state)
{
	node nodes[2];
	char directory[600], saved[700];
	pthread_t mover;

	snprintf(directory, sizeof(directory), "%s/run", (char *)*state);
	memset(nodes, 0, sizeof(nodes));
	nodes[0].options = nodes[1].options = job("mlp");
	nodes[0].options.run = nodes[1].options.run = directory;
	nodes[0].options.steps = nodes[1].options.steps = 1000000000;
	assert_int_equal(pthread_create(&mover, NULL, move_when_saved, directory), 0);
	train_nodes(nodes, 2);
	pthread_join(mover, NULL);
	assert_int_equal(nodes[0].gang.status, LS_EIO);
	assert_int_equal(nodes[1].gang.status, LS_EIO);
	assert_non_null(strstr(nodes[0].gang.message, "was moved to"));
	assert_int_equal(nodes[0].result.steps, nodes[1].result.steps);
	snprintf(saved, sizeof(saved), "%s-elsewhere/ckpt/step-%09lld", directory, (long long)nodes[0].result.steps);
	assert_true(ls_path_exists(saved));
	assert_false(ls_path_exists(directory));
}

static void expect_refusal(node *nodes, int count, const char *part)
{
	train_nodes(nodes, count);
	for (int i = 0; i < count; i++) {
		assert_int_not_equal(nodes[i].gang.status, LS_OK);
		if (i == 0 ? !strstr(nodes[i].gang.message, part) : nodes[i].gang.message[0] != '\0')
			fail_msg("node %d says '%s', expected '%s'", i, nodes[i].gang.message, i == 0 ? part : "");
	}
}

static void test_differences_are_refused(void **state)
{
	node nodes[2];
	(void)state;
	for (int k = 0; k < 5; k++) {
		static const char *const parts[] = { "options.lr is 0.001 on node 0", "options.wire is fp32 on node 0",
						     "150 samples", "unknown model 'cnm'", "2 parameter servers on 2" };
		memset(nodes, 0, sizeof(nodes));
		nodes[0].options = nodes[1].options = job("mlp");
		nodes[1].options.lr = k == 0 ? 0.5 : nodes[1].options.lr;
		nodes[1].options.wire = k == 1 ? "bf16" : "fp32";
		if (k == 2) { /* the same settings, other data */
			nodes[0].options.data = nodes[1].options.data = "glyphs";
			nodes[1].options.samples = 140;
		}
		if (k == 3)
			nodes[1].options.model = "cnm";
		for (int i = 0; k == 4 && i < 2; i++) {
			nodes[i].options.strategy = "ps";
			nodes[i].options.servers = 2;
		}
		expect_refusal(nodes, 2, k == 2 ? "options.samples is 150" : parts[k]);
	}
}

/* The same few words in every sample. */
static ls_status measure_same(void *self, uint64_t index, uint64_t epoch, int *length, int *masked)
{
	(void)self, (void)index, (void)epoch;
	*length = 4;
	*masked = 0;
	return LS_OK;
}

static ls_status read_same(void *self, uint64_t index, uint64_t epoch, ls_text_sample *out)
{
	for (int32_t i = 0; i < 4; i++) {
		out->tokens[i] = i;
		out->segments[i] = 0;
	}
	out->label = (int32_t)(index % 2);
	return measure_same(self, index, epoch, &out->length, &out->masked);
}

/* Texts that agree in the samples that are compared one by one, and differ elsewhere: the hash differs. */
static void test_other_texts_are_refused(void **state)
{
	static const ls_dataset_ops ops = { .read_text = read_same, .measure_text = measure_same };
	ls_dataset *sets[2];
	node nodes[2];
	(void)state;
	memset(nodes, 0, sizeof(nodes));
	for (uint64_t i = 0; i < 2; i++) {
		ls_dataset_info info = { .name = "own",
					 .samples = 400,
					 .classes = 2,
					 .tokens_max = 4,
					 .vocabulary = 8,
					 .text_hash = 1 + i };
		assert_int_equal(ls_dataset_new(&sets[i], &info, &ops, NULL), LS_OK);
		nodes[i].options = job("transformer");
		nodes[i].options.train_set = sets[i];
		nodes[i].options.eval_every = 0;
	}
	expect_refusal(nodes, 2, "have different samples");
	for (int i = 0; i < 2; i++)
		ls_dataset_free(sets[i]);
}

/* A node that cannot go on takes the others with it, for its reason. */
static ls_status lost(void *self, uint64_t index, float *image, int32_t *label)
{
	const uint64_t *bad = self;
	for (int i = 0; i < 28 * 28; i++)
		image[i] = (float)(index % 10);
	*label = (int32_t)(index % 10);
	return index == *bad ? ls_fail(LS_EIO, "sample %llu is lost", (unsigned long long)index) : LS_OK;
}

static void test_one_end_for_all(void **state)
{
	static const ls_dataset_ops ops = { .read = lost };
	uint64_t bad[3] = { UINT64_MAX, 101, UINT64_MAX };
	ls_dataset *sets[3];
	node nodes[3];
	(void)state;
	memset(nodes, 0, sizeof(nodes));
	for (int i = 0; i < 3; i++) {
		ls_dataset_info info = {
			.name = "own", .samples = 400, .channels = 1, .height = 28, .width = 28, .classes = 10
		};
		assert_int_equal(ls_dataset_new(&sets[i], &info, &ops, &bad[i]), LS_OK);
		nodes[i].options = job("mlp");
		nodes[i].options.train_set = sets[i];
		nodes[i].options.steps = 0;
		nodes[i].options.epochs = 50; /* node 1 meets the sample in some epoch or other */
		nodes[i].options.eval_every = 0;
	}
	train_nodes(nodes, 3);
	for (int i = 0; i < 3; i++) {
		assert_int_not_equal(nodes[i].gang.status, LS_OK);
		ls_dataset_free(sets[i]);
	}
	assert_non_null(strstr(nodes[1].gang.message, "sample 101 is lost"));
	assert_non_null(strstr(nodes[1].gang.message, "node 1"));
}

/* A node that finds another one missing once its run is complete fails, and says that nothing of the run is lost. */
static void test_lost_at_the_end(void **state)
{
	node nodes[2];
	char directory[600];

	snprintf(directory, sizeof(directory), "%s/run", (char *)*state);
	for (int saved = 0; saved < 2; saved++) {
		memset(nodes, 0, sizeof(nodes));
		nodes[0].options = nodes[1].options = job("mlp");
		nodes[0].options.run = nodes[1].options.run = saved ? directory : NULL;
		nodes[0].gang.wrap = lose_the_end;
		train_nodes(nodes, 2);
		assert_int_equal(nodes[1].gang.status, LS_OK);
		assert_int_equal(nodes[0].gang.status, LS_EPEER);
		assert_non_null(strstr(nodes[0].gang.message, ") has completed its work, but " LOST_END));
		assert_string_equal(strrchr(nodes[0].gang.message, ';'),
				    saved ? "; the run is complete and saved" : "; the run is complete");
	}
	assert_int_equal(count_lines(directory, "\"kind\": \"end\", \"step\": 5,", 0), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same_bits),
		cmocka_unit_test(test_same_evaluation),
		cmocka_unit_test_setup_teardown(test_resume_elsewhere, temp_dir_make, temp_dir_remove),
		cmocka_unit_test_setup_teardown(test_recall, temp_dir_make, temp_dir_remove),
		cmocka_unit_test_setup_teardown(test_owed_evaluation, temp_dir_make, temp_dir_remove),
		cmocka_unit_test_setup_teardown(test_moved_directory, temp_dir_make, temp_dir_remove),
		cmocka_unit_test(test_differences_are_refused),
		cmocka_unit_test(test_other_texts_are_refused),
		cmocka_unit_test(test_one_end_for_all),
		cmocka_unit_test_setup_teardown(test_lost_at_the_end, temp_dir_make, temp_dir_remove),
	};
	ls_log_set_level(LS_LOG_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
