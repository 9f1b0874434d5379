/*
 * shape.h - a profile without a measurement: parameters and arithmetic of each layer are those of the model's graph,
 * time is proportional to arithmetic, and backward takes twice as long as forward.
 */
#ifndef LS_TOOLS_FIT_SHAPE_H
#define LS_TOOLS_FIT_SHAPE_H

#include <lockstep/models.h>

#include "backends/profile.h"

typedef struct ls_shape_options {
	ls_model_options model;
	int64_t batch, threads;
	double step_s;   /* of one device */
	double update_s; /* part of it that is the update; 0: it is spread over the layers */
	double bytes; /* of the gradient, where it is known, else 0: a vocabulary that is not known follows from it */
	/* All weights are computed and sent, also where they see nothing but padding: as other trainers do. */
	int whole;
} ls_shape_options;

/* Refuses a model whose gradient differs from `bytes` by more than 2 %. */
ls_status ls_shape_profile(ls_profile *out, const ls_shape_options *options);

#endif
