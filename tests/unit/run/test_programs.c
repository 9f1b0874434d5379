/* What a program may get wrong with the library's own structs: refused in words, never a crash. */
#include <stddef.h>
#include <stdint.h>

#include <lockstep/train.h>
#include <math.h>
#include <string.h>

#include "unit/test_main.h"

static ls_status read_sample(void *self, uint64_t index, float *image, int32_t *label)
{
	(void)self;
	for (int i = 0; i < 784; i++)
		image[i] = (float)((index * 31 + (uint64_t)i) % 7) - 3.0f;
	*label = (int32_t)(index % 10);
	return LS_OK;
}

static ls_dataset *make_set(uint64_t samples)
{
	ls_dataset *set = NULL;
	ls_dataset_info info = {
		.name = "own", .samples = samples, .channels = 1, .height = 28, .width = 28, .classes = 10
	};
	ls_dataset_ops ops = { .read = read_sample };
	assert_int_equal(ls_dataset_new(&set, &info, &ops, NULL), LS_OK);
	return set;
}

static ls_train_options small(const ls_dataset *set)
{
	ls_train_options o = LS_TRAIN_OPTIONS_INIT;
	o.model = "mlp";
	o.train_set = set;
	o.batch = 16;
	o.quiet = 1;
	return o;
}

static void refuses(const ls_train_options *o, const char *expected)
{
	assert_int_equal(ls_train(o, NULL), LS_EINVALID);
	if (!strstr(ls_last_error(), expected))
		fail_msg("'%s' does not mention '%s'", ls_last_error(), expected);
}

static void test_own_test_set_never_used(void **state)
{
	(void)state;
	ls_dataset *set = make_set(48);
	ls_train_options o = small(set);
	ls_train_result result;
	o.test_set = set;
	o.eval_every = 0;
	assert_int_equal(ls_train(&o, &result), LS_OK);
	assert_true(isnan(result.test_accuracy));
	o.eval_every = 1;
	assert_int_equal(ls_train(&o, &result), LS_OK);
	assert_false(isnan(result.test_accuracy));
	ls_dataset_free(set);
}

static void test_unfinished_graph(void **state)
{
	(void)state;
	ls_dataset *set = make_set(48);
	ls_train_options o = small(set);
	assert_int_equal(ls_graph_new(&o.graph), LS_OK);
	refuses(&o, "not finished");
	ls_value x = ls_input(o.graph, 1, 28, 28);
	ls_linear(o.graph, x, "fc", (ls_linear_options){ .out_features = 10 });
	refuses(&o, "not finished");
	ls_graph_free(o.graph);
	ls_dataset_free(set);
}

static void test_fields_have_ranges(void **state)
{
	(void)state;
	ls_dataset *set = make_set(48);
	const ls_train_options good = small(set);
	ls_train_options o;
	assert_int_equal(ls_train(&good, NULL), LS_OK);
	o = good, o.threads = -1, refuses(&o, "options.threads must be between 0 and 1024, not -1");
	o = good, o.threads = 1025, refuses(&o, "options.threads");
	o = good, o.epochs = -1, refuses(&o, "options.epochs");
	o = good, o.keep = 0, refuses(&o, "options.keep");
	o = good, o.lr = NAN, refuses(&o, "options.lr");
	o = good, o.dropout = 1.5f, refuses(&o, "options.dropout");
	o = good, o.optimizer = NULL, refuses(&o, "options.optimizer is NULL");
	o = good, o.schedule = NULL, refuses(&o, "options.schedule is NULL");
	o = good, o.model = NULL, refuses(&o, "options.model is NULL");
	o = good, o.train_set = NULL, o.data = NULL, refuses(&o, "options.data is NULL");
	ls_dataset_free(set);
}

static void test_plan_fills_the_result(void **state)
{
	(void)state;
	ls_dataset *set = make_set(48);
	ls_train_options o = small(set);
	ls_train_result result;
	memset(&result, 0x55, sizeof(result));
	o.plan_memory = 1;
	assert_int_equal(ls_train(&o, &result), LS_OK);
	assert_int_equal(result.steps, 0);
	assert_true(isnan(result.train_loss) && isnan(result.test_loss) && isnan(result.test_accuracy));
	ls_dataset_free(set);
}

static void test_too_many_steps(void **state)
{
	(void)state;
	ls_dataset *set = make_set((uint64_t)1 << 52);
	ls_train_options o = small(set);
	o.batch = 1, o.epochs = 1000000000;
	refuses(&o, "too many");
	ls_dataset_free(set);
}

TEST_MAIN(test_own_test_set_never_used, test_unfinished_graph, test_fields_have_ranges, test_plan_fills_the_result,
	  test_too_many_steps)
