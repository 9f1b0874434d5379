/*
 * cross_entropy.c - the loss of classification: softmax cross-entropy of each row, against the label of its sample or
 * the id that stood at its masked position.
 *
 *   p = softmax(x);  t = (1 - s) q + s / classes                      x, p, q, t (rows, classes), w (classes)
 *   loss = -sum_c w_c t_c ln p_c;  dx = W p - w t,  W = sum_c w_c t_c
 *
 * with s = label_smoothing and w = class_weights, 0 and all 1 by default; q is onehot(label), or the float targets of
 * the row, a probability per class. As in PyTorch every class has its own weight, also in what smoothing spreads over
 * them.
 *
 * The loss of a step is the sum over rows divided by the number of rows, whatever their weights.
 */
#include <string.h>

#include "kernels/simd.h"
#include "ops/shape.h"

static ls_status shape(ls_shape *s)
{
	ls_cross_entropy_options *o = s->attributes;
	int classes = s->in[0]->channels;

	LS_TRY(ls_check_loss_rows(s));
	if (classes < 2)
		return ls_fail(LS_EINVALID, "logits must have at least 2 classes, this has %d", classes);
	if (!(o->label_smoothing >= 0 && o->label_smoothing < 1))
		return ls_fail(LS_EINVALID, "cross_entropy: label_smoothing %g is not in [0, 1)",
			       (double)o->label_smoothing);
	if (!o->class_weights)
		return LS_OK;
	float *copy = ls_arena_alloc(s->arena, sizeof(float) * (size_t)classes);
	if (!copy)
		return ls_fail(LS_EMEMORY, "no memory for the weights of classes");
	for (int c = 0; c < classes; c++)
		if (!(o->class_weights[c] >= 0))
			return ls_fail(LS_EINVALID, "cross_entropy: the weight of class %d is %g", c,
				       (double)o->class_weights[c]);
	memcpy(copy, o->class_weights, sizeof(float) * (size_t)classes);
	o->class_weights = copy;
	return LS_OK;
}

static void plain_rows(const ls_op *op, const ls_pass *pass, int64_t begin, int64_t end)
{
	const ls_tensor *t = op->in[0];
	ls_loss_rows r = ls_loss_rows_of(op, pass);
	ls_simd_get()->softmax_xent(op->x[0], r.count, t->panel, t->channels, r.labels, begin, end, r.scale, r.loss,
				    r.correct, r.dx);
}

/* Smoothing or weights. One row from what plain_rows() gives: loss += s (x[label] - mean of x), dx += s (onehot - 1 /
 * classes), or both times the weight of the label. */
static void weighted_row(const ls_op *op, const ls_pass *pass, int64_t i)
{
	const ls_cross_entropy_options *o = op->node->attributes;
	const ls_tensor *t = op->in[0];
	ls_loss_rows r = ls_loss_rows_of(op, pass);
	float weight = o->class_weights ? o->class_weights[r.labels[i]] : 1, s = o->label_smoothing, mean = 0;

	for (int c = 0; c < t->channels; c++)
		mean += op->x[0][ls_row_at(t, r.count, i, c)] / (float)t->channels;
	float above = op->x[0][ls_row_at(t, r.count, i, r.labels[i])] - mean; /* dx may lie where x does */
	plain_rows(op, pass, i, i + 1);
	r.loss[i] = weight * (r.loss[i] + s * above);
	for (int c = 0; c < t->channels && r.dx; c++) {
		float *d = &r.dx[ls_row_at(t, r.count, i, c)];
		*d = weight * (*d + r.scale * s * ((float)(c == r.labels[i]) - 1 / (float)t->channels));
	}
}

/* What class c of a row is to be: w_c t_c. */
static float soft_target(const ls_cross_entropy_options *o, const ls_tensor *t, const ls_loss_rows *r, int64_t i, int c)
{
	float target = r->targets ? r->targets[i * t->channels + c] : (float)(c == r->labels[i]);
	float smooth = (1 - o->label_smoothing) * target + o->label_smoothing / (float)t->channels;
	return o->class_weights ? o->class_weights[c] * smooth : smooth;
}

/* With m the greatest logit, -ln p_c = -ln p_m + (x_m - x_c): what the kernel gives for the
 * label m, and no cancellation. */
static void soft_row(const ls_op *op, const ls_loss_rows *r, int64_t i)
{
	const ls_cross_entropy_options *o = op->node->attributes;
	const ls_tensor *t = op->in[0];
	const float *x = op->x[0];
	int32_t best = ls_row_maximum(t, x, r->count, i);
	float *dx = r->dx ? r->dx + i * t->panel : NULL, all = 0, above = 0;

	for (int c = 0; c < t->channels; c++) { /* before dx, which may lie where x does */
		float wanted = soft_target(o, t, r, i, c);
		all += wanted;
		above += wanted * (x[ls_row_at(t, r->count, i, best)] - x[ls_row_at(t, r->count, i, c)]);
	}
	ls_simd_get()->softmax_xent(x + i * t->panel, r->count, t->panel, t->channels, &best, 0, 1, r->scale,
				    &r->loss[i], &r->correct[i], dx);
	r->loss[i] = all * r->loss[i] + above;
	r->correct[i] = (uint8_t)(best == ls_loss_class(t, r, i) && r->loss[i] == r->loss[i]);
	for (int c = 0; c < t->channels && dx; c++) {
		float *d = &r->dx[ls_row_at(t, r->count, i, c)], p = c == best ? *d + r->scale : *d;
		*d = all * p - r->scale * soft_target(o, t, r, i, c);
	}
}

static void forward(const ls_op *op, const ls_pass *pass, ls_member member)
{
	const ls_cross_entropy_options *o = op->node->attributes;
	ls_loss_rows r = ls_loss_rows_of(op, pass);
	int64_t begin, end;

	ls_team_range(member, r.count, &begin, &end);
	if (r.targets || (o->label_smoothing > 0 && o->class_weights))
		for (int64_t i = begin; i < end; i++)
			soft_row(op, &r, i);
	else if (o->label_smoothing == 0 && !o->class_weights)
		plain_rows(op, pass, begin, end);
	else
		for (int64_t i = begin; i < end; i++)
			weighted_row(op, pass, i);
}

const ls_op_type ls_op_cross_entropy = {
	.name = "cross_entropy",
	.formula = "loss = -sum over c of w[c] t[c] ln softmax(x)[c], t = (1 - s) q + s / classes, "
		   "q the targets or onehot(label)",
	LS_INPUTS(1, "x"),
	LS_ATTRIBUTES(ls_cross_entropy_options, "label_smoothing, class_weights"),
	.is_loss = 1,
	.shape = shape,
	.forward = forward,
	.cases = { LS_CASE_IMAGES(7, 1, 1, .attributes = &(ls_cross_entropy_options){ 0 }),
		   LS_CASE_IMAGES(7, 1, 1,
				  .attributes =
					  &(ls_cross_entropy_options){
						  .label_smoothing = 0.2f,
						  .class_weights = (const float[]){ 1, 2, 0.5f, 0, 3, 1.5f, 0.25f } }),
		   LS_CASE_IMAGES(7, 1, 1, .targets = 1,
				  .attributes =
					  &(ls_cross_entropy_options){
						  .label_smoothing = 0.2f,
						  .class_weights = (const float[]){ 1, 2, 0.5f, 0, 3, 1.5f, 0.25f } }),
		   { .domain = LS_MASKED,
		     .channels = 37,
		     .height = 7,
		     .width = 1,
		     .attributes = &(ls_cross_entropy_options){ .label_smoothing = 0.1f } } },
};
