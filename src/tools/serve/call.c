#include "tools/serve/call.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "trained/outputs.h"

#define PIXELS_MAX ((uint64_t)1 << 24) /* of an image file: 100 MB of 16-bit colour while it is decoded */

enum { OUTPUTS_MAX = 100000 }; /* in an answer */

int ls_budget_take(ls_budget *b, int64_t bytes)
{
	if (atomic_fetch_add(&b->held, bytes) + bytes <= b->most)
		return 1;
	atomic_fetch_sub(&b->held, bytes);
	return 0;
}

void ls_budget_give(ls_budget *b, int64_t bytes)
{
	atomic_fetch_sub(&b->held, bytes);
}

void ls_call_release(ls_call *call, ls_budget *budget)
{
	free(call->images);
	free(call->texts);
	free(call->tokens);
	free(call->chances);
	ls_budget_give(budget, call->bytes);
	*call = (ls_call){ 0 };
}

static size_t values_of(const ls_model_facts *f)
{
	return (size_t)f->channels * (size_t)f->height * (size_t)f->width;
}

/* A text has a token per character and two more at most, and never more than the model takes. */
static int64_t tokens_of(const ls_call_context *c, const ls_request_bytes *text)
{
	int64_t most = 4 * (int64_t)text->size + 2; /* characters that fall into parts */
	return most < c->facts.tokens_max ? most : c->facts.tokens_max;
}

/* An answer has `top` classes of every input; of values and of several labels, all of them. */
static ls_status check_answer(const ls_model_facts *f, const ls_request *r)
{
	int64_t count = (int64_t)r->count, outputs = f->outputs;

	if (f->task != LS_TASK_CLASSIFICATION && count > 1 && count * outputs > OUTPUTS_MAX)
		return ls_fail(LS_EINVALID,
			       "%lld outputs of %lld inputs are more than %d numbers; send fewer inputs at a time",
			       (long long)outputs, (long long)count, OUTPUTS_MAX);
	if (f->task == LS_TASK_CLASSIFICATION && count * (r->top < outputs ? r->top : outputs) > OUTPUTS_MAX)
		return ls_fail(LS_EINVALID,
			       "\"top\" %lld of %lld inputs are more than %d classes; send fewer inputs at a time",
			       (long long)r->top, (long long)count, OUTPUTS_MAX);
	return LS_OK;
}

static ls_status take_memory(ls_call *out, const ls_call_context *c, const ls_request *r)
{
	int64_t count = (int64_t)r->count, tokens = 0, sample = (int64_t)(values_of(&c->facts) * sizeof(float));

	LS_TRY(check_answer(&c->facts, r));
	for (size_t i = 0; r->kind == LS_REQUEST_TEXTS && i < r->count; i++)
		tokens += tokens_of(c, &r->part[i]);
	int64_t bytes = count * (c->facts.outputs * (int64_t)sizeof(float) + sample) +
			tokens * (int64_t)sizeof(int32_t) + count * (int64_t)sizeof(ls_text_sample);
	if (bytes > c->budget->most / 4)
		return ls_fail(LS_EINVALID, "%lld inputs are too many for one request; send fewer at a time",
			       (long long)count);
	if (!ls_budget_take(c->budget, bytes))
		return ls_fail(LS_EMEMORY, "too many requests are waiting; try again later");
	out->bytes = bytes;
	out->chances = calloc((size_t)(count * c->facts.outputs), sizeof(*out->chances));
	if (r->kind == LS_REQUEST_TEXTS) {
		out->texts = calloc(r->count, sizeof(*out->texts));
		out->tokens = calloc((size_t)tokens + (size_t)c->facts.tokens_max, sizeof(*out->tokens));
	} else {
		out->images = calloc(r->count * values_of(&c->facts), sizeof(*out->images));
	}
	if (out->chances && (out->images || (out->texts && out->tokens)))
		return LS_OK;
	return ls_fail(LS_EMEMORY, "no memory for %lld inputs; try again later", (long long)count);
}

static ls_status check_normalisation(const ls_call_context *c)
{
	if (ls_model_normalisation(c->model))
		return LS_OK;
	return ls_fail(LS_EFORMAT,
		       "this model does not record how its images are normalised; send \"inputs\" with "
		       "\"values\": \"normalised\", or start the server with the mean and deviation of its images");
}

static ls_status make_texts(ls_call *out, const ls_call_context *c, const ls_request *r)
{
	int32_t *at = out->tokens;

	for (size_t i = 0; i < r->count; i++) {
		out->texts[i].tokens = at;
		if (ls_model_tokenize(c->model, r->part[i].bytes, r->part[i].size, &out->texts[i], NULL) != LS_OK)
			return ls_fail_context(LS_EFORMAT, "text[%zu]", i);
		at += out->texts[i].length;
	}
	return LS_OK;
}

static ls_status make_images(ls_call *out, const ls_call_context *c, const ls_request *r)
{
	char name[32];
	ls_image_options how = LS_IMAGE_OPTIONS_INIT;

	LS_TRY(check_normalisation(c));
	how.name = name;
	how.resize = c->resize;
	how.pixels_max = PIXELS_MAX;
	for (size_t i = 0; i < r->count; i++) {
		snprintf(name, sizeof(name), "images[%zu]", i);
		LS_TRY(ls_model_read_image(c->model, r->part[i].bytes, r->part[i].size, &how,
					   out->images + i * values_of(&c->facts)));
	}
	return LS_OK;
}

static ls_status make_numbers(ls_call *out, const ls_call_context *c, const ls_request *r)
{
	size_t values = values_of(&c->facts);

	if (!r->is_normalised)
		LS_TRY(check_normalisation(c));
	memcpy(out->images, r->numbers, r->count * values * sizeof(*out->images));
	for (size_t i = 0; !r->is_normalised && i < r->count; i++)
		if (ls_model_normalise(c->model, out->images + i * values) != LS_OK)
			return ls_fail_context(LS_EFORMAT, "inputs[%zu]", i);
	return LS_OK;
}

/* The columns of one row as texts, as a CSV file has them. */
typedef struct row_texts {
	const char **name, **value; /* (count) */
	char **own;                 /* (count) of values that are no texts; NULL: of the request */
	size_t count;
} row_texts;

static void row_release(row_texts *r)
{
	for (size_t i = 0; r->own && i < r->count; i++)
		free(r->own[i]);
	free(r->own);
	free(r->name);
	free(r->value);
}

static ls_status row_fill(row_texts *r, const json_t *row)
{
	void *at = json_object_iter((json_t *)row); /* which is not changed */
	size_t columns = json_object_size(row);

	r->name = calloc(columns + 1, sizeof(*r->name));
	r->value = calloc(columns + 1, sizeof(*r->value));
	r->own = calloc(columns + 1, sizeof(*r->own));
	if (!r->name || !r->value || !r->own)
		return ls_fail(LS_EMEMORY, "no memory for a row; try again later");
	for (; at; at = json_object_iter_next((json_t *)row, at), r->count++) {
		const json_t *value = json_object_iter_value(at);
		r->name[r->count] = json_object_iter_key(at);
		if (!json_is_string(value) && !json_is_null(value))
			r->own[r->count] = json_dumps(value, JSON_ENCODE_ANY);
		r->value[r->count] = json_is_string(value) ? json_string_value(value)
				     : r->own[r->count]    ? r->own[r->count]
							   : "";
	}
	return LS_OK;
}

static ls_status make_rows(ls_call *out, const ls_call_context *c, const ls_request *r)
{
	ls_status status = LS_OK;

	for (size_t i = 0; status == LS_OK && i < r->count; i++) {
		row_texts texts = { 0 };
		status = row_fill(&texts, json_array_get(r->rows, i));
		if (status == LS_OK)
			status = ls_model_read_row(c->model, texts.name, texts.value, texts.count,
						   out->images + i * values_of(&c->facts));
		row_release(&texts);
		if (status == LS_EFORMAT)
			return ls_fail_context(LS_EFORMAT, "rows[%zu]", i);
	}
	return status;
}

static ls_status make_samples(ls_call *out, const ls_call_context *c, const ls_request *r)
{
	switch (r->kind) {
	case LS_REQUEST_TEXTS:
		return make_texts(out, c, r);
	case LS_REQUEST_IMAGES:
		return make_images(out, c, r);
	case LS_REQUEST_ROWS:
		return make_rows(out, c, r);
	default:
		return make_numbers(out, c, r);
	}
}

ls_status ls_call_check_outputs(const ls_call *call, const ls_model_facts *facts)
{
	for (int64_t i = 0; i < call->job.count; i++)
		LS_TRY(ls_outputs_check(call->chances + i * facts->outputs, facts->outputs, "%s[%lld]", call->field,
					(long long)i));
	return LS_OK;
}

ls_status ls_call_make(ls_call *out, const ls_call_context *context, const ls_request *request)
{
	static const char *const fields[] = { [LS_REQUEST_NUMBERS] = "inputs",
					      [LS_REQUEST_IMAGES] = "images",
					      [LS_REQUEST_TEXTS] = "text",
					      [LS_REQUEST_ROWS] = "rows" };
	ls_call call = { .top = request->top };
	ls_status status = take_memory(&call, context, request);

	if (status == LS_OK)
		status = make_samples(&call, context, request);
	if (status != LS_OK) {
		ls_call_release(&call, context->budget);
		return status;
	}
	call.field = fields[request->kind];
	call.job = (ls_batch_job){
		.count = (int64_t)request->count, .images = call.images, .texts = call.texts, .chances = call.chances
	};
	*out = call;
	return LS_OK;
}
