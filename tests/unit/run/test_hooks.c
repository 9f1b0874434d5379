/*
 * Hooks of a run: they hear of every step, epoch, checkpoint and line, nothing else is printed, and each can end the
 * run, which then goes on with the same bits, also on several nodes. Models in memory. Runs in threads, each with its
 * own hooks and its own stop handle.
 */
#include <lockstep/model.h>
#include <lockstep/train.h>
#include <lockstep/trainer.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "unit/assert_status.h"
#include "unit/run/train_gang.h"
#include "unit/temp_dir.h"
#include "unit/test_main.h"

enum { SAMPLES = 100, BATCH = 20, PER_EPOCH = SAMPLES / BATCH, EPOCHS = 2, STEPS = PER_EPOCH * EPOCHS };

/* What was heard, and when to end. */
typedef struct heard {
	int64_t steps, epochs, checkpoints;
	atomic_int lines;
	double last_loss, test_accuracy;
	uint64_t fingerprint;
	char run[1024], warning[256];
	int64_t fail_step, fail_epoch, fail_checkpoint; /* 0: never */
	ls_stop *stop;                                  /* requested in step `stop_step` */
	int64_t stop_step;
} heard;

static ls_status on_step(void *context, const ls_train_step *step)
{
	heard *h = context;

	assert_int_equal(step->step, h->steps + 1);
	assert_int_equal(step->steps, STEPS);
	assert_int_equal(step->epoch, h->steps / PER_EPOCH);
	assert_int_equal(step->samples, BATCH);
	assert_true(step->loss > 0 && step->accuracy >= 0 && step->lr > 0 && isnan(step->gradient_norm));
	h->steps = step->step;
	h->last_loss = step->loss;
	if (step->step == h->stop_step)
		ls_stop_request(h->stop);
	return step->step == h->fail_step ? LS_EFORMAT : LS_OK;
}

static ls_status on_epoch(void *context, const ls_train_epoch *epoch)
{
	heard *h = context;

	assert_int_equal(epoch->step, h->steps);
	assert_int_equal(epoch->epochs, EPOCHS);
	assert_true(epoch->loss > 0 && epoch->accuracy > 0 && epoch->is_tested);
	h->epochs = epoch->epoch + 1;
	h->test_accuracy = epoch->test_accuracy;
	return h->epochs == h->fail_epoch ? LS_EIO : LS_OK;
}

static ls_status on_checkpoint(void *context, const ls_train_checkpoint *checkpoint)
{
	heard *h = context;

	assert_true(checkpoint->step <= h->steps); /* training goes on while it is written */
	h->checkpoints++;
	h->fingerprint = checkpoint->fingerprint;
	snprintf(h->run, sizeof(h->run), "%s", checkpoint->run);
	return h->checkpoints == h->fail_checkpoint ? LS_EMEMORY : LS_OK;
}

static void on_line(void *context, ls_train_line kind, const char *line)
{
	heard *h = context;

	assert_null(strchr(line, '\n'));
	atomic_fetch_add(&h->lines, 1);
	if (kind == LS_LINE_WARNING)
		snprintf(h->warning, sizeof(h->warning), "%s", line);
}

static ls_train_hooks hooks_of(heard *h)
{
	ls_train_hooks hooks = LS_TRAIN_HOOKS_INIT;
	hooks.context = h;
	hooks.step = on_step;
	hooks.epoch = on_epoch;
	hooks.checkpoint = on_checkpoint;
	hooks.log = on_line;
	return hooks;
}

static ls_train_options job(const char *run, const ls_train_hooks *hooks)
{
	ls_train_options o = LS_TRAIN_OPTIONS_INIT;
	o.model = "mlp";
	o.data = "glyphs";
	o.samples = SAMPLES;
	o.test_samples = 50;
	o.batch = BATCH;
	o.micro_batch = 10;
	o.epochs = EPOCHS;
	o.devices = 1;
	o.threads = 1;
	o.log_every = 2;
	o.run = run;
	o.hooks = hooks;
	return o;
}

/* The streams go to a file meanwhile; returns how many bytes came. */
static long printed(const ls_train_options *o, ls_train_result *result, const char *file)
{
	FILE *to = fopen(file, "w");
	assert_non_null(to);
	fflush(NULL);
	int out = dup(STDOUT_FILENO), err = dup(STDERR_FILENO);
	dup2(fileno(to), STDOUT_FILENO);
	dup2(fileno(to), STDERR_FILENO);
	ls_status status = ls_train(o, result);
	fflush(NULL);
	dup2(out, STDOUT_FILENO);
	dup2(err, STDERR_FILENO);
	close(out);
	close(err);
	long bytes = lseek(fileno(to), 0, SEEK_END);
	fclose(to);
	assert_ok(status);
	return bytes;
}

static void test_everything_is_heard(void **state)
{
	heard h = { 0 };
	ls_train_hooks hooks = hooks_of(&h);
	const char *run = in_dir(*state, "run"), *file = in_dir(*state, "printed");
	ls_train_options o = job(run, &hooks);
	ls_train_result result, alone;

	o.warmup = 1000; /* gives a warning */
	assert_int_equal(printed(&o, &result, file), 0);
	assert_int_equal(h.steps, STEPS);
	assert_int_equal(h.epochs, EPOCHS);
	assert_int_equal(h.checkpoints, EPOCHS);
	assert_string_equal(h.run, run);
	assert_int_equal(h.fingerprint, result.fingerprint);
	assert_true(h.test_accuracy == result.test_accuracy);
	assert_true(atomic_load(&h.lines) > STEPS / 2 + EPOCHS);
	assert_non_null(strstr(h.warning, "options.warmup 1000 is longer"));

	/* without hooks it is printed, and the bits are the same */
	o.hooks = NULL;
	o.run = NULL;
	assert_true(printed(&o, &alone, file) > 100);
	assert_int_equal(alone.fingerprint, result.fingerprint);
	o.quiet = 1;
	assert_int_equal(printed(&o, &alone, file), 0);
}

static uint64_t reference(void)
{
	ls_train_options o = job(NULL, NULL);
	ls_train_result result;
	o.quiet = 1;
	assert_ok(ls_train(&o, &result));
	return result.fingerprint;
}

static void go_on(const char *run, int64_t steps)
{
	ls_train_options o = job(run, NULL);
	ls_train_result result;
	heard h = { .steps = steps };
	ls_train_hooks hooks = hooks_of(&h);

	o.resume = 1;
	o.hooks = &hooks;
	assert_ok(ls_train(&o, &result));
	assert_int_equal(h.steps, STEPS);
	assert_int_equal(result.fingerprint, reference());
}

static void test_a_hook_ends_the_run(void **state)
{
	static const struct {
		heard h;
		ls_status status;
		const char *message;
		int64_t steps;
	} rows[] = { { { .fail_step = 3 }, LS_EFORMAT, "step hook ended the run after step 3 of 10", 3 },
		     { { .fail_epoch = 1 }, LS_EIO, "epoch hook ended the run after step 5 of 10", 5 },
		     /* It is on disk some steps later. */
		     { { .fail_checkpoint = 1 }, LS_EMEMORY, "checkpoint hook ended the run after step", 0 } };
	char name[16];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		heard h = rows[i].h;
		ls_train_hooks hooks = hooks_of(&h);
		snprintf(name, sizeof(name), "run%zu", i);
		const char *run = in_dir(*state, name);
		ls_train_options o = job(run, &hooks);
		assert_fails(ls_train(&o, NULL), rows[i].status, rows[i].message);
		if (rows[i].steps > 0)
			assert_int_equal(h.steps, rows[i].steps);
		else
			assert_in_range(h.steps, PER_EPOCH, STEPS);
		go_on(run, h.steps);
	}
}

static void test_a_stop_handle(void **state)
{
	heard h = { .stop_step = 4 };
	ls_train_hooks hooks = hooks_of(&h);
	const char *run = in_dir(*state, "stopped");
	ls_train_options o = job(run, &hooks);

	assert_ok(ls_stop_new(&h.stop));
	assert_false(ls_stop_is_requested(h.stop));
	o.stop = h.stop;
	assert_fails(ls_train(&o, NULL), LS_EINTERRUPTED, "stopped after step 4 of 10");
	assert_true(ls_stop_is_requested(h.stop));
	ls_stop_clear(h.stop);
	assert_false(ls_stop_is_requested(h.stop));
	go_on(run, 4);
	ls_stop_free(h.stop);
	assert_fails(ls_train(&o, NULL), LS_EINVALID, "stop handle");
	ls_stop_free(NULL);
	ls_stop_request(NULL);
}

/* ---- a model in memory ------------------------------------------------------------------------------------------- */

static ls_model *make_model(const char *name, uint64_t seed)
{
	ls_model_options o = LS_MODEL_OPTIONS_INIT;
	ls_model *model = NULL;
	o.name = name;
	assert_ok(ls_model_new_named(&model, &o, seed));
	return model;
}

static uint64_t bits_of(const ls_model *model)
{
	ls_model_facts facts;
	assert_ok(ls_model_describe(model, &facts));
	return facts.fingerprint;
}

/* As by name, with the weights in the program's hands; a second run goes on from there. */
static void test_a_model_in_memory(void **state)
{
	ls_model *model = make_model("mlp", 1), *other = NULL;
	ls_train_options o = job(NULL, NULL);
	ls_train_result result, again;
	const char *run = in_dir(*state, "of-a-model");
	ls_model_load_options from = LS_MODEL_LOAD_OPTIONS_INIT;

	o.quiet = 1;
	o.model_handle = model;
	o.optimizer = "lamb"; /* lays weights out in another way */
	assert_ok(ls_train(&o, &result));
	assert_int_equal(bits_of(model), result.fingerprint);
	assert_non_null(ls_model_normalisation(model));
	o.model_handle = NULL;
	assert_ok(ls_train(&o, &again));
	assert_int_equal(again.fingerprint, result.fingerprint);

	o.model_handle = model;
	o.run = run;
	o.optimizer = "adam";
	assert_ok(ls_train(&o, &again));
	assert_int_not_equal(again.fingerprint, result.fingerprint);
	assert_int_equal(bits_of(model), again.fingerprint);
	from.source = run;
	assert_ok(ls_model_load(&other, &from));
	assert_int_equal(bits_of(other), again.fingerprint);

	/* what it goes on from is its weights, as with those of a file */
	ls_model_free(model);
	model = make_model("mlp", 1);
	ls_train_options file = job(NULL, NULL);
	file.quiet = 1;
	file.init = run;
	assert_ok(ls_train(&file, &result));
	file.init = NULL;
	file.model_handle = other;
	assert_ok(ls_train(&file, &again));
	assert_int_equal(again.fingerprint, result.fingerprint);

	file.init = run;
	assert_fails(ls_train(&file, NULL), LS_EINVALID, "options.init and options.model_handle");
	ls_model_free(other);
	ls_model_free(model);
	file.init = NULL;
	assert_fails(ls_train(&file, NULL), LS_EINVALID, "the model was freed");
}

/* A run that is refused leaves the model as it was. */
static void test_a_model_that_does_not_fit(void **state)
{
	ls_model_options what = LS_MODEL_OPTIONS_INIT;
	ls_train_options o = job(NULL, NULL);
	ls_model *model = NULL;
	ls_trainer *trainer = NULL;
	ls_trainer_options how = LS_TRAINER_OPTIONS_INIT;
	float image[28 * 28] = { 0 }, before[5], after[5];
	(void)state;
	what.name = "cnn";
	what.classes = 5;
	assert_ok(ls_model_new_named(&model, &what, 1));
	assert_ok(ls_model_predict(model, image, 1, before));
	uint64_t bits = bits_of(model);
	o.quiet = 1;
	o.model_handle = model;
	assert_fails(ls_train(&o, NULL), LS_EMISMATCH, "the model has 5 classes");
	assert_int_equal(bits_of(model), bits);
	assert_ok(ls_trainer_new(&trainer, model, &how));
	assert_fails(ls_train(&o, NULL), LS_EINVALID, "has a trainer already");
	ls_trainer_free(trainer);
	assert_int_equal(bits_of(model), bits);
	assert_ok(ls_model_predict(model, image, 1, after));
	assert_memory_equal(before, after, sizeof(before));
	ls_model_free(model);
}

/* ---- in threads -------------------------------------------------------------------------------------------------- */

typedef struct thread_run {
	heard h;
	ls_train_hooks hooks;
	ls_train_result result;
	ls_status status;
} thread_run;

static void *run_thread(void *context)
{
	thread_run *r = context;
	ls_train_options o = job(NULL, &r->hooks);

	o.stop = r->h.stop;
	o.threads = 2;
	r->status = ls_train(&o, &r->result);
	return NULL;
}

/* The first is stopped, the others are not. */
static void test_runs_in_threads(void **state)
{
	enum { RUNS = 4 };
	thread_run runs[RUNS] = { 0 };
	pthread_t threads[RUNS];
	uint64_t expected = reference();
	(void)state;
	for (int i = 0; i < RUNS; i++) {
		assert_ok(ls_stop_new(&runs[i].h.stop));
		runs[i].h.stop_step = i == 0 ? 2 : 0;
		runs[i].hooks = hooks_of(&runs[i].h);
		assert_int_equal(pthread_create(&threads[i], NULL, run_thread, &runs[i]), 0);
	}
	for (int i = 0; i < RUNS; i++) {
		pthread_join(threads[i], NULL);
		assert_int_equal(runs[i].status, i == 0 ? LS_EINTERRUPTED : LS_OK);
		assert_int_equal(runs[i].h.steps, i == 0 ? 2 : STEPS);
		assert_true(atomic_load(&runs[i].h.lines) > 0);
		if (i > 0)
			assert_int_equal(runs[i].result.fingerprint, expected);
		ls_stop_free(runs[i].h.stop);
	}
}

/* ---- on several nodes -------------------------------------------------------------------------------------------- */

/* Where the hook of one node fails all nodes end after the same step; that node's program learns why. */
static void test_a_hook_of_one_node(void **state)
{
	enum { NODES = 3 };
	node nodes[NODES] = { 0 };
	heard h[NODES] = { { 0 }, { .fail_step = 3 }, { 0 } };
	ls_train_hooks hooks[NODES];
	const char *run = in_dir(*state, "nodes");

	for (int i = 0; i < NODES; i++) {
		hooks[i] = hooks_of(&h[i]);
		nodes[i].options = job(run, &hooks[i]);
		nodes[i].options.pin = "off";
	}
	train_nodes(nodes, NODES);
	for (int i = 0; i < NODES; i++) {
		assert_int_equal(nodes[i].gang.status, i == 1 ? LS_EFORMAT : LS_EINTERRUPTED);
		assert_int_equal(nodes[i].result.steps, nodes[0].result.steps);
		assert_int_equal(h[i].steps, i == 1 ? 3 : nodes[0].result.steps); /* none is called after its failure */
		assert_int_equal(h[i].checkpoints, i == 0);
	}
	assert_in_range(nodes[0].result.steps, 3, STEPS - 1);
	go_on(run, nodes[0].result.steps);
}

/* Nodes start from the weights of the first, and all models have the trained ones. */
static void test_models_of_several_nodes(void **state)
{
	enum { NODES = 2 };
	node nodes[NODES] = { 0 };
	ls_model *models[NODES];
	(void)state;
	for (int i = 0; i < NODES; i++) {
		models[i] = make_model("mlp", i == 0 ? 1 : 77);
		nodes[i].options = job(NULL, NULL);
		nodes[i].options.model_handle = models[i];
		nodes[i].options.pin = "off";
	}
	train_nodes(nodes, NODES);
	uint64_t expected = reference();
	for (int i = 0; i < NODES; i++) {
		assert_int_equal(nodes[i].gang.status, LS_OK);
		assert_int_equal(bits_of(models[i]), expected);
		ls_model_free(models[i]);
	}
}

static ls_status stop_all(void *context, const ls_train_step *step)
{
	(void)context;
	if (step->step == 1)
		ls_train_stop();
	return LS_OK;
}

/* The process's request ends the runs that there are, and none that begins later. */
static void test_the_request_of_the_process(void **state)
{
	ls_train_hooks hooks = LS_TRAIN_HOOKS_INIT;
	ls_train_options o = job(NULL, &hooks);
	(void)state;
	o.quiet = 1;
	hooks.step = stop_all;
	assert_fails(ls_train(&o, NULL), LS_EINTERRUPTED, "stopped after step 1 of 10");
	hooks.step = NULL;
	assert_ok(ls_train(&o, NULL));
}

/* Zeros, all of class 0; reading sample `stops_at` asks everything in the process to stop. */
static ls_status read_zeros(void *self, uint64_t index, float *image, int32_t *label)
{
	const uint64_t *stops_at = self;
	if (index == *stops_at)
		ls_train_stop();
	memset(image, 0, 28 * 28 * sizeof(*image));
	*label = 0;
	return LS_OK;
}

static void test_an_evaluation_that_is_stopped(void **state)
{
	static const ls_dataset_ops ops = { .read = read_zeros };
	const ls_dataset_info info = {
		.name = "zeros", .samples = 1000, .channels = 1, .height = 28, .width = 28, .classes = 10
	};
	char run[TEMP_DIR_NAME + 8], logits[TEMP_DIR_NAME + 8];
	ls_train_options o = job(run, NULL);
	ls_eval_options e = LS_EVAL_OPTIONS_INIT;
	ls_eval_result result = { .samples = 7 };
	ls_dataset *zeros = NULL;
	ls_stop *stop = NULL;
	uint64_t stops_at = 25;
	snprintf(run, sizeof(run), "%s/run", (const char *)*state);
	snprintf(logits, sizeof(logits), "%s/logits", (const char *)*state);
	o.quiet = e.quiet = 1;
	assert_ok(ls_train(&o, NULL));
	assert_ok(ls_stop_new(&stop));
	e.source = run;
	e.stop = stop;
	e.batch = 10;
	e.logits = logits;
	ls_stop_request(stop);
	assert_fails(ls_eval(&e, &result), LS_EINTERRUPTED, "stopped after 0 of 50 test samples");
	assert_int_equal(result.samples, 7);
	assert_int_equal(access(logits, F_OK), -1);
	ls_stop_clear(stop);
	assert_ok(ls_eval(&e, &result));
	assert_int_equal(result.samples, 50);

	assert_ok(ls_dataset_new(&zeros, &info, &ops, &stops_at));
	e.set = zeros;
	e.logits = NULL;
	assert_fails(ls_eval(&e, &result), LS_EINTERRUPTED, "of 1000 test samples");
	stops_at = UINT64_MAX;
	assert_ok(ls_eval(&e, &result)); /* a request ends what there is, and nothing that begins later */
	assert_int_equal(result.samples, 1000);
	ls_dataset_free(zeros);
	ls_stop_free(stop);
	assert_fails(ls_eval(&e, &result), LS_EINVALID, "stop handle");
}

TEST_MAIN_EACH(temp_dir_make, temp_dir_remove, test_everything_is_heard, test_a_hook_ends_the_run, test_a_stop_handle,
	       test_a_model_in_memory, test_a_model_that_does_not_fit, test_runs_in_threads,
	       test_an_evaluation_that_is_stopped, test_a_hook_of_one_node, test_models_of_several_nodes,
	       test_the_request_of_the_process)
