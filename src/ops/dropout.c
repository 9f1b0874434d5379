/*
 * dropout.c - zeros at random while training.
 *
 *   y = keep ? x / (1 - p) : 0;  dx = keep ? dy / (1 - p) : 0        x, y (rows, C); in evaluation y = x
 *
 * Whether an element is kept is drawn from counters: (seed, step, layer) key the numbers, sample and element count
 * them. So backward draws the same again, and it does not matter which samples run together.
 */
#include "kernels/simd.h"
#include "ops/shape.h"

static float probability(const ls_op *op)
{
	return ((const ls_dropout_options *)op->node->attributes)->p;
}

static ls_status shape(ls_shape *s)
{
	float p = ((const ls_dropout_options *)s->attributes)->p;
	if (!(p >= 0 && p < 1))
		return ls_fail(LS_EINVALID, "dropout: probability %g is not in [0, 1)", (double)p);
	s->is_identity = p == 0;
	s->draws = 1;
	return ls_shape_same(s);
}

/* Where a row is in its sample, and the first element it draws for channel block b. */
typedef struct drawn_row {
	int64_t sample;
	int64_t position, positions;
	int by_position; /* elements lie position by position (text), not block by block (images) */
} drawn_row;

static drawn_row drawn_row_of(const ls_tensor *t, const ls_pass *pass, int64_t r)
{
	if (t->domain == LS_SAMPLES)
		return (drawn_row){ .sample = r % pass->n,
				    .position = r / pass->n,
				    .positions = (int64_t)t->height * t->width };
	int64_t token = t->domain == LS_MASKED ? pass->masked_at[r] : r;
	int32_t sample = pass->owner[token];
	return (drawn_row){ .sample = sample, .position = token - pass->start[sample], .by_position = 1 };
}

void ls_drop_rows(const ls_op *op, const ls_pass *pass, float p, const float *from, float *to, int64_t begin,
		  int64_t end)
{
	const ls_tensor *t = op->in[0];
	ls_rng rng = ls_drop_rng(op, pass);
	int64_t panel = t->panel, blocks = t->blocks, rows = ls_pass_rows(pass, t);
	const ls_simd *simd = ls_simd_get();

	for (int64_t b = 0; b < blocks; b++)
		for (int64_t r = begin; r < end; r++) {
			drawn_row at = drawn_row_of(t, pass, r);
			int64_t line = at.by_position ? at.position * blocks + b : b * at.positions + at.position;
			simd->dropout(from + (b * rows + r) * panel, (int)panel, rng.key[0], rng.key[1],
				      pass->samples[at.sample], (uint64_t)(line * panel), p,
				      to + (b * rows + r) * panel);
		}
}

static void drop(const ls_op *op, const ls_pass *pass, const float *from, float *to, ls_member member)
{
	int64_t begin, end;
	ls_team_range(member, ls_pass_rows(pass, op->in[0]), &begin, &end);
	ls_drop_rows(op, pass, probability(op), from, to, begin, end);
}

static void forward(const ls_op *op, const ls_pass *pass, ls_member member)
{
	int64_t begin, count;
	if (pass->training) {
		drop(op, pass, op->x[0], op->y, member);
		return;
	}
	ls_pass_share(pass, op->out, member, &begin, &count);
	ls_give(op->y + begin, 0, op->x[0] + begin, count);
}

static void backward(const ls_op *op, const ls_pass *pass, ls_member member)
{
	if (op->dx[0])
		drop(op, pass, op->dy, op->dx[0], member);
}

const ls_op_type ls_op_dropout = {
	.name = "dropout",
	.formula = "y = x / (1 - p), or 0 with probability p while training",
	LS_INPUTS(1, "x"),
	LS_ATTRIBUTES(ls_dropout_options, "p"),
	.shape = shape,
	.forward = forward,
	.backward = backward,
	.cases = { LS_CASE_IMAGES(20, 4, 3, .attributes = &(ls_dropout_options){ .p = 0.3f }),
		   LS_CASE_TOKENS(20, 7, .attributes = &(ls_dropout_options){ .p = 0.3f }) },
};
