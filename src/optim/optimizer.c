/*
 * optimizer.c - the application of an optimizer to ranges of the flat store. table.c has the optimizers.
 */
#include "optim/optimizer.h"

#include <math.h>
#include <string.h>

#include "optim/simd.h"

static int decays(const ls_optimizer_kind *kind, const ls_param *param)
{
	return kind->decay == LS_DECAY_COUPLED || param->role == LS_ROLE_WEIGHT;
}

/* What [begin, end) has of a parameter; 0: nothing. */
static int cut(const ls_param *param, size_t begin, size_t end, size_t *first, size_t *last)
{
	*first = param->offset > begin ? param->offset : begin;
	*last = param->offset + param->count < end ? param->offset + param->count : end;
	return ls_param_has_gradient(param) && *first < *last;
}

static ls_update update_of(const ls_optimizer_pass *pass, size_t row, size_t first, size_t last)
{
	ls_update update = {
		.params = pass->params + first,
		.grads = pass->grads ? pass->grads + (first - pass->grads_begin) : NULL,
		.count = last - first,
		.scale = pass->scale,
		.decay = decays(pass->kind, &pass->table->rows[row]),
		.step = pass->step,
		.lr = pass->lr,
		.ratio = pass->ratios ? pass->ratios[row] : 1.0,
		.hyper = pass->hyper,
	};
	for (int slot = 0; slot < pass->kind->slots; slot++)
		update.slots[slot] = pass->slots[slot] + first;
	return update;
}

static void follow(const ls_optimizer_pass *pass, size_t first, size_t last)
{
	const float *params = pass->params + first;
	float *average = pass->average + first;

	if (pass->step == 1)
		memcpy(average, params, (last - first) * sizeof(*average));
	else
		ls_optim_simd_get()->average((float)(1.0 - pass->decay), params, average, last - first);
}

void ls_optimizer_apply(const ls_optimizer_pass *pass, size_t begin, size_t end)
{
	size_t first, last;
	for (size_t row = 0; row < pass->table->count; row++) {
		if (!cut(&pass->table->rows[row], begin, end, &first, &last))
			continue;
		ls_update update = update_of(pass, row, first, last);
		pass->kind->update(&update);
		if (pass->average)
			follow(pass, first, last);
	}
}

size_t ls_optimizer_runs(const ls_param_table *table, size_t begin, size_t end)
{
	size_t first, last, runs = 0;
	for (size_t row = 0; row < table->count; row++)
		runs += (size_t)cut(&table->rows[row], begin, end, &first, &last);
	return runs;
}

void ls_optimizer_norm_pass(const ls_optimizer_pass *pass, size_t begin, size_t end, float *grads, double *squares)
{
	const ls_optim_simd *simd = ls_optim_simd_get();
	size_t first, last;
	for (size_t row = 0; row < pass->table->count; row++) {
		if (!cut(&pass->table->rows[row], begin, end, &first, &last))
			continue;
		ls_update update = update_of(pass, row, first, last);
		pass->kind->direction(&update, grads + (first - begin));
		*squares++ = simd->sum_squares(update.params, update.count);
		*squares++ = simd->sum_squares(grads + (first - begin), update.count);
	}
}

/* Parameters lie in the store in the order of their rows, so the runs of one come one after another. */
void ls_optimizer_ratios(const ls_param_table *table, size_t block, const double *squares, double *ratios)
{
	for (size_t row = 0; row < table->count; row++) {
		const ls_param *param = &table->rows[row];
		double params = 0.0, direction = 0.0;
		ratios[row] = 1.0;
		if (!ls_param_has_gradient(param) || param->count == 0)
			continue;
		size_t runs = (param->offset + param->count - 1) / block - param->offset / block + 1;
		for (size_t run = 0; run < runs; run++) {
			params += *squares++;
			direction += *squares++;
		}
		if (param->role == LS_ROLE_WEIGHT && params > 0.0 && direction > 0.0)
			ratios[row] = sqrt(params) / sqrt(direction);
	}
}

int ls_optimizer_needs_unreachable(const ls_optimizer_kind *kind, const ls_hyper *hyper)
{
	return kind->direction || (kind->decay == LS_DECAY_COUPLED && hyper->weight_decay != 0.0);
}

/* What decoupled decay does to a weight whose gradient and state are zero. Where such weights have both
 * (ls_optimizer_needs_unreachable()) there is nothing to do. */
void ls_optimizer_decay_unreachable(const ls_optimizer_pass *pass)
{
	if (pass->kind->decay != LS_DECAY_DECOUPLED || pass->kind->direction || pass->hyper->weight_decay == 0.0)
		return;
	float keep = (float)(1.0 - pass->lr * pass->hyper->weight_decay);
	for (size_t row = 0; row < pass->table->count; row++) {
		const ls_param *param = &pass->table->rows[row];
		if (ls_param_has_gradient(param) && decays(pass->kind, param))
			ls_optim_simd_get()->multiply(keep, pass->params + param->unreachable_offset,
						      param->unreachable_count);
	}
}
