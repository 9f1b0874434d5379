/* Softmax cross-entropy over one and many blocks of classes, its exponential and logarithm, and hostile logits. */
#include "unit/kernels/simd_check.h"

#include "kernels/simd/explog.h"
#include "support/reference.h"
#include "unit/test_main.h"

static void test_exponential(void **state)
{
	(void)state;
	assert_true(ls_exp_negative(0) == 1);
	assert_true(ls_exp_negative(-INFINITY) == 0);
	assert_true(ls_exp_negative(-1e30f) == 0);
	assert_true(isnan(ls_exp_negative(NAN)));
	for (int i = 0; i < 400000; i++) {
		float x = -87.3f * (float)i / 400000;
		double expected = exp((double)x);
		assert_true(fabs(ls_exp_negative(x) - expected) <= 2e-7 * expected);
	}
}

static void test_logarithm(void **state)
{
	(void)state;
	assert_true(ls_log_above_one(1) == 0);
	assert_true(ls_log_above_one(INFINITY) == INFINITY);
	assert_true(isnan(ls_log_above_one(NAN)));
	for (int i = 1; i < 200000; i++) {
		float near = 1 + (float)i * 1e-5f, far = 1 + (float)i * (float)i * 1e-5f;
		assert_true(fabs(ls_log_above_one(near) - log((double)near)) <= 2e-7 * log((double)near));
		assert_true(fabs(ls_log_above_one(far) - log((double)far)) <= 2e-7 * log((double)far));
	}
}

typedef struct batch {
	int n, panel, classes, blocks;
	int64_t floats;
	float *logits, *panels; /* (n, classes), (blocks, n, panel) */
	int32_t *labels;
	float *loss, *dlogits;
	uint8_t *correct;
} batch;

static int64_t panel_place(const batch *b, int i, int c)
{
	return ((int64_t)(c / b->panel) * b->n + i) * b->panel + c % b->panel;
}

static batch batch_make(int n, int panel, int classes, float spread)
{
	batch b = { .n = n, .panel = panel, .classes = classes, .blocks = (classes + panel - 1) / panel };
	b.floats = (int64_t)b.blocks * n * panel;
	b.logits = check_random((int64_t)n * classes, (uint64_t)(n + classes));
	b.panels = check_floats(b.floats); /* garbage (NaN) in the padding: it must not be looked at */
	b.labels = check_bytes((size_t)n * sizeof(*b.labels));
	b.loss = check_floats(n);
	b.correct = check_bytes((size_t)n);
	b.dlogits = check_floats((int64_t)n * classes);
	for (int i = 0; i < n; i++) {
		b.labels[i] = (i * 7 + classes - 1) % classes;
		for (int c = 0; c < classes; c++) {
			float *z = &b.logits[(int64_t)i * classes + c];
			*z = nearbyintf(*z * spread * 8) / 8; /* coarse: equal maxima happen */
			b.panels[panel_place(&b, i, c)] = *z;
		}
	}
	ls_reference_softmax_xent(n, classes, b.logits, b.labels, b.loss, b.correct, b.dlogits);
	return b;
}

static void batch_free(batch *b)
{
	void *all[] = { b->logits, b->panels, b->labels, b->loss, b->correct, b->dlogits };
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		free(all[i]);
}

static void assert_gradient(const batch *b, const float *got)
{
	for (int i = 0; i < b->n; i++)
		for (int c = 0; c < b->blocks * b->panel; c++) {
			float value = got[panel_place(b, i, c)];
			double expected = c < b->classes ? b->dlogits[(int64_t)i * b->classes + c] : 0;
			assert_true(c < b->classes ? fabs(value - expected) <= 1e-6 : value == 0);
		}
}

/* In two calls, with the gradient apart, in place, and without it. */
static void check_batch(const ls_simd *simd, const batch *b)
{
	float *loss = check_floats(b->n), *apart = check_floats(b->floats), *over = check_copy(b->panels, b->floats);
	uint8_t *correct = check_bytes((size_t)b->n);
	for (int form = 0; form < 3; form++) {
		float *dlogits = form == 0 ? NULL : form == 1 ? apart : over;
		const float *logits = form == 2 ? over : b->panels;
		simd->softmax_xent(logits, b->n, b->panel, b->classes, b->labels, b->n / 2, b->n, 1, loss, correct,
				   dlogits);
		simd->softmax_xent(logits, b->n, b->panel, b->classes, b->labels, 0, b->n / 2, 1, loss, correct,
				   dlogits);
		check_close("loss", loss, b->loss, b->n, 1e-6, 1);
		assert_memory_equal(correct, b->correct, (size_t)b->n);
		if (dlogits)
			assert_gradient(b, dlogits);
	}
	free(loss);
	free(apart);
	free(over);
	free(correct);
}

static void test_against_reference(void **state)
{
	(void)state;
	const int shapes[][3] = { { 1, 16, 1 },  { 3, 16, 10 },   { 5, 64, 10 }, { 2, 32, 33 },
				  { 4, 64, 64 }, { 2, 64, 1000 }, { 9, 16, 17 }, { 2, 48, 100 } };
	CHECK_EACH_ISA(simd)
	for (size_t s = 0; s < sizeof(shapes) / sizeof(*shapes); s++)
		for (int spread = 1; spread <= 100; spread *= 10) {
			batch b = batch_make(shapes[s][0], shapes[s][1], shapes[s][2], (float)spread);
			check_batch(simd, &b);
			batch_free(&b);
		}
}

static void test_sets_agree_exactly(void **state)
{
	(void)state;
	batch b = batch_make(6, 64, 150, 3);
	float first[6], loss[6], *expected = check_floats(b.floats), *got = check_floats(b.floats);
	uint8_t correct[6];
	ls_simd_of(LS_ISA_GENERIC)->softmax_xent(b.panels, 6, 64, 150, b.labels, 0, 6, 1, first, correct, expected);
	CHECK_EACH_ISA(simd)
	{
		simd->softmax_xent(b.panels, 6, 64, 150, b.labels, 0, 6, 1, loss, correct, got);
		check_same("loss of two sets", loss, first, 6);
		check_same("gradient of two sets", got, expected, b.floats);
	}
	free(expected);
	free(got);
	batch_free(&b);
}

static float loss_with(const ls_simd *simd, int label, int place, float value)
{
	float z[64] = { 0 }, loss[1];
	uint8_t correct[1];
	z[1] = 2;
	z[place] = value;
	simd->softmax_xent(z, 1, 64, 40, &(int32_t){ label }, 0, 1, 1, loss, correct, NULL);
	assert_true(!isnan(loss[0]) || !correct[0]);
	return loss[0];
}

/* Not a number is never hidden, wherever it stands; -inf is a class that cannot be. */
static void test_hostile_logits(void **state)
{
	(void)state;
	CHECK_EACH_ISA(simd)
	{
		for (int place = 0; place < 40; place += 13) {
			assert_true(isnan(loss_with(simd, 0, place, NAN)));
			assert_false(isfinite(loss_with(simd, 0, place, INFINITY)));
			assert_false(isfinite(loss_with(simd, place, place, -INFINITY)));
			/* one logit of 2 and 38 of 0 are left */
			assert_true(fabs(loss_with(simd, 5, place, -INFINITY) - log(exp(2) + 38)) < 1e-5);
			assert_true(loss_with(simd, 5, place, 3e38f) == 3e38f);
		}
	}
}

/* Equal maxima: the first class counts, wherever it falls in the vectors. */
static void test_first_of_equal_maxima(void **state)
{
	(void)state;
	const int pairs[][2] = { { 20, 35 }, { 3, 19 }, { 0, 39 }, { 15, 16 }, { 7, 8 }, { 31, 32 } };
	CHECK_EACH_ISA(simd)
	for (size_t p = 0; p < sizeof(pairs) / sizeof(*pairs); p++) {
		float z[64] = { 0 }, loss[1];
		uint8_t correct[2];
		z[pairs[p][0]] = z[pairs[p][1]] = 3;
		for (int k = 0; k < 2; k++)
			simd->softmax_xent(z, 1, 64, 40, &(int32_t){ pairs[p][k] }, 0, 1, 1, loss, &correct[k], NULL);
		assert_int_equal(correct[0], 1);
		assert_int_equal(correct[1], 0);
	}
}

TEST_MAIN(test_exponential, test_logarithm, test_against_reference, test_sets_agree_exactly, test_hostile_logits,
	  test_first_of_equal_maxima)
