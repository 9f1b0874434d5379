/*
 * dataset.h - inside of lockstep/data.h.
 */
#ifndef LS_DATA_DATASET_H
#define LS_DATA_DATASET_H

#include <lockstep/data.h>

struct ls_dataset {
	ls_dataset_info info;
	ls_dataset_ops ops;
	void *self;
};

/* A row of the dataset table: how to open it. */
typedef struct ls_dataset_kind {
	ls_dataset_row row;
	ls_status (*open)(ls_dataset **out, const ls_dataset_options *options);
} ls_dataset_kind;

#endif
