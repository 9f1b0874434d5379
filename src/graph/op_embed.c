/*
 * op_embed.c - tokens to rows: y[t] = word[token] + position[place in its sample] (+ segment).
 *
 * Tables lie row by row. The gradient of a row is the sum over its tokens in order; members share channels, so nothing
 * depends on their number. Where a linear layer shares the words, its part of their gradient is there before.
 */
#include <string.h>

#include "graph/op.h"

enum { LINE = 16 }; /* floats: members take whole cache lines */

static int keeps(const ls_node *node)
{
	(void)node;
	return 0;
}

/* One table: `row` of it belongs to token t; NULL rows are the places of tokens in their samples. */
typedef struct table {
	int param;
	const int32_t *rows;
} table;

static int tables_of(const ls_op *op, const ls_pass *pass, table out[3])
{
	const ls_node *node = op->node;
	out[0] = (table){ node->weight, pass->token };
	out[1] = (table){ node->bias, NULL };
	out[2] = (table){ node->segments, pass->segment };
	return node->segments == LS_NONE ? 2 : 3;
}

static int64_t row_of(const table *t, const ls_pass *pass, int64_t token)
{
	return t->rows ? t->rows[token] : token - pass->start[pass->owner[token]];
}

static int64_t row_floats(const ls_op *op)
{
	return (int64_t)op->out->blocks * op->out->panel;
}

static void forward(const ls_op *op, const ls_pass *pass, ls_member member)
{
	int64_t rows = ls_pass_rows(pass, op->out), width = row_floats(op), panel = op->out->panel, begin, end;
	table tables[3];
	int count = tables_of(op, pass, tables);
	const float *source[3];

	ls_team_range(member, rows, &begin, &end);
	for (int64_t t = begin; t < end; t++) {
		for (int k = 0; k < count; k++)
			source[k] = ls_op_param(op, pass, tables[k].param) + row_of(&tables[k], pass, t) * width;
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
		memset(grad + r * width + begin * LINE, 0, sizeof(float) * (size_t)((end - begin) * LINE));
}

static void add_lines(const ls_op *op, const ls_pass *pass, const table *t, float *grad, int64_t begin, int64_t end)
{
	int64_t rows = ls_pass_rows(pass, op->out), width = row_floats(op), panel = op->out->panel;

	for (int64_t token = 0; token < rows; token++) {
		float *to = grad + row_of(t, pass, token) * width;
		for (int64_t line = begin; line < end; line++) {
			int64_t c = line * LINE;
			const float *dy = op->dy + (c / panel * rows + token) * panel + c % panel;
			for (int i = 0; i < LINE; i++)
				to[c + i] += dy[i];
		}
	}
}

static void backward(const ls_op *op, const ls_pass *pass, ls_member member)
{
	int64_t width = row_floats(op), begin, end;
	table tables[3];
	int count = tables_of(op, pass, tables);

	ls_team_range(member, width / LINE, &begin, &end);
	for (int k = 0; k < count; k++) {
		float *grad = ls_op_grad(op, pass, tables[k].param);
		int begun = pass->accumulate || (k == 0 && op->node->is_tied);
		if (!begun)
			clear_lines(grad, op->graph->params.rows[tables[k].param].layout.out, width, begin, end);
		add_lines(op, pass, &tables[k], grad, begin, end);
	}
}

const ls_op_kind ls_op_embed = { .keeps = keeps, .forward = forward, .backward = backward };
