/*
 * fingerprint.c - the hash by which two runs are compared: equal fingerprints mean bit-identical parameters.
 *
 * It reads parameters one out-panel at a time in logical order, so it does not depend on how weights are blocked, nor
 * on which of them are reachable.
 */
#include <xxhash.h>

#include "params/params_panel.h"

ls_status ls_params_fingerprint(const ls_param_table *table, const float *store, const float *buffers, uint64_t *out)
{
	void *rows = NULL;
	size_t bytes = ls_params_panel_largest(table) * sizeof(float);
	LS_TRY(ls_buffer_new(&rows, bytes, "fingerprint"));
	XXH64_state_t *state = XXH64_createState();
	if (!state) {
		ls_buffer_free(rows, bytes);
		return ls_fail(LS_EMEMORY, "not enough memory for the fingerprint");
	}
	XXH64_reset(state, 0);
	for (size_t i = 0; i < table->count; i++) {
		const ls_param *param = &table->rows[i];
		const float *from = param->role == LS_ROLE_BUFFER ? buffers : store;
		for (int panel = 0; panel < ls_param_panels(param); panel++) {
			ls_param_panel_export(param, LS_STORE_WHOLE, panel, from, rows);
			XXH64_update(state, rows, ls_param_panel_elements(param, panel) * sizeof(float));
		}
	}
	*out = XXH64_digest(state);
	XXH64_freeState(state);
	ls_buffer_free(rows, bytes);
	return LS_OK;
}
