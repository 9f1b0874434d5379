/*
 * Operators and losses of a program's own: those that repeat ours give our bits, on images, tokens and masked positions
 * and on any number of threads; gradients of their parameters are right; mistakes are found.
 */
#include <lockstep/operator.h>

#include <time.h>

#include "unit/graph/slopes.h"
#include "unit/test_main.h"

/* ---- ours again -------------------------------------------------------------------------------------------------- */

/* It takes its time, so that threads would meet in memory that they share. */
static void relu_forward(const ls_operator_call *call)
{
	const struct timespec moment = { .tv_nsec = 20 * 1000 };
	int64_t count = call->rows[0] * call->channels[0];
	for (int64_t i = 0; i < count; i++) {
		if (i == count / 2 && call->is_training)
			nanosleep(&moment, NULL);
		call->y[i] = call->x[0][i] > 0 ? call->x[0][i] : 0;
	}
}

static void relu_backward(const ls_operator_call *call)
{
	for (int64_t i = 0; call->dx[0] && i < call->rows[0] * call->channels[0]; i++)
		call->dx[0][i] = call->y[i] > 0 ? call->dy[i] : 0;
}

static const ls_operator own_relu = {
	.size = sizeof(ls_operator), .name = "own_relu", .inputs = 1, .forward = relu_forward, .backward = relu_backward
};

static int multiply_shape(ls_operator_shape *s)
{
	const ls_value_shape *a = &s->input[0], *b = &s->input[1];
	if (a->channels == b->channels && a->height == b->height && a->width == b->width)
		return 0;
	snprintf(s->message, sizeof(s->message), "%d and %d channels", a->channels, b->channels);
	return 1;
}

static void multiply_forward(const ls_operator_call *call)
{
	for (int64_t i = 0; i < call->out_rows * call->out_channels; i++)
		call->y[i] = call->x[0][i] * call->x[1][i];
}

static void multiply_backward(const ls_operator_call *call)
{
	for (int k = 0; k < 2; k++)
		for (int64_t i = 0; call->dx[k] && i < call->rows[k] * call->channels[k]; i++)
			call->dx[k][i] = call->dy[i] * call->x[1 - k][i];
}

static const ls_operator own_multiply = { .size = sizeof(ls_operator),
					  .name = "own_multiply",
					  .inputs = 2,
					  .shape = multiply_shape,
					  .forward = multiply_forward,
					  .backward = multiply_backward };

/* The first token of a sample: tokens become one row per sample. */
static int first_shape(ls_operator_shape *s)
{
	s->output = (ls_value_shape){
		.rows = LS_ROWS_POSITIONS, .channels = s->input[0].channels, .height = 1, .width = 1
	};
	return 0;
}

static void first_forward(const ls_operator_call *call)
{
	memcpy(call->y, call->x[0], sizeof(float) * (size_t)call->out_channels);
}

static void first_backward(const ls_operator_call *call)
{
	memset(call->dx[0], 0, sizeof(float) * (size_t)(call->rows[0] * call->channels[0]));
	memcpy(call->dx[0], call->dy, sizeof(float) * (size_t)call->out_channels);
}

static const ls_operator own_first = { .size = sizeof(ls_operator),
				       .name = "own_first",
				       .inputs = 1,
				       .shape = first_shape,
				       .forward = first_forward,
				       .backward = first_backward };

/* Mean squared error, with a factor as an option. */
typedef struct factor {
	float by;
} factor;

static float squared_row(ls_loss_call *call)
{
	float sum = 0, by = ((const factor *)call->options)->by;
	for (int c = 0; c < call->channels; c++) {
		float off = call->x[c] - (float)(call->label == c);
		sum += off * off;
		if (call->dx)
			call->dx[c] = 2 * off * by / (float)call->channels;
	}
	return sum * by / (float)call->channels;
}

static const ls_loss own_squared = {
	.size = sizeof(ls_loss), .name = "own_squared", .options_bytes = sizeof(factor), .row = squared_row
};

static const factor one = { 1 };

/* ---- nets, with ours or with the program's own ------------------------------------------------------------------- */

static ls_value relu(ls_graph *g, ls_value x, int own)
{
	return own ? ls_graph_operator(g, &own_relu, NULL, &x, NULL) : ls_relu(g, x);
}

static ls_value multiply(ls_graph *g, ls_value a, ls_value b, int own)
{
	return own ? ls_graph_operator(g, &own_multiply, NULL, (ls_value[]){ a, b }, NULL) : ls_multiply(g, a, b);
}

static void squared(ls_graph *g, ls_value x, int own)
{
	if (own)
		ls_graph_loss(g, &own_squared, x, &one);
	else
		ls_mean_squared_error(g, x);
}

/* Panels of 32 and 64 channels with padding. Values are read once: ours adds to a gradient in one rounding, the
 * executor in two. */
static ls_graph *image_net(int own)
{
	ls_graph *g = net_graph();
	ls_value x = net_conv(g, ls_input(g, 3, 6, 5), "a", 70, 3, 1);
	x = relu(g, net_layer_norm(g, x, "n", 0), own); /* nothing to fuse with */
	ls_value y =
		net_per_position(g, multiply(g, x, net_conv(g, (ls_value){ g->input }, "c", 70, 3, 0), own), "b", 20);
	y = net_head(g, ls_global_avg_pool(g, y));
	squared(g, y, own);
	assert_ok(ls_graph_finish(g, y));
	return g;
}

static ls_graph *text_graph(int own)
{
	ls_graph *g = net_graph();
	ls_value words = text_embed(g, 9, 3, 32, NULL), x = words;
	x = net_layer_norm(g, text_attend(g, x, "att", 32, 2, 0), "n", 0);
	x = multiply(g, relu(g, x, own), net_linear(g, words, "w", 32), own);
	ls_value masked = net_layer_norm(g, ls_masked_positions(g, x), "m", 0);
	masked = multiply(g, relu(g, masked, own), net_linear(g, ls_masked_positions(g, words), "k", 32), own);
	masked = net_linear(g, masked, "t", TEXT_VOCABULARY);
	ls_value first = own ? ls_graph_operator(g, &own_first, NULL, &x, NULL) : ls_first_token(g, x);
	ls_value y = net_head(g, first);
	squared(g, y, own);
	squared(g, masked, own);
	assert_ok(ls_graph_finish(g, y));
	return g;
}

/* Nothing but a loss: its scratch is nobody else's. */
static ls_graph *bare_net(int own)
{
	ls_graph *g = net_graph();
	ls_value x = ls_flatten(g, ls_input(g, 3, 8, 8));
	squared(g, x, own);
	assert_ok(ls_graph_finish(g, x));
	return g;
}

typedef struct trained {
	text_net text;
	net image, *net;
	double loss;
} trained;

static void train(trained *t, ls_graph *g, int threads)
{
	*t = (trained){ .net = &t->image };
	if (g->tokens_max > 0) {
		text_init(&t->text, g, 70, 0, threads, 0); /* several tiles */
		t->net = &t->text.net;
		t->text.token_weight = 0.5; /* exact: ours has it among its factors, own ones get it afterwards */
		t->loss = text_train(&t->text, 70);
	} else {
		net_init(&t->image, g, 70, 0, threads, 0);
		t->loss = net_train(&t->image, 70);
	}
}

static void release(trained *t)
{
	if (t->net == &t->image)
		net_release(&t->image);
	else
		text_release(&t->text);
}

static void same_bits_as_ours(void **state)
{
	ls_graph *(*const nets[])(int) = { image_net, text_graph, bare_net };
	(void)state;
	for (int i = 0; i < 3; i++)
		for (int threads = 1; threads <= 3; threads++) {
			trained ours, own;
			train(&ours, nets[i](0), 1);
			train(&own, nets[i](1), threads);
			assert_true(ours.loss == own.loss);
			assert_int_equal(ours.net->microbatch.correct, own.net->microbatch.correct);
			assert_int_equal(ours.net->microbatch.token_correct, own.net->microbatch.token_correct);
			net_same_floats("gradient", own.net->grads, ours.net->grads, ours.net->graph->params.reachable);
			release(&ours);
			release(&own);
		}
}

/* ---- parameters -------------------------------------------------------------------------------------------------- */

/* y = x where x > 0, else x slope[c] + shift[c]; and a matrix that nobody else has. */
static int bent_shape(ls_operator_shape *s)
{
	int64_t channels = s->input[0].channels;
	s->params = 3;
	s->param[0] = (ls_operator_param){ .name = "slope", .rank = 1, .shape = { channels }, .start = LS_START_ONE };
	s->param[1] = (ls_operator_param){ .name = "shift", .rank = 1, .shape = { channels }, .no_decay = 1 };
	s->param[2] = (ls_operator_param){
		.name = "mix", .rank = 2, .shape = { channels, 3 }, .start = LS_START_UNIFORM, .fan_in = 3
	};
	return 0;
}

static void bent_forward(const ls_operator_call *call)
{
	int channels = call->channels[0];
	for (int64_t r = 0; r < call->rows[0]; r++)
		for (int c = 0; c < channels; c++) {
			const float *mix = call->param[2] + 3 * c;
			float x = call->x[0][r * channels + c], bent = x * call->param[0][c] + call->param[1][c];
			call->y[r * channels + c] = tanhf(x) + 0.3f * bent * (mix[0] + mix[1] * mix[2]);
		}
}

static void bent_backward(const ls_operator_call *call)
{
	int channels = call->channels[0];
	for (int64_t r = 0; r < call->rows[0]; r++)
		for (int c = 0; c < channels; c++) {
			const float *mix = call->param[2] + 3 * c;
			float x = call->x[0][r * channels + c], bent = x * call->param[0][c] + call->param[1][c];
			float dy = call->dy[r * channels + c], by = 0.3f * (mix[0] + mix[1] * mix[2]), t = tanhf(x);
			if (call->dx[0])
				call->dx[0][r * channels + c] = dy * (1 - t * t + by * call->param[0][c]);
			if (call->grad[0])
				call->grad[0][c] += dy * by * x;
			if (call->grad[1])
				call->grad[1][c] += dy * by;
			if (call->grad[2]) {
				call->grad[2][3 * c] += dy * 0.3f * bent;
				call->grad[2][3 * c + 1] += dy * 0.3f * bent * mix[2];
				call->grad[2][3 * c + 2] += dy * 0.3f * bent * mix[1];
			}
		}
}

static double bent_cost(const ls_operator_shape *s)
{
	return 3.0 * s->input[0].channels * s->input[0].height * s->input[0].width;
}

static const ls_operator bent = { .size = sizeof(ls_operator),
				  .name = "bent",
				  .inputs = 1,
				  .shape = bent_shape,
				  .cost = bent_cost,
				  .forward = bent_forward,
				  .backward = bent_backward };

static ls_graph *bent_image(void)
{
	ls_graph *g = net_graph();
	ls_value x = net_conv(g, ls_input(g, 2, 4, 3), "a", 20, 3, 1);
	x = ls_graph_operator(g, &bent, "bent", &x, NULL);
	x = ls_tanh(g, x);
	x = ls_add(g, multiply(g, x, x, 1), x); /* read by two, and by one of them twice */
	assert_ok(ls_graph_finish(g, net_head(g, x)));
	return g;
}

static ls_graph *bent_text(void)
{
	ls_graph *g = net_graph();
	ls_value x = text_embed(g, 6, 2, 20, NULL);
	x = ls_graph_operator(g, &bent, "tokens", &x, NULL);
	ls_value masked = ls_masked_positions(g, x);
	masked = net_linear(g, ls_graph_operator(g, &bent, "masked", &masked, NULL), "t", TEXT_VOCABULARY);
	assert_ok(ls_graph_finish_pretraining(g, net_head(g, ls_mean_token(g, x)), masked));
	return g;
}

static void gradients_of_parameters(void **state)
{
	int counts[2] = { 0 };
	(void)state;
	slope_check_graph(bent_image(), "own, images", 70, counts); /* several tiles */
	slope_check_graph(bent_text(), "own, text", 7, counts);
	ls_graph *g = bent_image();
	assert_ok(ls_graph_freeze(g, "bent.slope,bent.mix"));
	slope_check_graph(g, "own, partly frozen", 7, counts);
	slope_report(counts);
}

static void parameters_on_any_threads(void **state)
{
	ls_graph *(*const nets[])(void) = { bent_image, bent_text };
	(void)state;
	for (int i = 0; i < 2; i++) {
		trained one_thread, three;
		train(&one_thread, nets[i](), 1);
		train(&three, nets[i](), 3);
		net_same_floats("gradient", three.net->grads, one_thread.net->grads,
				three.net->graph->params.reachable);
		release(&one_thread);
		release(&three);
	}
	ls_graph *g = bent_image();
	assert_int_equal(net_param(g, "bent.mix")->shape[1], 3);
	assert_int_equal(net_param(g, "bent.shift")->role, LS_ROLE_BIAS);
	for (int i = 0; i < g->node_count; i++)
		if (strcmp(g->nodes[i].type->name, "bent") == 0)
			assert_true(ls_node_macs(g, &g->nodes[i], 0) ==
				    3 * 3.0 * 20 * 12); /* forward and both of backward */
	ls_graph_free(g);
}

/* ---- random numbers ---------------------------------------------------------------------------------------------- */

/* Halve or keep, by the key; backward must draw the same. */
static float drawn(const ls_operator_call *call, int64_t i)
{
	return (call->key >> (i % 64) & 1) ? 1.0f : 0.5f;
}

static void noisy_forward(const ls_operator_call *call)
{
	for (int64_t i = 0; i < call->rows[0] * call->channels[0]; i++)
		call->y[i] = call->x[0][i] * drawn(call, i);
}

static void noisy_backward(const ls_operator_call *call)
{
	for (int64_t i = 0; i < call->rows[0] * call->channels[0]; i++)
		call->dx[0][i] = call->dy[i] * drawn(call, i);
}

static const ls_operator noisy = {
	.size = sizeof(ls_operator), .name = "noisy", .inputs = 1, .forward = noisy_forward, .backward = noisy_backward
};

/* With equal rows, what differs in the output are the draws. */
static ls_graph *noisy_net(void)
{
	ls_graph *g = net_graph();
	ls_value x = text_embed(g, 6, 3, 20, NULL);
	x = ls_graph_operator(g, &noisy, NULL, &x, NULL);
	x = ls_graph_operator(g, &noisy, NULL, &x, NULL);
	ls_value masked = ls_masked_positions(g, x);
	masked = net_linear(g, ls_graph_operator(g, &noisy, NULL, &masked, NULL), "t", TEXT_VOCABULARY);
	assert_ok(ls_graph_finish_pretraining(g, net_head(g, ls_mean_token(g, x)), masked));
	return g;
}

static void random_numbers_by_key(void **state)
{
	int counts[2] = { 0 };
	trained one_thread, three;
	(void)state;
	slope_check_graph(noisy_net(), "own, random", 7, counts);
	slope_report(counts);
	train(&one_thread, noisy_net(), 1);
	train(&three, noisy_net(), 3);
	net_same_floats("gradient", three.net->grads, one_thread.net->grads, three.net->graph->params.reachable);
	three.net->microbatch = text_microbatch(&three.text, 70);
	three.net->microbatch.step++;
	ls_exec_train(three.net->exec, &three.net->microbatch);
	assert_true(three.net->microbatch.loss != one_thread.loss); /* another step draws others */
	release(&one_thread);
	release(&three);
}

/* ---- mistakes of graphs ------------------------------------------------------------------------------------------ */

static int refuse(ls_operator_shape *s)
{
	(void)s;
	return 1;
}

static int four_params(ls_operator_shape *s)
{
	s->params = 4;
	return 0;
}

static int dotted(ls_operator_shape *s)
{
	s->params = 1;
	s->param[0] = (ls_operator_param){ .name = "a.b", .rank = 1, .shape = { 1 } };
	return 0;
}

static int empty_output(ls_operator_shape *s)
{
	s->output.channels = 0;
	return 0;
}

static int to_tokens(ls_operator_shape *s)
{
	s->output.rows = LS_ROWS_TOKENS;
	return 0;
}

static void expect(const ls_operator *row, const char *name, const char *message)
{
	ls_graph *g = net_graph();
	ls_value x = net_conv(g, ls_input(g, 1, 4, 4), "a", 16, 3, 1);
	ls_value y = ls_graph_operator(g, row, name, (ls_value[]){ x, x, x }, NULL);
	assert_fails(ls_graph_finish(g, net_head(g, y)), LS_EINVALID, message);
	ls_graph_free(g);
}

static void graphs_that_cannot_be(void **state)
{
	ls_operator row = own_relu;
	(void)state;
	row.shape = refuse, expect(&row, NULL, "own_relu: its inputs do not fit");
	row.shape = four_params, expect(&row, NULL, "at most 3 parameters, not 4");
	row.shape = dotted, expect(&row, "x", "x: a parameter needs a name without dots");
	row.shape = empty_output, expect(&row, NULL, "an output of 0 channels");
	row.shape = to_tokens, expect(&row, NULL, "other rows must stay what they are");
	row = own_relu, row.size = 0, expect(&row, NULL, "start from LS_OPERATOR_INIT");
	row = own_relu, row.name = NULL, expect(&row, NULL, "needs a name and a forward function");
	row = own_relu, row.forward = NULL, expect(&row, NULL, "which this one lacks: own_relu");
	row = own_relu, row.inputs = 4, expect(&row, NULL, "1 to 3 inputs, not 4");
	row = own_relu, row.options_bytes = 8, expect(&row, NULL, "options of 8 bytes, and NULL was given");
	row = own_relu, row.backward = NULL,
	expect(&row, NULL, "layer 'a' would not be trained: the operator that reads it");
	expect(&bent, NULL, "bent has parameters and needs a name");

	ls_graph *g = net_graph();
	ls_value x = net_head(g, ls_input(g, 1, 4, 4));
	ls_loss loss = own_squared;
	ls_graph_loss(g, &loss, x, NULL);
	assert_fails(ls_graph_finish(g, x), LS_EINVALID, "own_squared has options of 4 bytes, and NULL was given");
	ls_graph_free(g);
}

/* ---- the check --------------------------------------------------------------------------------------------------- */

static void wrong_backward(const ls_operator_call *call)
{
	relu_backward(call);
	call->dx[0][7] *= 1.5f;
}

static void lazy_backward(const ls_operator_call *call)
{
	for (int64_t i = 1; i < call->rows[0] * call->channels[0]; i++)
		call->dx[0][i] = call->y[i] > 0 ? call->dy[i] : 0;
}

static void lazy_forward(const ls_operator_call *call)
{
	for (int64_t i = 0; i + 1 < call->rows[0] * call->channels[0]; i++)
		call->y[i] = call->x[0][i];
}

static void fickle_forward(const ls_operator_call *call)
{
	static int calls;
	relu_forward(call);
	call->y[3] = (float)++calls;
}

static void overwriting_backward(const ls_operator_call *call)
{
	memset(call->grad[1], 0, sizeof(float) * (size_t)call->channels[0]);
	bent_backward(call);
}

static float wrong_loss(ls_loss_call *call)
{
	float loss = squared_row(call);
	if (call->dx)
		call->dx[0] += 0.1f;
	return loss;
}

static void the_check_finds_mistakes(void **state)
{
	ls_operator_check_options o = LS_OPERATOR_CHECK_OPTIONS_INIT;
	ls_operator row = own_relu;
	ls_loss loss = own_squared;
	(void)state;
	assert_ok(ls_operator_check(&own_relu, NULL));
	assert_ok(ls_operator_check(&own_multiply, NULL));
	assert_ok(ls_operator_check(&bent, NULL));
	o.input = &(ls_value_shape){ .rows = LS_ROWS_TOKENS, .channels = 33, .height = 9, .width = 1 };
	assert_ok(ls_operator_check(&own_first, &o));
	assert_ok(ls_operator_check(&bent, &o));
	o.input = NULL;
	row.backward = wrong_backward;
	for (o.seed = 1; o.seed < 20 && ls_operator_check(&row, &o) == LS_OK; o.seed++)
		; /* where x < 0 the element is 0 */
	assert_fails(ls_operator_check(&row, &o), LS_ENUMERIC, "own_relu: the gradient of input 0 is");
	row.backward = lazy_backward;
	assert_fails(ls_operator_check(&row, &o), LS_ENUMERIC, "has not written element 0 of the gradient of input 0");
	row = own_relu, row.forward = lazy_forward;
	assert_fails(ls_operator_check(&row, &o), LS_ENUMERIC, "forward has not written y[59] of 60");
	row = own_relu, row.forward = fickle_forward;
	assert_fails(ls_operator_check(&row, &o), LS_ENUMERIC, "it must depend on its arguments alone");
	row = bent, row.backward = overwriting_backward;
	assert_fails(ls_operator_check(&row, &o), LS_ENUMERIC, "bent: the gradient of parameter 1");
	row = bent, row.size = 0;
	assert_fails(ls_operator_check(&row, &o), LS_EINVALID, "LS_OPERATOR_INIT");
	o.options = &one;
	assert_ok(ls_loss_check(&own_squared, &o));
	o.channels = 1;
	assert_ok(ls_loss_check(&own_squared, &o));
	o.channels = 0;
	loss.row = wrong_loss;
	assert_fails(ls_loss_check(&loss, &o), LS_ENUMERIC, "own_squared: the gradient of input 0 is");
	loss.row = NULL;
	assert_fails(ls_loss_check(&loss, &o), LS_EINVALID, "needs a name and a function for a row");
	o.size = 3;
	assert_fails(ls_loss_check(&own_squared, &o), LS_EINVALID, "LS_OPERATOR_CHECK_OPTIONS_INIT");
}

TEST_MAIN(same_bits_as_ours, gradients_of_parameters, parameters_on_any_threads, random_numbers_by_key,
	  graphs_that_cannot_be, the_check_finds_mistakes)
