/*
 * params.c - offsets of parameters in the stores, and the way between blocked and logical layout.
 *
 * Logical is (out, in, taps), row-major. Stored, a weight is a sequence of blocks (rows of inputs, out_panel columns):
 *
 *     blocked    block (slot, kb, cb) at ((slot * out_blocks + kb) * in_blocks + cb) * in_panel * out_panel
 *     gathered   block (kb, tap)      at (kb * taps + tap) * in * out_panel, that is depth index tap * in + channel
 *
 * and element (ci, ko) of a block at ci * out_panel + ko. A transposed weight is stored alike; its logical layout is
 * (in, out). Positions below `count` lie at `offset`, the rest, whose
 * slots are unreachable, at `unreachable_offset`: both parts keep the order of slots, so one subtraction separates
 * them.
 */
#include "params/params.h"

#include <assert.h>

#include "params/params_panel.h"

enum { ROW_ALIGNMENT = 16 }; /* floats: a cache line, and the widest vector */

static size_t align(size_t floats)
{
	return (floats + ROW_ALIGNMENT - 1) / ROW_ALIGNMENT * ROW_ALIGNMENT;
}

static size_t blocks_of(int extent, int panel)
{
	return (size_t)((extent + panel - 1) / panel);
}

static int smaller(int a, int b)
{
	return a < b ? a : b;
}

/* Inputs in a block: a gathered layout has one block per tap, as wide as the input. */
static int block_inputs(const ls_weight_layout *l)
{
	return l->gathered ? l->in : l->in_panel;
}

/* Floats of one tap over all its blocks. */
static size_t tap_floats(const ls_weight_layout *l)
{
	size_t inputs = (size_t)block_inputs(l);
	return blocks_of(l->out, l->out_panel) * blocks_of(l->in, block_inputs(l)) * inputs * (size_t)l->out_panel;
}

static size_t block_position(const ls_weight_layout *l, int tap, int kb, int cb)
{
	size_t floats = (size_t)block_inputs(l) * (size_t)l->out_panel;
	if (l->gathered)
		return ((size_t)kb * (size_t)l->taps + (size_t)tap) * floats;
	size_t slot = l->slot ? (size_t)l->slot[tap] : (size_t)tap;
	size_t row = slot * blocks_of(l->out, l->out_panel) + (size_t)kb;
	return (row * blocks_of(l->in, l->in_panel) + (size_t)cb) * floats;
}

static void check(const ls_param *param)
{
	const ls_weight_layout *l = &param->layout;
	assert(l->out > 0 && l->in > 0 && l->taps > 0 && l->out_panel > 0 && l->in_panel > 0);
	assert(!l->gathered || (l->in_panel == l->in * l->taps && !l->slot));
	assert(!l->is_transposed || (l->taps == 1 && !l->gathered));
	assert(!l->slot || (l->reachable_taps >= 0 && l->reachable_taps <= l->taps));
	assert(ls_param_elements(param) == (size_t)l->out * (size_t)l->in * (size_t)l->taps);
	(void)l, (void)param;
}

/* Floats of both parts. What is frozen neither decays nor has norms, whatever the others need (`all`). */
static void count_row(ls_param *param, int all)
{
	const ls_weight_layout *l = &param->layout;

	param->offset = param->count = param->unreachable_offset = param->unreachable_count = 0;
	if (param->role == LS_ROLE_COUNTER)
		return;
	check(param);
	int is_whole = !l->slot || (all && !param->is_frozen);
	size_t reachable_taps = (size_t)(is_whole ? l->taps : l->reachable_taps);
	param->count = reachable_taps * tap_floats(l);
	param->unreachable_count = ((size_t)l->taps - reachable_taps) * tap_floats(l);
}

/* Count the elements of a row and give it a place in front, unless it is frozen. */
static void lay_out_row(ls_param_table *table, ls_param *param, int all)
{
	count_row(param, all);
	if (ls_param_is_trained(param))
		table->trainable += ls_param_elements(param);
	if (ls_param_is_trained(param) && param->is_frozen)
		table->frozen += ls_param_elements(param);
	if (param->role == LS_ROLE_COUNTER || (ls_param_is_trained(param) && param->is_frozen))
		return;
	size_t *end = param->role == LS_ROLE_BUFFER ? &table->buffers : &table->reachable;
	param->offset = *end;
	*end = align(*end + param->count);
}

/* Behind the reachable ones: frozen parameters, then unreachable weights. */
static void lay_out_rest(ls_param_table *table)
{
	for (size_t i = 0; i < table->count; i++) {
		ls_param *param = &table->rows[i];
		if (!ls_param_is_trained(param) || !param->is_frozen)
			continue;
		param->offset = table->total;
		table->total = align(table->total + param->count);
	}
	for (size_t i = 0; i < table->count; i++) {
		ls_param *param = &table->rows[i];
		if (!param->unreachable_count)
			continue;
		param->unreachable_offset = table->total;
		table->total = align(table->total + param->unreachable_count);
	}
}

void ls_params_lay_out(ls_param_table *table, int all)
{
	table->reachable = table->buffers = 0;
	table->trainable = table->frozen = 0;
	for (size_t i = 0; i < table->count; i++)
		lay_out_row(table, &table->rows[i], all);
	table->total = table->reachable;
	lay_out_rest(table);
}

size_t ls_param_elements(const ls_param *param)
{
	size_t elements = 1;
	for (int i = 0; i < param->rank; i++)
		elements *= (size_t)param->shape[i];
	return elements;
}

static int out_blocks(const ls_weight_layout *l)
{
	return (int)blocks_of(l->out, l->out_panel);
}

int ls_param_panels(const ls_param *param)
{
	if (param->role == LS_ROLE_COUNTER)
		return 0;
	return param->layout.is_transposed ? 1 : out_blocks(&param->layout);
}

static int panel_outputs(const ls_weight_layout *l, int panel)
{
	return smaller(l->out_panel, l->out - panel * l->out_panel);
}

size_t ls_param_panel_first(const ls_param *param, int panel)
{
	const ls_weight_layout *l = &param->layout;
	return (size_t)panel * (size_t)l->out_panel * (size_t)l->in * (size_t)l->taps;
}

size_t ls_param_panel_elements(const ls_param *param, int panel)
{
	const ls_weight_layout *l = &param->layout;
	if (l->is_transposed)
		return ls_param_elements(param);
	return (size_t)panel_outputs(l, panel) * (size_t)l->in * (size_t)l->taps;
}

size_t ls_params_panel_largest(const ls_param_table *table)
{
	size_t largest = 0;
	for (size_t i = 0; i < table->count; i++) {
		const ls_param *param = &table->rows[i];
		size_t elements = ls_param_panels(param) ? ls_param_panel_elements(param, 0) : 0;
		largest = elements > largest ? elements : largest;
	}
	return largest;
}

/* Where a block lies in a store; SIZE_MAX when it is unreachable or frozen and the store has no such part. */
static size_t block_offset(const ls_param *param, ls_store_kind kind, int tap, int kb, int cb)
{
	size_t position = block_position(&param->layout, tap, kb, cb);
	if (kind == LS_STORE_REACHABLE && param->is_frozen)
		return SIZE_MAX;
	if (position < param->count)
		return param->offset + position;
	return kind == LS_STORE_WHOLE ? param->unreachable_offset + (position - param->count) : SIZE_MAX;
}

/* One block and its part of the logical rows: element (ko, ci) at rows[ko * row + ci * column]. */
typedef struct block {
	size_t offset, row, column, first;
	int inputs, outputs, width;
} block;

static block block_make(const ls_param *param, ls_store_kind kind, int tap, int kb, int cb)
{
	const ls_weight_layout *l = &param->layout;
	int begin = cb * block_inputs(l);
	block b = { .offset = block_offset(param, kind, tap, kb, cb),
		    .row = (size_t)l->in * (size_t)l->taps,
		    .column = (size_t)l->taps,
		    .first = (size_t)begin * (size_t)l->taps + (size_t)tap,
		    .inputs = smaller(block_inputs(l), l->in - begin),
		    .outputs = panel_outputs(l, kb),
		    .width = l->out_panel };
	if (l->is_transposed) {
		b.row = 1;
		b.column = (size_t)l->out;
		b.first = (size_t)begin * (size_t)l->out + (size_t)kb * (size_t)l->out_panel;
	}
	return b;
}

static void block_export(const block *b, const float *restrict from, float *restrict rows)
{
	for (int ci = 0; ci < b->inputs; ci++)
		for (int ko = 0; ko < b->outputs; ko++)
			rows[(size_t)ko * b->row + (size_t)ci * b->column] =
				from[(size_t)ci * (size_t)b->width + (size_t)ko];
}

static void block_clear(const block *b, float *rows)
{
	for (int ci = 0; ci < b->inputs; ci++)
		for (int ko = 0; ko < b->outputs; ko++)
			rows[(size_t)ko * b->row + (size_t)ci * b->column] = 0.0f;
}

static void block_import(const block *b, const float *restrict rows, float *restrict to)
{
	for (int ci = 0; ci < b->inputs; ci++)
		for (int ko = 0; ko < b->outputs; ko++)
			to[(size_t)ci * (size_t)b->width + (size_t)ko] =
				rows[(size_t)ko * b->row + (size_t)ci * b->column];
}

static void blocks_export(const ls_param *param, ls_store_kind kind, int kb, const float *store, float *rows)
{
	const ls_weight_layout *l = &param->layout;
	int in_blocks = (int)blocks_of(l->in, block_inputs(l));
	for (int cb = 0; cb < in_blocks; cb++)
		for (int tap = 0; tap < l->taps; tap++) {
			block b = block_make(param, kind, tap, kb, cb);
			if (b.offset == SIZE_MAX)
				block_clear(&b, rows + b.first);
			else
				block_export(&b, store + b.offset, rows + b.first);
		}
}

static void blocks_import(const ls_param *param, ls_store_kind kind, int kb, const float *rows, float *store)
{
	const ls_weight_layout *l = &param->layout;
	int in_blocks = (int)blocks_of(l->in, block_inputs(l));
	for (int cb = 0; cb < in_blocks; cb++)
		for (int tap = 0; tap < l->taps; tap++) {
			block b = block_make(param, kind, tap, kb, cb);
			if (b.offset != SIZE_MAX)
				block_import(&b, rows + b.first, store + b.offset);
		}
}

/* Out-blocks of a panel: one, or all of a transposed weight. */
static int panel_end(const ls_param *param, int panel)
{
	return param->layout.is_transposed ? out_blocks(&param->layout) : panel + 1;
}

void ls_param_panel_export(const ls_param *param, ls_store_kind kind, int panel, const float *store, float *rows)
{
	for (int kb = panel; kb < panel_end(param, panel); kb++)
		blocks_export(param, kind, kb, store, rows);
}

void ls_param_panel_import(const ls_param *param, ls_store_kind kind, int panel, const float *rows, float *store)
{
	for (int kb = panel; kb < panel_end(param, panel); kb++)
		blocks_import(param, kind, kb, rows, store);
}

void ls_param_export(const ls_param *param, ls_store_kind kind, const float *store, float *logical)
{
	for (int panel = 0; panel < ls_param_panels(param); panel++)
		ls_param_panel_export(param, kind, panel, store, logical + ls_param_panel_first(param, panel));
}

void ls_param_import(const ls_param *param, ls_store_kind kind, const float *logical, float *store)
{
	for (int panel = 0; panel < ls_param_panels(param); panel++)
		ls_param_panel_import(param, kind, panel, logical + ls_param_panel_first(param, panel), store);
}
