/*
 * init.c - initial values, one out-panel at a time in logical order, so they do not depend on how weights are blocked.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/rng.h"
#include "params/params_panel.h"

static void fill_constant(float *rows, size_t count, float value)
{
	for (size_t i = 0; i < count; i++)
		rows[i] = value;
}

/* Uniform on [-spread, spread], or normal with this deviation; of a constant it is the value. */
static float spread_of(const ls_param *param)
{
	float bound = 1.0f / sqrtf((float)(param->fan_in > 0 ? param->fan_in : 1));
	switch (param->init) {
	case LS_INIT_ZERO:
		break;
	case LS_INIT_ONE:
		return 1.0f;
	case LS_INIT_UNIFORM_FAN_IN:
		return bound;
	case LS_INIT_HE_FAN_IN:
		return sqrtf(2.0f) * bound;
	case LS_INIT_NORMAL:
		return param->deviation > 0 ? param->deviation : 0.02f;
	case LS_INIT_HE_FAN_OUT:
		return sqrtf(2.0f / ((float)param->layout.out * (float)param->layout.taps));
	}
	return 0.0f;
}

static int is_constant(const ls_param *param)
{
	return param->init == LS_INIT_ZERO || param->init == LS_INIT_ONE;
}

/* Elements [first, first + count) of the parameter's initial values. */
static void fill_rows(const ls_param *param, uint64_t seed, size_t first, size_t count, float *rows)
{
	ls_rng rng = ls_rng_make(seed, LS_RNG_INIT, ls_hash_text(param->name));
	float spread = spread_of(param);

	if (is_constant(param))
		fill_constant(rows, count, spread);
	else if (param->init == LS_INIT_UNIFORM_FAN_IN)
		ls_rng_fill_uniform(rng, 0, first, count, -spread, spread, rows);
	else
		ls_rng_fill_normal(rng, 0, first, count, spread, rows);
}

const char *ls_param_init_text(const ls_param *param, char *out, size_t size)
{
	double spread = (double)spread_of(param);

	if (is_constant(param))
		snprintf(out, size, "= %g", spread);
	else if (param->init == LS_INIT_UNIFORM_FAN_IN)
		snprintf(out, size, "~ U(-%.4g, %.4g)", spread, spread);
	else
		snprintf(out, size, "~ N(0, %.4g)", spread);
	return out;
}

ls_status ls_params_init(const ls_param_table *table, uint64_t seed, float *store, float *buffers)
{
	void *rows = NULL;
	size_t bytes = ls_params_panel_largest(table) * sizeof(float);
	LS_TRY(ls_buffer_new(&rows, bytes, "initial values"));
	memset(store, 0, table->total * sizeof(*store)); /* padding included */
	if (table->buffers)
		memset(buffers, 0, table->buffers * sizeof(*buffers));
	for (size_t i = 0; i < table->count; i++) {
		const ls_param *param = &table->rows[i];
		float *to = param->role == LS_ROLE_BUFFER ? buffers : store;
		for (int panel = 0; panel < ls_param_panels(param); panel++) {
			size_t first = ls_param_panel_first(param, panel);
			fill_rows(param, seed, first, ls_param_panel_elements(param, panel), rows);
			ls_param_panel_import(param, LS_STORE_WHOLE, panel, rows, to);
		}
	}
	ls_buffer_free(rows, bytes);
	return LS_OK;
}
