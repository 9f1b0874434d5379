/* Updates against a plain double reference; ranges, instruction sets, decay and dead weights. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/isa.h"
#include "base/rng.h"
#include "optim/optimizer.h"
#include "optim/simd.h"

#define SEED 41
#define LIVE 1003
#define DEAD 50
#define TOTAL (LIVE + DEAD)

/* Four parameters with every role, a buffer in between, and dead weights behind. */
static ls_param rows[] = {
	{ .name = "a.weight",
	  .role = LS_ROLE_WEIGHT,
	  .offset = 0,
	  .count = 500,
	  .dead_offset = LIVE,
	  .dead_count = 20 },
	{ .name = "a.bias", .role = LS_ROLE_BIAS, .offset = 500, .count = 33 },
	{ .name = "n.mean", .role = LS_ROLE_BUFFER, .offset = 0, .count = 999 },
	{ .name = "n.scale", .role = LS_ROLE_NORM, .offset = 533, .count = 70 },
	{ .name = "n.counter", .role = LS_ROLE_COUNTER, .offset = 0, .count = 1 },
	{ .name = "b.weight",
	  .role = LS_ROLE_WEIGHT,
	  .offset = 603,
	  .count = 400,
	  .dead_offset = LIVE + 20,
	  .dead_count = 30 },
};
static const ls_param_table table = { .rows = rows, .count = 6, .live = LIVE, .total = TOTAL };

typedef struct world {
	float params[TOTAL], grads[LIVE], slots[2][LIVE];
} world;

static void fill_grads(world *w, uint64_t step)
{
	ls_rng_fill_normal(ls_rng_make(SEED, LS_RNG_TEST, step), 0, 0, LIVE, 3.0f, w->grads);
}

static void start(world *w)
{
	memset(w, 0, sizeof(*w));
	ls_rng_fill_normal(ls_rng_make(SEED, LS_RNG_TEST, 0), 0, 0, TOTAL, 1.0f, w->params);
}

static ls_optimizer_pass make_pass(world *w, const ls_optimizer_kind *kind, const ls_hyper *hyper, uint64_t step)
{
	return (ls_optimizer_pass){ .kind = kind,
				    .hyper = hyper,
				    .table = &table,
				    .params = w->params,
				    .grads = w->grads,
				    .slots = { w->slots[0], w->slots[1] },
				    .scale = 1.0f / 3.0f,
				    .step = step,
				    .lr = hyper->lr };
}

/* The textbook, in double, one element: optimizer is 's', 'a' or 'w'. */
static void reference(char optimizer, const ls_hyper *h, double lr, int decays, int t, double g, double *p, double *s0,
		      double *s1)
{
	double decay = decays ? h->weight_decay : 0.0;
	if (optimizer == 's') {
		g += decay * *p;
		*s0 = t == 1 ? g : h->momentum * *s0 + g;
		*p -= lr * (h->nesterov ? g + h->momentum * *s0 : *s0);
		return;
	}
	if (optimizer == 'a')
		g += decay * *p;
	else
		*p -= lr * decay * *p;
	*s0 += (1.0 - h->beta1) * (g - *s0);
	*s1 += (1.0 - h->beta2) * (g * g - *s1);
	double mean = *s0 / (1.0 - pow(h->beta1, t)), square = *s1 / (1.0 - pow(h->beta2, t));
	*p -= lr * mean / (sqrt(square) + h->epsilon);
}

static const ls_param *row_of(int i)
{
	for (size_t r = 0; r < table.count; r++)
		if (rows[r].role < LS_ROLE_BUFFER && (size_t)i >= rows[r].offset &&
		    (size_t)i < rows[r].offset + rows[r].count)
			return &rows[r];
	return NULL;
}

static void compare_with_reference(const char *name, char optimizer, const ls_hyper *hyper)
{
	static world w;
	static double p[LIVE], s0[LIVE], s1[LIVE];
	const ls_optimizer_kind *kind = NULL;
	assert_int_equal(ls_optimizer_find(name, &kind), LS_OK);
	start(&w);
	for (int i = 0; i < LIVE; i++) {
		p[i] = w.params[i];
		s0[i] = s1[i] = 0.0;
		if (optimizer == 's')
			w.slots[0][i] = 5.0f; /* not read on the first step */
	}
	for (int t = 1; t <= 40; t++) {
		fill_grads(&w, (uint64_t)t);
		ls_optimizer_pass pass = make_pass(&w, kind, hyper, (uint64_t)t);
		pass.lr = hyper->lr * (1 + t % 3); /* the schedule's, not the setting, counts */
		ls_optimizer_apply(&pass, 0, LIVE);
		for (int i = 0; i < LIVE; i++) {
			int decays = optimizer != 'w' || row_of(i)->role == LS_ROLE_WEIGHT;
			reference(optimizer, hyper, pass.lr, decays, t, w.grads[i] / 3.0, &p[i], &s0[i], &s1[i]);
			if (!(fabs(w.params[i] - p[i]) <= 1e-5 * (1.0 + fabs(p[i]))))
				fail_msg("%s, step %d, element %d: %.9g, reference %.9g", name, t, i, w.params[i],
					 p[i]);
		}
	}
}

static void test_double_reference(void **state)
{
	(void)state;
	ls_hyper sgd = { .lr = 0.02, .momentum = 0.9, .weight_decay = 0.02 };
	ls_hyper nesterov = { .lr = 0.02, .momentum = 0.7, .nesterov = 1, .weight_decay = 0.02 };
	ls_hyper plain = { .lr = 0.02 };
	ls_hyper adam = { .lr = 0.01, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8, .weight_decay = 0.05 };
	compare_with_reference("sgd", 's', &sgd);
	compare_with_reference("sgd", 's', &nesterov);
	compare_with_reference("sgd", 's', &plain);
	compare_with_reference("adam", 'a', &adam);
	compare_with_reference("adamw", 'w', &adam);
}

static const ls_hyper busy = {
	.lr = 0.01, .momentum = 0.9, .nesterov = 1, .beta1 = 0.9, .beta2 = 0.99, .epsilon = 1e-8, .weight_decay = 0.1
};

/* Blocks as small as to cut most parameters into several runs. */
#define BLOCK 64
#define BLOCKS ((LIVE + BLOCK - 1) / BLOCK)

/* Phase one of every block where there are two, from the last to the first, and the ratios. */
static void prepare(ls_optimizer_pass *pass, float *grads, double *ratios)
{
	static double squares[2 * (BLOCKS + 6)];
	size_t at[BLOCKS + 1] = { 0 };
	if (!pass->kind->prepare)
		return;
	for (size_t b = 0; b < BLOCKS; b++)
		at[b + 1] = at[b] + 2 * ls_optimizer_runs(&table, b * BLOCK, b * BLOCK + BLOCK);
	assert_true(at[BLOCKS] <= sizeof(squares) / sizeof(*squares));
	for (size_t b = BLOCKS; b-- > 0;)
		ls_optimizer_prepare(pass, b * BLOCK, b < BLOCKS - 1 ? b * BLOCK + BLOCK : LIVE, grads + b * BLOCK,
				     squares + at[b]);
	ls_optimizer_ratios(&table, BLOCK, squares, ratios);
	pass->ratios = ratios;
}

/* Cut [0, LIVE) at pseudo-random places, pieces in descending order, and demand the bits of one whole pass. */
static void test_any_split_gives_the_same_bits(void **state)
{
	(void)state;
	static world whole, parts;
	double ratios[2][6];
	const ls_optimizer_kind *kind;
	print_message("# seed %d\n", SEED);
	for (size_t k = 0; (kind = ls_optimizer_at(k)); k++) {
		start(&whole);
		start(&parts);
		for (uint64_t step = 1; step <= 20; step++) {
			fill_grads(&whole, step);
			fill_grads(&parts, step);
			ls_optimizer_pass a = make_pass(&whole, kind, &busy, step),
					  b = make_pass(&parts, kind, &busy, step);
			prepare(&a, whole.grads, ratios[0]);
			prepare(&b, parts.grads, ratios[1]);
			ls_optimizer_apply(&a, 0, LIVE);
			ls_rng rng = ls_rng_make(SEED, LS_RNG_TEST, 1000 + step);
			for (uint32_t end = LIVE, words[4]; end > 0;) {
				ls_rng_words(rng, k, end, words);
				uint32_t begin = end - 1 - ls_rng_below(words[0], end < 300 ? end : 300);
				ls_optimizer_apply(&b, begin, end);
				end = begin;
			}
			assert_memory_equal(&whole, &parts, sizeof(whole));
		}
	}
}

static void assert_simd_equal(const ls_optim_simd *a, const ls_optim_simd *b, size_t offset, size_t count)
{
	static world x, y;
	ls_sgd_scalars s = { 0.3f, 0.01f, 0.9f, 0.9f, -0.1f };
	ls_lamb_scalars l = { 0.3f, 0.01f, 0.9f, 0.1f, 0.99f, 0.01f, 1.3f, 1e-8f };
	ls_adam_scalars m = { 0.3f, 0.01f, 0.99f, 0.9f, 0.1f, 0.99f, 0.01f, -0.01f, 1e-8f };
	start(&x);
	fill_grads(&x, 7);
	y = x;
	for (int round = 0; round < 3; round++) {
		world *w[2] = { &x, &y };
		const ls_optim_simd *simd[2] = { a, b };
		for (int i = 0; i < 2; i++) {
			float *p = w[i]->params + offset, *g = w[i]->grads + offset, *s0 = w[i]->slots[0] + offset;
			simd[i]->sgd(&s, p, g, count);
			simd[i]->sgd_momentum(&s, p, g, s0, count);
			simd[i]->sgd_nesterov(&s, p, g, s0, count);
			simd[i]->adam(&m, p, g, s0, w[i]->slots[1] + offset, count);
			simd[i]->lamb(&l, p, g, s0, w[i]->slots[1] + offset, count);
			simd[i]->multiply(0.97f, p, count);
		}
		assert_memory_equal(&x, &y, sizeof(x));
		double sums[2] = { a->sum_squares(x.params + offset, count), b->sum_squares(y.params + offset, count) };
		assert_memory_equal(&sums[0], &sums[1], sizeof(double));
	}
}

static void test_instruction_sets_agree(void **state)
{
	(void)state;
	const ls_optim_simd *generic = ls_optim_simd_of(LS_ISA_GENERIC);
	assert_non_null(generic);
	assert_null(ls_optim_simd_of(-1));
	assert_null(ls_optim_simd_of(LS_ISA_COUNT));
	for (int isa = LS_ISA_GENERIC + 1; isa <= (int)ls_isa_get(); isa++) {
		assert_non_null(ls_optim_simd_of(isa));
		for (size_t count = 0; count < 70; count++)
			assert_simd_equal(generic, ls_optim_simd_of(isa), count % 5, count);
		assert_simd_equal(generic, ls_optim_simd_of(isa), 0, LIVE);
	}
}

/* Padding: parameter, gradient and state 0 stay 0, with epsilon 0 too. */
static void test_zero_stays_zero(void **state)
{
	(void)state;
	static world w;
	double ratios[6];
	const ls_optimizer_kind *kind;
	ls_hyper hyper = busy;
	for (int round = 0; round < 2; round++, hyper.epsilon = 0.0) {
		for (size_t k = 0; (kind = ls_optimizer_at(k)); k++) {
			memset(&w, 0, sizeof(w));
			for (uint64_t step = 1; step <= 5; step++) {
				ls_optimizer_pass pass = make_pass(&w, kind, &hyper, step);
				prepare(&pass, w.grads, ratios);
				ls_optimizer_apply(&pass, 0, LIVE);
			}
			for (int i = 0; i < LIVE; i++)
				assert_true(w.params[i] == 0.0f && w.slots[0][i] == 0.0f && w.slots[1][i] == 0.0f);
		}
	}
}

/* Dead weights end with the bits they would have had alive, with gradient zero. */
static void test_dead_weights_decay(void **state)
{
	(void)state;
	static world w, before;
	const ls_optimizer_kind *adamw = NULL, *adam = NULL;
	assert_int_equal(ls_optimizer_find("adamw", &adamw), LS_OK);
	assert_int_equal(ls_optimizer_find("adam", &adam), LS_OK);
	start(&w);
	before = w;
	float slots[2][DEAD] = { { 0 } }, zeros[DEAD] = { 0 };
	ls_update alive = { .params = before.params + LIVE,
			    .grads = zeros,
			    .slots = { slots[0], slots[1] },
			    .count = DEAD,
			    .scale = 1.0f,
			    .decay = 1,
			    .step = 3,
			    .lr = busy.lr,
			    .hyper = &busy };
	adamw->update(&alive);
	ls_optimizer_pass pass = make_pass(&w, adamw, &busy, 3);
	ls_optimizer_decay_dead(&pass);
	assert_memory_equal(&w, &before, sizeof(w));

	pass.kind = adam; /* coupled: such weights are kept live, so there is nothing here to touch */
	ls_optimizer_decay_dead(&pass);
	assert_memory_equal(&w, &before, sizeof(w));
}

/* LAMB by the book, in double: norms over whole parameters, biases and norms with ratio 1 and without decay. */
static void lamb_reference(const ls_hyper *h, double lr, int t, const float *grads, double *p, double *m, double *v)
{
	static double u[LIVE];
	for (size_t r = 0; r < table.count; r++) {
		int weight = rows[r].role == LS_ROLE_WEIGHT;
		double params = 0.0, direction = 0.0;
		for (size_t i = rows[r].offset; rows[r].role < LS_ROLE_BUFFER && i < rows[r].offset + rows[r].count;
		     i++) {
			double g = grads[i] / 3.0;
			m[i] += (1.0 - h->beta1) * (g - m[i]);
			v[i] += (1.0 - h->beta2) * (g * g - v[i]);
			u[i] = m[i] / (1.0 - pow(h->beta1, t)) / (sqrt(v[i] / (1.0 - pow(h->beta2, t))) + h->epsilon);
			u[i] += weight ? h->weight_decay * p[i] : 0.0;
			params += p[i] * p[i];
			direction += u[i] * u[i];
		}
		double ratio = weight && params > 0.0 && direction > 0.0 ? sqrt(params / direction) : 1.0;
		for (size_t i = rows[r].offset; rows[r].role < LS_ROLE_BUFFER && i < rows[r].offset + rows[r].count;
		     i++)
			p[i] -= lr * ratio * u[i];
	}
}

static void test_lamb_reference(void **state)
{
	(void)state;
	static world w;
	static double p[LIVE], m[LIVE], v[LIVE];
	ls_hyper h = { .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-6, .weight_decay = 0.05 };
	const ls_optimizer_kind *kind = NULL;
	double ratios[6];
	assert_int_equal(ls_optimizer_find("lamb", &kind), LS_OK);
	start(&w);
	for (int i = 0; i < LIVE; i++) {
		if (row_of(i) == &rows[5])
			w.params[i] = 0.0f; /* a layer that starts at zero: its first ratio is 1 */
		p[i] = w.params[i];
	}
	for (int t = 1; t <= 40; t++) {
		fill_grads(&w, (uint64_t)t);
		ls_optimizer_pass pass = make_pass(&w, kind, &h, (uint64_t)t);
		pass.lr = 0.01 * (1 + t % 3);
		lamb_reference(&h, pass.lr, t, w.grads, p, m, v);
		prepare(&pass, w.grads, ratios);
		ls_optimizer_apply(&pass, 0, LIVE);
		for (int i = 0; i < LIVE; i++)
			if (!(fabs(w.params[i] - p[i]) <= 1e-5 * (1.0 + fabs(p[i]))))
				fail_msg("step %d, element %d: %.9g, reference %.9g", t, i, w.params[i], p[i]);
		assert_true(ratios[1] == 1.0 && ratios[3] == 1.0); /* a bias, a norm */
		assert_true((ratios[5] == 1.0) == (t == 1) && ratios[0] != 1.0);
	}
}

/* No gradient, no decay: nowhere to go, and the ratio is 1. */
static void test_lamb_without_direction(void **state)
{
	(void)state;
	static world w, before;
	const ls_optimizer_kind *kind = NULL;
	ls_hyper h = { .beta1 = 0.9, .beta2 = 0.999 };
	double ratios[6];
	assert_int_equal(ls_optimizer_find("lamb", &kind), LS_OK);
	start(&w);
	before = w;
	ls_optimizer_pass pass = make_pass(&w, kind, &h, 1);
	pass.lr = 0.1;
	prepare(&pass, w.grads, ratios);
	ls_optimizer_apply(&pass, 0, LIVE);
	for (int r = 0; r < 6; r++)
		assert_true(ratios[r] == 1.0);
	assert_memory_equal(&w, &before, sizeof(w));
	pass.hyper = &busy; /* dead weights are live with lamb: what lies behind is nothing of its */
	ls_optimizer_decay_dead(&pass);
	assert_memory_equal(&w, &before, sizeof(w));
	assert_true(ls_optimizer_needs_dead(kind, &h));
}

static void test_names(void **state)
{
	(void)state;
	const ls_optimizer_kind *kind = NULL;
	assert_int_equal(ls_optimizer_find("adm", &kind), LS_EINVALID);
	assert_null(kind);
	assert_non_null(strstr(ls_last_error(), "'adam'"));
	for (size_t i = 0; (kind = ls_optimizer_at(i)); i++) {
		assert_true(kind->slots >= 1 && kind->slots <= LS_SLOTS_MAX);
		for (int slot = 0; slot < kind->slots; slot++)
			assert_non_null(kind->slot_names[slot]);
		assert_true(strlen(kind->summary) > 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_double_reference),       cmocka_unit_test(test_any_split_gives_the_same_bits),
		cmocka_unit_test(test_instruction_sets_agree), cmocka_unit_test(test_zero_stays_zero),
		cmocka_unit_test(test_dead_weights_decay),     cmocka_unit_test(test_names),
		cmocka_unit_test(test_lamb_reference),         cmocka_unit_test(test_lamb_without_direction),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
