/*
 * predict.c - lockstep/predict.h: samples of files in batches through a model, and lines of what it makes of them.
 */
#include <lockstep/predict.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/handles.h"
#include "base/log.h"
#include "base/names.h"
#include "base/options.h"
#include "base/status.h"
#include "predict/inputs.h"
#include "predict/prediction_lines.h"
#include "trained/model_handle.h"
#include "trained/outputs.h"

#define BATCH_MAX ((int64_t)1 << 20)
#define BATCH_DEFAULT 256
#define BATCH_BYTES ((size_t)64 << 20) /* of images, unless the options say how many */

typedef struct prediction {
	ls_model *model;
	const ls_predict_options *options;
	ls_model_facts facts;
	size_t values; /* of an image */
	int64_t batch, count;
	float *images;         /* (batch, values), or: */
	ls_text_sample *texts; /* (batch) */
	int32_t *tokens;       /* (batch, tokens_max) */
	struct {
		const char *input;
		uint64_t row;
	} * from;      /* (batch) */
	float *logits; /* (batch, outputs) */
	ls_inputs *inputs;
	ls_prediction_lines lines;
	ls_predict_result result;
} prediction;

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static int64_t choose_batch(const prediction *p)
{
	int64_t fitting = p->values > 0 ? (int64_t)(BATCH_BYTES / (p->values * sizeof(float))) : BATCH_DEFAULT;

	if (p->options->batch > 0)
		return p->options->batch;
	return fitting > BATCH_DEFAULT ? BATCH_DEFAULT : fitting > 1 ? fitting : 1;
}

static ls_status take_memory(prediction *p)
{
	size_t batch = (size_t)p->batch, longest = (size_t)p->facts.tokens_max;

	p->from = calloc(batch, sizeof(*p->from));
	p->logits = calloc(batch * (size_t)p->facts.outputs, sizeof(*p->logits));
	if (longest > 0) {
		p->texts = calloc(batch, sizeof(*p->texts));
		p->tokens = calloc(batch * longest, sizeof(*p->tokens));
	} else {
		p->images = calloc(batch * p->values, sizeof(*p->images));
	}
	if (!p->from || !p->logits || !(p->images || (p->texts && p->tokens)))
		return ls_fail(LS_EMEMORY, "no memory for %lld samples at a time; choose fewer with options.batch",
			       (long long)p->batch);
	for (size_t i = 0; longest > 0 && i < batch; i++)
		p->texts[i].tokens = p->tokens + i * longest;
	return LS_OK;
}

static void release(prediction *p)
{
	ls_inputs_free(p->inputs);
	ls_prediction_lines_end(&p->lines);
	free(p->from);
	free(p->logits);
	free(p->texts);
	free(p->tokens);
	free(p->images);
}

/* ---- batches ----------------------------------------------------------------------------------------------------- */

/* Bad inputs are skipped on request; what concerns every sample ends the run. */
static ls_status take_bad(prediction *p, ls_status status)
{
	if (!p->options->skip_bad || status == LS_EMEMORY || status == LS_EINVALID)
		return status;
	p->result.bad++;
	if (!p->options->quiet)
		ls_log_warning("skipped: %s", ls_last_error());
	return LS_OK;
}

static ls_status put_row(prediction *p, int64_t i)
{
	const float *outputs = p->logits + i * p->facts.outputs;
	ls_status status = ls_outputs_check(outputs, p->facts.outputs, "%s:%llu", p->from[i].input,
					    (unsigned long long)p->from[i].row);

	if (status != LS_OK)
		return take_bad(p, status);
	ls_prediction_lines_add(&p->lines, p->from[i].input, p->from[i].row, outputs);
	p->result.predicted++;
	return LS_OK;
}

/* What has been read, computed and written. A reader sees it at once: standard input may be a pipe that goes on. */
static ls_status flush_batch(prediction *p)
{
	if (p->count == 0)
		return LS_OK;
	LS_TRY(p->texts ? ls_model_predict_text(p->model, p->texts, p->count, p->logits)
			: ls_model_predict_unchecked(p->model, p->images, p->count, p->logits));
	LS_TRY(ls_model_interpret(p->model, p->logits, p->count));
	ls_status status = LS_OK;
	for (int64_t i = 0; status == LS_OK && i < p->count; i++)
		status = put_row(p, i);
	p->count = 0;
	if (fflush(p->lines.to) != 0 || ferror(p->lines.to))
		return ls_fail_errno(LS_EIO, "cannot write predictions to %s",
				     p->options->out ? p->options->out : "standard output");
	return status;
}

/* Predictions of what came before a bad input are written before it is reported. */
static ls_status stop_at(prediction *p, ls_status status)
{
	char *message = strdup(ls_last_error());
	ls_status written = flush_batch(p);

	if (written == LS_OK && message)
		ls_fail(status, "%s", message);
	free(message);
	return written == LS_OK ? status : written;
}

static ls_status run_inputs(prediction *p)
{
	int found = 1;

	while (found) {
		ls_input_sample sample = { 0 };
		if (p->texts)
			sample.text = &p->texts[p->count];
		else
			sample.image = p->images + (size_t)p->count * p->values;
		ls_status status = ls_inputs_next(p->inputs, &sample, &found);
		if (status != LS_OK) {
			status = take_bad(p, status);
			if (status != LS_OK)
				return stop_at(p, status);
			found = 1;
			continue;
		}
		if (!found)
			break;
		p->from[p->count].input = sample.input;
		p->from[p->count++].row = sample.row;
		p->result.cut += (uint64_t)sample.is_cut;
		if (p->count == p->batch)
			LS_TRY(flush_batch(p));
	}
	return flush_batch(p);
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

static ls_status check(const ls_predict_options *o)
{
	if (o->input_count == 0)
		return ls_fail(LS_EINVALID, "options.inputs is empty: name files, or - for standard input");
	if (o->batch < 0 || o->batch > BATCH_MAX)
		return ls_fail(LS_EINVALID, "options.batch is %lld; it must be from 0 to %lld", (long long)o->batch,
			       (long long)BATCH_MAX);
	return LS_OK;
}

static ls_status prepare(prediction *p, FILE *to)
{
	LS_TRY(check(p->options));
	LS_TRY(ls_model_describe(p->model, &p->facts));
	if (p->facts.predicts_next)
		return ls_fail(LS_EUNSUPPORTED,
			       "the model predicts the next token, not a class: `lockstep generate` uses it");
	p->values = (size_t)p->facts.channels * (size_t)p->facts.height * (size_t)p->facts.width;
	p->batch = choose_batch(p);
	LS_TRY(take_memory(p));
	LS_TRY(ls_inputs_new(&p->inputs, p->model, p->options));
	return ls_prediction_lines_begin(&p->lines, to, p->model, p->options);
}

static ls_status predict_to(ls_model *model, const ls_predict_options *options, FILE *to, ls_predict_result *result)
{
	prediction p = { .model = model, .options = options };
	ls_status status = prepare(&p, to);

	if (status == LS_OK)
		status = run_inputs(&p);
	if (status == LS_OK && p.result.predicted == 0 && p.result.bad > 0)
		status = ls_fail(LS_EFORMAT, "nothing was predicted: all inputs were left out");
	if (!options->quiet && p.result.cut > 0)
		ls_log_note("%llu text%s had more than %d tokens and %s cut", (unsigned long long)p.result.cut,
			    ls_plural(p.result.cut, "s"), p.facts.tokens_max, p.result.cut == 1 ? "was" : "were");
	if (!options->quiet && p.result.bad > 0)
		ls_log_note("%llu input%s skipped", (unsigned long long)p.result.bad, ls_plural(p.result.bad, "s"));
	if (status == LS_OK && result)
		*result = p.result;
	release(&p);
	return status;
}

ls_status ls_predict(ls_model *model, const ls_predict_options *options, ls_predict_result *result)
{
	ls_predict_options own = LS_PREDICT_OPTIONS_INIT;
	ls_file_draft draft;

	LS_TRY(LS_OPTIONS_TAKE(&own, options, quiet, "LS_PREDICT_OPTIONS_INIT"));
	LS_TRY(ls_handle_check(model, LS_MODEL_KIND));
	if (!own.out)
		return predict_to(model, &own, stdout, result);
	LS_TRY(ls_file_begin(&draft, own.out));
	return ls_file_finish(&draft, predict_to(model, &own, draft.stream, result));
}
