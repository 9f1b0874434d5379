/*
 * Linear layers over rows, forward and both gradients, blocked and tied, against plain loops; any number of rows and of
 * threads gives the same bits.
 */
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "base/team.h"
#include "kernels/linear_bf16.h"
#include "kernels/simd.h"
#include "params/panel.h"
#include "unit/test_main.h"

typedef struct layer {
	int in, out, tied;
	int64_t rows;
	int in_panel, out_panel, in_blocks, out_blocks;
	ls_linear_plan plan;
	float *x, *w, *dy, *bias;            /* as the kernels want them */
	float *y, *kept, *dx, *dw, *scratch; /* results */
} layer;

static const ls_bf16_kernels *bf16; /* the tests once more, with products in bf16 or bf16-amx; NULL: in fp32 */

static float *take(size_t floats, uint64_t stream)
{
	float *p = aligned_alloc(64, (floats * sizeof(float) + 127) / 64 * 64);
	assert_non_null(p);
	ls_rng_fill_normal(ls_rng_make(5, LS_RNG_TEST, stream), 0, 0, floats, 1, p);
	return p;
}

static int64_t x_at(const layer *l, int64_t r, int c)
{
	return (c / l->in_panel * l->rows + r) * l->in_panel + c % l->in_panel;
}

static int64_t y_at(const layer *l, int64_t r, int c)
{
	return (c / l->out_panel * l->rows + r) * l->out_panel + c % l->out_panel;
}

static int64_t w_at(const layer *l, int o, int i)
{
	if (l->tied)
		return (int64_t)o * l->in_blocks * l->in_panel + i;
	int64_t block = (int64_t)(o / l->out_panel) * l->in_blocks + i / l->in_panel;
	return (block * l->in_panel + i % l->in_panel) * l->out_panel + o % l->out_panel;
}

/* Padding is zero, as everywhere. */
static void clear_padding(layer *l)
{
	for (int64_t r = 0; r < l->rows; r++) {
		for (int c = l->in; c < l->in_blocks * l->in_panel; c++)
			l->x[x_at(l, r, c)] = 0;
		for (int c = l->out; c < l->out_blocks * l->out_panel; c++)
			l->dy[y_at(l, r, c)] = 0;
	}
	for (int o = 0; o < (l->tied ? l->out : l->out_blocks * l->out_panel); o++)
		for (int i = 0; i < l->in_blocks * l->in_panel; i++)
			if (o >= l->out || i >= l->in)
				l->w[w_at(l, o, i)] = 0;
	for (int o = l->out; o < l->out_blocks * l->out_panel; o++)
		l->bias[o] = 0;
}

/* Operands that bf16 holds exactly, so that only sums round. */
static void round_all(float *x, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		uint32_t bits;
		memcpy(&bits, &x[i], sizeof(bits));
		bits &= 0xffff0000u;
		memcpy(&x[i], &bits, sizeof(bits));
	}
}

static layer make(int in, int out, int tied, int64_t rows)
{
	layer l = { .in = in, .out = out, .tied = tied, .rows = rows };
	l.in_panel = ls_panel_width(in);
	l.in_blocks = ls_panel_blocks(in);
	l.out_panel = ls_panel_width(out);
	l.out_blocks = ls_panel_blocks(out);
	assert_int_equal(ls_linear_plan_make(&l.plan, in, l.in_panel, out, l.out_panel, tied), LS_OK);
	size_t xs = (size_t)(l.in_blocks * l.in_panel * rows), ys = (size_t)(l.out_blocks * l.out_panel * rows);
	size_t ws = (size_t)(tied ? out : l.out_blocks * l.out_panel) * (size_t)(l.in_blocks * l.in_panel);
	l.x = take(xs, 1);
	l.w = take(ws, 2);
	l.dy = take(ys, 3);
	l.bias = take((size_t)(l.out_blocks * l.out_panel), 4);
	l.y = take(ys, 5);
	l.kept = take(ys, 6);
	l.dx = take(xs, 7);
	l.dw = take(ws, 8);
	l.scratch =
		take(bf16 ? ls_linear_bf16_scratch_floats(l.in_blocks, l.in_panel, l.out_blocks, l.out_panel, rows, 4)
			  : ls_linear_scratch_floats(l.in_panel, l.out_panel, 4),
		     9);
	clear_padding(&l);
	if (bf16) {
		round_all(l.x, xs);
		round_all(l.w, ws);
		round_all(l.dy, ys);
	}
	return l;
}

static void release(layer *l)
{
	float *all[] = { l->x, l->w, l->dy, l->bias, l->y, l->kept, l->dx, l->dw, l->scratch };
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		free(all[i]);
}

typedef struct job {
	layer *l;
	ls_linear_epilogue epilogue;
	int accumulate;
	int again; /* in bf16: once more, with the rounded x of the first time */
} job;

static void work_in_bf16(const job *j, ls_member member)
{
	layer *l = j->l;
	for (int turn = 0; turn <= j->again; turn++) {
		ls_linear_bf16_forward(bf16, &l->plan, l->rows, turn ? NULL : l->x, l->w, &j->epilogue, l->y,
				       l->scratch, member);
		ls_team_barrier(member);
	}
	for (int turn = 0; turn <= j->again; turn++) {
		const ls_linear_bf16_gradient g = { .x = turn ? NULL : l->x,
						    .dy = l->dy,
						    .weights = l->w,
						    .dweights = l->dw,
						    .dx = l->dx,
						    .add_dweights = j->accumulate,
						    .add_dx = j->accumulate };
		ls_linear_bf16_backward(bf16, &l->plan, l->rows, &g, l->scratch, member);
		ls_team_barrier(member);
	}
}

static void work_in_fp32(const job *j, ls_member member)
{
	layer *l = j->l;
	ls_linear_forward(&l->plan, l->rows, l->x, l->w, &j->epilogue, l->y, l->scratch, member);
	ls_team_barrier(member);
	ls_linear_backward_data(&l->plan, l->rows, l->dy, l->w, j->accumulate, l->dx, l->scratch, member);
	ls_team_barrier(member);
	ls_linear_backward_weights(&l->plan, l->rows, l->x, l->dy, j->accumulate, l->dw, member);
}

static void work(void *context, ls_member member)
{
	if (bf16)
		work_in_bf16(context, member);
	else
		work_in_fp32(context, member);
}

static void run_job(job j, int threads)
{
	ls_team *team;
	assert_int_equal(ls_team_new(&team, threads), LS_OK);
	ls_team_run(team, work, &j);
	ls_team_free(team);
}

static void run(layer *l, ls_linear_epilogue epilogue, int accumulate, int threads)
{
	run_job((job){ l, epilogue, accumulate, 0 }, threads);
}

static void near(double got, double expected, double scale)
{
	if (!(fabs(got - expected) <= 2e-5 * scale))
		fail_msg("got %.9g, expected %.9g", got, expected);
}

static double plain_y(const layer *l, int64_t r, int o)
{
	double sum = l->bias[o];
	for (int i = 0; i < l->in; i++)
		sum += (double)l->x[x_at(l, r, i)] * (double)l->w[w_at(l, o, i)];
	return sum;
}

static void check_shape(int in, int out, int tied, int64_t rows)
{
	layer l = make(in, out, tied, rows);
	float *dx0 = take((size_t)(l.in_blocks * l.in_panel * rows), 7),
	      *dw0 = take((size_t)(tied ? out : l.out_blocks * l.out_panel) * (size_t)(l.in_blocks * l.in_panel), 8);

	for (int adds = 0; adds < 2; adds++) {
		memcpy(l.dx, dx0, sizeof(float) * (size_t)(l.in_blocks * l.in_panel * rows));
		memcpy(l.dw, dw0,
		       sizeof(float) * (size_t)(tied ? out : l.out_blocks * l.out_panel) *
			       (size_t)(l.in_blocks * l.in_panel));
		run(&l, (ls_linear_epilogue){ .bias = l.bias }, adds, 1);
		for (int64_t r = 0; r < rows; r++) {
			for (int o = 0; o < out; o++)
				near((double)l.y[y_at(&l, r, o)], plain_y(&l, r, o), in);
			for (int o = out; o < l.out_blocks * l.out_panel; o++)
				assert_true(l.y[y_at(&l, r, o)] == 0);
			for (int i = 0; i < in; i++) {
				double sum = adds ? (double)dx0[x_at(&l, r, i)] : 0;
				for (int o = 0; o < out; o++)
					sum += (double)l.dy[y_at(&l, r, o)] * (double)l.w[w_at(&l, o, i)];
				near((double)l.dx[x_at(&l, r, i)], sum, out);
			}
		}
		for (int o = 0; o < out; o++)
			for (int i = 0; i < in; i++) {
				double sum = adds ? (double)dw0[w_at(&l, o, i)] : 0;
				for (int64_t r = 0; r < rows; r++)
					sum += (double)l.dy[y_at(&l, r, o)] * (double)l.x[x_at(&l, r, i)];
				near((double)l.dw[w_at(&l, o, i)], sum, (double)rows);
			}
	}
	free(dx0);
	free(dw0);
	release(&l);
}

static void all_shapes(void **state)
{
	(void)state;
	static const int widths[][2] = { { 64, 64 }, { 128, 64 }, { 64, 192 }, { 16, 32 }, { 70, 100 }, { 5, 130 } };
	static const int64_t rows[] = { 1, 2, 7, 63, 64, 100, 259 };
	for (size_t w = 0; w < sizeof(widths) / sizeof(*widths); w++)
		for (size_t r = 0; r < sizeof(rows) / sizeof(*rows); r++)
			for (int tied = 0; tied < 2; tied++)
				check_shape(widths[w][0], widths[w][1], tied, rows[r]);
}

static void copy_rows(const layer *from, int64_t first, layer *to)
{
	for (int64_t r = 0; r < to->rows; r++) {
		for (int c = 0; c < from->in; c++)
			to->x[x_at(to, r, c)] = from->x[x_at(from, first + r, c)];
		for (int c = 0; c < from->out; c++)
			to->dy[y_at(to, r, c)] = from->dy[y_at(from, first + r, c)];
	}
}

/* Row r of y depends on row r of x alone, bit for bit, however many others there are: a few rows are computed in
 * another way. */
static void rows_do_not_know_each_other(void **state)
{
	(void)state;
	static const int64_t counts[] = { 1, 2, 3, 4, 5, 16, 17 };
	for (size_t n = 0; n < 2 * sizeof(counts) / sizeof(*counts); n++) {
		layer many = make(128, 210, (int)(n % 2), 517), few = make(128, 210, (int)(n % 2), counts[n / 2]);
		run(&many, (ls_linear_epilogue){ .bias = many.bias }, 0, 1);
		for (int64_t first = 0; first + few.rows <= many.rows; first += 83) {
			copy_rows(&many, first, &few);
			run(&few, (ls_linear_epilogue){ .bias = few.bias }, 0, 1 + (int)(first % 3));
			for (int64_t r = 0; r < few.rows; r++) {
				for (int c = 0; c < few.out; c++)
					assert_true(few.y[y_at(&few, r, c)] == many.y[y_at(&many, first + r, c)]);
				for (int c = 0; c < few.in; c++)
					assert_true(few.dx[x_at(&few, r, c)] == many.dx[x_at(&many, first + r, c)]);
			}
		}
		release(&many);
		release(&few);
	}
}

static void threads_do_not_matter(void **state)
{
	(void)state;
	for (int tied = 0; tied < 2; tied++) {
		layer a = make(192, 300, tied, 1300), b = make(192, 300, tied, 1300);
		run(&a, (ls_linear_epilogue){ .bias = a.bias, .kept = a.kept }, 0, 1);
		for (int threads = 2; threads < 5; threads++) {
			run(&b, (ls_linear_epilogue){ .bias = b.bias, .kept = b.kept }, 0, threads);
			assert_memory_equal(a.y, b.y, sizeof(float) * (size_t)(a.out_blocks * a.out_panel * a.rows));
			assert_memory_equal(a.dx, b.dx, sizeof(float) * (size_t)(a.in_blocks * a.in_panel * a.rows));
			assert_memory_equal(a.dw, b.dw, sizeof(float) * (size_t)(300 * a.in_blocks * a.in_panel));
		}
		release(&a);
		release(&b);
	}
}

static void epilogues_do_what_layers_would(void **state)
{
	(void)state;
	layer l = make(64, 64, 0, 100);
	size_t count = 64 * 100;
	float *plain = take(count, 1), *gelu = take(count, 1);

	run(&l, (ls_linear_epilogue){ .bias = l.bias }, 0, 1);
	memcpy(plain, l.y, count * sizeof(float));
	run(&l, (ls_linear_epilogue){ .bias = l.bias, .relu = 1 }, 0, 1);
	for (size_t i = 0; i < count; i++)
		assert_true(l.y[i] == (plain[i] > 0 ? plain[i] : 0));
	for (int approximate = 0; approximate < 2; approximate++) {
		run(&l, (ls_linear_epilogue){ .bias = l.bias, .kept = l.kept, .approximate = approximate }, 0, 1);
		ls_simd_get()->gelu(plain, (int64_t)count, approximate, gelu);
		assert_memory_equal(l.kept, plain, count * sizeof(float));
		assert_memory_equal(l.y, gelu, count * sizeof(float));
		run(&l,
		    (ls_linear_epilogue){ .bias = l.bias, .kept = l.kept, .approximate = approximate, .keep_slope = 1 },
		    0, 1);
		assert_memory_equal(l.y, gelu, count * sizeof(float));
		ls_simd_get()->gelu_slope(plain, (int64_t)count, approximate, gelu, gelu);
		assert_memory_equal(l.kept, gelu, count * sizeof(float));
	}
	free(plain);
	free(gelu);
	release(&l);
}

/* Nothing to predict in a slice: its part of the gradient is zero. */
static void no_rows_at_all(void **state)
{
	(void)state;
	for (int tied = 0; tied < 2; tied++) {
		layer l = make(64, 70, tied, 1);
		size_t count = (size_t)(tied ? 70 : 128) * 64;
		l.rows = 0;
		run(&l, (ls_linear_epilogue){ .bias = l.bias }, 1, 2);
		assert_true(l.dw[0] != 0);
		run(&l, (ls_linear_epilogue){ .bias = l.bias }, 0, 2);
		for (size_t i = 0; i < count; i++)
			assert_true(l.dw[i] == 0);
		release(&l);
	}
}

static void all_of_it_in_bf16(void **state)
{
	for (int amx = 0; amx < 2; amx++) {
		bf16 = amx ? ls_bf16_amx_get() : ls_bf16_get();
		all_shapes(state);
		rows_do_not_know_each_other(state);
		threads_do_not_matter(state);
		epilogues_do_what_layers_would(state);
		no_rows_at_all(state);
	}
	bf16 = NULL;
}

/* Operands are rounded, to nearest: the product of the rounded ones has the same bits. */
static void operands_are_rounded(void **state)
{
	(void)state;
	bf16 = ls_bf16_get();
	layer rough = make(128, 130, 0, 33), exact = make(128, 130, 0, 33);
	for (int64_t i = 0; i < 2 * 64 * 33; i++) {
		uint32_t bits, tie = i % 2 ? 0x18000u : 0x08000u; /* ties go to the even neighbour */
		memcpy(&bits, &exact.x[i], sizeof(bits));
		const uint32_t below = bits & 0xfffe0000u, up = below + (i % 2 ? 0x20000u : 0);
		const uint32_t between = below + tie;
		memcpy(&rough.x[i], &between, sizeof(between));
		memcpy(&exact.x[i], &up, sizeof(up));
	}
	run(&rough, (ls_linear_epilogue){ .bias = rough.bias }, 0, 1);
	run(&exact, (ls_linear_epilogue){ .bias = exact.bias }, 0, 1);
	assert_memory_equal(rough.y, exact.y, sizeof(float) * (size_t)(rough.out_blocks * rough.out_panel * 33));
	assert_memory_equal(rough.dw, exact.dw, sizeof(float) * 130 * 128);
	bf16 = NULL;
	release(&rough);
	release(&exact);
}

typedef struct told {
	int64_t panel, rows;
	float *dy;
	int count[4][3]; /* blocks, chunks */
} told;

static void tell(const void *context, int64_t block, int64_t first, int64_t count)
{
	told *t = (told *)context;
	assert_int_equal(first % LS_LINEAR_BF16_ROWS, 0);
	assert_int_equal(count, first + LS_LINEAR_BF16_ROWS < t->rows ? LS_LINEAR_BF16_ROWS : t->rows - first);
	t->count[block][first / LS_LINEAR_BF16_ROWS]++;
	for (int64_t i = 0; i < count * t->panel; i++)
		t->dy[(block * t->rows + first) * t->panel + i] *= 2;
}

typedef struct telling {
	layer *l;
	ls_linear_bf16_gradient g;
} telling;

static void work_telling(void *context, ls_member member)
{
	const telling *t = context;
	ls_linear_bf16_backward(bf16, &t->l->plan, t->l->rows, &t->g, t->l->scratch, member);
}

/* Every chunk of dy is told of once, and what is done to it then is in both gradients, or in the one that is wanted. */
static void dy_may_change_before_it_is_rounded(void **state)
{
	(void)state;
	for (int wanted = 0; wanted < 4; wanted++) {
		bf16 = wanted % 2 ? ls_bf16_amx_get() : ls_bf16_get();
		layer a = make(70, 200, 0, 1300), b = make(70, 200, 0, 1300);
		told t = { .panel = a.out_panel, .rows = a.rows, .dy = a.dy };
		telling of = { &a, { .x = a.x, .dy = a.dy, .weights = a.w, .ready = tell, .context = &t } };
		ls_team *team;
		of.g.dweights = wanted & 1 ? a.dw : NULL;
		of.g.dx = wanted & 2 ? a.dx : NULL;
		run(&b, (ls_linear_epilogue){ 0 }, 0, 1);
		assert_int_equal(ls_team_new(&team, 3), LS_OK);
		ls_team_run(team, work_telling, &of);
		ls_team_free(team);
		for (int i = 0; i < a.out_blocks * 3; i++)
			assert_int_equal(t.count[i / 3][i % 3], 1);
		for (size_t i = 0; i < (size_t)(200 * a.in_blocks * a.in_panel) && of.g.dweights; i++)
			assert_true(a.dw[i] == 2 * b.dw[i]);
		for (int64_t i = 0; i < a.rows * a.in_blocks * a.in_panel && of.g.dx; i++)
			assert_true(a.dx[i] == 2 * b.dx[i]);
		release(&a);
		release(&b);
	}
	bf16 = NULL;
}

/* Layers that read the same x need not round it again. */
static void rounded_x_serves_again(void **state)
{
	(void)state;
	for (int n = 0; n < 4; n++) {
		bf16 = n % 2 ? ls_bf16_amx_get() : ls_bf16_get();
		layer a = make(192, 300, n / 2, 517), b = make(192, 300, n / 2, 517);
		run_job((job){ &a, { .bias = a.bias }, 0, 0 }, 2);
		run_job((job){ &b, { .bias = b.bias }, 0, 1 }, 2);
		assert_memory_equal(a.y, b.y, sizeof(float) * (size_t)(a.out_blocks * a.out_panel * a.rows));
		assert_memory_equal(a.dx, b.dx, sizeof(float) * (size_t)(a.in_blocks * a.in_panel * a.rows));
		assert_memory_equal(a.dw, b.dw, sizeof(float) * (size_t)(300 * a.in_blocks * a.in_panel));
		release(&a);
		release(&b);
	}
	bf16 = NULL;
}

static float pair_step(const layer *l, int64_t begin, int64_t end, int o, int i)
{
	float of[2] = { 0, 0 };
	for (int64_t r = begin; r < end; r++)
		of[r % 2] = fmaf(l->x[x_at(l, r, i)], l->dy[y_at(l, r, o)], of[r % 2]);
	return of[0] + of[1];
}

/* bf16-amx, element by element: outputs are summed in steps of 32 channels, gradients of weights in steps of 32 rows;
 * by the processor and by its emulation. */
static void steps_of_amx(void **state)
{
	static const struct {
		int in, out, tied, rows;
	} shapes[] = { { 130, 70, 0, 39 }, { 200, 20, 1, 150 }, { 20, 90, 0, 257 }, { 70, 130, 1, 7 } };
	(void)state;
	for (size_t n = 0; n < 2 * sizeof(shapes) / sizeof(*shapes); n++) {
		bf16 = n % 2 ? &ls_simd_get()->bf16_amx : ls_bf16_amx_get();
		layer l = make(shapes[n / 2].in, shapes[n / 2].out, shapes[n / 2].tied, shapes[n / 2].rows);
		run(&l, (ls_linear_epilogue){ .bias = l.bias }, 0, 2);
		for (int o = 0; o < l.out; o++) {
			for (int64_t r = 0; r < l.rows; r++) {
				float sum = 0, of[2] = { 0, 0 };
				for (int i = 0; i < l.in; i++) {
					of[i % 2] = fmaf(l.x[x_at(&l, r, i)], l.w[w_at(&l, o, i)], of[i % 2]);
					if ((i + 1) % 32 == 0 || i + 1 == l.in) {
						sum += of[0] + of[1];
						of[0] = of[1] = 0;
					}
				}
				assert_true(l.y[y_at(&l, r, o)] == sum + l.bias[o]);
			}
			for (int i = 0; i < l.in; i++) {
				float sum = 0;
				for (int64_t r = 0; r < l.rows; r += 32)
					sum += pair_step(&l, r, r + 32 < l.rows ? r + 32 : l.rows, o, i);
				assert_true(l.dw[w_at(&l, o, i)] == sum);
			}
		}
		release(&l);
	}
	bf16 = NULL;
}

TEST_MAIN(all_shapes, rows_do_not_know_each_other, threads_do_not_matter, epilogues_do_what_layers_would,
	  no_rows_at_all, all_of_it_in_bf16, operands_are_rounded, dy_may_change_before_it_is_rounded,
	  rounded_x_serves_again, steps_of_amx)
