/*
 * custom_check.c - are the gradients of a custom operator right? (lockstep/operator.h)
 *
 * With random weights w the sum L of w y is a number, whose gradients backward gives for dy = w. Each element is moved
 * by +-h and +-h/2; both central differences together have an error of fourth order. Where the function has a kink
 * nearby they say nothing, and the element is left out. A loss is its own L.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/options.h"
#include "ops/custom.h"
#include "ops/shape.h"

#define STEP 2e-2
#define TOLERANCE 0.01
#define NOISE 1e-4 /* of a slope, by rounding to float */
enum { ELEMENTS = 48, CHANNELS = 5, HEIGHT = 4, WIDTH = 3 };

/* An array that can be moved, and what backward says of it. */
typedef struct probe {
	const char *what; /* "input", "parameter" */
	int number;
	float *values, *gradient; /* (count) */
	int64_t count;
} probe;

enum { PROBES = LS_OPERATOR_INPUTS + LS_OPERATOR_PARAMS };

typedef struct check {
	ls_arena arena;
	const char *name;
	uint64_t seed;
	double tolerance;
	const ls_operator *row;
	const ls_loss *loss;
	ls_operator_call call;
	ls_loss_call loss_call;
	float *y, *w; /* (outputs) */
	int64_t outputs;
	probe probes[PROBES];
	int probe_count;
	int64_t compared, kinks;
} check;

static float *take(check *c, int64_t count)
{
	return ls_arena_alloc(&c->arena, sizeof(float) * (size_t)(count > 0 ? count : 1));
}

/* Random numbers, none of them too small to be moved. */
static float *take_random(check *c, uint64_t stream, int64_t count)
{
	float *values = take(c, count);
	if (values)
		ls_rng_fill_normal(ls_rng_make(c->seed, LS_RNG_TEST, stream), 0, 0, (uint64_t)count, 1, values);
	return values;
}

static ls_status add_probe(check *c, const char *what, int number, int64_t count)
{
	probe p = { .what = what,
		    .number = number,
		    .count = count,
		    .values = take_random(c, 10 + (uint64_t)c->probe_count, count),
		    .gradient = take(c, count) };
	if (!p.values || !p.gradient)
		return ls_fail(LS_EMEMORY, "no memory to check %s", c->name);
	c->probes[c->probe_count++] = p;
	return LS_OK;
}

/* ---- what is checked --------------------------------------------------------------------------------------------- */

static int64_t floats_of(const ls_value_shape *s)
{
	int64_t rows = s->rows == LS_ROWS_MASKED ? 1 : (int64_t)s->height * s->width;
	return rows * s->channels;
}

static ls_status prepare_operator(check *c, const ls_operator_check_options *o)
{
	static const ls_value_shape usual = { .channels = CHANNELS, .height = HEIGHT, .width = WIDTH };
	ls_operator_shape shape = { .options = o->options, .inputs = c->row->inputs };

	for (int k = 0; k < c->row->inputs; k++) {
		shape.input[k] = o->input ? o->input[k] : usual;
		if (shape.input[k].channels < 1 || shape.input[k].height < 1 || shape.input[k].width < 1)
			return ls_fail(LS_EINVALID, "options.input[%d] is %d channels, %d x %d", k,
				       shape.input[k].channels, shape.input[k].height, shape.input[k].width);
	}
	LS_TRY(ls_custom_apply_rule(c->row, c->name, &shape));
	c->call = (ls_operator_call){
		.size = sizeof(c->call), .options = o->options, .is_training = 1, .inputs = shape.inputs
	};
	for (int k = 0; k < shape.inputs; k++) {
		LS_TRY(add_probe(c, "input", k, floats_of(&shape.input[k])));
		c->call.channels[k] = shape.input[k].channels;
		c->call.rows[k] = c->probes[k].count / shape.input[k].channels;
		c->call.x[k] = c->probes[k].values;
	}
	for (int i = 0; i < shape.params; i++) {
		LS_TRY(add_probe(c, "parameter", i, ls_custom_param_floats(&shape.param[i])));
		c->call.param[i] = c->probes[shape.inputs + i].values;
	}
	c->outputs = floats_of(&shape.output);
	c->call.out_channels = shape.output.channels;
	c->call.out_rows = c->outputs / shape.output.channels;
	c->call.y = c->y = take(c, c->outputs);
	c->w = take_random(c, 1, c->outputs);
	return c->y && c->w ? LS_OK : ls_fail(LS_EMEMORY, "no memory to check %s", c->name);
}

static ls_status prepare_loss(check *c, const ls_operator_check_options *o)
{
	int channels = o->channels > 0 ? o->channels : CHANNELS;

	c->loss_call = (ls_loss_call){ .size = sizeof(c->loss_call), .options = o->options, .channels = channels };
	LS_TRY(add_probe(c, "input", 0, channels));
	c->loss_call.x = c->probes[0].values;
	c->loss_call.label = channels > 1 ? (int32_t)(c->seed % (uint64_t)channels) : 1;
	return LS_OK;
}

/* L where the probes are now. */
static double value(check *c)
{
	double sum = 0;

	if (c->loss) {
		ls_loss_call call = c->loss_call;
		return (double)c->loss->row(&call);
	}
	c->row->forward(&c->call);
	for (int64_t i = 0; i < c->outputs; i++)
		sum += (double)c->w[i] * (double)c->y[i];
	return sum;
}

/* Gradients of all probes; what is not written stays NaN, and parameters' are added to 1. */
static void fill_gradients(check *c)
{
	for (int i = 0; i < c->probe_count; i++)
		for (int64_t k = 0; k < c->probes[i].count; k++)
			c->probes[i].gradient[k] = c->row && i >= c->call.inputs ? 1 : NAN;
	if (c->loss) {
		ls_loss_call call = c->loss_call;
		call.dx = c->probes[0].gradient;
		c->loss->row(&call);
		return;
	}
	ls_operator_call call = c->call;
	call.dy = c->w;
	for (int i = 0; i < c->probe_count; i++)
		*(i < call.inputs ? &call.dx[i] : &call.grad[i - call.inputs]) = c->probes[i].gradient;
	c->row->backward(&call);
	for (int i = call.inputs; i < c->probe_count; i++)
		for (int64_t k = 0; k < c->probes[i].count; k++)
			c->probes[i].gradient[k] -= 1;
}

/* ---- the checks -------------------------------------------------------------------------------------------------- */

static ls_status check_forward(check *c)
{
	float *again = take(c, c->outputs);

	if (!again)
		return ls_fail(LS_EMEMORY, "no memory to check %s", c->name);
	for (int64_t i = 0; i < c->outputs; i++)
		c->y[i] = again[i] = NAN;
	value(c);
	c->call.y = again;
	c->row->forward(&c->call);
	c->call.y = c->y;
	for (int64_t i = 0; i < c->outputs; i++) {
		if (!isfinite(c->y[i]))
			return ls_fail(LS_ENUMERIC, "%s: forward has not written y[%lld] of %lld, or it is not finite",
				       c->name, (long long)i, (long long)c->outputs);
		if (memcmp(&c->y[i], &again[i], sizeof(float)) != 0)
			return ls_fail(LS_ENUMERIC,
				       "%s: forward gives %g and then %g for y[%lld]: it must depend on its "
				       "arguments alone",
				       c->name, (double)c->y[i], (double)again[i], (long long)i);
	}
	return LS_OK;
}

/* Slopes of L over `step` in one element: between both sides, and by how much the sides differ. */
typedef struct slopes {
	double both, gap;
} slopes;

static slopes slopes_at(check *c, float *at, double step)
{
	float here = *at;

	double middle = value(c);
	*at = (float)((double)here + step);
	double up = value(c), width_up = (double)*at - (double)here;
	*at = (float)((double)here - step);
	double down = value(c), width_down = (double)here - (double)*at;
	*at = here;
	return (slopes){ .both = (up - down) / (width_up + width_down),
			 .gap = fabs((up - middle) / width_up - (middle - down) / width_down) };
}

/* Where L is smooth, the sides differ by half as much over half the step, and both steps hardly. */
static int has_kink(const slopes *wide, const slopes *narrow, double allowed)
{
	return !(fabs(wide->both - narrow->both) <= allowed && narrow->gap <= 0.75 * wide->gap + allowed / 4);
}

static ls_status check_element(check *c, const probe *p, int64_t k, double largest)
{
	slopes wide = slopes_at(c, &p->values[k], STEP), narrow = slopes_at(c, &p->values[k], STEP / 2);
	double says = (4 * narrow.both - wide.both) / 3, got = (double)p->gradient[k];
	double allowed = c->tolerance * (largest + fabs(says)) + NOISE;

	if (!isfinite(got))
		return ls_fail(
			LS_ENUMERIC,
			"%s: backward has not written element %lld of the gradient of %s %d, or it is not finite",
			c->name, (long long)k, p->what, p->number);
	if (has_kink(&wide, &narrow, allowed)) {
		c->kinks++;
		return LS_OK;
	}
	c->compared++;
	if (fabs(says - got) <= allowed)
		return LS_OK;
	return ls_fail(LS_ENUMERIC,
		       "%s: the gradient of %s %d is %.6g in element %lld, where differences of %s give %.6g", c->name,
		       p->what, p->number, got, (long long)k, c->loss ? "the loss" : "forward", says);
}

static ls_status check_probe(check *c, const probe *p)
{
	double largest = 0;
	int64_t step = p->count > ELEMENTS ? p->count / ELEMENTS : 1;

	for (int64_t k = 0; k < p->count; k++)
		largest = fabs((double)p->gradient[k]) > largest ? fabs((double)p->gradient[k]) : largest;
	for (int64_t k = 0; k < p->count; k += step)
		LS_TRY(check_element(c, p, k, largest));
	return LS_OK;
}

static ls_status run(check *c)
{
	if (c->row)
		LS_TRY(check_forward(c));
	if (c->row && !c->row->backward)
		return LS_OK;
	fill_gradients(c);
	for (int i = 0; i < c->probe_count; i++)
		LS_TRY(check_probe(c, &c->probes[i]));
	if (c->compared < c->kinks)
		return ls_fail(LS_ENUMERIC,
			       "%s: near %lld of %lld elements it has kinks: its gradients cannot be checked", c->name,
			       (long long)c->kinks, (long long)(c->kinks + c->compared));
	return LS_OK;
}

static ls_status read_options(ls_operator_check_options *out, const ls_operator_check_options *given)
{
	*out = (ls_operator_check_options)LS_OPERATOR_CHECK_OPTIONS_INIT;
	return given ? LS_OPTIONS_TAKE(out, given, tolerance, "LS_OPERATOR_CHECK_OPTIONS_INIT") : LS_OK;
}

/* Of c->row or c->loss. */
static ls_status check_custom(check *c, const ls_operator_check_options *o)
{
	c->seed = o->seed;
	c->tolerance = o->tolerance > 0 ? o->tolerance : TOLERANCE;
	ls_status status = c->row ? prepare_operator(c, o) : prepare_loss(c, o);
	if (status == LS_OK)
		status = run(c);
	ls_arena_release(&c->arena);
	return status;
}

ls_status ls_operator_check(const ls_operator *given, const ls_operator_check_options *options)
{
	ls_operator_check_options o;
	ls_operator row;

	LS_TRY(read_options(&o, options));
	LS_TRY(ls_custom_read_operator(&row, given));
	return check_custom(&(check){ .arena = LS_ARENA_INIT, .name = row.name, .row = &row }, &o);
}

ls_status ls_loss_check(const ls_loss *given, const ls_operator_check_options *options)
{
	ls_operator_check_options o;
	ls_loss row;

	LS_TRY(read_options(&o, options));
	LS_TRY(ls_custom_read_loss(&row, given));
	return check_custom(&(check){ .arena = LS_ARENA_INIT, .name = row.name, .loss = &row }, &o);
}
