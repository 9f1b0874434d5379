/*
 * Readers of a device: as many as its threads where samples take work, in training and in evaluations.
 */
#include <lockstep/models.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "backends/devices.h"
#include "data/dataset.h"
#include "data/transforms/transforms.h"
#include "trainer/batches.h"
#include "trainer/evaluate.h"
#include "unit/assert_status.h"
#include "unit/test_main.h"

enum { SIDE = 4, SAMPLES = 64, THREADS = 3, PATIENCE_S = 30 };

/* Every reader waits here until THREADS of them have come, or for half a minute. */
typedef struct meeting {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	int inside, most, wanted;
} meeting;

static meeting readers = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0, 0 };

static ls_status read_sample(void *self, uint64_t index, float *image, int32_t *label)
{
	meeting *m = self;
	struct timespec end;

	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += PATIENCE_S;
	pthread_mutex_lock(&m->lock);
	m->inside++;
	m->most = m->inside > m->most ? m->inside : m->most;
	pthread_cond_broadcast(&m->changed);
	while (m->most < m->wanted && pthread_cond_timedwait(&m->changed, &m->lock, &end) == 0) {
	}
	m->inside--;
	pthread_mutex_unlock(&m->lock);
	for (int i = 0; i < SIDE * SIDE; i++)
		image[i] = (float)index;
	*label = (int32_t)(index % 2);
	return LS_OK;
}

static ls_dataset *make_set(int wanted)
{
	const ls_dataset_info info = {
		.name = "slow", .samples = SAMPLES, .channels = 1, .height = SIDE, .width = SIDE, .classes = 2
	};
	const ls_dataset_ops ops = { .read = read_sample };
	ls_dataset *set = NULL;

	readers.most = 0;
	readers.wanted = wanted;
	assert_ok(ls_dataset_new(&set, &info, &ops, &readers));
	return set;
}

static void test_choice(void **state)
{
	ls_dataset *set = make_set(0);
	ls_transforms some = { .count = 1 }, none = { .count = 0 };
	ls_loader_options o = { .microbatch = 2, .global_batch = 4, .threads = 9 };
	(void)state;
	assert_int_equal(ls_loader_threads(set, NULL, 8), 1);
	assert_int_equal(ls_loader_threads(set, &none, 8), 1);
	assert_int_equal(ls_loader_threads(set, &some, 8), 8);
	set->is_decoded = 1;
	assert_int_equal(ls_loader_threads(set, NULL, 8), 8);
	assert_int_equal(ls_loader_threads(set, NULL, 1), 1);
	assert_int_equal(ls_loader_threads(set, NULL, 0), 1);
	assert_int_equal(ls_loader_threads(set, NULL, 500), 16);
	/* each reader has a micro-batch of its own to fill */
	size_t one = ls_loader_bytes(set, &o, 1);
	assert_int_equal(ls_loader_bytes(set, &o, 1000), 10 * one);
	o.threads = 2;
	assert_int_equal(ls_loader_bytes(set, &o, 1000), 5 * one);
	ls_dataset_free(set);
}

static void test_training(void **state)
{
	ls_dataset *set = make_set(THREADS);
	int devices = 1;
	double weight = 1;
	ls_layout layout = { .nodes = 1,
			     .devices = 1,
			     .threads = THREADS,
			     .all_devices = 1,
			     .devices_of = &devices,
			     .weight = &weight };
	ls_batches_options o = {
		.layout = &layout, .dataset = set, .seed = 1, .microbatch = 4, .global_batch = 16, .steps = 4
	};
	ls_batches batches;
	const ls_microbatch *got = NULL;
	(void)state;
	set->is_decoded = 1;
	assert_ok(ls_batches_open(&batches, &o));
	for (int i = 0; i < SAMPLES / 4; i++)
		assert_ok(ls_batches_next(&batches, 0, &got));
	ls_batches_close(&batches);
	assert_in_range(readers.most, THREADS, THREADS);
	ls_dataset_free(set);
}

static void test_evaluation(void **state)
{
	ls_dataset *set = make_set(THREADS);
	ls_model_options m = {
		.size = sizeof(m), .name = "mlp", .channels = 1, .height = SIDE, .width = SIDE, .classes = 2
	};
	ls_devices_options how = { .count = 1, .threads = THREADS, .pin = LS_PIN_OFF };
	ls_evaluator_options o = {
		.dataset = set, .batch = 4, .backend = &ls_backend_cpu, .devices = 1, .is_quiet = 1
	};
	ls_evaluator *e = NULL;
	ls_devices *devices = NULL;
	ls_graph *graph = NULL;
	ls_eval_result result;
	ls_evaluator_bytes bytes;
	(void)state;
	set->is_decoded = 1;
	assert_ok(ls_model_build(&graph, &m));
	assert_ok(ls_devices_open(&devices, &ls_backend_cpu, &how));
	float *params = aligned_alloc(64, (graph->params.total + 16) / 16 * 64);
	float *buffers = calloc(graph->params.buffers + 16, sizeof(float));
	assert_ok(ls_params_init(&graph->params, 3, params, buffers));
	o.graph = graph;
	assert_ok(ls_evaluator_plan(&o, THREADS, 0, &bytes));
	assert_int_equal(bytes.readers, THREADS);
	o.on = devices;
	assert_ok(ls_evaluator_new(&e, &o));
	assert_ok(ls_evaluator_run(e, params, buffers, NULL, NULL, &result));
	assert_int_equal(result.samples, SAMPLES);
	assert_in_range(readers.most, THREADS, THREADS);
	ls_evaluator_free(e);
	ls_devices_close(devices);
	ls_graph_free(graph);
	free(buffers);
	free(params);
	ls_dataset_free(set);
}

TEST_MAIN(test_choice, test_training, test_evaluation)
