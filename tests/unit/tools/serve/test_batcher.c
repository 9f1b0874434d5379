/*
 * The batcher: jobs of any size, from several threads, each get the probabilities of their own samples, whatever the
 * size of batches; a lone job waits for nobody, and what arrives meanwhile is the next batch; batches are filled where
 * that is asked for; a full queue refuses; an end completes what was submitted.
 */
#include <lockstep/models.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "tools/serve/batcher.h"
#include "unit/assert_status.h"
#include "unit/test_main.h"

enum { IMAGES = 40, PIXELS = 28 * 28, CLASSES = 10, JOBS = 60, THREADS = 4 };

static ls_model *model;
static float images[IMAGES * PIXELS], expected[IMAGES * CLASSES];

typedef struct job {
	ls_batch_job job; /* first */
	float input[8 * PIXELS], chances[8 * CLASSES];
	int which[8];
	atomic_int calls;
} job;

/* The last layer starts from zero, which would give all images the same answer. */
static void fill_weights(void)
{
	ls_model_param param;

	for (size_t i = 0; ls_model_param_at(model, i, &param); i++) {
		float *values = malloc(param.elements * sizeof(*values));
		for (uint64_t k = 0; k < param.elements; k++)
			values[k] = (float)((k + 7 * i) * 2654435761u % 1000) / 5000 - 0.1f;
		assert_ok(ls_model_set(model, param.name, values, param.elements));
		free(values);
	}
}

static int make(void **state)
{
	ls_model_options o = LS_MODEL_OPTIONS_INIT;
	ls_graph *graph = NULL;
	(void)state;
	o.name = "mlp";
	assert_ok(ls_model_build(&graph, &o));
	assert_ok(ls_model_new(&model, graph, 5));
	fill_weights();
	for (size_t i = 0; i < IMAGES * PIXELS; i++)
		images[i] = (float)(i * 2654435761u % 1000) / 500 - 1;
	assert_ok(ls_model_predict(model, images, IMAGES, expected));
	ls_softmax(expected, IMAGES, CLASSES);
	for (size_t i = 1; i < IMAGES; i++)
		assert_memory_not_equal(expected, expected + i * CLASSES, CLASSES * sizeof(float));
	return 0;
}

static int unmake(void **state)
{
	(void)state;
	ls_model_free(model);
	return 0;
}

static void job_done(ls_batch_job *done, ls_status status, const char *error)
{
	(void)error;
	atomic_fetch_add(&((job *)(void *)done)->calls, status == LS_OK ? 1 : 1000);
}

static void fill_job(job *j, int seed)
{
	*j = (job){ .job = { .count = 1 + seed % 8, .images = j->input, .chances = j->chances, .done = job_done } };
	for (int i = 0; i < j->job.count; i++) {
		j->which[i] = (seed * 7 + i * 3) % IMAGES;
		memcpy(j->input + (size_t)i * PIXELS, images + (size_t)j->which[i] * PIXELS, PIXELS * sizeof(float));
	}
}

static void check_job(job *j)
{
	assert_int_equal(atomic_load(&j->calls), 1);
	for (int i = 0; i < j->job.count; i++)
		assert_memory_equal(j->chances + (size_t)i * CLASSES, expected + (size_t)j->which[i] * CLASSES,
				    CLASSES * sizeof(float));
}

typedef struct sender {
	ls_batcher *batcher;
	job *jobs;
} sender;

static void *send_jobs(void *context)
{
	sender *s = context;
	for (int i = 0; i < JOBS; i++)
		assert_true(ls_batcher_submit(s->batcher, &s->jobs[i].job));
	return NULL;
}

static int64_t largest, total;
static void count_batch(void *context, int64_t samples)
{
	(void)context;
	largest = samples > largest ? samples : largest;
	total += samples;
}

static void run(int64_t max_batch, double max_wait)
{
	ls_batcher *batcher = NULL;
	const ls_batcher_options options = { .model = model,
					     .max_batch = max_batch,
					     .max_wait = max_wait,
					     .queue_max = 1 << 20,
					     .on_batch = count_batch };
	job *jobs = calloc(THREADS * JOBS, sizeof(*jobs));
	pthread_t threads[THREADS];
	sender senders[THREADS];

	largest = total = 0;
	assert_ok(ls_batcher_new(&batcher, &options));
	for (int i = 0; i < THREADS * JOBS; i++)
		fill_job(&jobs[i], i);
	for (int i = 0; i < THREADS; i++) {
		senders[i] = (sender){ batcher, jobs + i * JOBS };
		assert_int_equal(pthread_create(&threads[i], NULL, send_jobs, &senders[i]), 0);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	ls_batcher_free(batcher); /* completes them */
	int64_t samples = 0;
	for (int i = 0; i < THREADS * JOBS; i++) {
		check_job(&jobs[i]);
		samples += jobs[i].job.count;
	}
	assert_int_equal(total, samples);
	assert_true(largest <= max_batch);
	assert_true(max_wait < 10 || largest == max_batch);
	free(jobs);
}

static void test_answers_do_not_depend_on_batches(void **state)
{
	(void)state;
	run(1, 0);
	run(3, 0.001);
	run(33, 0);
	run(64, 30); /* filled, or ended: never waited for */
	run(5000, 0.01);
}

static void test_a_sample_waits_no_longer_than_asked(void **state)
{
	ls_batcher *batcher = NULL;
	const ls_batcher_options options = { .model = model, .max_batch = 1000, .max_wait = 0.05, .queue_max = 1000 };
	job j;
	(void)state;
	fill_job(&j, 3);
	assert_ok(ls_batcher_new(&batcher, &options));
	double begin = ls_clock_seconds();
	assert_true(ls_batcher_submit(batcher, &j.job));
	while (atomic_load(&j.calls) == 0 && ls_clock_seconds() - begin < 60)
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	assert_true(ls_clock_seconds() - begin >= 0.05);
	check_job(&j);
	ls_batcher_free(batcher);
}

/* Sizes of batches; the first one is not predicted before `go`. */
typedef struct gate {
	int64_t sizes[16];
	atomic_int batches, go;
} gate;

static void note_batch(void *context, int64_t samples)
{
	gate *g = context;
	int number = atomic_load(&g->batches);
	g->sizes[number] = samples;
	atomic_store(&g->batches, number + 1);
	while (!atomic_load(&g->go))
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
}

static void await_batch(gate *g)
{
	double end = ls_clock_seconds() + 60;
	while (atomic_load(&g->batches) == 0 && ls_clock_seconds() < end)
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	assert_int_equal(atomic_load(&g->batches), 1);
}

static void test_what_arrives_meanwhile_is_the_next_batch(void **state)
{
	ls_batcher *batcher = NULL;
	gate g = { .go = 0 };
	const ls_batcher_options options = {
		.model = model, .max_batch = 20, .queue_max = 1000, .on_batch = note_batch, .context = &g
	};
	job jobs[7];
	(void)state;
	assert_ok(ls_batcher_new(&batcher, &options));
	for (int i = 0; i < 7; i++)
		fill_job(&jobs[i], i); /* i + 1 samples */
	assert_true(ls_batcher_submit(batcher, &jobs[0].job));
	await_batch(&g); /* it waits neither for 20 samples nor for a while */
	for (int i = 1; i < 7; i++)
		assert_true(ls_batcher_submit(batcher, &jobs[i].job));
	assert_int_equal(ls_batcher_waiting(batcher), 27);
	atomic_store(&g.go, 1);
	ls_batcher_free(batcher);
	for (int i = 0; i < 7; i++)
		check_job(&jobs[i]);
	assert_int_equal(atomic_load(&g.batches), 3);
	assert_int_equal(g.sizes[0], 1);
	assert_int_equal(g.sizes[1], 20);
	assert_int_equal(g.sizes[2], 7);
}

static void test_a_full_queue_refuses(void **state)
{
	ls_batcher *batcher = NULL;
	const ls_batcher_options options = { .model = model, .max_batch = 1000, .max_wait = 30, .queue_max = 10 };
	job first, second, third;
	(void)state;
	fill_job(&first, 7); /* 8 samples */
	fill_job(&second, 1);
	fill_job(&third, 0);
	assert_ok(ls_batcher_new(&batcher, &options));
	assert_true(ls_batcher_submit(batcher, &first.job));
	assert_true(ls_batcher_submit(batcher, &second.job));
	assert_int_equal(ls_batcher_waiting(batcher), 10);
	assert_false(ls_batcher_submit(batcher, &third.job));
	ls_batcher_end(batcher);
	assert_false(ls_batcher_submit(batcher, &third.job));
	ls_batcher_free(batcher);
	check_job(&first);
	check_job(&second);
	assert_int_equal(atomic_load(&third.calls), 0);
	ls_batcher_free(NULL);
}

TEST_MAIN_GROUP(make, unmake, test_answers_do_not_depend_on_batches, test_a_sample_waits_no_longer_than_asked,
		test_what_arrives_meanwhile_is_the_next_batch, test_a_full_queue_refuses)
