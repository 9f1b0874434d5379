/*
 * op_attention.c - every token of a sample looks at all of them; the work is the kernel's (kernels/attention.h).
 *
 * aux: the logarithm of each row's sum of exponentials, from which backward makes the probabilities again.
 */
#include <math.h>

#include "graph/op.h"
#include "kernels/attention.h"

static int keeps(const ls_node *node)
{
	(void)node;
	return LS_KEEP_INPUT | LS_KEEP_OTHERS | LS_KEEP_OUTPUT;
}

static size_t aux_bytes(const ls_op *op, int64_t n)
{
	return sizeof(float) * (size_t)(op->node->heads * ls_tensor_rows(op->in, n));
}

static int head_width(const ls_op *op)
{
	return op->in->channels / op->node->heads;
}

static size_t scratch_bytes(const ls_op *op, int64_t n)
{
	(void)n;
	return sizeof(float) * ls_attention_scratch_floats(head_width(op), op->in->height, op->threads);
}

static ls_attention attention_of(const ls_op *op, const ls_pass *pass)
{
	ls_rng rng = ls_drop_rng(op, pass);
	return (ls_attention){ .heads = op->node->heads,
			       .width = head_width(op),
			       .rows = ls_pass_rows(pass, op->in),
			       .panel = op->in->panel,
			       .start = pass->start,
			       .samples = pass->n,
			       .scale = 1.0f / sqrtf((float)head_width(op)),
			       .probability = pass->training ? op->node->probability : 0,
			       .key = { rng.key[0], rng.key[1] },
			       .sample = pass->samples };
}

static void forward(const ls_op *op, const ls_pass *pass, ls_member member)
{
	ls_attention a = attention_of(op, pass);
	ls_attention_forward(&a, op->x, op->second, op->third, op->y, op->aux, op->scratch, member);
}

static void backward(const ls_op *op, const ls_pass *pass, ls_member member)
{
	ls_attention a = attention_of(op, pass);
	ls_attention_backward(&a, op->x, op->second, op->third, op->y, op->aux, op->dy, op->dx, op->dsecond, op->dthird,
			      op->scratch, member);
}

const ls_op_kind ls_op_attention = {
	.keeps = keeps, .aux_bytes = aux_bytes, .scratch_bytes = scratch_bytes, .forward = forward, .backward = backward
};
