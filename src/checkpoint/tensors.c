#include "checkpoint/tensors.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/names.h"
#include "checkpoint/shape.h"

static ls_status entries_init(ls_ckpt_tensors *entries, size_t capacity)
{
	*entries = (ls_ckpt_tensors){ .arena = LS_ARENA_INIT };
	entries->tensors = ls_arena_alloc(&entries->arena, (capacity + 1) * sizeof(*entries->tensors));
	entries->sources = ls_arena_alloc(&entries->arena, (capacity + 1) * sizeof(*entries->sources));
	entries->found = ls_arena_alloc(&entries->arena, (capacity + 1) * sizeof(*entries->found));
	if (entries->tensors && entries->sources && entries->found)
		return LS_OK;
	ls_ckpt_tensors_release(entries);
	return LS_EMEMORY;
}

void ls_ckpt_tensors_release(ls_ckpt_tensors *entries)
{
	ls_arena_release(&entries->arena);
}

static void add_entry(ls_ckpt_tensors *entries, const char *name, ls_ckpt_source source)
{
	const ls_param *param = source.param;
	ls_st_tensor *tensor = &entries->tensors[entries->count];
	size_t elements = ls_param_elements(param);
	tensor->name = name;
	tensor->dtype = param->role == LS_ROLE_COUNTER ? LS_I64 : LS_F32;
	tensor->rank = param->rank;
	memcpy(tensor->shape, param->shape, sizeof(param->shape));
	tensor->bytes = elements * ls_dtype_bytes(tensor->dtype);
	entries->sources[entries->count++] = source;
	if (elements > entries->elements_max)
		entries->elements_max = elements;
}

ls_status ls_ckpt_tensors_model(ls_ckpt_tensors *out, const ls_param_table *table, float *params, float *buffers,
				int64_t counter)
{
	ls_ckpt_tensors entries;
	LS_TRY(entries_init(&entries, table->count));
	entries.counter = counter;
	for (size_t i = 0; i < table->count; i++) {
		const ls_param *param = &table->rows[i];
		float *store = ls_param_is_trained(param) ? params : buffers;
		add_entry(&entries, param->name, (ls_ckpt_source){ param, store, LS_STORE_WHOLE });
	}
	*out = entries;
	return LS_OK;
}

static ls_status add_slot(ls_ckpt_tensors *entries, const ls_param_table *table, const char *slot, float *store)
{
	for (size_t i = 0; i < table->count; i++) {
		const ls_param *param = &table->rows[i];
		if (!ls_param_has_gradient(param))
			continue;
		const char *name = ls_arena_format(&entries->arena, "%s.%s", slot, param->name);
		if (!name)
			return LS_EMEMORY;
		add_entry(entries, name, (ls_ckpt_source){ param, store, LS_STORE_REACHABLE });
	}
	return LS_OK;
}

ls_status ls_ckpt_tensors_optimizer(ls_ckpt_tensors *out, const ls_ckpt_content *content)
{
	ls_ckpt_tensors entries;
	LS_TRY(entries_init(&entries, content->table->count * (size_t)content->slots));
	entries.may_overflow = 1;
	for (int i = 0; i < content->slots; i++) {
		ls_status status = add_slot(&entries, content->table, content->slot_names[i], content->slot[i]);
		if (status != LS_OK) {
			ls_ckpt_tensors_release(&entries);
			return status;
		}
	}
	*out = entries;
	return LS_OK;
}

static ls_status fill_entry(void *context, size_t i, void *data)
{
	const ls_ckpt_tensors *entries = context;
	const ls_ckpt_source *source = &entries->sources[i];
	if (source->param->role == LS_ROLE_COUNTER)
		memcpy(data, &entries->counter, sizeof(entries->counter));
	else
		ls_param_export(source->param, source->kind, source->store, data);
	return LS_OK;
}

ls_status ls_ckpt_tensors_write(const ls_ckpt_tensors *entries, const char *path, const ls_ckpt_content *content,
				uint64_t *checksum)
{
	ls_st_pair metadata[3 + LS_CKPT_METADATA_MAX] = { { "format", "pt" }, { "lockstep", ls_version() } };
	size_t pairs = 2;
	if (content->model)
		metadata[pairs++] = (ls_st_pair){ "model", content->model };
	for (size_t i = 0; i < content->metadata_count && i < LS_CKPT_METADATA_MAX; i++)
		metadata[pairs++] = content->metadata[i];
	return ls_st_write(path, entries->tensors, entries->count, metadata, pairs, fill_entry, (void *)entries,
			   checksum);
}

static ls_status check_finite(const ls_ckpt_tensors *entries, const ls_st_tensor *tensor, float *values,
			      const char *label)
{
	size_t count = tensor->bytes / ls_dtype_bytes(tensor->dtype);
	char name[LS_NAME_TEXT];

	LS_TRY(ls_st_to_float(tensor, values));
	for (size_t i = 0; i < count; i++) {
		int bad = isnan(values[i]) || (isinf(values[i]) && !entries->may_overflow);
		if (bad)
			return ls_fail(LS_ENUMERIC,
				       "%s: element %zu of tensor '%s' is %s; weights must be finite numbers", label, i,
				       ls_text_printable(name, sizeof(name), tensor->name),
				       isnan(values[i]) ? "NaN" : "infinite, or too large for a float");
	}
	return LS_OK;
}

ls_status ls_ckpt_tensors_finite(const ls_ckpt_tensors *entries, const char *label)
{
	void *buffer;
	size_t bytes = (entries->elements_max + 1) * sizeof(float);
	ls_status status = LS_OK;
	LS_TRY(ls_buffer_new(&buffer, bytes, "tensor being checked"));
	for (size_t i = 0; i < entries->count && status == LS_OK; i++)
		if (entries->found[i] && entries->sources[i].param->role != LS_ROLE_COUNTER)
			status = check_finite(entries, entries->found[i], buffer, label);
	ls_buffer_free(buffer, bytes);
	return status;
}

ls_status ls_ckpt_tensors_import(ls_ckpt_tensors *entries)
{
	void *buffer;
	size_t bytes = (entries->elements_max + 1) * sizeof(float);
	int64_t counter = 0, value;
	LS_TRY(ls_buffer_new(&buffer, bytes, "tensor being read"));
	ls_status status = LS_OK;
	for (size_t i = 0; i < entries->count && status == LS_OK; i++) {
		const ls_st_tensor *tensor = entries->found[i];
		const ls_ckpt_source *source = &entries->sources[i];
		if (source->param->role == LS_ROLE_COUNTER) {
			if (tensor)
				memcpy(&value, tensor->data, sizeof(value));
			if (tensor && value > counter)
				counter = value;
			continue;
		}
		if (!tensor) /* a head that starts afresh */
			continue;
		status = ls_st_to_float(tensor, buffer);
		if (status == LS_OK)
			ls_param_import(source->param, source->kind, buffer, source->store);
	}
	entries->counter = counter;
	ls_buffer_free(buffer, bytes);
	return status;
}
