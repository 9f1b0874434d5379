/*
 * embedding.c - tokens to rows.
 *
 *   y[t] = words[token[t]] + positions[place of t in its sample] (+ segments[segment[t]])
 *   dwords[w] = sum of dy[t] over the tokens t that are w; positions and segments in the same way
 *
 * y (tokens, width), words (vocabulary, width), positions (longest, width), segments (2, width); tables lie row by row.
 * The sum over tokens is in their order; threads share channels, so nothing depends on their number. Where a linear
 * layer shares the words, its part of their gradient is there before.
 */
#include <string.h>

#include "ops/shape.h"

enum { WORDS, POSITIONS, SEGMENTS, TABLES };

static int takes_input(const ls_tensor *in)
{
	return in->domain == LS_TOKENS;
}

static ls_status add_table(ls_shape *s, int slot, const char *name, int rows, int width)
{
	ls_param row = {
		.role = LS_ROLE_WEIGHT, .init = LS_INIT_NORMAL, .fan_in = width, .rank = 2, .shape = { rows, width }
	};
	row.layout = (ls_weight_layout){ .out = rows, .in = width, .taps = 1, .out_panel = 1, .reachable_taps = 1 };
	row.layout.in_panel = (int)ls_padded(width);
	return ls_shape_param(s, slot, name, "weight", row);
}

static ls_status shape(ls_shape *s)
{
	const ls_embedding_options *o = s->attributes;

	if (!s->in[0]->is_input || s->tokens_max == 0)
		return ls_fail(LS_EINVALID, "embedding: its input must be the value of ls_text_input()");
	if (!o->words || !o->positions || o->vocabulary < 1 || o->width < 1)
		return ls_fail(LS_EINVALID, "embedding needs names for words and positions, a vocabulary and a width");
	if (o->unused != 0)
		return ls_fail(LS_EINVALID, "embedding: `unused` is %d; it must be 0", o->unused);
	if (o->longest < s->tokens_max)
		return ls_fail(LS_EINVALID,
			       "the model has positions for %d tokens, and the data has samples of %d: use a smaller "
			       "options.seq_len or a model with more positions",
			       o->longest, s->tokens_max);
	if (ls_too_many_floats(o->vocabulary, ls_padded(o->width), 1))
		return ls_fail(LS_EINVALID, "embedding: %d words, %d wide, are too large: at most %d floats",
			       o->vocabulary, o->width, LS_FLOATS_MOST);
	s->name = o->words;
	s->out = ls_tensor_like(s->in[0], o->width);
	LS_TRY(add_table(s, WORDS, o->words, o->vocabulary, o->width));
	LS_TRY(add_table(s, POSITIONS, o->positions, o->longest, o->width));
	return o->segments ? add_table(s, SEGMENTS, o->segments, 2, o->width) : LS_OK;
}

/* One table: rows[t] belongs to token t; NULL: the place of the token in its sample. */
typedef struct table {
	int slot;
	const int32_t *rows;
} table;

static int tables_of(const ls_op *op, const ls_pass *pass, table out[TABLES])
{
	out[0] = (table){ WORDS, pass->token };
	out[1] = (table){ POSITIONS, NULL };
	out[2] = (table){ SEGMENTS, pass->segment };
	return op->params[SEGMENTS] ? 3 : 2;
}

static int64_t row_of(const table *t, const ls_pass *pass, int64_t token)
{
	if (t->rows)
		return t->rows[token];
	int32_t owner = pass->owner[token];
	return token - pass->start[owner] + (pass->past ? pass->past[owner] : 0);
}

static int64_t row_floats(const ls_op *op)
{
	return (int64_t)op->out->blocks * op->out->panel;
}

static void forward(const ls_op *op, const ls_pass *pass, ls_member member)
{
	int64_t rows = ls_pass_rows(pass, op->out), width = row_floats(op), panel = op->out->panel, begin, end;
	table tables[TABLES];
	int count = tables_of(op, pass, tables);
	const float *source[TABLES];

	ls_team_range(member, rows, &begin, &end);
	for (int64_t t = begin; t < end; t++) {
		for (int k = 0; k < count; k++)
			source[k] = ls_op_param(op, pass, tables[k].slot) + row_of(&tables[k], pass, t) * width;
		for (int64_t b = 0; b < op->out->blocks; b++) {
			float *y = op->y + (b * rows + t) * panel;
			for (int64_t c = 0; c < panel; c++) {
				float sum = source[0][b * panel + c] + source[1][b * panel + c];
				y[c] = count == 3 ? sum + source[2][b * panel + c] : sum;
			}
		}
	}
}

/* Lines [begin, end) of every row of a table's gradient. */
static void clear_lines(float *grad, int64_t rows, int64_t width, int64_t begin, int64_t end)
{
	for (int64_t r = 0; r < rows; r++)
		memset(grad + r * width + begin * LS_LINE, 0, sizeof(float) * (size_t)((end - begin) * LS_LINE));
}

static void add_lines(const ls_op *op, const ls_pass *pass, const table *t, float *grad, int64_t begin, int64_t end)
{
	int64_t rows = ls_pass_rows(pass, op->out), width = row_floats(op), panel = op->out->panel;

	for (int64_t token = 0; token < rows; token++) {
		float *to = grad + row_of(t, pass, token) * width;
		for (int64_t line = begin; line < end; line++) {
			int64_t c = line * LS_LINE;
			const float *dy = op->dy + (c / panel * rows + token) * panel + c % panel;
			for (int i = 0; i < LS_LINE; i++)
				to[c + i] += dy[i];
		}
	}
}

static void backward(const ls_op *op, const ls_pass *pass, ls_member member)
{
	int64_t width = row_floats(op), begin, end;
	table tables[TABLES];
	int count = tables_of(op, pass, tables);

	ls_team_range(member, width / LS_LINE, &begin, &end);
	for (int k = 0; k < count; k++) {
		float *grad = ls_op_grad(op, pass, tables[k].slot);
		if (!grad)
			continue;
		int begun = pass->accumulate || (k == WORDS && op->node->lends);
		if (!begun)
			clear_lines(grad, op->params[tables[k].slot]->layout.out, width, begin, end);
		add_lines(op, pass, &tables[k], grad, begin, end);
	}
}

const ls_op_type ls_op_embedding = {
	.name = "embedding",
	.formula = "y = words[token] + positions[place in its sample] (+ segments[segment])",
	LS_INPUTS(1, "tokens"),
	LS_ATTRIBUTES(ls_embedding_options, "words, positions, segments, vocabulary, longest, width"),
	.takes_input = takes_input,
	.shape = shape,
	.forward = forward,
	.backward = backward,
	.cases = { LS_CASE_TOKENS(20, 7, .raw = 1,
				  .attributes = &(ls_embedding_options){ .words = "words",
									 .positions = "positions",
									 .segments = "segments",
									 .vocabulary = 37,
									 .longest = 9,
									 .width = 20 }) },
};
