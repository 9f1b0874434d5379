/*
 * custom_operator.c - a custom activation with a parameter and a custom loss: checked, then trained with.
 *
 *     cc custom_operator.c $(pkg-config --cflags --libs lockstep) -lm && ./a.out
 */
#include <lockstep/lockstep.h>
#include <math.h>
#include <stdio.h>

/* ---- PReLU: y = x where x > 0, else slope[c] x ---- */

static int prelu_shape(ls_operator_shape *shape)
{
	shape->params = 1;
	shape->param[0] = (ls_operator_param){
		.name = "slope", .rank = 1, .shape = { shape->input[0].channels }, .start = LS_START_ZERO, .no_decay = 1
	};
	return 0; /* the output is like the input */
}

static void prelu_forward(const ls_operator_call *call)
{
	int channels = call->channels[0];
	for (int64_t i = 0; i < call->rows[0] * channels; i++) {
		float x = call->x[0][i];
		call->y[i] = x > 0 ? x : call->param[0][i % channels] * x;
	}
}

static void prelu_backward(const ls_operator_call *call)
{
	int channels = call->channels[0];
	for (int64_t i = 0; i < call->rows[0] * channels; i++) {
		float x = call->x[0][i], dy = call->dy[i];
		if (call->dx[0])
			call->dx[0][i] = x > 0 ? dy : call->param[0][i % channels] * dy;
		if (call->grad[0] && x <= 0)
			call->grad[0][i % channels] += dy * x;
	}
}

/* ---- focal loss: -(1 - p)^2 log p, p the probability of the label: easy samples count less ---- */

static float focal_row(ls_loss_call *call)
{
	float most = call->x[0], sum = 0;
	for (int c = 1; c < call->channels; c++)
		most = call->x[c] > most ? call->x[c] : most;
	for (int c = 0; c < call->channels; c++)
		sum += expf(call->x[c] - most);
	float log_p = call->x[call->label] - most - logf(sum), p = expf(log_p), q = 1 - p;
	for (int c = 0; call->dx && c < call->channels; c++) {
		float is_label = (float)(c == call->label), probability = expf(call->x[c] - most) / sum;
		call->dx[c] = (2 * q * p * log_p - q * q) * (is_label - probability);
	}
	return -q * q * log_p;
}

static int fail(void)
{
	fprintf(stderr, "%s\n", ls_last_error());
	return 1;
}

int main(void)
{
	ls_operator prelu = LS_OPERATOR_INIT;
	prelu.name = "prelu";
	prelu.shape = prelu_shape;
	prelu.forward = prelu_forward;
	prelu.backward = prelu_backward;
	ls_loss focal = LS_LOSS_INIT;
	focal.name = "focal";
	focal.row = focal_row;
	if (ls_operator_check(&prelu, NULL) || ls_loss_check(&focal, NULL))
		return fail();

	ls_graph *graph = NULL;
	if (ls_graph_new(&graph))
		return fail();
	ls_value x = ls_input(graph, 1, 28, 28);
	x = ls_conv2d(graph, x, "conv1",
		      (ls_conv_options){ .out_channels = 16, .kernel = 5, .stride = 2, .padding = 2 });
	x = ls_graph_operator(graph, &prelu, "act1", &x, NULL);
	x = ls_conv2d(graph, x, "conv2",
		      (ls_conv_options){ .out_channels = 32, .kernel = 3, .stride = 2, .padding = 1 });
	x = ls_graph_operator(graph, &prelu, "act2", &x, NULL);
	x = ls_linear(graph, x, "fc", (ls_linear_options){ .out_features = 10 });
	ls_graph_loss(graph, &focal, x, NULL);

	ls_train_options options = LS_TRAIN_OPTIONS_INIT;
	ls_train_result result;
	options.graph = graph;
	options.data = "glyphs";
	options.samples = 6000;
	options.epochs = 3;
	options.quiet = 1;
	int failed = ls_graph_finish(graph, x) || ls_train(&options, &result);
	if (failed)
		fail();
	else
		printf("accuracy %.4f, parameters %016llx\n", result.test_accuracy,
		       (unsigned long long)result.fingerprint);
	ls_graph_free(graph);
	return failed;
}
