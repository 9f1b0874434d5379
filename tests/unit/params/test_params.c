/*
 * Parameter stores: offsets, the way to the logical layout and back, unreachable taps, padding, initial values,
 * fingerprint.
 */
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/rng.h"
#include "params/params.h"
#include "unit/test_main.h"

static const int16_t cross[9] = { 5, 0, 6, 1, 2, 3, 7, 4, 8 }; /* a plus of reachable taps */
static const int16_t centre[9] = { 1, 2, 3, 4, 0, 5, 6, 7, 8 };
static const int16_t nothing[4] = { 0, 1, 2, 3 };

/* Odd on purpose: one and three channels, panels that do not divide, one panel, gathered, unreachable taps, vectors. */
static const ls_weight_layout shapes[] = {
	{ .out = 64, .in = 64, .taps = 9, .out_panel = 64, .in_panel = 64 },
	{ .out = 70, .in = 65, .taps = 9, .out_panel = 64, .in_panel = 64, .reachable_taps = 5, .slot = cross },
	{ .out = 130, .in = 3, .taps = 9, .out_panel = 64, .in_panel = 64, .reachable_taps = 1, .slot = centre },
	{ .out = 10, .in = 200, .taps = 1, .out_panel = 16, .in_panel = 64 },
	{ .out = 64, .in = 1, .taps = 49, .out_panel = 64, .in_panel = 49, .gathered = 1 },
	{ .out = 37, .in = 3, .taps = 9, .out_panel = 32, .in_panel = 27, .gathered = 1 },
	{ .out = 100, .in = 1, .taps = 1, .out_panel = 64, .in_panel = 1 },
	{ .out = 1, .in = 1, .taps = 1, .out_panel = 1, .in_panel = 1 },
	{ .out = 5, .in = 7, .taps = 4, .out_panel = 8, .in_panel = 8, .reachable_taps = 0, .slot = nothing },
};
enum { SHAPES = sizeof(shapes) / sizeof(shapes[0]), ROWS = SHAPES + 3 };

typedef struct fixture {
	ls_param rows[ROWS];
	ls_param_table table;
	float *store, *buffers, *logical;
} fixture;

static ls_param weight(const char *name, const ls_weight_layout *layout)
{
	return (ls_param){ .name = name,
			   .role = LS_ROLE_WEIGHT,
			   .init = LS_INIT_HE_FAN_OUT,
			   .fan_in = layout->in * layout->taps,
			   .rank = 3,
			   .shape = { layout->out, layout->in, layout->taps },
			   .layout = *layout };
}

static const char *const names[SHAPES] = { "a", "b", "c", "d", "e", "f", "g", "h", "i" };

/* All shapes as weights, a buffer and a counter between them, a vector of ones last. */
static void fixture_init(fixture *f, int keep_unreachable)
{
	*f = (fixture){ 0 };
	for (int i = 0; i < SHAPES; i++)
		f->rows[i] = weight(names[i], &shapes[i]);
	f->rows[3].init = LS_INIT_UNIFORM_FAN_IN;
	f->rows[SHAPES] = weight("mean", &shapes[6]);
	f->rows[SHAPES].role = LS_ROLE_BUFFER;
	f->rows[SHAPES].init = LS_INIT_ZERO;
	f->rows[SHAPES + 1] = (ls_param){ .name = "batches", .role = LS_ROLE_COUNTER };
	f->rows[SHAPES + 2] = weight("scale", &shapes[6]);
	f->rows[SHAPES + 2].role = LS_ROLE_NORM;
	f->rows[SHAPES + 2].init = LS_INIT_ONE;
	f->table = (ls_param_table){ .rows = f->rows, .count = ROWS, .capacity = ROWS };
	ls_params_lay_out(&f->table, keep_unreachable);
	f->store = calloc(f->table.total, sizeof(float));
	f->buffers = calloc(f->table.buffers, sizeof(float));
	f->logical = calloc(1 << 17, sizeof(float));
	assert_true(f->store && f->buffers && f->logical);
}

static void fixture_release(fixture *f)
{
	free(f->logical);
	free(f->buffers);
	free(f->store);
}

static int is_reachable(const ls_weight_layout *l, int tap)
{
	return !l->slot || l->slot[tap] < l->reachable_taps;
}

/* The index written out as the header has it, one element at a time. */
static size_t reference_offset(const ls_param *p, int o, int c, int t)
{
	const ls_weight_layout *l = &p->layout;
	int kb = o / l->out_panel, ko = o % l->out_panel, out_blocks = (l->out + l->out_panel - 1) / l->out_panel;
	if (l->gathered) {
		int depth = l->in * l->taps, d = t * l->in + c;
		return p->offset + (size_t)((kb * depth + d) * l->out_panel + ko);
	}
	int in_blocks = (l->in + l->in_panel - 1) / l->in_panel, cb = c / l->in_panel, ci = c % l->in_panel;
	int slot = l->slot ? l->slot[t] : t;
	int unreachable = p->unreachable_count && slot >= l->reachable_taps;
	int block = ((slot - (unreachable ? l->reachable_taps : 0)) * out_blocks + kb) * in_blocks + cb;
	return (unreachable ? p->unreachable_offset : p->offset) +
	       (size_t)(block * l->in_panel * l->out_panel + ci * l->out_panel + ko);
}

static void parts_are_aligned_and_apart(const fixture *f)
{
	size_t reachable = 0, unreachable = f->table.reachable;
	for (size_t i = 0; i < f->table.count; i++) {
		const ls_param *p = &f->rows[i];
		if (p->role == LS_ROLE_BUFFER || p->role == LS_ROLE_COUNTER)
			continue;
		assert_int_equal(p->offset % 16, 0);
		assert_true(p->offset >= reachable && p->offset < reachable + 16);
		reachable = p->offset + p->count;
		assert_true(reachable <= f->table.reachable);
		if (p->unreachable_count) {
			assert_true(p->unreachable_offset >= unreachable && p->unreachable_offset % 16 == 0);
			unreachable = p->unreachable_offset + p->unreachable_count;
		}
	}
	assert_true(unreachable <= f->table.total && f->table.total < unreachable + 16);
}

static void layout_of_the_table(void **state)
{
	(void)state;
	uint64_t elements = 100; /* the norm's */
	for (int i = 0; i < SHAPES; i++)
		elements += (uint64_t)shapes[i].out * (uint64_t)shapes[i].in * (uint64_t)shapes[i].taps;
	for (int keep = 0; keep < 2; keep++) {
		fixture f;
		fixture_init(&f, keep);
		parts_are_aligned_and_apart(&f);
		assert_int_equal(f.table.trainable, elements);
		assert_int_equal(f.rows[1].count, (keep ? 9u : 5u) * 2 * 2 * 64 * 64);
		assert_int_equal(f.rows[1].unreachable_count, (keep ? 0u : 4u) * 2 * 2 * 64 * 64);
		assert_int_equal(f.rows[5].count, 2 * 27 * 32);
		assert_int_equal(f.rows[SHAPES].offset, 0);
		assert_int_equal(f.table.buffers, 128);
		assert_int_equal(f.rows[SHAPES + 1].count, 0);
		assert_int_equal(ls_param_elements(&f.rows[SHAPES + 1]), 1);
		assert_true(keep ? f.table.total == f.table.reachable : f.table.total > f.table.reachable);
		fixture_release(&f);
	}
}

static void every_element_lies_where_the_header_says(void **state)
{
	(void)state;
	for (int keep = 0; keep < 2; keep++) {
		fixture f;
		fixture_init(&f, keep);
		for (int i = 0; i < SHAPES; i++) {
			const ls_param *p = &f.rows[i];
			size_t elements = ls_param_elements(p), at = 0;
			for (size_t k = 0; k < elements; k++)
				f.logical[k] = (float)(k + 1);
			ls_param_import(p, LS_STORE_WHOLE, f.logical, f.store);
			for (int o = 0; o < p->layout.out; o++)
				for (int c = 0; c < p->layout.in; c++)
					for (int t = 0; t < p->layout.taps; t++)
						assert_true(f.store[reference_offset(p, o, c, t)] == (float)++at);
		}
		fixture_release(&f);
	}
}

static void fill_random(float *out, size_t count, uint64_t stream)
{
	ls_rng_fill_uniform(ls_rng_make(1, LS_RNG_TEST, stream), 0, 0, count, 1, 2, out); /* never zero */
}

static void round_trips_and_padding_stays_zero(void **state)
{
	(void)state;
	for (int keep = 0; keep < 2; keep++) {
		fixture f;
		fixture_init(&f, keep);
		float *back = calloc(1 << 17, sizeof(*back));
		assert_non_null(back);
		size_t elements = 0, nonzero = 0;
		for (int i = 0; i < SHAPES; i++) {
			const ls_param *p = &f.rows[i];
			fill_random(f.logical, ls_param_elements(p), (uint64_t)i);
			ls_param_import(p, LS_STORE_WHOLE, f.logical, f.store);
			elements += ls_param_elements(p);
		}
		for (int i = 0; i < SHAPES; i++) { /* behind all imports: none may have touched another */
			const ls_param *p = &f.rows[i];
			fill_random(f.logical, ls_param_elements(p), (uint64_t)i);
			ls_param_export(p, LS_STORE_WHOLE, f.store, back);
			assert_memory_equal(f.logical, back, ls_param_elements(p) * sizeof(*back));
		}
		for (size_t k = 0; k < f.table.total; k++)
			nonzero += f.store[k] != 0;
		assert_int_equal(nonzero, elements);
		free(back);
		fixture_release(&f);
	}
}

/* A store of `reachable` floats, as gradients have: nothing behind it is touched, and unreachable weights read as zero.
 */
static void live_stores_leave_dead_weights_out(void **state)
{
	(void)state;
	fixture f;
	fixture_init(&f, 0);
	float *gradient = calloc(f.table.reachable, sizeof(*gradient)), *back = malloc((1 << 17) * sizeof(*back));
	assert_true(gradient && back);
	for (int i = 0; i < SHAPES; i++) {
		const ls_param *p = &f.rows[i];
		size_t elements = ls_param_elements(p);
		fill_random(f.logical, elements, (uint64_t)i);
		for (size_t k = 0; k < elements; k++)
			back[k] = 77;
		ls_param_import(p, LS_STORE_REACHABLE, f.logical, gradient);
		ls_param_export(p, LS_STORE_REACHABLE, gradient, back);
		for (size_t k = 0; k < elements; k++) {
			int reachable = is_reachable(&p->layout, (int)(k % (size_t)p->layout.taps));
			assert_true(back[k] == (reachable ? f.logical[k] : 0));
		}
	}
	free(back);
	free(gradient);
	fixture_release(&f);
}

static void buffers_have_a_store_of_their_own(void **state)
{
	(void)state;
	fixture f;
	fixture_init(&f, 0);
	float back[100];
	fill_random(f.logical, 100, 50);
	ls_param_import(&f.rows[SHAPES], LS_STORE_WHOLE, f.logical, f.buffers);
	ls_param_export(&f.rows[SHAPES], LS_STORE_WHOLE, f.buffers, back);
	assert_memory_equal(f.logical, back, sizeof(back));
	float counter = 5;
	ls_param_import(&f.rows[SHAPES + 1], LS_STORE_WHOLE, &counter, f.store); /* takes no space: nothing to do */
	ls_param_export(&f.rows[SHAPES + 1], LS_STORE_WHOLE, f.store, &counter);
	assert_true(counter == 5);
	fixture_release(&f);
}

static void initial_values_are_what_they_are_called(void **state)
{
	(void)state;
	fixture f;
	fixture_init(&f, 0);
	f.store[f.rows[1].offset + 64 * 63 + 63] = 9; /* leftovers, in padding, too, do not survive */
	f.store[f.table.reachable - 1] = 9;
	assert_int_equal(ls_params_init(&f.table, 4, f.store, f.buffers), LS_OK);
	ls_param_export(&f.rows[0], LS_STORE_WHOLE, f.store, f.logical);
	double square = 0, n = 64 * 64 * 9;
	for (int i = 0; i < n; i++)
		square += f.logical[i] * f.logical[i];
	assert_true(fabs(square / n * (64 * 9) / 2 - 1) < 0.05); /* variance 2 / fan_out */
	ls_param_export(&f.rows[3], LS_STORE_WHOLE, f.store, f.logical);
	float most = 0;
	for (int i = 0; i < 2000; i++)
		most = fmaxf(most, fabsf(f.logical[i]));
	assert_true(most < 1 / sqrtf(200) && most > 0.99f / sqrtf(200));
	ls_param_export(&f.rows[SHAPES + 2], LS_STORE_WHOLE, f.store, f.logical);
	for (int i = 0; i < 100; i++)
		assert_true(f.logical[i] == 1 && f.buffers[i] == 0);
	size_t nonzero = 0;
	for (size_t i = 0; i < f.table.total; i++)
		nonzero += f.store[i] != 0;
	assert_int_equal(nonzero, f.table.trainable);
	fixture_release(&f);
}

/* Same name, seed and shape in other panels, gathered or with unreachable taps kept: the same values, the same
 * fingerprint. */
static void initial_values_do_not_depend_on_layout(void **state)
{
	(void)state;
	ls_weight_layout layouts[] = {
		{ .out = 70, .in = 5, .taps = 9, .out_panel = 64, .in_panel = 64 },
		{ .out = 70, .in = 5, .taps = 9, .out_panel = 16, .in_panel = 2 },
		{ .out = 70, .in = 5, .taps = 9, .out_panel = 32, .in_panel = 45, .gathered = 1 },
		{ .out = 70, .in = 5, .taps = 9, .out_panel = 64, .in_panel = 8, .reachable_taps = 5, .slot = cross },
	};
	float values[4][70 * 5 * 9];
	uint64_t prints[4];
	for (int i = 0; i < 4; i++) {
		ls_param row = weight("layer1.0.conv1.weight", &layouts[i]);
		ls_param_table table = { .rows = &row, .count = 1, .capacity = 1 };
		ls_params_lay_out(&table, 0);
		float *store = malloc(table.total * sizeof(*store));
		assert_non_null(store);
		assert_int_equal(ls_params_init(&table, 12, store, NULL), LS_OK);
		ls_param_export(&row, LS_STORE_WHOLE, store, values[i]);
		assert_int_equal(ls_params_fingerprint(&table, store, NULL, &prints[i]), LS_OK);
		free(store);
		assert_memory_equal(values[0], values[i], sizeof(values[0]));
		assert_true(prints[i] == prints[0]);
	}
	assert_true(prints[0] == XXH64(values[0], sizeof(values[0]), 0));
}

static uint64_t fingerprint(const fixture *f)
{
	uint64_t print = 0;
	assert_int_equal(ls_params_fingerprint(&f->table, f->store, f->buffers, &print), LS_OK);
	return print;
}

static void fingerprints_see_everything_that_counts(void **state)
{
	(void)state;
	fixture f;
	fixture_init(&f, 0);
	assert_int_equal(ls_params_init(&f.table, 4, f.store, f.buffers), LS_OK);
	uint64_t first = fingerprint(&f);
	assert_true(fingerprint(&f) == first);
	float *touched[] = { &f.store[0], &f.store[f.rows[1].unreachable_offset], &f.store[f.rows[7].offset],
			     &f.buffers[99] };
	for (int i = 0; i < 4; i++) {
		float old = *touched[i];
		*touched[i] = nextafterf(old, 10);
		assert_true(fingerprint(&f) != first);
		*touched[i] = old;
	}
	assert_true(fingerprint(&f) == first);
	assert_int_equal(ls_params_init(&f.table, 5, f.store, f.buffers), LS_OK);
	assert_true(fingerprint(&f) != first);
	fixture_release(&f);
}

TEST_MAIN(layout_of_the_table, every_element_lies_where_the_header_says, round_trips_and_padding_stays_zero,
	  live_stores_leave_dead_weights_out, buffers_have_a_store_of_their_own,
	  initial_values_are_what_they_are_called, initial_values_do_not_depend_on_layout,
	  fingerprints_see_everything_that_counts)
