#include "onnx/emit.h"

#include <stdlib.h>
#include <string.h>

/* Field numbers of onnx.proto. */
enum { NODE_INPUT = 1, NODE_OUTPUT = 2, NODE_NAME = 3, NODE_OP = 4, NODE_ATTRIBUTE = 5 };
enum { ATTRIBUTE_NAME = 1, ATTRIBUTE_F = 2, ATTRIBUTE_I = 3, ATTRIBUTE_INTS = 8, ATTRIBUTE_TYPE = 20 };
enum { GRAPH_NODE = 1 };

/* ---- names ------------------------------------------------------------------------------------------------------- */

const char *ls_onnx_name(ls_onnx *to, const char *what)
{
	const char *name = ls_arena_format(&to->arena, "%s_%d", what, to->names++);
	to->failed |= !name;
	return name ? name : "";
}

/* ---- nodes ------------------------------------------------------------------------------------------------------- */

static void add_attribute(ls_pb *node, const ls_onnx_attribute *a)
{
	static const int types[] = { [LS_ONNX_INT] = 2, [LS_ONNX_INTS] = 7, [LS_ONNX_FLOAT] = 1 };
	ls_pb message = { 0 };

	ls_pb_text(&message, ATTRIBUTE_NAME, a->name);
	if (a->kind == LS_ONNX_FLOAT)
		ls_pb_float(&message, ATTRIBUTE_F, a->number);
	else if (a->kind == LS_ONNX_INT)
		ls_pb_number(&message, ATTRIBUTE_I, a->integers[0]);
	for (int i = 0; a->kind == LS_ONNX_INTS && i < a->count; i++)
		ls_pb_number(&message, ATTRIBUTE_INTS, a->integers[i]);
	ls_pb_number(&message, ATTRIBUTE_TYPE, types[a->kind]);
	ls_pb_message(node, NODE_ATTRIBUTE, &message);
}

const char *ls_onnx_node(ls_onnx *to, const char *op, const char *const *inputs, const ls_onnx_attribute *attributes)
{
	const char *output = ls_onnx_name(to, op);
	ls_pb node = { 0 };

	for (; *inputs; inputs++)
		ls_pb_text(&node, NODE_INPUT, *inputs);
	ls_pb_text(&node, NODE_OUTPUT, output);
	ls_pb_text(&node, NODE_NAME, output);
	ls_pb_text(&node, NODE_OP, op);
	for (; attributes && attributes->name; attributes++)
		add_attribute(&node, attributes);
	ls_pb_message(&to->nodes, GRAPH_NODE, &node);
	return output;
}

const char *ls_onnx_unary(ls_onnx *to, const char *op, const char *x)
{
	return ls_onnx_node(to, op, (const char *const[]){ x, NULL }, NULL);
}

const char *ls_onnx_binary(ls_onnx *to, const char *op, const char *a, const char *b)
{
	return ls_onnx_node(to, op, (const char *const[]){ a, b, NULL }, NULL);
}

/* ---- constants --------------------------------------------------------------------------------------------------- */

static ls_onnx_constant *add_constant(ls_onnx *to)
{
	if (to->constant_count == to->constant_room) {
		size_t room = to->constant_room > 0 ? 2 * to->constant_room : 64;
		ls_onnx_constant *more = realloc(to->constants, room * sizeof(*more));
		if (!more) {
			to->failed = 1;
			return NULL;
		}
		to->constants = more;
		to->constant_room = room;
	}
	ls_onnx_constant *c = &to->constants[to->constant_count++];
	*c = (ls_onnx_constant){ 0 };
	return c;
}

const char *ls_onnx_param(ls_onnx *to, int row)
{
	const ls_param *param = &to->graph->params.rows[row];
	for (size_t i = 0; i < to->constant_count; i++)
		if (to->constants[i].param == param)
			return param->name;
	ls_onnx_constant *c = add_constant(to);
	if (c) {
		c->name = param->name;
		c->param = param;
		c->rank = param->rank;
		memcpy(c->shape, param->shape, sizeof(c->shape));
	}
	return param->name;
}

/* A list of `count` values, which are copied. */
static ls_onnx_constant *add_list(ls_onnx *to, const char *what, const void *values, int count, size_t each,
				  void **copy)
{
	*copy = ls_arena_alloc(&to->arena, each * (size_t)count);
	ls_onnx_constant *c = *copy ? add_constant(to) : NULL;

	to->failed |= !c;
	if (!c)
		return NULL;
	memcpy(*copy, values, each * (size_t)count);
	*c = (ls_onnx_constant){ .name = ls_onnx_name(to, what), .shape = { count }, .rank = 1 };
	return c;
}

const char *ls_onnx_integers(ls_onnx *to, const int64_t *values, int count)
{
	void *copy = NULL;
	ls_onnx_constant *c = add_list(to, "shape", values, count, sizeof(*values), &copy);

	if (c)
		c->integers = copy;
	return c ? c->name : "";
}

const char *ls_onnx_floats(ls_onnx *to, const float *values, int count)
{
	void *copy = NULL;
	ls_onnx_constant *c = add_list(to, "numbers", values, count, sizeof(*values), &copy);

	if (c)
		c->floats = copy;
	return c ? c->name : "";
}

const char *ls_onnx_scalar(ls_onnx *to, float value)
{
	const ls_onnx_attribute attributes[] = { LS_ONNX_FLOAT_OF("value_float", value), { 0 } };
	return ls_onnx_node(to, "Constant", (const char *const[]){ NULL }, attributes);
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

ls_onnx_form ls_onnx_form_of(const ls_onnx *to, int value)
{
	return to->values[value].form;
}

void ls_onnx_set(ls_onnx *to, int value, const char *name, ls_onnx_form form)
{
	to->values[value] = (ls_onnx_value){ .name = name, .form = form };
}

static const char *reshape(ls_onnx *to, const char *x, int64_t a, int64_t b, int64_t c)
{
	const int64_t shape[] = { 0, a, b, c };
	return ls_onnx_binary(to, "Reshape", x, ls_onnx_integers(to, shape, c ? 4 : b ? 3 : 2));
}

static const char *swap_rows(ls_onnx *to, const char *x)
{
	const ls_onnx_attribute attributes[] = {
		{ .name = "perm", .kind = LS_ONNX_INTS, .integers = { 0, 2, 1 }, .count = 3 }, { 0 }
	};
	return ls_onnx_node(to, "Transpose", (const char *const[]){ x, NULL }, attributes);
}

const char *ls_onnx_read(ls_onnx *to, int value, ls_onnx_form form)
{
	const ls_onnx_value *v = &to->values[value];
	const ls_tensor *t = &to->graph->values[value];
	const int64_t positions = (int64_t)t->height * t->width;

	if (v->form == form)
		return v->name;
	if (form == LS_ONNX_ROWS) /* one position */
		return reshape(to, v->name, t->channels, 0, 0);
	if (form == LS_ONNX_MAPS && v->form == LS_ONNX_ROWS)
		return reshape(to, v->name, t->channels, t->height, t->width);
	if (form == LS_ONNX_MAPS)
		return reshape(to, swap_rows(to, v->name), t->channels, t->height, t->width);
	if (v->form == LS_ONNX_ROWS)
		return reshape(to, v->name, 1, t->channels, 0);
	return swap_rows(to, reshape(to, v->name, t->channels, positions, 0));
}

const char *ls_onnx_read_rows(ls_onnx *to, int value, ls_onnx_form *form)
{
	const ls_tensor *t = &to->graph->values[value];
	*form = t->domain == LS_SAMPLES && t->height * t->width == 1 ? LS_ONNX_ROWS : LS_ONNX_SEQ;
	return ls_onnx_read(to, value, *form);
}
