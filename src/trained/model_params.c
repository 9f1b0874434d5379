/*
 * model_params.c - the parameters of an ls_model by name.
 */
#include <math.h>
#include <string.h>

#include "base/handles.h"
#include "base/names.h"
#include "trained/model_handle.h"

static const ls_param *find(const ls_model *model, const char *name)
{
	const ls_param_table *table = &model->trained.graph->params;
	for (size_t i = 0; i < table->count; i++)
		if (table->rows[i].role != LS_ROLE_COUNTER && strcmp(table->rows[i].name, name) == 0)
			return &table->rows[i];
	return NULL;
}

static void describe(const ls_param *param, ls_model_param *out)
{
	if (!out) /* asked only whether it is there */
		return;
	*out = (ls_model_param){ .name = param->name,
				 .rank = param->rank,
				 .elements = ls_param_elements(param),
				 .is_trained = ls_param_is_trained(param) };
	memcpy(out->shape, param->shape, sizeof(out->shape));
}

int ls_model_param_at(const ls_model *model, size_t i, ls_model_param *out)
{
	if (ls_handle_check(model, LS_MODEL_KIND) != LS_OK)
		return 0;
	const ls_param_table *table = &model->trained.graph->params;
	for (size_t row = 0; row < table->count; row++)
		if (table->rows[row].role != LS_ROLE_COUNTER && i-- == 0) {
			describe(&table->rows[row], out);
			return 1;
		}
	return 0;
}

int ls_model_param_of(const ls_model *model, const char *name, ls_model_param *out)
{
	const ls_param *param = ls_handle_check(model, LS_MODEL_KIND) == LS_OK && name ? find(model, name) : NULL;
	if (param)
		describe(param, out);
	return param != NULL;
}

ls_status ls_model_find_param(const ls_model *model, const char *name, uint64_t elements, const ls_param **out)
{
	char shown[256];
	const ls_param *param = name ? find(model, name) : NULL;

	if (!name)
		return ls_fail(LS_EINVALID, "the name of the parameter is NULL");
	if (!param)
		return ls_fail(LS_ENOTFOUND, "the model has no parameter '%s'",
			       ls_text_printable(shown, sizeof(shown), name));
	if (ls_param_elements(param) != elements)
		return ls_fail(LS_EINVALID, "parameter '%s' has %zu elements, not %llu", param->name,
			       ls_param_elements(param), (unsigned long long)elements);
	*out = param;
	return LS_OK;
}

static float *store_of(const ls_model *model, const ls_param *param)
{
	return ls_param_is_trained(param) ? model->trained.params : model->trained.buffers;
}

ls_status ls_model_get(const ls_model *model, const char *name, float *values, uint64_t elements)
{
	const ls_param *param;

	LS_TRY(ls_model_check_usable(model));
	LS_TRY(ls_model_find_param(model, name, elements, &param));
	LS_TRY(ls_argument_check(values, "values"));
	ls_param_export(param, LS_STORE_WHOLE, store_of(model, param), values);
	return LS_OK;
}

ls_status ls_model_check_finite(const char *what, const char *name, const float *values, uint64_t elements)
{
	for (uint64_t i = 0; i < elements; i++)
		if (!isfinite(values[i]))
			return ls_fail(LS_ENUMERIC, "element %llu of the new '%s' is %s; %s must be finite numbers",
				       (unsigned long long)i, name, isnan(values[i]) ? "NaN" : "infinite", what);
	return LS_OK;
}

ls_status ls_model_set(ls_model *model, const char *name, const float *values, uint64_t elements)
{
	const ls_param *param;

	LS_TRY(ls_model_check_usable(model));
	LS_TRY(ls_model_find_param(model, name, elements, &param));
	LS_TRY(ls_argument_check(values, "values"));
	LS_TRY(ls_model_check_finite("weights", param->name, values, elements));
	ls_param_import(param, LS_STORE_WHOLE, values, store_of(model, param));
	return LS_OK;
}
