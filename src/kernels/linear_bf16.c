/*
 * linear_bf16.c - the loops around the bf16 products of a linear layer.
 *
 * Forward and the gradient of the input go over blocks of the result: of the weights a few blocks at a time are rounded
 * and put into pairs, in the first-level cache, and serve all rows of a stretch. The gradient of the weights goes over
 * their blocks in groups, and both operands pass by in pairs of rows.
 */
#include "kernels/linear_bf16.h"

#include <string.h>

#include "kernels/linear_parts.h"
#include "kernels/simd.h"

enum {
	STRETCH_ROWS = 1024, /* rows that packed weights serve: their result stays in the second-level cache */
	TOGETHER = 4,        /* blocks of weights whose products are summed in registers */
	CHUNK_PAIRS = 64,    /* weight gradients: pairs of rows at a time, in the first-level cache; LS_LINEAR_BF16_ROWS
			      * is a multiple of these rows */
	GROUP_BLOCKS = 4     /* weight gradients: a chunk serves up to 4 x 4 blocks, in the second-level cache */
};

static int64_t smaller(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* ---- scratch: x rounded by the team, dy in pairs of rows and of channels, then packed weights of each member ---- */

static size_t member_words(int in_panel, int out_panel)
{
	return (size_t)(TOGETHER + 1) * (size_t)in_panel * (size_t)out_panel / 2;
}

size_t ls_linear_bf16_scratch_floats(int in_blocks, int in_panel, int out_blocks, int out_panel, int64_t rows,
				     int threads)
{
	const size_t channels = (size_t)in_blocks * (size_t)in_panel + 2 * (size_t)out_blocks * (size_t)out_panel;
	return (size_t)((rows + 1) / 2) * channels + (size_t)threads * member_words(in_panel, out_panel);
}

/* Words of the rounded rows, which packed weights lie behind. */
static size_t rows_words(const ls_linear_plan *p, int64_t rows)
{
	return (size_t)((rows + 1) / 2) * (size_t)(p->in_blocks * p->in_panel + 2 * p->out_blocks * p->out_panel);
}

static uint32_t *own_words(const ls_linear_plan *p, int64_t rows, float *scratch, ls_member member)
{
	return (uint32_t *)scratch + rows_words(p, rows) +
	       (size_t)member.rank * member_words(p->in_panel, p->out_panel);
}

/* out = x in pairs of channels, (blocks, rows, panel / 2). */
static void round_rows(const ls_bf16_kernels *kernels, const float *x, int64_t floats, uint32_t *out, ls_member member)
{
	int64_t begin, end;
	ls_team_range(member, floats / 16, &begin, &end);
	kernels->rows(x + 16 * begin, 16 * (end - begin), out + 8 * begin);
	ls_team_barrier(member);
}

/* A value in pairs of rows, (blocks, half of the rows, panel); turned, chunks of it are (panel, pairs of the chunk). */
typedef struct row_pairs {
	int64_t rows;
	int panel, is_turned;
	uint32_t *words;
} row_pairs;

/* Rows [first, first + count) of a block of x, which begin on a chunk. */
static void pair_rows(const ls_bf16_kernels *kernels, const row_pairs *to, const float *x, int64_t block, int64_t first,
		      int64_t count)
{
	const int64_t half = (to->rows + 1) / 2, end = first + count;
	for (; first < end; first += 2 * CHUNK_PAIRS) {
		const int64_t rows = smaller(2 * CHUNK_PAIRS, end - first);
		const float *from = x + (block * to->rows + first) * to->panel;
		uint32_t *words = to->words + (block * half + first / 2) * to->panel;
		if (to->is_turned)
			kernels->turned(from, rows, to->panel, to->panel, words, (rows + 1) / 2);
		else
			kernels->pairs(from, rows, to->panel, to->panel, words);
	}
}

/* ---- weights ---- */

/* out (half, rows) = the words of in (rows, half) transposed; `rows` up to out_ld are zeros. */
static void turn_words(const uint32_t *in, int rows, int half, uint32_t *out, int out_ld)
{
	const int whole = rows / 16 * 16;
	if (whole > 0)
		ls_simd_get()->transpose((const float *)in, whole, half, half, (float *)out, out_ld);
	for (int c = 0; c < half && whole < out_ld; c++)
		for (int r = whole; r < out_ld; r++)
			out[c * out_ld + r] = r < rows ? in[r * half + c] : 0;
}

/* Block (ob, ib) as forward needs it: (in_panel / 2, out_panel), in pairs of inputs. */
static void pack_forward(const ls_bf16_kernels *kernels, const ls_linear_plan *p, const float *weights, int64_t ob,
			 int64_t ib, uint32_t *out, uint32_t *spare)
{
	const float *w = weights + ls_linear_block_place(p, ob, ib);
	if (!p->tied) {
		kernels->pairs(w, p->in_panel, p->out_panel, p->out_panel, out);
		return;
	}
	const int outputs = ls_linear_outputs_of(p, ob);
	for (int o = 0; o < outputs; o++)
		kernels->rows(w + (int64_t)o * p->in_blocks * p->in_panel, p->in_panel, spare + o * p->in_panel / 2);
	turn_words(spare, outputs, p->in_panel / 2, out, p->out_panel);
}

/* The same for the gradient of the input: (out_panel / 2, in_panel), in pairs of outputs. */
static void pack_backward(const ls_bf16_kernels *kernels, const ls_linear_plan *p, const float *weights, int64_t ob,
			  int64_t ib, uint32_t *out, uint32_t *spare)
{
	const float *w = weights + ls_linear_block_place(p, ob, ib);
	if (p->tied) {
		const int outputs = ls_linear_outputs_of(p, ob), words = p->out_panel / 2 * p->in_panel;
		if (outputs < p->out_panel)
			memset(out, 0, sizeof(*out) * (size_t)words);
		kernels->pairs(w, outputs, p->in_panel, (int64_t)p->in_blocks * p->in_panel, out);
		return;
	}
	kernels->rows(w, (int64_t)p->in_panel * p->out_panel, spare);
	turn_words(spare, p->in_panel, p->out_panel / 2, out, p->in_panel);
}

/* ---- the loops ---- */

/* y of one block (rows, to_panel) = sum over `blocks` of x (rows, from_panel) . packed weights, of one stretch. */
typedef struct walk {
	const ls_bf16_kernels *kernels;
	const ls_linear_plan *plan;
	const float *weights;
	void (*pack)(const ls_bf16_kernels *kernels, const ls_linear_plan *p, const float *weights, int64_t ob,
		     int64_t ib, uint32_t *out, uint32_t *spare);
	const uint32_t *x; /* rounded rows */
	int64_t rows;
	int is_forward;
	int from_blocks, from_panel, to_panel;
} walk;

static void walk_stretch(const walk *k, int64_t to, int64_t first, int64_t count, int accumulate, float *y,
			 uint32_t *words)
{
	const int64_t block_words = (int64_t)k->from_panel * k->to_panel / 2;
	uint32_t *spare = words + TOGETHER * block_words;
	for (int64_t from = 0; from < k->from_blocks; from += TOGETHER) {
		const int64_t blocks = smaller(TOGETHER, k->from_blocks - from);
		ls_bf16_part parts[TOGETHER];
		for (int64_t b = 0; b < blocks; b++) {
			k->pack(k->kernels, k->plan, k->weights, k->is_forward ? to : from + b,
				k->is_forward ? from + b : to, words + b * block_words, spare);
			parts[b] = (ls_bf16_part){ k->x + ((from + b) * k->rows + first) * k->from_panel / 2,
						   words + b * block_words };
		}
		const ls_bf16_shape shape = { .rows = (int)count,
					      .pairs = k->from_panel / 2,
					      .cols = k->to_panel,
					      .ldx = k->from_panel / 2,
					      .ldw = k->to_panel,
					      .ldy = k->to_panel,
					      .accumulate = accumulate || from > 0 };
		k->kernels->gemm(&shape, parts, (int)blocks, y);
	}
}

void ls_linear_bf16_forward(const ls_bf16_kernels *kernels, const ls_linear_plan *p, int64_t rows, const float *x,
			    const float *weights, const ls_linear_epilogue *e, float *y, float *scratch,
			    ls_member member)
{
	const walk k = { kernels, p, weights,      pack_forward, (const uint32_t *)scratch,
			 rows,    1, p->in_blocks, p->in_panel,  p->out_panel };
	const int64_t stretches = (rows + STRETCH_ROWS - 1) / STRETCH_ROWS;
	uint32_t *words = own_words(p, rows, scratch, member);
	float *into = e->kept ? e->kept : y;

	if (x)
		round_rows(kernels, x, p->in_blocks * rows * p->in_panel, (uint32_t *)scratch, member);
	for (int64_t unit; (unit = ls_team_next(member, stretches * p->out_blocks)) >= 0;) {
		const int64_t ob = unit % p->out_blocks, first = unit / p->out_blocks * STRETCH_ROWS;
		const int64_t count = smaller(STRETCH_ROWS, rows - first), place = (ob * rows + first) * p->out_panel;
		walk_stretch(&k, ob, first, count, 0, into + place, words);
		ls_linear_finish(p, e, ob, count, into + place, y + place);
	}
}

/* The rows of both operands in pairs: of the inputs, and of the gradients of the outputs. */
typedef struct paired {
	const uint32_t *in, *out;
	int64_t half; /* pairs of rows */
} paired;

/* dw (+)= the products of a chunk of pairs from `first`, of one block. */
static void weights_chunk(const ls_bf16_kernels *kernels, const ls_linear_plan *p, const paired *rows, int64_t ob,
			  int64_t ib, int64_t first, int accumulate, float *dw)
{
	const int is_tied = p->tied;
	const uint32_t *in = rows->in + (ib * rows->half + first) * p->in_panel;
	const uint32_t *out = rows->out + (ob * rows->half + first) * p->out_panel;
	const ls_bf16_part part = { is_tied ? out : in, is_tied ? in : out };
	ls_bf16_shape s = { .rows = is_tied ? ls_linear_outputs_of(p, ob) : p->in_panel,
			    .cols = is_tied ? p->in_panel : p->out_panel,
			    .pairs = (int)smaller(CHUNK_PAIRS, rows->half - first),
			    .ldx = is_tied ? p->out_panel : p->in_panel,
			    .ldw = is_tied ? p->in_panel : p->out_panel,
			    .ldy = is_tied ? p->in_blocks * p->in_panel : p->out_panel,
			    .transposed = !kernels->turned,
			    .accumulate = accumulate || first > 0 };
	if (!s.transposed)
		s.ldx = s.pairs;
	kernels->gemm(&s, &part, 1, dw + ls_linear_block_place(p, ob, ib));
}

/* How the blocks of the weights are cut into groups of `side` x `side`. */
typedef struct grouping {
	int64_t side, across, count;
} grouping;

static grouping groups_of(const ls_linear_plan *p, int64_t side)
{
	const int64_t across = (p->in_blocks + side - 1) / side, down = (p->out_blocks + side - 1) / side;
	return (grouping){ side, across, across * down };
}

/* The largest groups of which every thread gets some: which blocks are together does not matter to the bits. */
static grouping choose_groups(const ls_linear_plan *p, int threads)
{
	grouping g = groups_of(p, GROUP_BLOCKS);
	while (g.side > 1 && threads > 1 && g.count < 3 * threads)
		g = groups_of(p, g.side / 2);
	return g;
}

/* dw of a group of blocks: the sums over pairs of rows, in order. */
static void weights_group(const ls_bf16_kernels *kernels, const ls_linear_plan *p, const paired *rows,
			  const grouping *g, int64_t group, int accumulate, float *dw)
{
	const int64_t ob = group / g->across * g->side, ob_end = smaller(ob + g->side, p->out_blocks);
	const int64_t ib = group % g->across * g->side, ib_end = smaller(ib + g->side, p->in_blocks);

	for (int64_t first = 0; first < rows->half; first += CHUNK_PAIRS)
		for (int64_t o = ob; o < ob_end; o++)
			for (int64_t i = ib; i < ib_end; i++)
				weights_chunk(kernels, p, rows, o, i, first, accumulate, dw);
}

/* Round dy once to what both products need: pairs of rows for the weights, of channels for the input; x to pairs of
 * rows. */
static void round_operands(const ls_bf16_kernels *kernels, const ls_linear_plan *p, int64_t rows,
			   const ls_linear_bf16_gradient *g, const row_pairs *in, const row_pairs *out,
			   uint32_t *dy_rows, ls_member member)
{
	const int64_t chunks = (rows + LS_LINEAR_BF16_ROWS - 1) / LS_LINEAR_BF16_ROWS;
	int64_t begin, end;

	ls_team_range(member, p->out_blocks * chunks, &begin, &end);
	for (int64_t i = begin; i < end; i++) {
		const int64_t block = i / chunks, first = i % chunks * LS_LINEAR_BF16_ROWS;
		const int64_t count = smaller(LS_LINEAR_BF16_ROWS, rows - first);
		const int64_t place = (block * rows + first) * p->out_panel;
		if (g->ready)
			g->ready(g->context, block, first, count);
		if (g->dx)
			kernels->rows(g->dy + place, count * p->out_panel, dy_rows + place / 2);
		if (g->dweights)
			pair_rows(kernels, out, g->dy, block, first, count);
	}
	ls_team_range(member, p->in_blocks * chunks, &begin, &end);
	for (int64_t i = begin; i < end && g->dweights && g->x; i++) {
		const int64_t first = i % chunks * LS_LINEAR_BF16_ROWS;
		pair_rows(kernels, in, g->x, i / chunks, first, smaller(LS_LINEAR_BF16_ROWS, rows - first));
	}
	ls_team_barrier(member);
}

static void backward_weights(const ls_bf16_kernels *kernels, const ls_linear_plan *p, const paired *rows,
			     const ls_linear_bf16_gradient *gradient, ls_member member)
{
	const grouping g = choose_groups(p, member.size);
	for (int64_t group; (group = ls_team_next(member, g.count)) >= 0;)
		weights_group(kernels, p, rows, &g, group, gradient->add_dweights, gradient->dweights);
	ls_team_barrier(member); /* units begin again */
}

static void backward_data(const ls_bf16_kernels *kernels, const ls_linear_plan *p, int64_t rows,
			  const ls_linear_bf16_gradient *g, const uint32_t *dy_rows, uint32_t *words, ls_member member)
{
	const walk k = { kernels, p, g->weights,    pack_backward, dy_rows,
			 rows,    0, p->out_blocks, p->out_panel,  p->in_panel };
	const int64_t stretches = (rows + STRETCH_ROWS - 1) / STRETCH_ROWS;

	for (int64_t unit; (unit = ls_team_next(member, stretches * p->in_blocks)) >= 0;) {
		const int64_t ib = unit % p->in_blocks, first = unit / p->in_blocks * STRETCH_ROWS;
		walk_stretch(&k, ib, first, smaller(STRETCH_ROWS, rows - first), g->add_dx,
			     g->dx + (ib * rows + first) * p->in_panel, words);
	}
	ls_team_barrier(member); /* the scratch is free */
}

void ls_linear_bf16_backward(const ls_bf16_kernels *kernels, const ls_linear_plan *p, int64_t rows,
			     const ls_linear_bf16_gradient *g, float *scratch, ls_member member)
{
	const int64_t half = (rows + 1) / 2;
	const row_pairs in = { rows, p->in_panel, kernels->turned && !p->tied, (uint32_t *)scratch };
	const row_pairs out = { rows, p->out_panel, kernels->turned && p->tied,
				in.words + half * p->in_blocks * p->in_panel };
	uint32_t *dy_rows = out.words + half * p->out_blocks * p->out_panel;

	if (rows == 0) {
		if (g->dweights)
			ls_linear_zero_weights(p, g->add_dweights, g->dweights, member);
		return;
	}
	round_operands(kernels, p, rows, g, &in, &out, dy_rows, member);
	if (g->dweights) {
		const paired both = { in.words, out.words, half };
		backward_weights(kernels, p, &both, g, member);
	}
	if (g->dx)
		backward_data(kernels, p, rows, g, dy_rows, own_words(p, rows, scratch, member), member);
}
