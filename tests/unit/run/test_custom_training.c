/* A graph with an operator and a loss of the program's own, trained, predicted with, saved and exported. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <lockstep/lockstep.h>

#include "unit/assert_status.h"
#include "unit/test_main.h"

static int scale_shape(ls_operator_shape *s)
{
	s->params = 1;
	s->param[0] = (ls_operator_param){
		.name = "by", .rank = 1, .shape = { s->input[0].channels }, .start = LS_START_ONE
	};
	return 0;
}

/* y = by[c] x / (1 + |x|) */
static void scale_forward(const ls_operator_call *call)
{
	for (int64_t i = 0; i < call->rows[0] * call->channels[0]; i++) {
		float x = call->x[0][i], size = x < 0 ? -x : x;
		call->y[i] = call->param[0][i % call->channels[0]] * x / (1 + size);
	}
}

static void scale_backward(const ls_operator_call *call)
{
	for (int64_t i = 0; i < call->rows[0] * call->channels[0]; i++) {
		float x = call->x[0][i], size = 1 + (x < 0 ? -x : x);
		if (call->dx[0])
			call->dx[0][i] = call->dy[i] * call->param[0][i % call->channels[0]] / (size * size);
		if (call->grad[0])
			call->grad[0][i % call->channels[0]] += call->dy[i] * x / size;
	}
}

static float hinge_row(ls_loss_call *call)
{
	float loss = 0;
	for (int c = 0; c < call->channels; c++) {
		float side = c == call->label ? 1.0f : -1.0f, off = 1 - side * call->x[c];
		loss += off > 0 ? off * off : 0;
		if (call->dx)
			call->dx[c] = off > 0 ? -2 * side * off : 0;
	}
	return loss;
}

static ls_graph *make(void)
{
	ls_operator scale = LS_OPERATOR_INIT;
	ls_loss hinge = LS_LOSS_INIT;
	ls_graph *g = NULL;

	scale.name = "scale";
	scale.shape = scale_shape;
	scale.forward = scale_forward;
	scale.backward = scale_backward;
	hinge.name = "hinge";
	hinge.row = hinge_row;
	assert_ok(ls_operator_check(&scale, NULL));
	assert_ok(ls_loss_check(&hinge, NULL));
	assert_ok(ls_graph_new(&g));
	ls_value x = ls_input(g, 1, 28, 28);
	x = ls_conv2d(g, x, "conv", (ls_conv_options){ .out_channels = 20, .kernel = 5, .stride = 3 });
	x = ls_graph_operator(g, &scale, "scale", &x, NULL);
	x = ls_linear(g, x, "fc", (ls_linear_options){ .out_features = 10 });
	ls_graph_loss(g, &hinge, x, NULL);
	assert_ok(ls_graph_finish(g, x));
	return g;
}

static uint64_t train(int64_t devices, int64_t threads, const char *freeze, double *accuracy)
{
	ls_train_options o = LS_TRAIN_OPTIONS_INIT;
	ls_train_result result = { 0 };
	ls_graph *g = make();

	o.graph = g;
	o.data = "glyphs";
	o.samples = 2000;
	o.test_samples = 200;
	o.batch = 40;
	o.micro_batch = 10;
	o.devices = devices;
	o.threads = threads;
	o.weight_decay = 1e-4;
	o.freeze = freeze;
	o.quiet = 1;
	assert_ok(ls_train(&o, &result));
	*accuracy = result.test_accuracy;
	ls_graph_free(g);
	return result.fingerprint;
}

static void trained_bits(void **state)
{
	double accuracy, other;
	(void)state;
	uint64_t one = train(1, 1, NULL, &accuracy);
	assert_true(accuracy > 0.6); /* it learns */
	assert_int_equal(train(2, 1, NULL, &other), one);
	assert_int_equal(train(1, 3, NULL, &other), one);
	uint64_t frozen = train(1, 1, "scale.by", &other);
	assert_int_not_equal(frozen, one);
	assert_int_equal(train(3, 2, "scale.by", &other), frozen);
}

static void predicted_and_exported(void **state)
{
	ls_model *model = NULL;
	static float images[3 * 28 * 28], all[30], single[10];
	(void)state;
	for (size_t i = 0; i < sizeof(images) / sizeof(images[0]); i++)
		images[i] = (float)(i * 2654435761u % 1000) / 500 - 1;
	assert_ok(ls_model_new(&model, make(), 3));
	assert_ok(ls_model_predict(model, images, 3, all));
	for (int i = 0; i < 3; i++) {
		assert_ok(ls_model_predict(model, images + (size_t)i * 784, 1, single));
		assert_memory_equal(single, all + (size_t)i * 10, sizeof(single));
	}
	char path[] = "/tmp/lockstep-own-XXXXXX";
	int file = mkstemp(path);
	assert_true(file >= 0);
	close(file);
	assert_fails(ls_model_export_onnx(model, path), LS_EUNSUPPORTED, "layer 'scale': there is no 'scale' in ONNX");
	assert_ok(ls_model_save(model, path));
	unlink(path);
	ls_model_free(model);
}

/* ---- walking a graph --------------------------------------------------------------------------------------------- */

static void nodes_of_a_graph(void **state)
{
	ls_graph_node node;
	ls_graph_param param;
	ls_graph *g = make();
	(void)state;
	static const struct {
		const char *operator_name, *layer;
		int input, channels, height, params;
	} rows[] = { { "conv2d", "conv", -1, 20, 8, 2 },
		     { "scale", "scale", 0, 20, 8, 1 },
		     { "linear_map", "fc", 1, 10, 1, 2 } };
	for (int i = 0; i < 3; i++) {
		assert_int_equal(ls_graph_node_at(g, i, &node), 1);
		assert_string_equal(node.operator_name, rows[i].operator_name);
		assert_string_equal(node.layer, rows[i].layer);
		assert_int_equal(node.inputs, 1);
		assert_int_equal(node.input[0], rows[i].input);
		assert_int_equal(node.output.channels, rows[i].channels);
		assert_int_equal(node.output.height, rows[i].height);
		assert_int_equal(node.output.rows, LS_ROWS_POSITIONS);
		assert_int_equal(node.params, rows[i].params);
		assert_int_equal(ls_graph_param_at(g, node.param[0], &param), 1);
		assert_int_equal(strncmp(param.name, rows[i].layer, strlen(rows[i].layer)), 0);
		assert_true(param.is_trained && !node.is_loss && !node.fused);
	}
	assert_true(node.flop == 2.0 * 3 * 20 * 64 * 10);
	assert_int_equal(ls_graph_node_at(g, 3, &node), 1);
	assert_string_equal(node.operator_name, "hinge");
	assert_true(node.is_loss && node.input[0] == 2 && node.params == 0 && node.output.channels == 0);
	assert_int_equal(ls_graph_node_at(g, 4, &node), 0);
	assert_int_equal(ls_graph_node_at(g, -1, &node), 0);
	assert_int_equal(ls_graph_param_at(g, 5, &param), 0);
	ls_value_shape in = ls_graph_input_shape(g);
	assert_true(in.channels == 1 && in.height == 28 && in.width == 28 && in.rows == LS_ROWS_POSITIONS);
	ls_graph_free(g);
	assert_ok(ls_graph_new(&g));
	assert_int_equal(ls_graph_node_at(g, 0, &node), 0); /* not finished */
	assert_int_equal(ls_graph_input_shape(g).channels, 0);
	ls_graph_free(g);
}

/* Every node of every model: inputs come before it, its parameters exist, and flops add up. */
static void every_model(void **state)
{
	const ls_model_row *row;
	(void)state;
	for (size_t i = 0; (row = ls_model_row_at(i)); i++) {
		ls_model_options o = LS_MODEL_OPTIONS_INIT;
		ls_graph *g = NULL;
		ls_graph_node node;
		ls_graph_param param;
		double flop = 0;
		int losses = 0, residuals = 0, count = 0;
		o.name = row->name;
		o.channels = 1;
		o.height = o.width = 28;
		o.classes = 10;
		assert_ok(ls_model_build(&g, &o));
		for (; ls_graph_node_at(g, count, &node); count++) {
			for (int k = 0; k < node.inputs; k++)
				assert_true(node.input[k] >= -1 && node.input[k] < count);
			for (int k = 0; k < node.params; k++)
				assert_int_equal(ls_graph_param_at(g, node.param[k], &param), 1);
			flop += node.flop;
			losses += node.is_loss;
			residuals += node.fused && strncmp(node.fused, "add", 3) == 0;
		}
		assert_true(losses == 1 && count == ls_graph_describe(g).layers + 1);
		assert_true(flop == ls_graph_describe(g).flop_per_sample);
		assert_int_equal(residuals > 0, strncmp(row->name, "resnet", 6) == 0 ||
							strncmp(row->name, "vit", 3) == 0 || row->is_text);
		ls_graph_free(g);
	}
}

TEST_MAIN(trained_bits, predicted_and_exported, nodes_of_a_graph, every_model)
