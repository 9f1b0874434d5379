/*
 * class_token.c - positions of an image as a row of tokens behind one that is learned, and a table of positions added.
 *
 *   y[0] = token + table[0];  y[1 + p] = x[p] + table[1 + p]        x (P positions, C), y (P + 1, C)
 *   dx[p] = dy[1 + p];  dtable[p] = sum of dy[p] over samples;  dtoken = dtable[0]
 *
 * The sum over samples is in their order; threads share channels, so nothing depends on their number.
 */
#include <string.h>

#include "ops/shape.h"

enum { TOKEN, TABLE };

static ls_param table_param(int rows, int width)
{
	ls_param row = {
		.role = LS_ROLE_WEIGHT, .init = LS_INIT_NORMAL, .fan_in = width, .rank = 3, .shape = { 1, rows, width }
	};
	row.layout = (ls_weight_layout){ .out = rows, .in = width, .taps = 1, .out_panel = 1, .reachable_taps = 1 };
	row.layout.in_panel = (int)ls_padded(width);
	return row;
}

static ls_status shape(ls_shape *s)
{
	const ls_class_token_options *o = s->attributes;
	const ls_tensor *in = s->in[0];
	int rows = in->height * in->width + 1;

	if (ls_too_many_floats(rows, ls_padded(in->channels), 1))
		return ls_fail(LS_EINVALID, "class_token '%s': %d positions of %d channels are too large", s->name,
			       rows, in->channels);
	s->out = ls_tensor_make(in->channels, 1, rows, LS_SAMPLES);
	LS_TRY(ls_shape_param(s, TOKEN, s->name, o->token ? o->token : "cls_token", table_param(1, in->channels)));
	return ls_shape_param(s, TABLE, s->name, o->positions ? o->positions : "position_embeddings",
			      table_param(rows, in->channels));
}

static int64_t row_floats(const ls_op *op)
{
	return (int64_t)op->out->blocks * op->out->panel;
}

static void forward(const ls_op *op, const ls_pass *pass, ls_member member)
{
	int64_t rows = ls_pass_rows(pass, op->out), of_x = ls_pass_rows(pass, op->in[0]), panel = op->out->panel, begin,
		end;
	const float *token = ls_op_param(op, pass, TOKEN), *table = ls_op_param(op, pass, TABLE);

	ls_team_range(member, rows, &begin, &end);
	for (int64_t b = 0; b < op->out->blocks; b++)
		for (int64_t r = begin; r < end; r++) {
			const float *from =
				r < pass->n ? token + b * panel : op->x[0] + (b * of_x + r - pass->n) * panel;
			const float *place = table + r / pass->n * row_floats(op) + b * panel;
			float *y = op->y + (b * rows + r) * panel;
			for (int64_t c = 0; c < panel; c++)
				y[c] = from[c] + place[c];
		}
}

/* Lines [begin, end) of row p of the gradients: the sum of dy over samples. */
static void add_samples(const ls_op *op, const ls_pass *pass, int64_t p, int64_t begin, int64_t end, float *grad)
{
	int64_t rows = ls_pass_rows(pass, op->out), panel = op->out->panel;

	for (int64_t line = begin; line < end; line++) {
		int64_t c = line * LS_LINE;
		const float *dy = op->dy + (c / panel * rows + p * pass->n) * panel + c % panel;
		for (int i = 0; i < LS_LINE && !pass->accumulate; i++)
			grad[c + i] = 0;
		for (int64_t sample = 0; sample < pass->n; sample++, dy += panel)
			for (int i = 0; i < LS_LINE; i++)
				grad[c + i] += dy[i];
	}
}

static void backward(const ls_op *op, const ls_pass *pass, ls_member member)
{
	int64_t rows = ls_pass_rows(pass, op->out), of_x = ls_pass_rows(pass, op->in[0]), panel = op->out->panel, begin,
		end;
	float *token = ls_op_grad(op, pass, TOKEN), *table = ls_op_grad(op, pass, TABLE);

	ls_team_range(member, row_floats(op) / LS_LINE, &begin, &end);
	if (token)
		add_samples(op, pass, 0, begin, end, token);
	for (int64_t p = 0; table && p < rows / pass->n; p++)
		add_samples(op, pass, p, begin, end, table + p * row_floats(op));
	ls_team_range(member, of_x, &begin, &end);
	for (int64_t b = 0; op->dx[0] && b < op->out->blocks; b++)
		ls_give(op->dx[0] + (b * of_x + begin) * panel, op->add_dx[0],
			op->dy + (b * rows + pass->n + begin) * panel, (end - begin) * panel);
}

const ls_op_type ls_op_class_token = {
	.name = "class_token",
	.formula = "y = (token, x) + table: the positions of x behind a learned one, plus a learned row for each",
	LS_INPUTS(1, "x"),
	LS_ATTRIBUTES(ls_class_token_options, "token, positions"),
	.adds = 1,
	.named = 1,
	.maps = 1,
	.shape = shape,
	.forward = forward,
	.backward = backward,
	.cases = { LS_CASE_IMAGES(20, 3, 4, .attributes = &(ls_class_token_options){ 0 }),
		   LS_CASE_IMAGES(70, 2, 2,
				  .attributes = &(ls_class_token_options){ .token = "t", .positions = "p" }) },
};
