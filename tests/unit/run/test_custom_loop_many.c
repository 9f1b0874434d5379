/* Many trainers: a thousand, one after another, leave nothing behind; several train side by side in threads. */
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>

#include "unit/graph/allocations.h"
#include "unit/run/custom_loop.h"
#include "unit/test_main.h"

static size_t used_bytes(void)
{
	struct mallinfo2 info = mallinfo2();
	return info.uordblks + info.hblkhd;
}

static size_t resident_pages(void)
{
	size_t size = 0, resident = 0;
	FILE *file = fopen("/proc/self/statm", "r");
	assert_non_null(file);
	assert_int_equal(fscanf(file, "%zu %zu", &size, &resident), 2);
	fclose(file);
	return resident;
}

static void make_and_free(const ls_dataset *set, const ls_batch *batch)
{
	ls_model *model = make_model("mlp", set);
	ls_trainer_options o = options_of("adam");
	ls_trainer *trainer = NULL;
	float logits[10];

	o.devices = 1;
	assert_ok(ls_model_set_devices(model, 1, 1));
	assert_ok(ls_trainer_new(&trainer, model, &o));
	assert_ok(ls_trainer_step(trainer, batch, NULL));
	assert_ok(ls_model_predict(model, batch->images, 1, logits));
	ls_trainer_free(trainer);
	ls_model_free(model);
}

static void test_a_thousand_leave_nothing(void **state)
{
	int cycles = OWN_MALLOC ? 1000 : 30;
	ls_dataset *set = open_set("glyphs");
	samples *s = malloc(sizeof(*s));
	(void)state;
	ls_batch batch = take(s, set, 0);
	batch.count = 4;
	for (int i = 0; i < 20; i++)
		make_and_free(set, &batch);
	size_t bytes = used_bytes(), pages = resident_pages();
	for (int i = 0; i < cycles; i++)
		make_and_free(set, &batch);
	if (OWN_MALLOC) /* it finds leaks itself, and keeps what was freed */
		assert_true(used_bytes() < bytes + (64 << 10) && resident_pages() < pages + 2000);
	free(s);
	ls_dataset_free(set);
}

typedef struct thread_job {
	const char *model;
	const ls_dataset *set;
	uint64_t bits;
} thread_job;

static void *train_in_thread(void *context)
{
	thread_job *job = context;
	ls_trainer_options o = options_of("adam");
	o.threads = 2;
	for (int i = 0; i < 2; i++)
		job->bits = train_here(job->model, job->set, &o, i % 2 ? WHOLE : DATASET);
	return NULL;
}

static void test_trainers_in_threads(void **state)
{
	static const char *const names[] = { "mlp", "cnn", "mlp", "cnn" };
	ls_dataset *set = open_set("glyphs");
	ls_trainer_options o = options_of("adam");
	thread_job jobs[4];
	pthread_t threads[4];
	(void)state;
	for (int i = 0; i < 4; i++) {
		jobs[i] = (thread_job){ .model = names[i], .set = set };
		assert_int_equal(pthread_create(&threads[i], NULL, train_in_thread, &jobs[i]), 0);
	}
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < 4; i++)
		assert_int_equal(jobs[i].bits, train(names[i], set, &o));
	ls_dataset_free(set);
}

TEST_MAIN(test_a_thousand_leave_nothing, test_trainers_in_threads)
