/*
 * precision.c - which kernels multiply in a precision, and how fast they are here.
 *
 * The rate is that of a linear layer's forward pass with the rounding of its operands, on the calling thread: what bf16
 * may gain depends on the processor alone, and by much more than layers differ.
 */
#include "base/clock.h"
#include "kernels/linear_bf16.h"
#include "ops/op.h"

#include <stdlib.h>

const ls_bf16_kernels *ls_op_bf16_kernels(ls_precision precision, const ls_op_type *type)
{
	if (precision == LS_PRECISION_FP32 || (type == &ls_op_attention && precision != LS_PRECISION_BF16))
		return NULL;
	return precision == LS_PRECISION_BF16_AMX ? ls_bf16_amx_get() : ls_bf16_get();
}

int ls_op_precision_is_native(ls_precision precision)
{
	return precision == LS_PRECISION_FP32 ||
	       (precision == LS_PRECISION_BF16_AMX ? ls_bf16_amx_is_native() : ls_bf16_is_native());
}

/* ---- rates ---- */

enum {
	PANEL = 64,
	BLOCKS = 8, /* of inputs, and of outputs */
	FEATURES = PANEL * BLOCKS,
	ROWS = 256,
	ROUNDS = 4 /* after one to warm up; the fastest counts, for others share the machine */
};

typedef struct trial {
	ls_linear_plan plan;
	ls_team *team;
	float *x, *w, *y, *scratch;
	ls_precision precision;
} trial;

static void run_layer(void *context, ls_member member)
{
	const trial *t = context;
	const ls_linear_epilogue nothing = { 0 };
	if (t->precision == LS_PRECISION_FP32)
		ls_linear_forward(&t->plan, ROWS, t->x, t->w, &nothing, t->y, t->scratch, member);
	else
		ls_linear_bf16_forward(ls_op_bf16_kernels(t->precision, &ls_op_linear), &t->plan, ROWS, t->x, t->w,
				       &nothing, t->y, t->scratch, member);
}

static ls_status trial_init(trial *t)
{
	const size_t scratch = ls_linear_bf16_scratch_floats(BLOCKS, PANEL, BLOCKS, PANEL, ROWS, 1) +
			       ls_linear_scratch_floats(PANEL, PANEL, 1);
	const size_t rows = (size_t)ROWS * FEATURES, weights = (size_t)FEATURES * FEATURES;
	const size_t bytes = (2 * rows + weights + scratch) * sizeof(float);

	t->x = aligned_alloc(64, (bytes + 63) / 64 * 64);
	if (!t->x)
		return ls_fail(LS_EMEMORY, "no memory to measure products in fp32 and bf16");
	t->w = t->x + rows;
	t->y = t->w + weights;
	t->scratch = t->y + rows;
	for (size_t i = 0; i < rows + weights; i++)
		t->x[i] = (float)(i % 61) / 61 - 0.5f;
	LS_TRY(ls_team_new(&t->team, 1));
	return ls_linear_plan_make(&t->plan, FEATURES, PANEL, FEATURES, PANEL, 0);
}

static void measure(trial *t, double rates[LS_PRECISION_COUNT])
{
	const double work = 2.0 * ROWS * FEATURES * FEATURES;

	for (int round = 0; round <= ROUNDS; round++)
		for (int i = 0; i < LS_PRECISION_COUNT; i++) {
			t->precision = (ls_precision)i;
			if (!ls_op_precision_is_native(t->precision) || i == LS_PRECISION_BF16_LAYERS)
				continue; /* whose layers are those of bf16 */
			const double begin = ls_clock_thread();
			ls_team_run(t->team, run_layer, t);
			const double rate = work / (ls_clock_thread() - begin);
			if (round > 0 && rate > rates[i])
				rates[i] = rate;
		}
}

ls_status ls_op_product_rates(double rates[LS_PRECISION_COUNT])
{
	trial t = { 0 };

	for (int i = 0; i < LS_PRECISION_COUNT; i++)
		rates[i] = 0;
	if (!ls_op_precision_is_native(LS_PRECISION_BF16) && !ls_op_precision_is_native(LS_PRECISION_BF16_AMX))
		return LS_OK;
	ls_status status = trial_init(&t);
	if (status == LS_OK)
		measure(&t, rates);
	ls_team_free(t.team);
	free(t.x);
	return status;
}
