/*
 * shape.h - what a shape rule works on, and what rules share.
 *
 * A rule reads the inputs and the attributes, refuses what does not fit with ls_fail(), and sets the output and the
 * parameters. The graph adds them once the rule has returned LS_OK.
 */
#ifndef LS_OPS_SHAPE_H
#define LS_OPS_SHAPE_H

#include <lockstep/graph.h>

#include "ops/op.h"

/* Values, weights and patches are indexed with int inside a sample; the product of what describes them must fit. */
#define LS_FLOATS_MOST INT32_MAX

typedef struct ls_shape {
	const ls_op_type *type;
	ls_arena *arena;
	const char *name; /* of the layer; NULL: the type's. A rule may set it */
	const ls_tensor *in[LS_INPUTS_MAX];
	int tokens_max, masked_max; /* per sample; 0: the graph's input is images */
	/* A copy of what the builder was given, which may be filled in, or replaced by what a run needs instead. */
	void *attributes;
	const ls_param *borrowed; /* the weight that another node owns, or NULL */

	/* out */
	int is_identity; /* x itself is the result: no node is added */
	int draws;       /* it needs a random stream of its own */
	ls_tensor out;
	ls_param params[LS_PARAMS_MAX]; /* those with a name */
} ls_shape;

/* (channels, height, width) in panels. */
ls_tensor ls_tensor_make(int channels, int height, int width, ls_domain domain);
/* The same rows, `channels` wide. */
ls_tensor ls_tensor_like(const ls_tensor *t, int channels);

int64_t ls_padded(int channels);                         /* to whole panels */
int ls_too_many_floats(int64_t a, int64_t b, int64_t c); /* a * b * c is more than LS_FLOATS_MOST */

/* Parameter `slot` of the operator is `row`, named "<layer>.<suffix>". */
ls_status ls_shape_param(ls_shape *shape, int slot, const char *layer, const char *suffix, ls_param row);
/* A vector; and the bias of a layer whose weights start as `init`. */
ls_param ls_vector_param(int length, ls_param_role role, ls_param_init init, int fan_in);
ls_param ls_bias_param(int length, ls_weight_init init, int fan_in);
ls_param_init ls_param_init_of(ls_weight_init init);

/* Samples have several rows: tokens, or positions of an image. */
ls_status ls_check_sample_rows(const ls_shape *shape);

/* A window of kernel, stride and padding over maps of `in`. */
ls_status ls_check_window(const ls_shape *shape, int kernel_h, int kernel_w, int stride, int padding);

/* A loss has one row per sample or per masked position. */
ls_status ls_check_loss_rows(ls_shape *shape);

/* The output is like the only input, or like both of two, which must be alike. */
ls_status ls_shape_same(ls_shape *shape);

/* The output has one row per sample, of the rows that a sample of the input has. */
ls_status ls_shape_one_row(ls_shape *shape);

#endif
