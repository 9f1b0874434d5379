/* Mistakes of programs with a trainer are refused, and leave the weights as they were. */
#include <math.h>

#include <lockstep/inspect.h>
#include <lockstep/operator.h>

#include "unit/run/custom_loop.h"
#include "unit/temp_dir.h"
#include "unit/test_main.h"

static void test_options_are_checked(void **state)
{
	ls_dataset *set = open_set("glyphs");
	ls_model *model = make_model("mlp", set), *large = make_model("resnet18", set);
	ls_trainer *trainer = NULL, *second = NULL;
	ls_trainer_options o = options_of("adam");
	(void)state;
	assert_fails(ls_trainer_new(&trainer, NULL, &o), LS_EINVALID, "the model is NULL");
	assert_fails(ls_trainer_new(&trainer, model, NULL), LS_EINVALID,
		     "options is NULL: start from LS_TRAINER_OPTIONS_INIT");
	o.steps = 0;
	assert_fails(ls_trainer_new(&trainer, model, &o), LS_EINVALID, "needs options.steps");
	o = options_of("admm");
	assert_fails(ls_trainer_new(&trainer, model, &o), LS_EINVALID, "adam");
	o = options_of(NULL);
	assert_fails(ls_trainer_new(&trainer, model, &o), LS_EINVALID, "options.optimizer is NULL");
	o = options_of("adam");
	o.lr = -1;
	assert_fails(ls_trainer_new(&trainer, model, &o), LS_EINVALID, "options.lr");
	o = options_of("adam");
	o.augment = "flop";
	assert_fails(ls_trainer_new(&trainer, model, &o), LS_EINVALID, "did you mean 'flip'?");
	o = options_of("adam");
	o.micro_batch = 7;
	assert_fails(ls_trainer_new(&trainer, model, &o), LS_EINVALID, "options.micro_batch");
	o = options_of("adam");
	o.batch = o.micro_batch = 1 << 24; /* batch norms take a micro-batch as a whole */
	uint64_t bits = fingerprint(large);
	assert_fails(ls_trainer_new(&trainer, large, &o), LS_EMEMORY, "would fit");
	assert_int_equal(fingerprint(large), bits);
	ls_model_free(large);
	o = options_of("adam");
	assert_null(trainer);
	assert_ok(ls_trainer_new(&trainer, model, &o));
	assert_fails(ls_trainer_new(&second, model, &o), LS_EINVALID, "has a trainer already");
	ls_trainer_free(trainer);
	assert_ok(ls_trainer_new(&second, model, &o));
	ls_trainer_free(second);
	ls_model_free(model);
	ls_dataset_free(set);
}

static void test_samples_are_checked(void **state)
{
	ls_dataset *set = open_set("glyphs"), *words = open_set("babble-pairs");
	ls_model *model = make_model("mlp", set), *reader = make_model("bert-tiny", words);
	ls_trainer_options o = options_of("adam");
	ls_trainer *trainer = NULL, *of_text = NULL;
	samples *s = malloc(sizeof(*s));
	(void)state;
	assert_ok(ls_trainer_new(&trainer, model, &o));
	assert_ok(ls_trainer_new(&of_text, reader, &o));
	uint64_t bits = fingerprint(model), text_bits = fingerprint(reader);
	ls_batch batch = take(s, set, 0), bad = batch;
	assert_fails(ls_trainer_step(trainer, NULL, NULL), LS_EINVALID, "the batch is NULL");
	bad.count = BATCH + 1;
	assert_fails(ls_trainer_step(trainer, &bad, NULL), LS_EINVALID, "batch.count is 25; it must be from 1 to 24");
	bad.count = 0;
	assert_fails(ls_trainer_step(trainer, &bad, NULL), LS_EINVALID, "batch.count is 0");
	bad = batch;
	bad.labels = NULL;
	assert_fails(ls_trainer_step(trainer, &bad, NULL), LS_EMISMATCH, "batch.labels is NULL");
	s->labels[5] = 10;
	assert_fails(ls_trainer_step(trainer, &batch, NULL), LS_EINVALID, "the label of sample 5 is 10");
	s->labels[5] = -1;
	assert_fails(ls_trainer_backward(trainer, &batch, NULL), LS_EINVALID, "the label of sample 5 is -1");
	s->labels[5] = 0;
	s->images[3 * PIXELS + 7] = NAN;
	assert_fails(ls_trainer_step(trainer, &batch, NULL), LS_EINVALID, "sample 3: value 7 of the image is NaN");
	assert_fails(ls_trainer_step(of_text, &batch, NULL), LS_EMISMATCH, "takes text");
	assert_fails(ls_trainer_run(of_text, set, 1, NULL), LS_EMISMATCH, "takes text");
	assert_fails(ls_trainer_run(trainer, NULL, 1, NULL), LS_EINVALID, "the dataset is NULL");

	batch = take(s, words, 0);
	int32_t token = s->tokens[2][0][1];
	s->tokens[2][0][1] = 1 << 20;
	assert_fails(ls_trainer_step(of_text, &batch, NULL), LS_EINVALID, "sample 2: token 1 is 1048576");
	s->tokens[2][0][1] = token;
	s->tokens[2][2][0] = 64;
	assert_fails(ls_trainer_step(of_text, &batch, NULL), LS_EINVALID, "masked position 0 is 64");
	assert_int_equal(fingerprint(model), bits);
	assert_int_equal(fingerprint(reader), text_bits);
	ls_trainer_free(of_text);
	ls_trainer_free(trainer);
	ls_model_free(reader);
	ls_model_free(model);
	free(s);
	ls_dataset_free(words);
	ls_dataset_free(set);
}

static void test_gradients_are_checked(void **state)
{
	ls_dataset *set = open_set("glyphs");
	ls_model *model = make_model("resnet18", set);
	ls_trainer_options o = options_of("adam");
	ls_trainer *trainer = NULL;
	float values[64] = { 0 };
	(void)state;
	assert_ok(ls_trainer_new(&trainer, model, &o));
	assert_fails(ls_trainer_update(trainer, NULL), LS_EINVALID, "there is no gradient");
	assert_fails(ls_trainer_set_gradient(trainer, "nothing", values, 1), LS_ENOTFOUND, "no parameter 'nothing'");
	assert_fails(ls_trainer_set_gradient(trainer, "bn1.weight", values, 63), LS_EINVALID, "64 elements, not 63");
	assert_fails(ls_trainer_set_gradient(trainer, "bn1.running_mean", values, 64), LS_EINVALID,
		     "running statistics");
	values[9] = INFINITY;
	assert_fails(ls_trainer_set_gradient(trainer, "bn1.weight", values, 64), LS_ENUMERIC,
		     "element 9 of the new 'bn1.weight' is infinite; gradients");
	ls_trainer_free(trainer);
	ls_model_free(model);
	ls_dataset_free(set);
}

/* The gradient of a loss that is not finite is dropped, with what was added up before. */
static void test_a_loss_that_is_not_finite(void **state)
{
	ls_dataset *set = open_set("glyphs");
	ls_model *model = make_model("mlp", set);
	ls_trainer_options o = options_of("adam");
	ls_trainer *trainer = NULL;
	samples *s = malloc(sizeof(*s));
	ls_model_param param;
	(void)state;
	assert_ok(ls_trainer_new(&trainer, model, &o));
	ls_batch batch = take(s, set, 0);
	assert_ok(ls_trainer_backward(trainer, &batch, NULL));
	for (size_t i = 0; ls_model_param_at(model, i, &param); i++) {
		float *huge = malloc(param.elements * sizeof(*huge));
		for (uint64_t k = 0; k < param.elements; k++)
			huge[k] = k % 2 ? 1e30f : -1e30f;
		assert_ok(ls_model_set(model, param.name, huge, param.elements));
		free(huge);
	}
	assert_fails(ls_trainer_backward(trainer, &batch, NULL), LS_ENUMERIC, "the loss became");
	assert_fails(ls_trainer_update(trainer, NULL), LS_EINVALID, "there is no gradient");
	assert_ok(ls_trainer_save(trainer, *state, 1));
	ls_trainer_free(trainer);
	ls_model_free(model);
	ls_dataset_free(set);
	free(s);
}

static void test_handles_that_were_freed(void **state)
{
	ls_dataset *set = open_set("glyphs");
	ls_model *model = make_model("mlp", set);
	ls_trainer_options o = options_of("adam");
	ls_trainer *trainer = NULL;
	ls_model_facts facts;
	double lr;
	(void)state;
	assert_ok(ls_trainer_new(&trainer, model, &o));
	ls_model_free(model); /* the trainer keeps it */
	ls_model_free(model);
	assert_fails(ls_model_describe(model, &facts), LS_EINVALID, "the model was freed");
	assert_ok(ls_trainer_run(trainer, set, 2, NULL));
	ls_trainer_free(trainer);
	ls_trainer_free(trainer);
	ls_trainer_free(NULL);
	assert_fails(ls_trainer_get_lr(trainer, &lr), LS_EINVALID, "the trainer was freed");
	assert_fails(ls_trainer_run(trainer, set, 2, NULL), LS_EINVALID, "the trainer was freed");
	assert_fails(ls_trainer_step(NULL, NULL, NULL), LS_EINVALID, "the trainer is NULL");
	assert_fails(ls_model_save(NULL, "x"), LS_EINVALID, "the model is NULL");
	ls_dataset_free(set);
}

static void test_datasets_that_were_freed(void **state)
{
	static const char freed[] = "the dataset was freed";
	ls_dataset *set = open_set("glyphs"), *freed_set = open_set("glyphs");
	ls_model *model = make_model("mlp", set);
	ls_trainer_options o = options_of("adam");
	ls_train_options run = LS_TRAIN_OPTIONS_INIT;
	ls_trainer *trainer = NULL;
	ls_eval_result result;
	float image[28 * 28];
	int32_t label;
	(void)state;
	assert_ok(ls_trainer_new(&trainer, model, &o));
	ls_dataset_free(freed_set);
	ls_dataset_free(freed_set);
	ls_dataset_free(NULL);
	assert_fails(ls_dataset_read(freed_set, 0, image, &label), LS_EINVALID, freed);
	assert_fails(ls_dataset_read_text(freed_set, 0, 0, NULL), LS_EINVALID, freed);
	assert_fails(ls_dataset_read_targets(freed_set, 0, image), LS_EINVALID, freed);
	assert_fails(ls_dataset_measure_text(freed_set, 0, 0, NULL, NULL), LS_EINVALID, freed);
	assert_fails(ls_dataset_read(NULL, 0, image, &label), LS_EINVALID, "the dataset is NULL");
	assert_fails(ls_trainer_run(trainer, freed_set, 1, NULL), LS_EINVALID, freed);
	assert_fails(ls_trainer_evaluate_dataset(trainer, freed_set, &result), LS_EINVALID, freed);
	run.model = "mlp", run.train_set = freed_set, run.quiet = 1;
	assert_fails(ls_train(&run, NULL), LS_EINVALID, freed);
	run.train_set = set, run.test_set = freed_set;
	assert_fails(ls_train(&run, NULL), LS_EINVALID, freed);
	ls_trainer_free(trainer);
	ls_model_free(model);
	ls_dataset_free(set);
}

static void test_graphs_that_were_freed(void **state)
{
	static const char freed[] = "the graph was freed";
	ls_train_options run = LS_TRAIN_OPTIONS_INIT;
	ls_eval_options eval = LS_EVAL_OPTIONS_INIT;
	ls_operator row = LS_OPERATOR_INIT;
	ls_loss loss = LS_LOSS_INIT;
	ls_graph *graph = NULL;
	ls_model *model = NULL;
	ls_graph_param param;
	ls_graph_node node;
	ls_value x;
	(void)state;
	assert_ok(ls_graph_new(&graph));
	x = ls_input(graph, 1, 28, 28);
	ls_graph_free(graph);
	ls_graph_free(graph);
	ls_graph_free(NULL);
	assert_int_equal(ls_linear(graph, x, "fc", (ls_linear_options){ .out_features = 10 }).id, -1);
	assert_int_equal(ls_conv2d(graph, x, "conv", (ls_conv_options){ .out_channels = 8, .kernel = 3 }).id, -1);
	assert_int_equal(ls_relu(graph, x).id, -1);
	assert_int_equal(ls_add(graph, x, x).id, -1);
	assert_int_equal(ls_input(graph, 1, 2, 3).id, -1);
	assert_int_equal(ls_text_input(graph, 5, 0).id, -1);
	assert_int_equal(ls_tied_linear(graph, x, x, "fc").id, -1);
	assert_int_equal(ls_graph_operator(graph, &row, "own", &x, NULL).id, -1);
	ls_graph_loss(graph, &loss, x, NULL);
	ls_cross_entropy(graph, x, (ls_cross_entropy_options){ 0 });
	assert_fails(ls_graph_check(graph), LS_EINVALID, freed);
	assert_fails(ls_graph_finish(graph, x), LS_EINVALID, freed);
	assert_fails(ls_graph_finish_pretraining(graph, x, x), LS_EINVALID, freed);
	assert_fails(ls_graph_finish_language(graph, x), LS_EINVALID, freed);
	assert_int_equal(ls_graph_describe(graph).layers, 0);
	assert_int_equal(ls_graph_input_shape(graph).channels, 0);
	assert_int_equal(ls_graph_node_at(graph, 0, &node) + ls_graph_param_at(graph, 0, &param), 0);
	assert_fails(ls_model_new(&model, graph, 1), LS_EINVALID, freed);
	run.graph = graph, run.data = "glyphs", run.quiet = 1;
	assert_fails(ls_train(&run, NULL), LS_EINVALID, freed);
	eval.graph = graph, eval.source = "run", eval.data = "glyphs";
	assert_fails(ls_eval(&eval, NULL), LS_EINVALID, freed);
}

static void test_arguments_that_are_null(void **state)
{
	ls_dataset *set = open_set("glyphs"), *words = open_set("babble-pairs");
	ls_model *model = make_model("mlp", set), *reader = make_model("bert-tiny", words);
	ls_trainer_options o = options_of("adam");
	ls_trainer *trainer = NULL;
	samples *s = malloc(sizeof(*s));
	ls_batch batch = take(s, set, 0);
	float logits[10];
	(void)state;
	ls_train_options settings = LS_TRAIN_OPTIONS_INIT;
	assert_fails(ls_trainer_new(NULL, model, &o), LS_EINVALID, "`out` is NULL");
	assert_fails(ls_model_new_named(NULL, NULL, 1), LS_EINVALID, "`out` is NULL");
	assert_fails(ls_model_load(NULL, NULL), LS_EINVALID, "`out` is NULL");
	assert_fails(ls_stop_new(NULL), LS_EINVALID, "`out` is NULL");
	assert_fails(ls_graph_new(NULL), LS_EINVALID, "`out` is NULL");
	assert_fails(ls_graph_finish(NULL, (ls_value){ 0 }), LS_EINVALID, "the graph is NULL");
	assert_fails(ls_train_options_set(NULL, "lr", "1"), LS_EINVALID, "`options` is NULL");
	assert_fails(ls_train_options_set(&settings, NULL, "1"), LS_EINVALID, "`name` is NULL");
	assert_int_equal(ls_model_param_at(model, 0, NULL), 1);
	assert_int_equal(ls_model_param_of(model, "nothing", NULL), 0);
	assert_ok(ls_trainer_new(&trainer, model, &o));
	assert_fails(ls_model_predict(model, NULL, 1, logits), LS_EINVALID, "`images` is NULL");
	assert_fails(ls_model_predict(model, s->images, 1, NULL), LS_EINVALID, "`logits` is NULL");
	assert_fails(ls_model_predict_text(reader, NULL, 1, logits), LS_EINVALID, "`samples` is NULL");
	assert_ok(ls_model_predict(model, NULL, 0, NULL));
	assert_fails(ls_model_interpret(model, NULL, 1), LS_EINVALID, "`logits` is NULL");
	assert_fails(ls_model_describe(model, NULL), LS_EINVALID, "`out` is NULL");
	assert_fails(ls_model_get(model, "fc1.bias", NULL, 256), LS_EINVALID, "`values` is NULL");
	assert_fails(ls_model_set(model, "fc1.bias", NULL, 256), LS_EINVALID, "`values` is NULL");
	assert_fails(ls_model_save(model, NULL), LS_EINVALID, "`path` is NULL");
	assert_fails(ls_model_export_onnx(model, NULL), LS_EINVALID, "`path` is NULL");
	assert_fails(ls_trainer_evaluate_dataset(trainer, set, NULL), LS_EINVALID, "`result` is NULL");
	assert_fails(ls_trainer_evaluate(trainer, &batch, NULL), LS_EINVALID, "`result` is NULL");
	assert_fails(ls_trainer_get_lr(trainer, NULL), LS_EINVALID, "`lr` is NULL");
	assert_fails(ls_trainer_get_position(trainer, NULL), LS_EINVALID, "`out` is NULL");
	assert_ok(ls_trainer_backward(trainer, &batch, NULL));
	assert_fails(ls_trainer_get_gradient(trainer, "fc1.bias", NULL, 256), LS_EINVALID, "`values` is NULL");
	assert_fails(ls_trainer_set_gradient(trainer, "fc1.bias", NULL, 256), LS_EINVALID, "`values` is NULL");
	ls_trainer_free(trainer);
	ls_model_free(reader);
	ls_model_free(model);
	free(s);
	ls_dataset_free(words);
	ls_dataset_free(set);
}

static int stop_at_third(void *context, const ls_trainer_report *report)
{
	*(int *)context += 1;
	return report->steps == 3;
}

static void test_the_hook_stops_a_run(void **state)
{
	ls_dataset *set = open_set("glyphs");
	ls_model *model = make_model("mlp", set);
	ls_trainer_options o = options_of("adam");
	ls_trainer *trainer = NULL;
	int calls = 0;
	(void)state;
	assert_ok(ls_trainer_new(&trainer, model, &o));
	assert_ok(ls_trainer_set_hook(trainer, stop_at_third, &calls));
	assert_fails(ls_trainer_run(trainer, set, STEPS, NULL), LS_EINTERRUPTED, "after step 3");
	assert_int_equal(calls, 3);
	assert_ok(ls_trainer_run(trainer, set, STEPS - 3, NULL));
	assert_int_equal(fingerprint(model), train("mlp", set, &o));
	ls_trainer_free(trainer);
	ls_model_free(model);
	ls_dataset_free(set);
}

static int request_at_third(void *context, const ls_trainer_report *report)
{
	if (report->steps == 3)
		ls_stop_request(context);
	return 0;
}

static void test_a_request_to_stop(void **state)
{
	ls_dataset *set = open_set("glyphs");
	ls_model *model = make_model("mlp", set);
	ls_trainer_options o = options_of("adam");
	ls_trainer *trainer = NULL;
	ls_stop *stop = NULL;
	ls_eval_result result;
	samples *s = malloc(sizeof(*s));
	ls_batch batch = take(s, set, 0);
	(void)state;
	assert_ok(ls_stop_new(&stop));
	assert_ok(ls_trainer_new(&trainer, model, &o));
	assert_ok(ls_trainer_set_stop(trainer, stop));
	assert_ok(ls_trainer_set_hook(trainer, request_at_third, stop));
	assert_fails(ls_trainer_run(trainer, set, STEPS, NULL), LS_EINTERRUPTED, "stopped on request after step 3");
	assert_fails(ls_trainer_evaluate_dataset(trainer, set, &result), LS_EINTERRUPTED, "stopped after 0 of 75");
	assert_fails(ls_trainer_evaluate(trainer, &batch, &result), LS_EINTERRUPTED, "stopped after 0 of 24");
	ls_stop_clear(stop);
	assert_ok(ls_trainer_evaluate_dataset(trainer, set, &result));
	assert_ok(ls_trainer_run(trainer, set, STEPS - 3, NULL));
	assert_int_equal(fingerprint(model), train("mlp", set, &o));
	ls_stop_request(stop);
	assert_ok(ls_trainer_set_stop(trainer, NULL));
	assert_ok(ls_trainer_evaluate_dataset(trainer, set, &result));
	ls_stop_free(stop);
	assert_fails(ls_trainer_set_stop(trainer, stop), LS_EINVALID, "the stop handle was freed");
	ls_trainer_free(trainer);
	ls_model_free(model);
	ls_dataset_free(set);
	free(s);
}

/* What is called in a hook, by the number of the step. */
typedef struct caller {
	ls_trainer *trainer;
	ls_model *model;
	const ls_dataset *set;
	const char *directory;
	samples *s;
	int calls;
} caller;

static int call_again(void *context, const ls_trainer_report *report)
{
	static const char why[] = "this trainer is in ls_trainer_run(): call this when that has returned";
	caller *c = context;
	ls_batch batch = take(c->s, c->set, 0);
	ls_eval_result result;
	float value = 0;
	double lr = 0;
	(void)report;
	assert_fails(ls_trainer_run(c->trainer, c->set, 1, NULL), LS_EINVALID, why);
	assert_fails(ls_trainer_step(c->trainer, &batch, NULL), LS_EINVALID, why);
	assert_fails(ls_trainer_backward(c->trainer, &batch, NULL), LS_EINVALID, why);
	assert_fails(ls_trainer_update(c->trainer, NULL), LS_EINVALID, why);
	assert_fails(ls_trainer_zero_gradient(c->trainer), LS_EINVALID, why);
	assert_fails(ls_trainer_set_gradient(c->trainer, "fc1.bias", &value, 1), LS_EINVALID, why);
	assert_fails(ls_trainer_load(c->trainer, c->directory), LS_EINVALID, why);
	assert_ok(ls_trainer_evaluate_dataset(c->trainer, c->set, &result));
	assert_ok(ls_trainer_evaluate(c->trainer, &batch, &result));
	assert_ok(ls_trainer_save(c->trainer, c->directory, 1));
	assert_ok(ls_trainer_get_lr(c->trainer, &lr));
	assert_true(fingerprint(c->model) != 0);
	c->calls++;
	return 0;
}

/* What is refused leaves the run as it was. */
static void test_calls_in_a_hook(void **state)
{
	ls_dataset *set = open_set("glyphs");
	ls_model *model = make_model("mlp", set);
	ls_trainer_options o = options_of("adam");
	caller c = { .model = model, .set = set, .directory = *state, .s = malloc(sizeof(*c.s)) };
	assert_ok(ls_trainer_new(&c.trainer, model, &o));
	assert_ok(ls_trainer_set_hook(c.trainer, call_again, &c));
	assert_ok(ls_trainer_run(c.trainer, set, STEPS, NULL));
	assert_int_equal(c.calls, STEPS);
	assert_int_equal(fingerprint(model), train("mlp", set, &o));
	ls_trainer_free(c.trainer);
	ls_model_free(model);
	ls_dataset_free(set);
	free(c.s);
}

static int free_at_second(void *context, const ls_trainer_report *report)
{
	caller *c = context;
	double lr;
	if (++c->calls == 2) {
		ls_trainer_free(c->trainer);
		ls_trainer_free(c->trainer);
		assert_fails(ls_trainer_get_lr(c->trainer, &lr), LS_EINVALID, "the trainer was freed");
	}
	return report->steps > 2;
}

static void test_a_hook_frees_its_trainer(void **state)
{
	ls_dataset *set = open_set("glyphs");
	ls_model *model = make_model("mlp", set);
	ls_trainer_options o = options_of("adam");
	caller c = { .set = set };
	(void)state;
	assert_ok(ls_trainer_new(&c.trainer, model, &o));
	assert_ok(ls_trainer_set_hook(c.trainer, free_at_second, &c));
	assert_fails(ls_trainer_run(c.trainer, set, STEPS, NULL), LS_EINTERRUPTED,
		     "the program's hook freed the trainer, which ended the run after step 2");
	assert_int_equal(c.calls, 2);
	assert_ok(ls_trainer_new(&c.trainer, model, &o)); /* the model has none any more */
	ls_trainer_free(c.trainer);
	ls_model_free(model);
	ls_dataset_free(set);
}

TEST_MAIN_EACH(temp_dir_make, temp_dir_remove, test_options_are_checked, test_samples_are_checked,
	       test_gradients_are_checked, test_a_loss_that_is_not_finite, test_handles_that_were_freed,
	       test_datasets_that_were_freed, test_graphs_that_were_freed, test_arguments_that_are_null,
	       test_the_hook_stops_a_run, test_a_request_to_stop, test_calls_in_a_hook, test_a_hook_frees_its_trainer)
