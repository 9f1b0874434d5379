/*
 * optimizer.c - the table of optimizers, and their application to ranges of the flat store.
 */
#include "optim/optimizer.h"

#include <string.h>

#include "base/names.h"
#include "optim/kinds.h"
#include "optim/simd.h"

static const ls_optimizer_kind *const kinds[] = { &ls_optimizer_sgd, &ls_optimizer_adam, &ls_optimizer_adamw };

const ls_optimizer_kind *ls_optimizer_at(size_t i)
{
	return i < sizeof kinds / sizeof *kinds ? kinds[i] : NULL;
}

static const char *name_at(size_t i)
{
	const ls_optimizer_kind *kind = ls_optimizer_at(i);
	return kind ? kind->name : NULL;
}

ls_status ls_optimizer_find(const char *name, const ls_optimizer_kind **out)
{
	const ls_optimizer_kind *kind;
	for (size_t i = 0; (kind = ls_optimizer_at(i)); i++) {
		if (strcmp(kind->name, name) == 0) {
			*out = kind;
			return LS_OK;
		}
	}
	return ls_name_unknown("optimizer", name, name_at);
}

static int decays(const ls_optimizer_kind *kind, const ls_param *param)
{
	return kind->decay_everything || param->role == LS_ROLE_WEIGHT;
}

void ls_optimizer_apply(const ls_optimizer_pass *pass, size_t begin, size_t end)
{
	for (size_t row = 0; row < pass->table->count; row++) {
		const ls_param *param = &pass->table->rows[row];
		size_t first = param->offset > begin ? param->offset : begin;
		size_t last = param->offset + param->count < end ? param->offset + param->count : end;
		if (!ls_param_is_trained(param) || first >= last)
			continue;
		ls_update update = {
			.params = pass->params + first,
			.grads = pass->grads + (first - pass->grads_begin),
			.count = last - first,
			.scale = pass->scale,
			.decay = decays(pass->kind, param),
			.step = pass->step,
			.lr = pass->lr,
			.hyper = pass->hyper,
		};
		for (int slot = 0; slot < pass->kind->slots; slot++)
			update.slots[slot] = pass->slots[slot] + first;
		pass->kind->update(&update);
	}
}

/* What the decoupled update does to a weight whose gradient and state are zero. With coupled decay there is nothing to
 * do: ls_params_lay_out() was then told to keep every weight live. */
void ls_optimizer_decay_dead(const ls_optimizer_pass *pass)
{
	if (pass->kind->coupled_decay || pass->hyper->weight_decay == 0.0)
		return;
	float keep = (float)(1.0 - pass->lr * pass->hyper->weight_decay);
	for (size_t row = 0; row < pass->table->count; row++) {
		const ls_param *param = &pass->table->rows[row];
		if (ls_param_is_trained(param) && decays(pass->kind, param))
			ls_optim_simd_get()->multiply(keep, pass->params + param->dead_offset, param->dead_count);
	}
}
