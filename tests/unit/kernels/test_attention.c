/*
 * Attention over packed sentences and over images, causal or not, against the reference with full score matrices: odd
 * lengths, heads of all widths, dropout, products in bf16, every instruction set this build can use by LOCKSTEP_ISA
 * (the tests run under the best one), teams of one to four threads, and the same sentence in another place.
 */
#include "unit/kernels/simd_check.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/team.h"
#include "kernels/attention.h"
#include "support/reference.h"
#include "unit/test_main.h"

enum { THREADS = 4, MOST = 12 };

static const ls_bf16_kernels *bf16; /* the tests once more, with products in bf16; NULL: in fp32 */

typedef struct attention_case {
	int heads, width, panel;
	int lengths[MOST]; /* ends with 0 */
	float probability;
	int causal;
	int images; /* interleaved; all of one length */
} attention_case;

static const attention_case cases[] = {
	{ 1, 16, 16, { 1 }, .probability = 0 },
	{ 1, 64, 64, { 1, 2, 16, 17 }, .probability = 0 },
	{ 4, 16, 64, { 20, 3, 15, 33 }, .probability = 0 },
	{ 3, 16, 64, { 7, 31 }, .probability = 0 },
	{ 3, 32, 64, { 48, 5, 1 }, .probability = 0 },
	{ 2, 64, 64, { 65, 63, 64, 129 }, .probability = 0 },
	{ 3, 16, 32, { 11, 70 }, .probability = 0 },
	{ 2, 128, 64, { 9, 66 }, .probability = 0 },
	{ 2, 32, 16, { 40 }, .probability = 0 },
	{ 2, 64, 32, { 18, 1 }, .probability = 0 },
	{ 4, 16, 64, { 20, 3, 15, 33 }, .probability = 0.1f },
	{ 2, 64, 64, { 65, 130, 1, 6 }, .probability = 0.5f },
	{ 2, 128, 64, { 21 }, .probability = 0.25f },
	{ 2, 64, 64, { 65, 63, 1, 129, 200 }, .causal = 1 },
	{ 3, 16, 64, { 7, 64, 128, 31 }, .causal = 1 },
	{ 2, 32, 16, { 40, 70 }, .causal = 1 },
	{ 4, 16, 64, { 20, 3, 150, 33 }, .probability = 0.2f, .causal = 1 },
	{ 2, 64, 64, { 49, 49, 49 }, .images = 1 },
	{ 3, 16, 64, { 70, 70, 70, 70, 70 }, .probability = 0.2f, .images = 1 },
	{ 2, 32, 16, { 81, 81 }, .causal = 1, .images = 1 },
	{ 1, 16, 16, { 1, 1, 1 }, .images = 1 },
};
enum { CASES = sizeof(cases) / sizeof(*cases) };

/* Inputs in panels, and all that a run gives. */
typedef struct fixture {
	ls_attention_plan a;
	int32_t start[MOST + 1];
	uint64_t sample[MOST];
	int64_t blocks, floats, longest;
	float *q, *k, *v, *dout;
	float *out, *lse, *dq, *dk, *dv;
} fixture;

static int64_t place(const ls_attention_plan *a, int64_t row, int channel)
{
	return (channel / a->panel * a->rows + row) * a->panel + channel % a->panel;
}

/* Row r of a sample. */
static int64_t row_of(const fixture *f, int sample, int r)
{
	return f->a.start ? f->start[sample] + r : r * f->a.samples + sample;
}

static float *panels(const fixture *f, uint64_t stream)
{
	float *x = check_random(f->floats, stream);
	for (int64_t row = 0; row < f->a.rows; row++)
		for (int c = f->a.heads * f->a.width; c < f->blocks * f->a.panel; c++)
			x[place(&f->a, row, c)] = 0;
	return x;
}

/* `before` rows of something else come first. */
static void fixture_make(fixture *f, const attention_case *k, int before)
{
	memset(f, 0, sizeof(*f));
	f->start[0] = k->images ? 0 : before;
	int samples = 0;
	for (; k->lengths[samples]; samples++) {
		f->start[samples + 1] = f->start[samples] + k->lengths[samples];
		f->sample[samples] = (uint64_t)samples * 0x300000001u + 7;
		f->longest = k->lengths[samples] > f->longest ? k->lengths[samples] : f->longest;
	}
	const ls_rng rng = ls_rng_make(CHECK_SEED, LS_RNG_DROPOUT, 4);
	f->a = (ls_attention_plan){ .heads = k->heads,
				    .width = k->width,
				    .rows = f->start[samples] + 2,
				    .panel = k->panel,
				    .start = k->images ? NULL : f->start,
				    .positions = k->lengths[0],
				    .samples = samples,
				    .causal = k->causal,
				    .scale = 1 / sqrtf((float)k->width) * 2,
				    .bf16 = bf16,
				    .probability = k->probability,
				    .key = { rng.key[0], rng.key[1] },
				    .sample = k->probability > 0 ? f->sample : NULL };
	f->blocks = (k->heads * k->width + k->panel - 1) / k->panel;
	f->floats = f->blocks * f->a.rows * k->panel;
	f->q = panels(f, 1);
	f->k = panels(f, 2);
	f->v = panels(f, 3);
	f->dout = panels(f, 4);
	f->out = check_floats(f->floats);
	f->lse = check_floats(k->heads * f->a.rows);
	f->dq = check_floats(f->floats);
	f->dk = check_floats(f->floats);
	f->dv = check_floats(f->floats);
}

static void fixture_free(fixture *f)
{
	float *all[] = { f->q, f->k, f->v, f->dout, f->out, f->lse, f->dq, f->dk, f->dv };
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		free(all[i]);
}

typedef struct job {
	fixture *f;
	float *scratch;
} job;

static void work(void *context, ls_member member)
{
	const job *j = context;
	fixture *f = j->f;
	ls_attention_forward(&f->a, f->q, f->k, f->v, f->out, f->lse, j->scratch, member);
	ls_team_barrier(member);
	ls_attention_backward(&f->a, f->q, f->k, f->v, f->out, f->lse, f->dout, f->dq, f->dk, f->dv, j->scratch,
			      member);
}

static void run(fixture *f, int threads)
{
	enum { BEHIND = 1024 };
	const int64_t floats = (int64_t)ls_attention_scratch_floats(f->a.width, f->longest, threads);
	ls_team *team = NULL;
	job j = { f, check_floats(floats + BEHIND) };
	float *behind = check_copy(j.scratch + floats, BEHIND);
	assert_int_equal(ls_team_new(&team, threads), LS_OK);
	ls_team_run(team, work, &j);
	ls_team_free(team);
	check_same("what is behind the scratch", j.scratch + floats, behind, BEHIND);
	free(behind);
	free(j.scratch);
}

/* One head's channels of one sentence, dense (length, width). */
static float *dense(const fixture *f, const float *x, int sample, int head)
{
	const int width = f->a.width, length = f->start[sample + 1] - f->start[sample];
	float *y = check_floats((int64_t)length * width);
	for (int r = 0; r < length; r++)
		for (int c = 0; c < width; c++)
			y[r * width + c] = x[place(&f->a, row_of(f, sample, r), head * width + c)];
	return y;
}

/* The mask by its contract, word by word; NULL without dropout. */
static float *mask(const fixture *f, int sample, int head)
{
	const int length = f->start[sample + 1] - f->start[sample];
	if (!(f->a.probability > 0))
		return NULL;
	float *keep = check_floats((int64_t)length * length);
	for (int i = 0; i < length; i++)
		for (int j = 0; j < length; j++) {
			uint32_t words[4];
			ls_rng_words((ls_rng){ { f->a.key[0], f->a.key[1] } }, f->sample[sample],
				     (uint64_t)head << 38 | (uint64_t)i << 18 | (uint64_t)(j / 4), words);
			keep[i * length + j] =
				ls_rng_unit(words[j % 4]) >= f->a.probability ? 1.0f / (1.0f - f->a.probability) : 0;
		}
	return keep;
}

static void check_head(const fixture *f, int sample, int head)
{
	const int length = f->start[sample + 1] - f->start[sample];
	const int64_t count = (int64_t)length * f->a.width;
	const float *inputs[4] = { f->q, f->k, f->v, f->dout }, *outputs[4] = { f->out, f->dq, f->dk, f->dv };
	const char *const names[4] = { "out", "dq", "dk", "dv" };
	float *in[4], *expected[4], *lse = check_floats(length), *keep = mask(f, sample, head);
	for (int i = 0; i < 4; i++) {
		in[i] = dense(f, inputs[i], sample, head);
		expected[i] = check_floats(count);
	}
	const ls_reference_head h = { length, f->a.width, f->a.scale, in[0], in[1], in[2], keep, f->a.causal };
	ls_reference_attention(&h, expected[0], lse);
	ls_reference_attention_backward(&h, in[3], expected[1], expected[2], expected[3]);
	check_close("lse", f->lse + head * f->a.rows + f->start[sample], lse, length, bf16 ? 0.03 : 1e-6, 1);
	for (int i = 0; i < 4; i++) {
		float *got = dense(f, outputs[i], sample, head);
		check_close(names[i], got, expected[i], count, bf16 ? 0.04 : 1e-5, 1);
		free(got);
		free(in[i]);
		free(expected[i]);
	}
	free(lse);
	free(keep);
}

/* Nothing but sentences is written, and zeros behind the channels. */
static void check_surroundings(const fixture *f, const float *x)
{
	for (int64_t row = 0; row < f->a.rows; row++)
		for (int c = 0; c < f->blocks * f->a.panel; c++) {
			const float value = x[place(&f->a, row, c)];
			if (row < f->start[0] || row >= f->start[f->a.samples])
				assert_true(isnan(value));
			else
				assert_true(c < f->a.heads * f->a.width ? isfinite(value) : value == 0);
		}
}

static void test_against_reference(void **state)
{
	(void)state;
	for (int i = 0; i < CASES; i++) {
		fixture f;
		fixture_make(&f, &cases[i], i % 3);
		run(&f, 1);
		for (int sample = 0; sample < f.a.samples; sample++)
			for (int head = 0; head < f.a.heads; head++)
				check_head(&f, sample, head);
		const float *outputs[] = { f.out, f.dq, f.dk, f.dv };
		for (int o = 0; o < 4; o++)
			check_surroundings(&f, outputs[o]);
		fixture_free(&f);
	}
}

static void test_threads_agree(void **state)
{
	(void)state;
	for (int i = 0; i < CASES; i++) {
		fixture one, many;
		fixture_make(&one, &cases[i], 0);
		run(&one, 1);
		for (int threads = 2; threads <= THREADS; threads++) {
			fixture_make(&many, &cases[i], 0);
			run(&many, threads);
			check_same("out", many.out, one.out, one.floats);
			check_same("lse", many.lse, one.lse, one.a.heads * one.a.rows);
			check_same("dq", many.dq, one.dq, one.floats);
			check_same("dk", many.dk, one.dk, one.floats);
			check_same("dv", many.dv, one.dv, one.floats);
			fixture_free(&many);
		}
		fixture_free(&one);
	}
}

static void copy_sentence(const fixture *from, int sample, fixture *to, int place_there)
{
	const float *source[] = { from->q, from->k, from->v, from->dout };
	float *target[] = { to->q, to->k, to->v, to->dout };
	for (int i = 0; i < 4; i++)
		for (int r = 0; r < from->start[sample + 1] - from->start[sample]; r++)
			for (int c = 0; c < from->a.heads * from->a.width; c++)
				target[i][place(&to->a, to->start[place_there] + r, c)] =
					source[i][place(&from->a, from->start[sample] + r, c)];
	to->sample[place_there] = from->sample[sample];
}

/* The second sentence of a micro-batch, alone in another: the same bits, dropped words included. */
static void test_packing_does_not_matter(void **state)
{
	(void)state;
	const attention_case packed = { 3, 32, 64, { 9, 75, 30 }, .probability = 0.3f },
			     alone = { 3, 32, 64, { 75 }, .probability = 0.3f };
	fixture f, g;
	fixture_make(&f, &packed, 0);
	fixture_make(&g, &alone, 5);
	copy_sentence(&f, 1, &g, 0);
	run(&f, 1);
	run(&g, 1);
	const float *a[] = { f.out, f.dq, f.dk, f.dv }, *b[] = { g.out, g.dq, g.dk, g.dv };
	for (int i = 0; i < 4; i++)
		for (int head = 0; head < 3; head++) {
			float *x = dense(&f, a[i], 1, head), *y = dense(&g, b[i], 0, head);
			check_same("a sentence in another place", y, x, 75 * 32);
			free(x);
			free(y);
		}
	fixture_free(&f);
	fixture_free(&g);
}

/* dq over q, over dout, over out. */
static void test_in_place(void **state)
{
	(void)state;
	const attention_case k = { 3, 32, 64, { 70, 12 }, .probability = 0.2f };
	fixture apart;
	fixture_make(&apart, &k, 0);
	run(&apart, 1);
	for (int form = 0; form < 3; form++) {
		fixture f;
		fixture_make(&f, &k, 0);
		float *own = f.dq;
		f.dq = form == 0 ? f.q : form == 1 ? f.dout : f.out;
		run(&f, 1);
		for (int sample = 0; sample < 2; sample++)
			for (int head = 0; head < 3; head++) {
				const int64_t count = 32 * (int64_t)k.lengths[sample];
				float *x = dense(&f, f.dq, sample, head), *y = dense(&apart, apart.dq, sample, head);
				check_same("dq in place", x, y, count);
				free(x);
				free(y);
			}
		check_same("dk beside it", f.dk, apart.dk, f.floats);
		check_same("dv beside it", f.dv, apart.dv, f.floats);
		f.dq = own;
		fixture_free(&f);
	}
	fixture_free(&apart);
}

/* sum of dout * out in double. */
static double objective(fixture *f)
{
	double sum = 0;
	run(f, 1);
	for (int64_t row = f->start[0]; row < f->start[f->a.samples]; row++)
		for (int c = 0; c < f->a.heads * f->a.width; c++)
			sum += (double)f->out[place(&f->a, row, c)] * f->dout[place(&f->a, row, c)];
	return sum;
}

static void check_differences(const attention_case *k)
{
	fixture f;
	fixture_make(&f, k, 0);
	run(&f, 1);
	float *inputs[] = { f.q, f.k, f.v };
	float *slopes[] = { check_copy(f.dq, f.floats), check_copy(f.dk, f.floats), check_copy(f.dv, f.floats) };
	for (int i = 0; i < 3; i++)
		for (int64_t at = i; at < 23 * 32; at += 37) {
			const float kept = inputs[i][at];
			inputs[i][at] = kept + 0x1p-6f;
			const double above = objective(&f);
			inputs[i][at] = kept - 0x1p-6f;
			const double below = objective(&f);
			inputs[i][at] = kept;
			if (!(fabs((above - below) * 32 - slopes[i][at]) < 3e-3))
				fail_msg("input %d, element %lld: %g by differences, %g", i, (long long)at,
					 (above - below) * 32, (double)slopes[i][at]);
		}
	for (int i = 0; i < 3; i++)
		free(slopes[i]);
	fixture_free(&f);
}

static void test_finite_differences(void **state)
{
	(void)state;
	check_differences(&(attention_case){ 2, 16, 32, { 5, 18 }, .probability = 0.3f });
	check_differences(&(attention_case){ 2, 16, 32, { 5, 18 }, .probability = 0.3f, .causal = 1 });
	check_differences(&(attention_case){ 2, 16, 32, { 12, 12 }, .causal = 1, .images = 1 });
}

/* Scores far apart: no overflow, and probabilities that are 0 and 1. A NaN spoils its own sentence, no other. */
static void test_hostile_scores(void **state)
{
	(void)state;
	const attention_case k = { 1, 16, 16, { 19, 6 }, .probability = 0 };
	fixture f;
	fixture_make(&f, &k, 0);
	for (int64_t i = 0; i < f.floats; i++)
		f.q[i] *= 1e4f;
	f.k[place(&f.a, 20, 3)] = NAN;
	run(&f, 1);
	for (int64_t row = 0; row < 25; row++) {
		const float *results[] = { f.out, f.dq, f.dk, f.dv };
		for (int i = 0; i < 4; i++)
			assert_true(isnan(results[i][place(&f.a, row, 5)]) == (row >= 19));
	}
	fixture_free(&f);
}

/* Rounded beforehand or by the kernels: the scores are the same but for the order of their sums. */
static void operands_are_rounded(void)
{
	const attention_case k = { 3, 32, 64, { 70, 13 }, .causal = 1 };
	fixture in_fp32, in_bf16;
	fixture_make(&in_bf16, &k, 0);
	run(&in_bf16, 1);
	bf16 = NULL;
	fixture_make(&in_fp32, &k, 0);
	for (int64_t i = 0; i < in_fp32.floats; i++) {
		float *both[] = { in_fp32.q + i, in_fp32.k + i };
		for (int b = 0; b < 2; b++) {
			uint32_t bits;
			memcpy(&bits, both[b], sizeof(bits));
			bits = (bits + 0x7fffu + (bits >> 16 & 1u)) & 0xffff0000u;
			memcpy(both[b], &bits, sizeof(bits));
		}
	}
	run(&in_fp32, 1);
	for (int head = 0; head < 3; head++)
		check_close("lse of rounded operands", in_bf16.lse + head * in_bf16.a.rows,
			    in_fp32.lse + head * in_fp32.a.rows, 83, 1e-5, 1);
	fixture_free(&in_fp32);
	fixture_free(&in_bf16);
}

/* All scores far below zero, where a key that is not there would have an infinite probability: 19 keys make 10
 * pairs. */
static void missing_halves_count_nothing(void)
{
	const attention_case k = { 1, 16, 16, { 19 }, .probability = 0 };
	fixture f;
	fixture_make(&f, &k, 0);
	/* lse is -89.06; e^89.06 is infinite, as exponentials of negative numbers are taken */
	for (int64_t i = 0; i < f.floats; i++) {
		f.q[i] = 11.5f;
		f.k[i] = -1;
	}
	run(&f, 1);
	const float *results[] = { f.out, f.dq, f.dk, f.dv };
	for (int i = 0; i < 4; i++)
		check_surroundings(&f, results[i]);
	fixture_free(&f);
}

static void test_in_bf16(void **state)
{
	bf16 = ls_bf16_get();
	test_against_reference(state);
	test_threads_agree(state);
	test_packing_does_not_matter(state);
	test_in_place(state);
	missing_halves_count_nothing();
	operands_are_rounded();
	bf16 = NULL;
}

/* FNV-1a of all that the cases give in bf16. */
static uint64_t hash_in_bf16(void)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);
	bf16 = ls_bf16_get();
	for (int i = 0; i < CASES; i++) {
		fixture f;
		fixture_make(&f, &cases[i], 0);
		run(&f, 1);
		for (int sample = 0; sample < f.a.samples; sample++)
			for (int head = 0; head < f.a.heads; head++) {
				const float *results[] = { f.out, f.dq, f.dk, f.dv };
				const size_t bytes = sizeof(float) * (size_t)(cases[i].lengths[sample] * f.a.width);
				for (int n = 0; n < 4; n++) {
					float *x = dense(&f, results[n], sample, head);
					for (size_t b = 0; b < bytes; b++)
						hash = (hash ^ ((unsigned char *)x)[b]) * UINT64_C(0x100000001b3);
					free(x);
				}
			}
		fixture_free(&f);
	}
	bf16 = NULL;
	return hash;
}

/* A process keeps to one instruction set; so this program once more for each other one. */
static void test_other_sets(void **state)
{
	const char *expected = getenv("IN_BF16"); /* of the set that started this one */
	const uint64_t hash = hash_in_bf16();
	(void)state;
	if (expected)
		assert_int_equal(hash, strtoull(expected, NULL, 16));
	for (int isa = 0; !getenv("LOCKSTEP_ISA") && isa < LS_ISA_COUNT; isa++) {
		if (!ls_isa_has(isa) || isa == (int)ls_isa_get())
			continue;
		const pid_t child = fork();
		int status = 1;
		assert_true(child >= 0);
		if (child == 0) {
			char text[32];
			snprintf(text, sizeof(text), "%" PRIx64, hash);
			setenv("IN_BF16", text, 1);
			setenv("LOCKSTEP_ISA", ls_isa_name((ls_isa)isa), 1);
			execl("/proc/self/exe", "test_attention", (char *)NULL);
			_exit(127);
		}
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	}
}

TEST_MAIN(test_against_reference, test_threads_agree, test_packing_does_not_matter, test_in_place,
	  test_finite_differences, test_in_bf16, test_other_sets, test_hostile_scores)
