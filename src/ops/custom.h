/*
 * custom.h - custom operators and losses (lockstep/operator.h) as rows of the table's kind.
 */
#ifndef LS_OPS_CUSTOM_H
#define LS_OPS_CUSTOM_H

#include <lockstep/operator.h>

#include "ops/op.h"

/* The row as this library knows it, whatever the size of the program's. LS_EINVALID: it lacks something. */
ls_status ls_custom_read_operator(ls_operator *out, const ls_operator *given);
ls_status ls_custom_read_loss(ls_loss *out, const ls_loss *given);

/* What a builder passes as the attributes of the types below. */
typedef struct ls_custom_attributes {
	const ls_operator *row; /* or: */
	const ls_loss *loss;
	const void *options;
	ls_operator_shape shape; /* what the rule has made of it */
} ls_custom_attributes;

/* The type of one such operator or loss. */
ls_op_type ls_custom_operator_type(const ls_operator *row);
ls_op_type ls_custom_loss_type(const ls_loss *loss);

/* Apply the rule of a row to inputs that are filled in, and check what it says. `name` is for messages. */
ls_status ls_custom_apply_rule(const ls_operator *row, const char *name, ls_operator_shape *shape);

ls_value_shape ls_value_shape_of(const ls_tensor *t);
int64_t ls_custom_param_floats(const ls_operator_param *param);

#endif
