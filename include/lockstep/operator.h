/*
 * operator.h - custom operators and losses: written in the program, used like those of the library.
 *
 * An operator is a row: a name, how many inputs it has, a shape rule, its cost, forward and backward. A graph takes it
 * like any other:
 *
 *     static void forward(const ls_operator_call *call)
 *     {
 *         for (int64_t i = 0; i < call->rows[0] * call->channels[0]; i++)
 *             call->y[i] = sinf(call->x[0][i]);
 *     }
 *     static void backward(const ls_operator_call *call)
 *     {
 *         for (int64_t i = 0; call->dx[0] && i < call->rows[0] * call->channels[0]; i++)
 *             call->dx[0][i] = call->dy[i] * cosf(call->x[0][i]);
 *     }
 *     ls_operator sine = LS_OPERATOR_INIT;
 *     sine.name = "sine";
 *     sine.forward = forward;
 *     sine.backward = backward;
 *     x = ls_graph_operator(graph, &sine, NULL, &x, NULL);
 *
 * A call is about one sample. Its values are plain arrays (rows, channels), row by row: the rows of an image are its
 * positions (height, width), those of a sentence its tokens; the library packs and unpacks them. Masked positions come
 * one at a time, each as a sample of one row. Samples are computed by several threads at once, so a function may depend
 * on its arguments alone: then the trained bits do not depend on threads, devices and nodes. Memory is
 * planned, and nothing is registered anywhere but in the graph, which copies the row and the options.
 *
 * examples/custom_operator.c trains with an activation and a loss of its own. ls_operator_check() finds mistakes in
 * backward.
 */
#ifndef LOCKSTEP_OPERATOR_H
#define LOCKSTEP_OPERATOR_H

#include <stddef.h>
#include <stdint.h>

#include <lockstep/graph.h>
#include <lockstep/inspect.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- operators --------------------------------------------------------------------------------------------------- */

enum { LS_OPERATOR_INPUTS = 3, LS_OPERATOR_PARAMS = 3 };

/* How a parameter starts. */
typedef enum ls_operator_start {
	LS_START_ZERO,
	LS_START_ONE,
	LS_START_UNIFORM, /* U(-b, b), b = 1/sqrt(fan_in) */
	LS_START_NORMAL   /* N(0, 0.02) */
} ls_operator_start;

/* A trained array, "<layer>.<name>" in checkpoints. It lies row by row. */
typedef struct ls_operator_param {
	const char *name;
	int rank;         /* 1 .. 4 */
	int64_t shape[4]; /* at most 2^31 - 1 floats in all */
	ls_operator_start start;
	int fan_in;   /* of LS_START_UNIFORM */
	int no_decay; /* 1: decoupled weight decay leaves it alone, as a bias */
	uint64_t reserved[2];
} ls_operator_param;

/* What a shape rule reads and fills in. */
typedef struct ls_operator_shape {
	size_t size;
	const void *options; /* the graph's copy of those of this layer */
	int inputs;
	ls_value_shape input[LS_OPERATOR_INPUTS];
	ls_value_shape
		output; /* as input[0], unless the rule changes it. Rows of tokens and masked positions stay what they
				* are, or tokens become positions: a fixed number per sample */
	int params;     /* how many of: */
	ls_operator_param param[LS_OPERATOR_PARAMS];
	char message[160]; /* why the rule has failed */
} ls_operator_shape;

/* One sample. R = rows[k] and C = channels[k] of input k. */
typedef struct ls_operator_call {
	size_t size;
	const void *options;
	int is_training;
	/* For random numbers in training: of the run's seed, the step, the layer and the sample. The same in forward
	 * and backward, however the work is spread. */
	uint64_t key;
	int inputs;
	int64_t rows[LS_OPERATOR_INPUTS];
	int channels[LS_OPERATOR_INPUTS];
	const float *x[LS_OPERATOR_INPUTS]; /* (R, C) */
	int64_t out_rows;
	int out_channels;
	float *y;                      /* (out_rows, out_channels) forward writes all of it, backward reads it */
	const float *dy;               /* (out_rows, out_channels) backward: the gradient of y */
	float *dx[LS_OPERATOR_INPUTS]; /* (R, C) backward writes all of it; NULL: not needed */
	const float *param[LS_OPERATOR_PARAMS]; /* in the order of the shape rule */
	float *grad[LS_OPERATOR_PARAMS];        /* backward adds this sample's part; NULL: it is frozen */
} ls_operator_call;

typedef struct ls_operator {
	size_t size;
	const char *name; /* in messages and tables */
	int inputs;       /* 1 .. 3, with the same kind of rows */
	size_t options_bytes;
	/* Other than 0: the inputs do not fit, and `message` says why. NULL: the output is like the first input, and
	 * there are no parameters. */
	int (*shape)(ls_operator_shape *shape);
	double (*cost)(const ls_operator_shape *shape); /* multiply-adds of forward per sample; NULL: not counted */
	void (*forward)(const ls_operator_call *call);
	void (*backward)(
		const ls_operator_call *call); /* NULL: it has no gradient, and nothing below it is trained by it */
} ls_operator;
#define LS_OPERATOR_INIT                                                                                               \
	{                                                                                                              \
		.size = sizeof(ls_operator), .inputs = 1                                                               \
	}

/* Add a layer. `inputs` has as many as the row says; `name` is the layer's, needed where it has parameters;
 * `options` of row->options_bytes are copied. Mistakes are kept by the graph (graph.h). */
LS_API ls_value ls_graph_operator(ls_graph *graph, const ls_operator *row, const char *name, const ls_value *inputs,
				  const void *options);

/* ---- losses ------------------------------------------------------------------------------------------------------ */

/* One row: a sample, or a masked position. */
typedef struct ls_loss_call {
	size_t size;
	const void *options;
	int channels;
	const float *x; /* (channels) */
	int32_t label;
	float *dx;    /* (channels) the gradient of the loss, all of it; NULL: not needed */
	int is_right; /* of the prediction: set where the greatest channel is the label's; may be changed */
	const float
		*targets; /* (channels) float targets, of which `label` is the greatest; NULL: the row has a label */
} ls_loss_call;

typedef struct ls_loss {
	size_t size;
	const char *name;
	size_t options_bytes;
	int lone_labels; /* labels that a single channel can tell apart, 2 of a probability; 0: one class */
	float (*row)(ls_loss_call *call); /* returns the loss of the row */
} ls_loss;
#define LS_LOSS_INIT                                                                                                   \
	{                                                                                                              \
		.size = sizeof(ls_loss)                                                                                \
	}

/* Add a loss of x, which has one row per sample or masked position, instead of cross-entropy. */
LS_API void ls_graph_loss(ls_graph *graph, const ls_loss *row, ls_value x, const void *options);

/* ---- is backward right? ------------------------------------------------------------------------------------------ */

typedef struct ls_operator_check_options {
	size_t size;
	const void *options;         /* of the layer */
	const ls_value_shape *input; /* (inputs) of an operator; NULL: 4 x 3 positions of 5 channels */
	int channels;                /* of a loss; 0: 5 */
	uint64_t seed;
	double tolerance; /* of a gradient, relative to the largest; 0: 0.01 */
} ls_operator_check_options;
#define LS_OPERATOR_CHECK_OPTIONS_INIT                                                                                 \
	{                                                                                                              \
		.size = sizeof(ls_operator_check_options), .seed = 1                                                   \
	}

/*
 * Run an operator on random numbers and compare its gradients with differences of forward; also that everything is
 * written, that parameters' gradients are added to, and that a second call gives the same bits. LS_ENUMERIC with the
 * first element that is wrong and both numbers. `options` NULL: the defaults. Near kinks (relu at 0) differences say
 * nothing: such elements are left out.
 */
LS_API ls_status ls_operator_check(const ls_operator *row, const ls_operator_check_options *options);
LS_API ls_status ls_loss_check(const ls_loss *row, const ls_operator_check_options *options);

#ifdef __cplusplus
}
#endif
#endif
