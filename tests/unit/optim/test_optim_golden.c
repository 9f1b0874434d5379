/* Trajectories against PyTorch's, and LAMB's and Lion's in doubles (tests/golden/optim.txt, made by make_optim.py). */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "optim/optimizer.h"
#include "unit/test_main.h"

#define ELEMENTS 13
#define STEPS 8
#define CASES 15
/* PyTorch's kernels fuse some multiply-adds, Lockstep's never do: a rounding a step apart. */
#define TOLERANCE 4e-7

typedef struct golden {
	FILE *stream;
	float start[ELEMENTS];
	float grads[STEPS][ELEMENTS];
} golden;

static void read_floats(FILE *stream, const char *expected, float *out)
{
	char word[32];
	assert_int_equal(fscanf(stream, "%31s", word), 1);
	assert_string_equal(word, expected);
	for (int i = 0; i < ELEMENTS; i++)
		assert_int_equal(fscanf(stream, "%f", &out[i]), 1);
}

static void read_inputs(golden *g)
{
	char comment[256];
	g->stream = fopen(LS_GOLDEN_DIR "/optim.txt", "r");
	assert_non_null(g->stream);
	assert_non_null(fgets(comment, sizeof(comment), g->stream));
	read_floats(g->stream, "start", g->start);
	for (int step = 0; step < STEPS; step++)
		read_floats(g->stream, "grads", g->grads[step]);
}

static void assert_close(const char *name, const char *what, int step, const float *got, const float *expected)
{
	for (int i = 0; i < ELEMENTS; i++) {
		double error = fabs((double)got[i] - (double)expected[i]);
		if (!(error <= TOLERANCE * (1.0 + fabs((double)expected[i]))))
			fail_msg("%s, %s after step %d, element %d: %.9g, expected %.9g", name, what, step + 1, i,
				 got[i], expected[i]);
	}
}

/* One tensor that is one run. */
static void apply(const ls_optimizer_kind *kind, ls_update *update, float *sums)
{
	const ls_param row = { .role = LS_ROLE_WEIGHT, .count = ELEMENTS };
	const ls_param_table table = { .rows = (ls_param *)&row, .count = 1, .reachable = ELEMENTS, .total = ELEMENTS };
	double squares[2] = { 0 };
	if (kind->direction) {
		kind->direction(update, sums);
		for (int i = 0; i < ELEMENTS; i++) {
			squares[0] += (double)update->params[i] * update->params[i];
			squares[1] += (double)sums[i] * sums[i];
		}
		ls_optimizer_ratios(&table, ELEMENTS, squares, &update->ratio);
	}
	kind->update(update);
}

/* Gradients are handed over as sums of four, with scale 1/4, which is exact. */
static void run_case(golden *g, const char *name, const ls_optimizer_kind *kind, const ls_hyper *hyper)
{
	float params[ELEMENTS], sums[ELEMENTS], slots[2][ELEMENTS] = { { 0 } }, expected[ELEMENTS];
	memcpy(params, g->start, sizeof(params));
	for (int step = 0; step < STEPS; step++) {
		for (int i = 0; i < ELEMENTS; i++)
			sums[i] = 4.0f * g->grads[step][i];
		ls_update update = { .params = params,
				     .grads = sums,
				     .slots = { slots[0], slots[1] },
				     .count = ELEMENTS,
				     .scale = 0.25f,
				     .decay = 1,
				     .step = (uint64_t)step + 1,
				     .lr = hyper->lr,
				     .hyper = hyper };
		apply(kind, &update, sums);
		read_floats(g->stream, "params", expected);
		assert_close(name, "parameters", step, params, expected);
		assert_true(params[5] == 0.0f); /* zero parameter, zero gradient */
	}
	int slot_count = strcmp(kind->name, "sgd") == 0 && hyper->momentum == 0.0 ? 0 : kind->slots;
	for (int slot = 0; slot < slot_count; slot++) {
		read_floats(g->stream, "slot", expected);
		assert_close(name, kind->slot_names[slot], STEPS - 1, slots[slot], expected);
	}
}

static void test_pytorch_trajectories(void **state)
{
	(void)state;
	golden g;
	char word[32], name[64], optimizer[32];
	int cases = 0;
	read_inputs(&g);
	while (fscanf(g.stream, "%31s", word) == 1 && strcmp(word, "case") == 0) {
		ls_hyper h = { 0 };
		const ls_optimizer_kind *kind = NULL;
		assert_int_equal(fscanf(g.stream, "%63s %31s %lf %lf %d %lf %lf %lf %lf", name, optimizer, &h.lr,
					&h.momentum, &h.nesterov, &h.beta1, &h.beta2, &h.epsilon, &h.weight_decay),
				 9);
		assert_int_equal(ls_optimizer_find(optimizer, &kind), LS_OK);
		run_case(&g, name, kind, &h);
		cases++;
	}
	fclose(g.stream);
	assert_string_equal(word, "end");
	assert_int_equal(cases, CASES);
}

TEST_MAIN(test_pytorch_trajectories)
