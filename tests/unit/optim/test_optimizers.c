/* Every optimizer of the table: against a plain reference in double; ranges, instruction sets, decay, documentation. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/isa.h"
#include "base/rng.h"
#include "optim/optimizer.h"
#include "optim/simd.h"
#include "unit/test_main.h"

#define SEED 41
#define REACHABLE 1003
#define UNREACHABLE 50
#define TOTAL (REACHABLE + UNREACHABLE)

/* Four parameters with every role, a buffer in between, and unreachable weights behind. */
static ls_param rows[] = {
	{ .name = "a.weight",
	  .role = LS_ROLE_WEIGHT,
	  .offset = 0,
	  .count = 500,
	  .unreachable_offset = REACHABLE,
	  .unreachable_count = 20 },
	{ .name = "a.bias", .role = LS_ROLE_BIAS, .offset = 500, .count = 33 },
	{ .name = "n.mean", .role = LS_ROLE_BUFFER, .offset = 0, .count = 999 },
	{ .name = "n.scale", .role = LS_ROLE_NORM, .offset = 533, .count = 70 },
	{ .name = "n.counter", .role = LS_ROLE_COUNTER, .offset = 0, .count = 1 },
	{ .name = "b.weight",
	  .role = LS_ROLE_WEIGHT,
	  .offset = 603,
	  .count = 400,
	  .unreachable_offset = REACHABLE + 20,
	  .unreachable_count = 30 },
};
static const ls_param_table table = { .rows = rows, .count = 6, .reachable = REACHABLE, .total = TOTAL };

typedef struct world {
	float params[TOTAL], grads[REACHABLE], slots[2][REACHABLE];
} world;

static void fill_grads(world *w, uint64_t step)
{
	ls_rng_fill_normal(ls_rng_make(SEED, LS_RNG_TEST, step), 0, 0, REACHABLE, 3.0f, w->grads);
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

/* One parameter tensor of a reference: `count` elements in double, before and after step t (1-based). */
typedef struct tensor {
	size_t count;
	int is_weight; /* not a bias, not a normalisation */
	const double *g;
	double *p, *s0, *s1;
} tensor;

static void sgd(const ls_hyper *h, double lr, int t, const tensor *x)
{
	for (size_t i = 0; i < x->count; i++) {
		double d = x->g[i] + h->weight_decay * x->p[i];
		x->s0[i] = t == 1 ? d : h->momentum * x->s0[i] + d;
		x->p[i] -= lr * (h->nesterov ? d + h->momentum * x->s0[i] : x->s0[i]);
	}
}

/* Moves the means and returns the direction, for gradient g. */
static double adam_direction(const ls_hyper *h, int t, const tensor *x, size_t i, double g)
{
	x->s0[i] += (1.0 - h->beta1) * (g - x->s0[i]);
	x->s1[i] += (1.0 - h->beta2) * (g * g - x->s1[i]);
	double mean = x->s0[i] / (1.0 - pow(h->beta1, t)), square = x->s1[i] / (1.0 - pow(h->beta2, t));
	return mean / (sqrt(square) + h->epsilon);
}

static void adam(const ls_hyper *h, double lr, int t, const tensor *x)
{
	for (size_t i = 0; i < x->count; i++)
		x->p[i] -= lr * adam_direction(h, t, x, i, x->g[i] + h->weight_decay * x->p[i]);
}

static void adamw(const ls_hyper *h, double lr, int t, const tensor *x)
{
	for (size_t i = 0; i < x->count; i++)
		x->p[i] -= lr * (x->is_weight * h->weight_decay * x->p[i] + adam_direction(h, t, x, i, x->g[i]));
}

static void lamb(const ls_hyper *h, double lr, int t, const tensor *x)
{
	static double u[REACHABLE];
	double params = 0.0, direction = 0.0;
	for (size_t i = 0; i < x->count; i++) {
		u[i] = adam_direction(h, t, x, i, x->g[i]) + x->is_weight * h->weight_decay * x->p[i];
		params += x->p[i] * x->p[i];
		direction += u[i] * u[i];
	}
	double ratio = x->is_weight && params > 0.0 && direction > 0.0 ? sqrt(params / direction) : 1.0;
	for (size_t i = 0; i < x->count; i++)
		x->p[i] -= lr * ratio * u[i];
}

static void lion(const ls_hyper *h, double lr, int t, const tensor *x)
{
	(void)t;
	for (size_t i = 0; i < x->count; i++) {
		double c = h->beta1 * x->s0[i] + (1.0 - h->beta1) * x->g[i];
		x->p[i] -= lr * ((c > 0) - (c < 0) + x->is_weight * h->weight_decay * x->p[i]);
		x->s0[i] = h->beta2 * x->s0[i] + (1.0 - h->beta2) * x->g[i];
	}
}

/* A reference for each optimizer of the table. */
static const struct {
	const char *name;
	void (*step)(const ls_hyper *h, double lr, int t, const tensor *x);
} references[] = {
	{ "sgd", sgd }, { "adam", adam }, { "adamw", adamw }, { "lamb", lamb }, { "lion", lion },
};

/* Blocks as small as to cut most parameters into several runs. */
#define BLOCK 64
#define BLOCKS ((REACHABLE + BLOCK - 1) / BLOCK)

/* The norm pass where the optimizer takes one, from the last block to the first, and the ratios. */
static void norm_pass(ls_optimizer_pass *pass, float *grads, double *ratios)
{
	static double squares[2 * (BLOCKS + 6)];
	size_t at[BLOCKS + 1] = { 0 };
	if (!pass->kind->direction)
		return;
	for (size_t b = 0; b < BLOCKS; b++)
		at[b + 1] = at[b] + 2 * ls_optimizer_runs(&table, b * BLOCK, b * BLOCK + BLOCK);
	assert_true(at[BLOCKS] <= sizeof(squares) / sizeof(*squares));
	for (size_t b = BLOCKS; b-- > 0;)
		ls_optimizer_norm_pass(pass, b * BLOCK, b < BLOCKS - 1 ? b * BLOCK + BLOCK : REACHABLE,
				       grads + b * BLOCK, squares + at[b]);
	ls_optimizer_ratios(&table, BLOCK, squares, ratios);
	pass->ratios = ratios;
}

/* 40 steps of an optimizer beside its reference. The last weight starts at zero: the first ratio of lamb is 1 there. */
static void compare_with_reference(size_t k, const ls_hyper *hyper)
{
	static world w;
	static double p[REACHABLE], g[REACHABLE], s0[REACHABLE], s1[REACHABLE];
	const ls_optimizer_kind *kind = ls_optimizer_at(k);
	double ratios[6];
	assert_string_equal(references[k].name, kind->name);
	start(&w);
	memset(w.params + rows[5].offset, 0, rows[5].count * sizeof(float));
	for (int i = 0; i < REACHABLE; i++) {
		p[i] = w.params[i];
		s0[i] = s1[i] = 0.0;
		if (kind->slots == 1 && hyper->momentum > 0)
			w.slots[0][i] = 5.0f; /* sgd does not read its buffer on the first step */
	}
	for (int t = 1; t <= 40; t++) {
		fill_grads(&w, (uint64_t)t);
		for (int i = 0; i < REACHABLE; i++)
			g[i] = w.grads[i] / 3.0;
		ls_optimizer_pass pass = make_pass(&w, kind, hyper, (uint64_t)t);
		pass.lr = hyper->lr * (1 + t % 3); /* the schedule's, not the setting, counts */
		norm_pass(&pass, w.grads, ratios);
		ls_optimizer_apply(&pass, 0, REACHABLE);
		for (size_t r = 0; r < table.count; r++) {
			size_t o = rows[r].offset;
			if (ls_param_is_trained(&rows[r]))
				references[k].step(hyper, pass.lr, t,
						   &(tensor){ .count = rows[r].count,
							      .is_weight = rows[r].role == LS_ROLE_WEIGHT,
							      .g = g + o,
							      .p = p + o,
							      .s0 = s0 + o,
							      .s1 = s1 + o });
		}
		for (int i = 0; i < REACHABLE; i++)
			if (!(fabs(w.params[i] - p[i]) <= 1e-5 * (1.0 + fabs(p[i]))))
				fail_msg("%s, step %d, element %d: %.9g, reference %.9g", kind->name, t, i, w.params[i],
					 p[i]);
		if (kind->direction) {
			assert_true(ratios[1] == 1.0 && ratios[3] == 1.0); /* a bias, a normalisation */
			assert_true((ratios[5] == 1.0) == (t == 1) && ratios[0] != 1.0);
		}
	}
}

/* Each with its default hyper-parameters; sgd also with Nesterov's momentum and without momentum. */
static void test_references(void **state)
{
	(void)state;
	const ls_optimizer_kind *kind;
	size_t count = 0;
	for (; (kind = ls_optimizer_at(count)); count++) {
		if (count >= sizeof(references) / sizeof(*references))
			fail_msg("%s has no reference", kind->name);
		ls_hyper h = { .lr = 0.01, .weight_decay = 0.05 };
		struct {
			const char *name;
			double *field;
		} fields[] = { { "momentum", &h.momentum },
			       { "beta1", &h.beta1 },
			       { "beta2", &h.beta2 },
			       { "epsilon", &h.epsilon } };
		for (size_t f = 0; f < sizeof(fields) / sizeof(*fields); f++) {
			const double *value = ls_optimizer_default(kind->name, fields[f].name);
			*fields[f].field = value ? *value : 0.0;
		}
		compare_with_reference(count, &h);
		if (h.momentum > 0) {
			h.nesterov = 1, h.momentum = 0.7;
			compare_with_reference(count, &h);
			h.nesterov = 0, h.momentum = 0.0;
			compare_with_reference(count, &h);
		}
	}
	assert_int_equal(count, sizeof(references) / sizeof(*references));
}

static const ls_hyper busy = {
	.lr = 0.01, .momentum = 0.9, .nesterov = 1, .beta1 = 0.9, .beta2 = 0.99, .epsilon = 1e-8, .weight_decay = 0.1
};

/* Cut [0, REACHABLE) at pseudo-random places, parts in descending order, and demand the bits of one whole pass. */
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
			norm_pass(&a, whole.grads, ratios[0]);
			norm_pass(&b, parts.grads, ratios[1]);
			ls_optimizer_apply(&a, 0, REACHABLE);
			ls_rng rng = ls_rng_make(SEED, LS_RNG_TEST, 1000 + step);
			for (uint32_t end = REACHABLE, words[4]; end > 0;) {
				ls_rng_words(rng, k, end, words);
				uint32_t begin = end - 1 - ls_rng_below(words[0], end < 300 ? end : 300);
				ls_optimizer_apply(&b, begin, end);
				end = begin;
			}
			assert_memory_equal(&whole, &parts, sizeof(whole));
		}
	}
}

static ls_update update_from(world *w, size_t offset, size_t count, const ls_hyper *hyper, uint64_t step)
{
	return (ls_update){ .params = w->params + offset,
			    .grads = w->grads + offset,
			    .slots = { w->slots[0] + offset, w->slots[1] + offset },
			    .count = count,
			    .scale = 0.3f,
			    .decay = 1,
			    .step = step,
			    .lr = hyper->lr,
			    .ratio = 1.7,
			    .hyper = hyper };
}

/* Three steps of one optimizer, compiled for two instruction sets. */
static void assert_same_update(const ls_optimizer_kind *a, const ls_optimizer_kind *b, const ls_hyper *hyper,
			       size_t offset, size_t count)
{
	static world x, y;
	start(&x);
	fill_grads(&x, 7);
	y = x;
	for (uint64_t step = 1; step <= 3; step++) {
		ls_update u = update_from(&x, offset, count, hyper, step),
			  v = update_from(&y, offset, count, hyper, step);
		if (a->direction) {
			a->direction(&u, x.grads + offset);
			b->direction(&v, y.grads + offset);
		}
		a->update(&u);
		b->update(&v);
		assert_memory_equal(&x, &y, sizeof(x));
	}
}

static void assert_same_loops(const ls_optim_simd *a, const ls_optim_simd *b, size_t offset, size_t count)
{
	static world x, y;
	start(&x);
	y = x;
	a->multiply(0.97f, x.params + offset, count);
	b->multiply(0.97f, y.params + offset, count);
	assert_memory_equal(&x, &y, sizeof(x));
	double sums[2] = { a->sum_squares(x.params + offset, count), b->sum_squares(y.params + offset, count) };
	assert_memory_equal(&sums[0], &sums[1], sizeof(double));
}

static void test_instruction_sets_agree(void **state)
{
	(void)state;
	ls_hyper hypers[3] = { busy, busy, busy };
	hypers[1].nesterov = 0;
	hypers[2].momentum = 0.0;
	assert_null(ls_optim_simd_of(-1));
	assert_null(ls_optim_simd_of(LS_ISA_COUNT));
	assert_null(ls_optimizer_of(-1, 0));
	assert_null(ls_optimizer_of(LS_ISA_COUNT, 0));
	for (int isa = LS_ISA_GENERIC + 1; isa < LS_ISA_COUNT; isa++)
		for (size_t count = 0; ls_isa_has(isa) && count <= 70; count++) {
			size_t length = count < 70 ? count : REACHABLE - 4;
			assert_same_loops(ls_optim_simd_of(LS_ISA_GENERIC), ls_optim_simd_of(isa), count % 5, length);
			for (size_t k = 0; ls_optimizer_at(k); k++)
				for (int h = 0; h < 3; h++)
					assert_same_update(ls_optimizer_of(LS_ISA_GENERIC, k), ls_optimizer_of(isa, k),
							   &hypers[h], count % 5, length);
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
				norm_pass(&pass, w.grads, ratios);
				ls_optimizer_apply(&pass, 0, REACHABLE);
			}
			for (int i = 0; i < REACHABLE; i++)
				assert_true(w.params[i] == 0.0f && w.slots[0][i] == 0.0f && w.slots[1][i] == 0.0f);
		}
	}
}

/* Unreachable weights end with the bits that an update with gradient and state zero gives them. */
static void test_unreachable_weights_decay(void **state)
{
	(void)state;
	static world w, before;
	const ls_optimizer_kind *kind;
	float slots[2][UNREACHABLE], zeros[UNREACHABLE] = { 0 };
	for (size_t k = 0; (kind = ls_optimizer_at(k)); k++) {
		start(&w);
		before = w;
		memset(slots, 0, sizeof(slots));
		ls_update update = { .params = before.params + REACHABLE,
				     .grads = zeros,
				     .slots = { slots[0], slots[1] },
				     .count = UNREACHABLE,
				     .scale = 1.0f,
				     .decay = 1,
				     .step = 3,
				     .lr = busy.lr,
				     .hyper = &busy };
		if (!ls_optimizer_needs_unreachable(kind, &busy)) /* else they are among the reachable ones */
			kind->update(&update);
		ls_optimizer_pass pass = make_pass(&w, kind, &busy, 3);
		ls_optimizer_decay_unreachable(&pass);
		assert_memory_equal(&w, &before, sizeof(w));
	}
}

/* Without gradient and decay there is no direction: the ratio is 1 and nothing moves. */
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
	norm_pass(&pass, w.grads, ratios);
	ls_optimizer_apply(&pass, 0, REACHABLE);
	for (int r = 0; r < 6; r++)
		assert_true(ratios[r] == 1.0);
	assert_memory_equal(&w, &before, sizeof(w));
	assert_true(ls_optimizer_needs_unreachable(kind, &h));
}

static void test_names(void **state)
{
	(void)state;
	const ls_optimizer_kind *kind = NULL;
	assert_int_equal(ls_optimizer_find("adm", &kind), LS_EINVALID);
	assert_null(kind);
	assert_non_null(strstr(ls_last_error(), "'adam'"));
	assert_null(ls_optimizer_default("adm", "beta1"));
	assert_null(ls_optimizer_default("sgd", "beta1"));
	assert_true(*ls_optimizer_default("adam", "epsilon") == 1e-8);
}

/* The moving average follows the parameters: a copy at first, then a + (1 - decay) * (p - a), whatever the ranges. */
static void test_average(void **state)
{
	static const size_t cuts[] = { 0, 17, 503, 700, REACHABLE };
	const ls_hyper hyper = { .lr = 0.1, .momentum = 0.9 };
	static float average[REACHABLE], expected[REACHABLE];
	const ls_optimizer_kind *kind;
	world w;

	(void)state;
	assert_int_equal(ls_optimizer_find("sgd", &kind), LS_OK);
	start(&w);
	for (uint64_t step = 1; step <= 4; step++) {
		fill_grads(&w, step);
		ls_optimizer_pass pass = make_pass(&w, kind, &hyper, step);
		pass.average = average;
		pass.decay = 0.75;
		for (size_t i = 0; i + 1 < sizeof(cuts) / sizeof(cuts[0]); i++)
			ls_optimizer_apply(&pass, cuts[i], cuts[i + 1]);
		for (size_t i = 0; i < REACHABLE; i++) {
			float difference = w.params[i] - expected[i];
			expected[i] = step == 1 ? w.params[i] : expected[i] + 0.25f * difference;
			assert_true(average[i] == expected[i]);
		}
	}
	memcpy(expected, average, sizeof(expected));
	ls_optim_simd_of(LS_ISA_GENERIC)->average(0.3f, w.params, expected, REACHABLE);
	for (int isa = LS_ISA_GENERIC + 1; isa < LS_ISA_COUNT; isa++) {
		static float other[REACHABLE];
		if (!ls_isa_has(isa))
			continue;
		memcpy(other, average, sizeof(other));
		ls_optim_simd_of(isa)->average(0.3f, w.params, other, REACHABLE);
		assert_memory_equal(other, expected, sizeof(other));
	}
}

/* docs/optimizers.md has a line for each row, with what the row says. */
static void test_documentation(void **state)
{
	(void)state;
	static char page[16384];
	const ls_optimizer_kind *kind;
	FILE *file = fopen(LS_GOLDEN_DIR "/../../docs/optimizers.md", "r");
	assert_non_null(file);
	page[fread(page, 1, sizeof(page) - 1, file)] = '\0';
	fclose(file);
	for (size_t k = 0; (kind = ls_optimizer_at(k)); k++) {
		char expected[512];
		int used = snprintf(expected, sizeof(expected), "\n| `%s` | %s |", kind->name, kind->summary);
		for (int i = 0; i < LS_HYPERS_MAX && kind->hypers[i].name; i++)
			used += snprintf(expected + used, sizeof(expected) - (size_t)used, "%s `%s` %g", i ? "," : "",
					 kind->hypers[i].name, kind->hypers[i].value);
		used += snprintf(expected + used, sizeof(expected) - (size_t)used, " |");
		for (int slot = 0; slot < kind->slots; slot++)
			used += snprintf(expected + used, sizeof(expected) - (size_t)used, "%s `%s`", slot ? "," : "",
					 kind->slot_names[slot]);
		snprintf(expected + used, sizeof(expected) - (size_t)used, " | %s |",
			 kind->decay == LS_DECAY_COUPLED ? "in the gradient" : "decoupled");
		if (!strstr(page, expected))
			fail_msg("docs/optimizers.md has no line %s", expected + 1);
	}
}

TEST_MAIN(test_references, test_any_split_gives_the_same_bits, test_instruction_sets_agree, test_zero_stays_zero,
	  test_unreachable_weights_decay, test_lamb_without_direction, test_average, test_names, test_documentation)
