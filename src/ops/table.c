/*
 * table.c - the table of operators, from the list in include/lockstep/operators.h: a new operator is a line there,
 * and a file of this folder that ends with its row, ls_op_NAME.
 */
#include <stddef.h>

#include "ops/op.h"

const ls_op_type *ls_op_type_at(int i)
{
#define ROW(name, ...) &ls_op_##name,
	static const ls_op_type *const rows[] = { LS_OPERATORS(ROW, ROW, ROW, ROW, ROW, ROW, ROW, ROW) };
#undef ROW
	return i >= 0 && i < (int)(sizeof(rows) / sizeof(rows[0])) ? rows[i] : NULL;
}
