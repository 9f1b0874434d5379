/*
 * Runs on several nodes that end in the middle, and go on from snapshots in memory: on other layouts, with the
 * files of any one node lost, to the bits of a run that nothing happened to. Where they are not whole,
 * checkpoints on disk are used.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <glob.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <lockstep/model.h>

#include "base/clock.h"
#include "base/files.h"
#include "base/log.h"
#include "checkpoint/memory_file.h"
#include "unit/run/train_gang.h"
#include "unit/temp_dir.h"

/* Node 1 has samples for LEFT / 14 or LEFT / 7 steps, more than SAVED and fewer than STEPS. */
enum { SAMPLES = 150, STEPS = 14, LEFT = 80, SAVED = 5 };

/* Images, of which only `left` can be read: from there on all nodes wait, until they are killed. */
typedef struct source {
	atomic_long left;
} source;

static void wait_until_saved(const char *run)
{
	char line[1024], part[64];
	snprintf(part, sizeof(part), "\"kind\": \"step\", \"step\": %d,", SAVED);
	for (double end = ls_clock_seconds() + 30; ls_clock_seconds() < end; usleep(2000)) {
		FILE *lines = fopen(in_dir(run, "metrics.jsonl"), "r");
		int found = 0;
		while (lines && !found && fgets(line, sizeof(line), lines))
			found = strstr(line, part) != NULL;
		if (lines)
			fclose(lines);
		if (found)
			return;
	}
}

static ls_status read_image(void *self, uint64_t index, float *image, int32_t *label)
{
	source *s = self;
	for (int i = 0; i < 28 * 28; i++)
		image[i] = (float)((index * 37 + (uint64_t)i * (index % 7 + 1)) % 17) / 17;
	*label = (int32_t)(index % 10);
	while (atomic_fetch_sub(&s->left, 1) <= 0)
		pause();
	return LS_OK;
}

/* One row of the table below. */
typedef struct layout {
	const char *model, *optimizer, *strategy, *wire;
	double ema;
	int nodes, servers, steps;
} layout;

static ls_train_options job(const layout *l, const char *run)
{
	ls_train_options o = short_run(l->model, SAMPLES, 21, 7);
	o.data = "own";
	o.steps = l->steps;
	o.eval_every = 0;
	o.log_every = 1;
	o.optimizer = l->optimizer;
	o.strategy = l->strategy;
	o.servers = l->servers;
	o.wire = l->wire;
	o.share = "equal"; /* what bf16 on the wire rounds depends on it */
	o.ema = l->ema;
	o.bucket_bytes = 64 * 1024;
	o.run = run;
	o.ckpt_every = 1000;
	o.snapshot_every = run ? 2 : 0;
	return o;
}

/* What node 0 says, for all. */
static char heard[8192], failure[1024];

/* A run whose snapshots go when it has just decided to use them. */
static const char *spoiled;
static size_t count_files(const char *run, const char *pattern, int drop);

static void hear(void *context, ls_log_kind kind, const char *text)
{
	size_t used = strlen(heard);
	if (spoiled && strstr(text, "from snapshots in memory"))
		count_files(spoiled, "1-1-*", 1);
	(void)context, (void)kind;
	snprintf(heard + used, sizeof(heard) - used, "%s\n", text);
}

static ls_status train_heard(gang_node *self, ls_comm *comm)
{
	static const ls_log_sink loud = { .level = LS_LOG_INFO, .put = hear }, quiet = { .level = LS_LOG_ERROR };
	ls_log_use(ls_comm_rank(comm) == 0 ? &loud : &quiet);
	return train_node(self, comm);
}

/* Every node has a model in memory. */
static int lends;

static ls_model *lend(uint64_t seed)
{
	ls_model_options options = LS_MODEL_OPTIONS_INIT;
	ls_model *model = NULL;
	options.name = "mlp";
	options.channels = 1;
	options.height = options.width = 28;
	options.classes = 10;
	assert_ok(ls_model_new_named(&model, &options, seed));
	return model;
}

/* How all nodes end; node 1 reads no more than `left` samples. */
static ls_status train(const layout *l, const char *run, int resume, long left, uint64_t *fingerprint)
{
	static const ls_dataset_ops ops = { .read = read_image };
	source sources[GANG_MAX];
	ls_dataset *sets[GANG_MAX];
	node nodes[GANG_MAX];
	ls_status status = LS_OK;

	memset(nodes, 0, sizeof(nodes));
	for (int i = 0; i < l->nodes; i++) {
		ls_dataset_info info = {
			.name = "own", .samples = SAMPLES, .channels = 1, .height = 28, .width = 28, .classes = 10
		};
		atomic_init(&sources[i].left, i == 1 ? left : LONG_MAX);
		assert_ok(ls_dataset_new(&sets[i], &info, &ops, &sources[i]));
		nodes[i].options = job(l, run);
		nodes[i].options.resume = resume;
		nodes[i].options.train_set = sets[i];
		if (lends)
			nodes[i].options.model_handle = lend(nodes[i].options.seed);
	}
	heard[0] = '\0';
	gang_run(nodes, sizeof(*nodes), l->nodes, train_heard);
	for (int i = 0; i < l->nodes; i++) {
		status = status == LS_OK ? nodes[i].gang.status : status;
		if (left == LONG_MAX && nodes[i].gang.status != LS_OK)
			print_error("node %d: %s\n", i, nodes[i].gang.message);
		ls_dataset_free(sets[i]);
		ls_model_free(nodes[i].options.model_handle);
	}
	snprintf(failure, sizeof(failure), "%s", nodes[0].gang.message);
	*fingerprint = nodes[0].result.fingerprint;
	return status;
}

/* The files of the run in memory that fit `pattern`; with `drop` they are removed. */
static size_t count_files(const char *run, const char *pattern, int drop)
{
	char path[600];
	glob_t found = { 0 };
	snprintf(path, sizeof(path), LS_MEMORY_DIRECTORY "/lockstep-%u-%016" PRIx64 "-%s", (unsigned)geteuid(),
		 ls_memory_run(run), pattern);
	size_t count = glob(path, 0, NULL, &found) == 0 ? found.gl_pathc : 0;
	for (size_t i = 0; drop && i < count; i++)
		assert_int_equal(unlink(found.gl_pathv[i]), 0);
	globfree(&found);
	return count;
}

/* A run that is killed in the middle, all nodes at once, with snapshots of every second step in memory. */
static void break_off(const layout *l, const char *run)
{
	uint64_t fingerprint;
	int status;
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		train(l, run, 0, LEFT, &fingerprint);
		_exit(1);
	}
	wait_until_saved(run);
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(count_files(run, "1-*", 0), l->nodes);
}

static void assert_heard(const char *part)
{
	if (!strstr(heard, part))
		fail_msg("'%s' is not in: %s", part, heard);
}

static const layout layouts[] = {
	{ "mlp", "adam", "allreduce", "fp32", 0, 2, 0, STEPS },
	{ "cnn", "lamb", "allreduce", "fp32", 0.9, 3, 0, STEPS },
	{ "mlp", "adam", "allreduce", "bf16", 0.9, 3, 0, STEPS },
	{ "mlp", "lamb", "ps", "fp32", 0.9, 4, 2, STEPS },
};

/* Where a run goes on from memory, by what it has said. */
static int step_heard(void)
{
	const char *at = strstr(heard, " at step ");
	assert_heard("from snapshots in memory");
	return at ? atoi(at + strlen(" at step ")) : 0;
}

/* What a run comes to that nothing happens to, or, with bf16 on the wire, one that goes on from a checkpoint of `step`:
 * the exact parameters then go to all nodes. */
static uint64_t expect(const layout *l, const char *run, int step)
{
	layout whole = *l, part = *l;
	uint64_t expected;
	if (strcmp(l->wire, "bf16") != 0) {
		assert_ok(train(&whole, NULL, 0, LONG_MAX, &expected));
		return expected;
	}
	part.steps = step;
	assert_ok(train(&part, run, 0, LONG_MAX, &expected));
	assert_ok(train(&whole, run, 1, LONG_MAX, &expected));
	return expected;
}

/* With all files, and with those of any one node lost; on the same and on one more or fewer nodes. */
static void test_goes_on(void **state)
{
	uint64_t expected = 0, got;
	for (size_t k = 0; k < sizeof(layouts) / sizeof(layouts[0]); k++)
		for (int lost = -1; lost < layouts[k].nodes; lost++) {
			layout l = layouts[k];
			char run[TEMP_DIR_NAME + 32], disk[TEMP_DIR_NAME + 40], file[32];
			snprintf(run, sizeof(run), "%s/run-%zu-%d", (char *)*state, k, lost);
			snprintf(disk, sizeof(disk), "%s-disk", run);
			snprintf(file, sizeof(file), "1-%d-*", lost);
			break_off(&l, run);
			if (lost >= 0)
				assert_int_equal(count_files(run, file, 1), 1);
			if (lost >= 0 && !strcmp(l.wire, "fp32"))
				l.nodes += lost % 2 ? 1 : -1;
			assert_ok(train(&l, run, 1, LONG_MAX, &got));
			int step = step_heard(), is_exact = !strcmp(l.wire, "fp32");
			if (lost < 0 || !is_exact)
				expected = expect(&l, disk, step);
			if (got != expected)
				fail_msg("row %zu without node %d: %016llx, not %016llx", k, lost,
					 (unsigned long long)got, (unsigned long long)expected);
			assert_int_equal(count_files(run, "*", 0), 0);
			assert_int_equal(ls_memory_run(run), 0);
		}
}

/* Two neighbours lost: the shards of one of them are nowhere. Then, with no checkpoint on disk, the run begins anew. */
static void test_not_whole(void **state)
{
	const layout three = { "mlp", "adam", "allreduce", "fp32", 0, 3, 0, STEPS };
	char run[TEMP_DIR_NAME + 32];
	uint64_t expected, got;
	assert_ok(train(&three, NULL, 0, LONG_MAX, &expected));
	snprintf(run, sizeof(run), "%s/run", (char *)*state);
	break_off(&three, run);
	assert_int_equal(count_files(run, "1-[01]-*", 1), 2);
	assert_ok(train(&three, run, 1, LONG_MAX, &got));
	assert_null(strstr(heard, "from snapshots in memory"));
	assert_int_equal(got, expected);
	assert_int_equal(count_files(run, "*", 0), 0);
}

/* Only servers are left: they have no running statistics, so what they have is not whole. */
static void test_servers_alone(void **state)
{
	const layout ps = { "resnet18", "adam", "ps", "fp32", 0, 3, 1, STEPS };
	char run[TEMP_DIR_NAME + 32];
	uint64_t expected, got;
	assert_ok(train(&ps, NULL, 0, LONG_MAX, &expected));
	snprintf(run, sizeof(run), "%s/run", (char *)*state);
	break_off(&ps, run);
	assert_int_equal(count_files(run, "1-[01]-*", 1), 2);
	assert_ok(train(&ps, run, 1, LONG_MAX, &got));
	assert_null(strstr(heard, "from snapshots in memory"));
	assert_int_equal(got, expected);
}

/* A copy of the directory is another run: it neither uses nor removes what is not its own. */
static void test_copies(void **state)
{
	const layout two = { "mlp", "adam", "allreduce", "fp32", 0, 2, 0, STEPS };
	char run[TEMP_DIR_NAME + 32], copy[TEMP_DIR_NAME + 32], command[4 * TEMP_DIR_NAME];
	uint64_t expected, got;
	assert_ok(train(&two, NULL, 0, LONG_MAX, &expected));
	snprintf(run, sizeof(run), "%s/run", (char *)*state);
	snprintf(copy, sizeof(copy), "%s/copy", (char *)*state);
	break_off(&two, run);
	snprintf(command, sizeof(command), "cp -r %s %s", run, copy);
	assert_int_equal(system(command), 0);
	assert_ok(train(&two, copy, 1, LONG_MAX, &got));
	assert_null(strstr(heard, "from snapshots in memory"));
	assert_int_equal(got, expected);
	assert_int_equal(count_files(run, "1-*", 0), 2);
	assert_ok(train(&two, run, 1, LONG_MAX, &got));
	assert_heard("from snapshots in memory");
	assert_int_equal(got, expected);
}

/* They were whole when they were found: a shard is gone when it is read. The run goes on from the disk, or begins anew.
 * */
static void test_gone_meanwhile(void **state)
{
	const layout two = { "mlp", "adam", "allreduce", "fp32", 0.9, 2, 0, STEPS };
	char run[TEMP_DIR_NAME + 32];
	uint64_t expected, got;
	assert_ok(train(&two, NULL, 0, LONG_MAX, &expected));
	snprintf(run, sizeof(run), "%s/run", (char *)*state);
	break_off(&two, run);
	spoiled = run;
	assert_ok(train(&two, run, 1, LONG_MAX, &got));
	spoiled = NULL;
	assert_heard("from snapshots in memory");
	assert_heard("the snapshots in memory cannot be used: ");
	assert_heard("has no checkpoint yet: starting from the beginning");
	assert_int_equal(got, expected);
	assert_int_equal(count_files(run, "*", 0), 0);
}

/* Of a model in memory the snapshots were read over its first weights: the run does not begin anew from these. */
static void test_gone_meanwhile_of_a_model(void **state)
{
	const layout two = { "mlp", "adam", "allreduce", "fp32", 0, 2, 0, STEPS };
	char run[TEMP_DIR_NAME + 32];
	uint64_t expected, got;
	lends = 1;
	assert_ok(train(&two, NULL, 0, LONG_MAX, &expected));
	snprintf(run, sizeof(run), "%s/run", (char *)*state);
	break_off(&two, run);
	spoiled = run;
	assert_int_equal(train(&two, run, 1, LONG_MAX - 1, &got), LS_EFORMAT);
	spoiled = NULL;
	if (!strstr(failure, "the weights of options.model_handle"))
		fail_msg("%s", failure);
	assert_ok(train(&two, run, 1, LONG_MAX, &got)); /* with models that were made again */
	assert_int_equal(got, expected);
	lends = 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_goes_on, temp_dir_make, temp_dir_remove),
		cmocka_unit_test_setup_teardown(test_not_whole, temp_dir_make, temp_dir_remove),
		cmocka_unit_test_setup_teardown(test_servers_alone, temp_dir_make, temp_dir_remove),
		cmocka_unit_test_setup_teardown(test_gone_meanwhile, temp_dir_make, temp_dir_remove),
		cmocka_unit_test_setup_teardown(test_gone_meanwhile_of_a_model, temp_dir_make, temp_dir_remove),
		cmocka_unit_test_setup_teardown(test_copies, temp_dir_make, temp_dir_remove),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
