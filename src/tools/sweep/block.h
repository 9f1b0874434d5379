/*
 * block.h - lists that are multiplied out into points: of a recipe's block, or of the command line.
 */
#ifndef LS_TOOLS_SWEEP_BLOCK_H
#define LS_TOOLS_SWEEP_BLOCK_H

#include "tools/sweep/points.h"

/* In the order of multiplying: the last changes fastest, so that rows of one curve stand together. */
typedef enum ls_axis_kind {
	LS_AXIS_MODEL,
	LS_AXIS_DATA,
	LS_AXIS_THREADS,
	LS_AXIS_BATCH,
	LS_AXIS_PRECISION,
	LS_AXIS_WIRE,
	LS_AXIS_RATE,
	LS_AXIS_STRATEGY,
	LS_AXIS_SERVERS,
	LS_AXIS_NODES,
	LS_AXIS_DEVICES,
	LS_AXIS_ON,
	LS_AXES
} ls_axis_kind;

enum { LS_AXIS_VALUES = 64, LS_SWEEP_POINTS = 10000 };

typedef struct ls_axis {
	size_t count; /* 0: one value, the default */
	char value[LS_AXIS_VALUES][LS_RESULTS_NAME];
} ls_axis;

typedef struct ls_sweep_block {
	ls_axis axes[LS_AXES];
	ls_sweep_point common; /* what all its points share */
} ls_sweep_block;

/* Name in recipes and errors: "model". */
const char *ls_axis_name(ls_axis_kind axis);

ls_status ls_axis_add(ls_axis *axis, ls_axis_kind kind, const char *value);
/* "1,2,4" */
ls_status ls_axis_split(ls_axis *axis, ls_axis_kind kind, const char *list);
int ls_axis_has(const ls_axis *axis, const char *value);

/* Multiply out; points that are in the list already are left out. */
ls_status ls_sweep_block_expand(const ls_sweep_block *block, ls_sweep_list *list);

#endif
