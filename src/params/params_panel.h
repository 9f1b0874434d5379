/*
 * params_panel.h - a parameter one out-panel at a time.
 *
 * Panel p holds output channels [p * out_panel, (p + 1) * out_panel), cut at `out`; its logical part is a contiguous
 * run of rows, (outputs of the panel, in, taps). What walks through a whole model takes panels, for they stay in cache.
 * A transposed weight, (in, out), is one panel.
 */
#ifndef LS_PARAMS_PARAMS_PANEL_H
#define LS_PARAMS_PARAMS_PANEL_H

#include "params/params.h"

int ls_param_panels(const ls_param *param);                       /* 0 for a counter */
size_t ls_param_panel_first(const ls_param *param, int panel);    /* logical index of its first element */
size_t ls_param_panel_elements(const ls_param *param, int panel); /* logical, padding not included */
void ls_param_panel_export(const ls_param *param, ls_store_kind kind, int panel, const float *store, float *rows);
void ls_param_panel_import(const ls_param *param, ls_store_kind kind, int panel, const float *rows, float *store);

/* Elements of the largest panel in the table: the scratch a walk needs. */
size_t ls_params_panel_largest(const ls_param_table *table);

#endif
