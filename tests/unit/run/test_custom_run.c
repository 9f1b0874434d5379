/*
 * Whole runs on the user's own model and data: a loss that is not a number, shapes that do not fit, stop and resume.
 */
#include <lockstep/train.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>

#include "base/files.h"
#include "data/shuffle.h"
#include "unit/temp_dir.h"
#include "unit/trainer/quadrants.h"

/* The user's own dataset. */
typedef struct source {
	uint64_t poisoned; /* this sample is NaN */
	int halves;        /* the label is the bright half, upper or lower, not the quadrant */
	atomic_long reads;
	long stop_after; /* ask the run to stop at this read; 0: never */
} source;

static ls_status source_read(void *self, uint64_t index, float *image, int32_t *label)
{
	source *s = self;
	draw(index, image, label);
	if (s->halves)
		*label /= 2;
	if (index == s->poisoned)
		image[3] = NAN;
	if (atomic_fetch_add(&s->reads, 1) + 1 == s->stop_after)
		ls_train_stop();
	return LS_OK;
}

static ls_dataset *make_dataset(source *s, uint64_t samples)
{
	static const ls_dataset_ops ops = { .read = source_read };
	ls_dataset *d = NULL;
	ls_dataset_info info = { .name = "quadrants",
				 .samples = samples,
				 .channels = 1,
				 .height = SIDE,
				 .width = SIDE,
				 .classes = s->halves ? 2 : CLASSES };
	assert_ok(ls_dataset_new(&d, &info, &ops, s));
	return d;
}

static ls_train_options run_options(ls_graph *g, const ls_dataset *train)
{
	ls_train_options o = LS_TRAIN_OPTIONS_INIT;
	o.graph = g;
	o.train_set = train;
	o.devices = 1;
	o.batch = 16;
	o.lr = 0.01;
	o.epochs = 3;
	o.quiet = 1;
	return o;
}

static void test_nan_names_its_step(void **state)
{
	enum { SAMPLES = 160, BATCH = 16 };
	source s = { .poisoned = 77 };
	ls_graph *g = make_graph(1);
	ls_dataset *d = make_dataset(&s, SAMPLES);
	ls_train_options o = run_options(g, d);
	char expected[64];
	uint64_t place = 0;
	(void)state;
	while (ls_permute(o.seed, 0, SAMPLES, place) != s.poisoned)
		place++;
	snprintf(expected, sizeof(expected), "at step %llu ", (unsigned long long)(place / BATCH + 1));
	assert_int_equal(ls_train(&o, NULL), LS_ENUMERIC);
	if (!strstr(ls_last_error(), "NaN") || !strstr(ls_last_error(), expected))
		fail_msg("the message is '%s', expected '%s' in it", ls_last_error(), expected);
	ls_dataset_free(d);
	ls_graph_free(g);
}

/* Training goes well, its last test does not: the run fails, and an earlier one is only warned of. */
static void test_a_test_loss_that_is_not_finite(void **state)
{
	source s = { .poisoned = UINT64_MAX }, held_out = { .poisoned = 5 };
	ls_graph *g = make_graph(1);
	ls_dataset *train = make_dataset(&s, 160), *test = make_dataset(&held_out, 32);
	ls_train_options o = run_options(g, train);
	ls_train_result result = { 0 };
	(void)state;
	o.test_set = test;
	assert_int_equal(ls_train(&o, &result), LS_ENUMERIC);
	assert_int_equal(result.steps, 30); /* all of them */
	assert_non_null(strstr(ls_last_error(), "the trained weights give no finite loss on the test set"));
	held_out.poisoned = UINT64_MAX;
	assert_ok(ls_train(&o, &result));
	ls_dataset_free(train);
	ls_dataset_free(test);
	ls_graph_free(g);
}

/* Of the weights a run starts with no rate is to blame. */
static void test_a_useless_start_does_not_blame_the_rate(void **state)
{
	source s = { .poisoned = 0 };
	ls_graph *g = make_graph(1);
	ls_dataset *d = make_dataset(&s, 16);
	ls_train_options o = run_options(g, d);
	(void)state;
	assert_int_equal(ls_train(&o, NULL), LS_ENUMERIC);
	assert_non_null(strstr(ls_last_error(), "the loss is NaN at step 1, before any update: the initial weights"));
	assert_null(strstr(ls_last_error(), "options.lr"));
	ls_dataset_free(d);
	ls_graph_free(g);
}

static void test_own_model_and_data(void **state)
{
	source s = { .poisoned = UINT64_MAX }, held_out = { .poisoned = UINT64_MAX };
	ls_graph *g = make_graph(1);
	ls_dataset *train = make_dataset(&s, 600), *test = make_dataset(&held_out, 900);
	ls_train_options o = run_options(g, train);
	ls_train_result result, again;
	(void)state;
	o.test_set = test;
	assert_ok(ls_train(&o, &result));
	assert_int_equal(result.steps, 3 * 38);
	assert_true(result.test_accuracy > 0.9);
	assert_true(result.train_loss < 0.5);
	assert_true(result.test_loss > 0 && result.test_loss < 0.5); /* as far as training came, on other samples */
	o.threads = 2;
	assert_ok(ls_train(&o, &again));
	assert_int_equal(again.fingerprint, result.fingerprint);
	o.seed = 2;
	assert_ok(ls_train(&o, &again));
	assert_int_not_equal(again.fingerprint, result.fingerprint);
	ls_dataset_free(train);
	ls_dataset_free(test);
	ls_graph_free(g);
}

/* One yes-or-no answer is one channel, and two labels; a number is one channel, and any labels. */
static void test_losses_of_one_channel(void **state)
{
	(void)state;
	for (int number = 0; number < 2; number++) {
		source s = { .poisoned = UINT64_MAX, .halves = 1 }, quadrants = { .poisoned = UINT64_MAX };
		ls_dataset *train = make_dataset(&s, 600), *four = make_dataset(&quadrants, 100);
		ls_graph *g = NULL;
		assert_ok(ls_graph_new(&g));
		ls_value x = ls_linear(g, ls_input(g, 1, SIDE, SIDE), "fc", (ls_linear_options){ .out_features = 1 });
		number ? ls_mean_squared_error(g, x) : ls_binary_cross_entropy(g, x);
		assert_ok(ls_graph_finish(g, x));
		ls_train_options o = run_options(g, train);
		ls_train_result result;
		o.test_set = train;
		assert_ok(ls_train(&o, &result));
		assert_true(number ? result.test_loss < 0.15 : result.test_accuracy > 0.9);
		o.train_set = four;
		o.test_set = NULL;
		assert_int_equal(ls_train(&o, NULL), number ? LS_OK : LS_EMISMATCH);
		ls_dataset_free(four);
		ls_dataset_free(train);
		ls_graph_free(g);
	}
}

/* Accuracy is of the graph's output, whatever other values have losses. */
static void test_accuracy_of_several_losses(void **state)
{
	source s = { .poisoned = UINT64_MAX };
	ls_dataset *train = make_dataset(&s, 600);
	ls_graph *g = NULL;
	(void)state;
	assert_ok(ls_graph_new(&g));
	ls_linear_options four = { .out_features = CLASSES };
	ls_value in = ls_input(g, 1, SIDE, SIDE), x = ls_linear(g, in, "fc", four);
	ls_cross_entropy(g, x, (ls_cross_entropy_options){ 0 });
	ls_mean_squared_error(g, ls_linear(g, in, "aside", four));
	assert_ok(ls_graph_finish(g, x));
	ls_train_options o = run_options(g, train);
	ls_train_result result;
	o.test_set = train;
	assert_ok(ls_train(&o, &result));
	assert_true(result.test_accuracy > 0.8 && result.test_accuracy <= 1);
	ls_dataset_free(train);
	ls_graph_free(g);
}

/* A dataset that does not fit the model is refused before any step. */
static void test_shapes_must_fit(void **state)
{
	source s = { .poisoned = UINT64_MAX };
	ls_graph *g = NULL;
	ls_dataset *d = make_dataset(&s, 100);
	(void)state;
	assert_ok(ls_graph_new(&g));
	ls_value x = ls_linear(g, ls_input(g, 1, SIDE + 1, SIDE), "fc",
			       (ls_linear_options){ .out_features = CLASSES, .no_bias = 1 });
	assert_ok(ls_graph_finish(g, x));
	ls_train_options o = run_options(g, d);
	assert_int_not_equal(ls_train(&o, NULL), LS_OK);
	assert_true(atomic_load(&s.reads) == 0);
	ls_dataset_free(d);
	ls_graph_free(g);
}

/* Stopped twice, each time when about `stop_after` samples were read, and resumed to its end. */
static uint64_t run_with_stops(const char *directory, long stop_after, int *stops)
{
	source s = { .poisoned = UINT64_MAX, .stop_after = stop_after };
	ls_dataset *d = make_dataset(&s, 150);
	ls_graph *g = make_graph(1);
	ls_train_options o = run_options(g, d);
	ls_train_result result = { 0 };
	ls_status status;

	o.run = directory;
	*stops = 0;
	while ((status = ls_train(&o, &result)) == LS_EINTERRUPTED) {
		atomic_store(&s.reads, 0);
		s.stop_after = ++*stops < 2 ? stop_after : 0;
		o.resume = 1;
	}
	assert_ok(status);
	assert_int_equal(result.steps, 30);
	ls_dataset_free(d);
	ls_graph_free(g);
	return result.fingerprint;
}

/* A run stopped anywhere, in the middle of an epoch too, ends with the fingerprint of one never stopped. */
static void test_resume(void **state)
{
	static const long stops_after[] = { 0, 80, 115, 151, 290 };
	uint64_t whole = 0;
	for (int i = 0; i < 5; i++) {
		char directory[600];
		int stops = 0;
		snprintf(directory, sizeof(directory), "%s/%d", (char *)*state, i);
		uint64_t f = run_with_stops(directory, stops_after[i], &stops);
		whole = i == 0 ? f : whole;
		assert_int_equal(f, whole);
		assert_true(i == 0 || stops > 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nan_names_its_step),
		cmocka_unit_test(test_a_test_loss_that_is_not_finite),
		cmocka_unit_test(test_a_useless_start_does_not_blame_the_rate),
		cmocka_unit_test(test_own_model_and_data),
		cmocka_unit_test(test_losses_of_one_channel),
		cmocka_unit_test(test_accuracy_of_several_losses),
		cmocka_unit_test(test_shapes_must_fit),
		cmocka_unit_test_setup_teardown(test_resume, temp_dir_make, temp_dir_remove),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
