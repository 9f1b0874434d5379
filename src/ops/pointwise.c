/*
 * pointwise.c - forward and backward of operators that work on each number by itself.
 */
#include "ops/pointwise.h"

/* This thread's floats; a value that is not there stays NULL. */
static ls_span span_of(const ls_op *op, const ls_pass *pass, ls_member member, int64_t *begin)
{
	ls_span s = { .attributes = op->node->attributes };
	ls_pass_share(pass, op->out, member, begin, &s.count);
	s.x = op->x[0] ? op->x[0] + *begin : NULL;
	s.y = op->y ? op->y + *begin : NULL;
	return s;
}

void ls_pointwise_forward(const ls_op *op, const ls_pass *pass, ls_member member)
{
	int64_t begin;
	ls_span s = span_of(op, pass, member, &begin);
	op->type->value(&s);
	if (op->type->moves_zero)
		ls_zero_padding(op->out, ls_pass_rows(pass, op->out), op->y, begin, s.count);
}

void ls_pointwise_backward(const ls_op *op, const ls_pass *pass, ls_member member)
{
	int64_t begin;
	ls_span s = span_of(op, pass, member, &begin);
	if (!op->dx[0])
		return;
	s.dy = op->dy + begin;
	s.dx = op->dx[0] + begin;
	op->type->slope(&s);
}
