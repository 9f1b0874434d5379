/*
 * custom.c - custom operators and losses: between panels and the plain arrays of one sample.
 *
 * A unit is what one call is about: a sample, or of masked positions one row. Threads take units; a unit's values are
 * copied into the thread's part of scratch, as rows of channels, and results back into panels, whose padding is zeroed.
 *
 * Gradients of parameters: every unit has an array of its own in scratch; they are added in the order of units, element
 * by element, so it does not matter which thread made which.
 *
 * scratch, operators: per thread x of all inputs, y, dy, dx of all inputs; then (units, floats of all parameters).
 * scratch, losses: per thread x and dx of a row.
 */
#include "ops/custom.h"

#include <string.h>

#include "base/options.h"
#include "ops/shape.h"
#include "params/panel.h"

_Static_assert((int)LS_OPERATOR_INPUTS == (int)LS_INPUTS_MAX, "as many inputs as operators have");

/* ---- rows -------------------------------------------------------------------------------------------------------- */

ls_status ls_custom_read_operator(ls_operator *out, const ls_operator *given)
{
	*out = (ls_operator)LS_OPERATOR_INIT;
	LS_TRY(LS_OPTIONS_TAKE(out, given, backward, "LS_OPERATOR_INIT"));
	if (!out->name || !*out->name || !out->forward)
		return ls_fail(LS_EINVALID, "an operator needs a name and a forward function%s%s",
			       out->name ? ", which this one lacks: " : "", out->name ? out->name : "");
	if (out->inputs < 1 || out->inputs > LS_OPERATOR_INPUTS)
		return ls_fail(LS_EINVALID, "%s: an operator has 1 to %d inputs, not %d", out->name, LS_OPERATOR_INPUTS,
			       out->inputs);
	return LS_OK;
}

ls_status ls_custom_read_loss(ls_loss *out, const ls_loss *given)
{
	*out = (ls_loss)LS_LOSS_INIT;
	LS_TRY(LS_OPTIONS_TAKE(out, given, row, "LS_LOSS_INIT"));
	if (!out->name || !*out->name || !out->row)
		return ls_fail(LS_EINVALID, "a loss needs a name and a function for a row%s%s",
			       out->name ? ", which this one lacks: " : "", out->name ? out->name : "");
	return LS_OK;
}

/* ---- shapes ------------------------------------------------------------------------------------------------------ */

ls_value_shape ls_value_shape_of(const ls_tensor *t)
{
	static const ls_rows rows[LS_DOMAINS] = { LS_ROWS_POSITIONS, LS_ROWS_TOKENS, LS_ROWS_MASKED };
	return (ls_value_shape){
		.rows = rows[t->domain], .channels = t->channels, .height = t->height, .width = t->width
	};
}

static ls_domain domain_of(ls_rows rows)
{
	return rows == LS_ROWS_TOKENS ? LS_TOKENS : rows == LS_ROWS_MASKED ? LS_MASKED : LS_SAMPLES;
}

int64_t ls_custom_param_floats(const ls_operator_param *param)
{
	int64_t floats = 1;
	for (int i = 0; i < param->rank; i++)
		floats *= param->shape[i];
	return floats;
}

static ls_status check_param(const char *name, const ls_operator_param *p)
{
	int64_t floats = 1;

	if (!p->name || !*p->name || strpbrk(p->name, ". ") || p->rank < 1 || p->rank > 4 || p->start < LS_START_ZERO ||
	    p->start > LS_START_NORMAL)
		return ls_fail(LS_EINVALID,
			       "%s: a parameter needs a name without dots and blanks, a rank of 1 to 4 and "
			       "a start, not '%s' and %d",
			       name, p->name ? p->name : "", p->rank);
	for (int i = 0; i < p->rank; i++) {
		if (p->shape[i] < 1 || p->shape[i] > LS_FLOATS_MOST / 64 / floats)
			return ls_fail(LS_EINVALID, "%s: size %d of parameter '%s' is %lld: it is empty or too large",
				       name, i, p->name, (long long)p->shape[i]);
		floats *= p->shape[i];
	}
	return LS_OK;
}

static ls_status check_output(const char *name, const ls_operator_shape *s)
{
	const ls_value_shape *in = &s->input[0], *out = &s->output;
	int same = out->rows == in->rows;

	if (out->channels < 1 || out->height < 1 || out->width < 1 || out->channels > 1 << 20 ||
	    out->height > 1 << 14 || out->width > 1 << 14)
		return ls_fail(LS_EINVALID,
			       "%s: its rule says an output of %d channels, %d x %d, which is not possible", name,
			       out->channels, out->height, out->width);
	if (!same && !(in->rows == LS_ROWS_TOKENS && out->rows == LS_ROWS_POSITIONS))
		return ls_fail(LS_EINVALID, "%s: tokens may become positions; other rows must stay what they are",
			       name);
	if (same && in->rows != LS_ROWS_POSITIONS && (out->height != in->height || out->width != in->width))
		return ls_fail(LS_EINVALID, "%s: an output has as many tokens or masked positions as the input", name);
	return LS_OK;
}

ls_status ls_custom_apply_rule(const ls_operator *row, const char *name, ls_operator_shape *s)
{
	s->size = sizeof(*s);
	s->output = s->input[0];
	for (int k = 1; k < s->inputs; k++)
		if (s->input[k].rows != s->input[0].rows)
			return ls_fail(LS_EINVALID, "%s: its inputs have different kinds of rows", name);
	if (row->shape && row->shape(s)) {
		s->message[sizeof(s->message) - 1] = '\0';
		return ls_fail(LS_EINVALID, "%s: %s", name, s->message[0] ? s->message : "its inputs do not fit");
	}
	if (s->params < 0 || s->params > LS_OPERATOR_PARAMS)
		return ls_fail(LS_EINVALID, "%s: an operator has at most %d parameters, not %d", name,
			       LS_OPERATOR_PARAMS, s->params);
	for (int i = 0; i < s->params; i++)
		LS_TRY(check_param(name, &s->param[i]));
	return check_output(name, s);
}

/* As the store has it: one vector, so that it lies row by row. */
static ls_param param_row(const ls_operator_param *p)
{
	static const ls_param_init init[] = { LS_INIT_ZERO, LS_INIT_ONE, LS_INIT_UNIFORM_FAN_IN, LS_INIT_NORMAL };
	ls_param row = ls_vector_param((int)ls_custom_param_floats(p), p->no_decay ? LS_ROLE_BIAS : LS_ROLE_WEIGHT,
				       init[p->start], p->fan_in);
	row.rank = p->rank;
	memcpy(row.shape, p->shape, sizeof(row.shape));
	return row;
}

static ls_status shape(ls_shape *s)
{
	ls_custom_attributes *custom = s->attributes;
	const char *name = s->name ? s->name : custom->row->name;

	s->draws = 1; /* the key's */
	custom->shape = (ls_operator_shape){ .options = custom->options, .inputs = custom->row->inputs };
	for (int k = 0; k < custom->row->inputs; k++)
		custom->shape.input[k] = ls_value_shape_of(s->in[k]);
	LS_TRY(ls_custom_apply_rule(custom->row, name, &custom->shape));
	if (custom->shape.params > 0 && !s->name)
		return ls_fail(LS_EINVALID, "%s has parameters and needs a name", custom->row->name);
	const ls_value_shape *out = &custom->shape.output;
	s->out = ls_tensor_make(out->channels, out->height, out->width, domain_of(out->rows));
	for (int i = 0; i < custom->shape.params; i++)
		LS_TRY(ls_shape_param(s, i, s->name, custom->shape.param[i].name, param_row(&custom->shape.param[i])));
	for (int i = 0; i < custom->shape.params; i++) /* the program's own may be gone when its cost is asked for */
		custom->shape.param[i].name = s->params[i].name;
	return LS_OK;
}

static const ls_custom_attributes *attributes_of(const ls_op *op)
{
	return op->node->attributes;
}

static double macs(const ls_cost *cost)
{
	const ls_custom_attributes *custom = cost->node->attributes;
	return custom->row->cost(&custom->shape);
}

/* ---- units ------------------------------------------------------------------------------------------------------- */

static int64_t units_of(const ls_op *op, const ls_pass *pass)
{
	return op->in[0]->domain == LS_MASKED ? ls_pass_rows(pass, op->in[0]) : pass->n;
}

static ls_sample_rows unit_rows(const ls_pass *pass, const ls_tensor *t, int64_t unit)
{
	return t->domain == LS_MASKED ? (ls_sample_rows){ .first = unit, .stride = 1, .count = 1 }
				      : ls_pass_sample(pass, t, unit);
}

/* Floats of the largest unit, as plain rows, in whole cache lines. */
static size_t unit_floats(const ls_tensor *t)
{
	size_t rows = t->domain == LS_MASKED ? 1 : (size_t)ls_tensor_rows(t, 1);
	return (rows * (size_t)t->channels + LS_LINE - 1) / LS_LINE * LS_LINE;
}

/* Channels of block b, those of padding left out. */
static int block_channels(const ls_tensor *t, int b)
{
	int left = t->channels - b * t->panel;
	return left < t->panel ? left : t->panel;
}

static void gather(const ls_pass *pass, const ls_tensor *t, const float *value, int64_t unit, float *plain)
{
	ls_sample_rows of = unit_rows(pass, t, unit);
	int64_t rows = ls_pass_rows(pass, t);

	for (int64_t r = 0; r < of.count; r++)
		for (int b = 0; b < t->blocks; b++)
			memcpy(plain + r * t->channels + b * t->panel,
			       value + (b * rows + of.first + r * of.stride) * t->panel,
			       sizeof(float) * (size_t)block_channels(t, b));
}

static void scatter(const ls_pass *pass, const ls_tensor *t, const float *plain, int64_t unit, float *value)
{
	ls_sample_rows of = unit_rows(pass, t, unit);
	int64_t rows = ls_pass_rows(pass, t);

	for (int64_t r = 0; r < of.count; r++)
		for (int b = 0; b < t->blocks; b++) {
			float *to = value + (b * rows + of.first + r * of.stride) * t->panel;
			size_t count = (size_t)block_channels(t, b);
			memcpy(to, plain + r * t->channels + b * t->panel, sizeof(float) * count);
			memset(to + count, 0, sizeof(float) * ((size_t)t->panel - count));
		}
}

/* ---- operators --------------------------------------------------------------------------------------------------- */

static int keeps(const ls_node *node)
{
	(void)node;
	return LS_KEEP_INPUT | LS_KEEP_OUTPUT | LS_KEEP_OTHERS;
}

/* A thread's part of scratch. */
typedef struct bench {
	float *x[LS_OPERATOR_INPUTS], *y, *dy, *dx[LS_OPERATOR_INPUTS];
} bench;

static size_t bench_floats(const ls_op *op)
{
	size_t floats = 2 * unit_floats(op->out);
	for (int k = 0; k < op->node->input_count; k++)
		floats += 2 * unit_floats(op->in[k]);
	return floats;
}

static bench bench_of(const ls_op *op, int rank)
{
	float *at = (float *)op->scratch + (size_t)rank * bench_floats(op);
	bench b = { .y = at, .dy = at + unit_floats(op->out) };

	at += 2 * unit_floats(op->out);
	for (int k = 0; k < op->node->input_count; k++) {
		b.x[k] = at;
		b.dx[k] = at + unit_floats(op->in[k]);
		at += 2 * unit_floats(op->in[k]);
	}
	return b;
}

/* Floats of all parameters, each in whole cache lines; of those before `end`. */
static size_t param_floats(const ls_op *op, int end)
{
	size_t floats = 0;
	for (int i = 0; i < end; i++)
		floats += op->params[i] ? op->params[i]->count : 0;
	return floats;
}

static size_t scratch_bytes(const ls_op *op, int64_t n)
{
	size_t units = (size_t)(op->in[0]->domain == LS_MASKED ? ls_tensor_rows(op->in[0], n) : n);
	return sizeof(float) * ((size_t)op->threads * bench_floats(op) + units * param_floats(op, LS_OPERATOR_PARAMS));
}

/* Where the gradient of parameter i lies for a unit. */
static float *unit_grad(const ls_op *op, int64_t unit, int i)
{
	return (float *)op->scratch + (size_t)op->threads * bench_floats(op) +
	       (size_t)unit * param_floats(op, LS_OPERATOR_PARAMS) + param_floats(op, i);
}

/* Of masked positions: the micro-batch, by its first sample, and the row in it. */
static uint64_t key_of(const ls_op *op, const ls_pass *pass, int64_t unit)
{
	int is_row = op->in[0]->domain == LS_MASKED;
	uint64_t sample = pass->samples ? pass->samples[is_row ? 0 : unit] : (uint64_t)(is_row ? 0 : unit);
	uint64_t row = is_row ? (uint64_t)(pass->first_row[LS_MASKED] + unit) : 0;

	return ls_mix64(pass->seed +
			ls_mix64(pass->step + ls_mix64((uint64_t)op->node->stream + ls_mix64(sample + ls_mix64(row)))));
}

static ls_operator_call call_of(const ls_op *op, const ls_pass *pass, const bench *b, int64_t unit)
{
	ls_operator_call call = { .size = sizeof(call),
				  .options = attributes_of(op)->options,
				  .is_training = pass->training,
				  .key = key_of(op, pass, unit),
				  .inputs = op->node->input_count,
				  .out_rows = unit_rows(pass, op->out, unit).count,
				  .out_channels = op->out->channels,
				  .y = b->y };
	for (int k = 0; k < op->node->input_count; k++) {
		call.rows[k] = unit_rows(pass, op->in[k], unit).count;
		call.channels[k] = op->in[k]->channels;
		call.x[k] = b->x[k];
		gather(pass, op->in[k], op->x[k], unit, b->x[k]);
	}
	for (int i = 0; i < attributes_of(op)->shape.params; i++)
		call.param[i] = ls_op_param(op, pass, i);
	return call;
}

static void forward(const ls_op *op, const ls_pass *pass, ls_member member)
{
	bench b = bench_of(op, member.rank);
	int64_t unit;

	while ((unit = ls_team_next(member, units_of(op, pass))) >= 0) {
		ls_operator_call call = call_of(op, pass, &b, unit);
		attributes_of(op)->row->forward(&call);
		scatter(pass, op->out, b.y, unit, op->y);
	}
}

static void backward_unit(const ls_op *op, const ls_pass *pass, const bench *b, int64_t unit)
{
	ls_operator_call call = call_of(op, pass, b, unit);

	gather(pass, op->out, op->y, unit, b->y);
	gather(pass, op->out, op->dy, unit, b->dy);
	call.dy = b->dy;
	for (int k = 0; k < call.inputs; k++)
		call.dx[k] = op->dx[k] ? b->dx[k] : NULL;
	for (int i = 0; i < attributes_of(op)->shape.params; i++) {
		if (!ls_op_grad(op, pass, i))
			continue;
		call.grad[i] = unit_grad(op, unit, i);
		memset(call.grad[i], 0, sizeof(float) * op->params[i]->count);
	}
	attributes_of(op)->row->backward(&call);
	for (int k = 0; k < call.inputs; k++)
		if (call.dx[k])
			scatter(pass, op->in[k], b->dx[k], unit, op->dx[k]);
}

/* Element by element, over units in their order. */
static void add_grads(const ls_op *op, const ls_pass *pass, int i, ls_member member)
{
	float *grad = ls_op_grad(op, pass, i);
	int64_t units = units_of(op, pass), begin, end;

	if (!grad)
		return;
	ls_team_range(member, (int64_t)op->params[i]->count, &begin, &end);
	for (int64_t k = begin; k < end; k++) {
		float sum = pass->accumulate ? grad[k] : 0;
		for (int64_t unit = 0; unit < units; unit++)
			sum += unit_grad(op, unit, i)[k];
		grad[k] = sum;
	}
}

static void backward(const ls_op *op, const ls_pass *pass, ls_member member)
{
	bench b = bench_of(op, member.rank);
	int64_t unit;

	while ((unit = ls_team_next(member, units_of(op, pass))) >= 0)
		backward_unit(op, pass, &b, unit);
	if (attributes_of(op)->shape.params == 0)
		return;
	ls_team_barrier(member);
	for (int i = 0; i < attributes_of(op)->shape.params; i++)
		add_grads(op, pass, i, member);
}

ls_op_type ls_custom_operator_type(const ls_operator *row)
{
	return (ls_op_type){ .name = row->name,
			     .input_count = row->inputs,
			     .attribute_bytes = sizeof(ls_custom_attributes),
			     .shape = shape,
			     .macs = row->cost ? macs : NULL,
			     .keeps = keeps,
			     .scratch_bytes = scratch_bytes,
			     .forward = forward,
			     .backward = row->backward ? backward : NULL };
}

/* ---- losses ------------------------------------------------------------------------------------------------------ */

static size_t loss_scratch_bytes(const ls_op *op, int64_t n)
{
	(void)n;
	return sizeof(float) * 2 * (size_t)op->threads * (size_t)op->in[0]->blocks * (size_t)op->in[0]->panel;
}

static void scale(float *dx, int channels, float by)
{
	for (int c = 0; c < channels; c++)
		dx[c] *= by;
}

/* Rows of a loss lie as units of one row do: samples have one each. */
static void loss_forward(const ls_op *op, const ls_pass *pass, ls_member member)
{
	const ls_tensor *t = op->in[0];
	ls_loss_rows r = ls_loss_rows_of(op, pass);
	float *x = (float *)op->scratch + 2 * (size_t)member.rank * (size_t)t->blocks * (size_t)t->panel;
	float *dx = x + (size_t)t->blocks * (size_t)t->panel;
	int64_t begin, end;

	ls_team_range(member, r.count, &begin, &end);
	for (int64_t i = begin; i < end; i++) {
		gather(pass, t, op->x[0], i, x);
		ls_loss_call call = { .size = sizeof(call),
				      .options = attributes_of(op)->options,
				      .channels = t->channels,
				      .x = x,
				      .label = ls_loss_class(t, &r, i),
				      .dx = r.dx ? dx : NULL,
				      .is_right = ls_row_maximum(t, op->x[0], r.count, i) == ls_loss_class(t, &r, i),
				      .targets = r.targets ? r.targets + i * t->channels : NULL };
		r.loss[i] = attributes_of(op)->loss->row(&call);
		r.correct[i] = (uint8_t)(call.is_right && r.loss[i] == r.loss[i]);
		if (!r.dx)
			continue;
		scale(dx, t->channels, r.scale);
		scatter(pass, t, dx, i, r.dx);
	}
}

ls_op_type ls_custom_loss_type(const ls_loss *loss)
{
	return (ls_op_type){ .name = loss->name,
			     .input_count = 1,
			     .attribute_bytes = sizeof(ls_custom_attributes),
			     .is_loss = 1,
			     .lone_labels = loss->lone_labels,
			     .shape = ls_check_loss_rows,
			     .scratch_bytes = loss_scratch_bytes,
			     .forward = loss_forward };
}
