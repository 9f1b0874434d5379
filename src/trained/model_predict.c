/*
 * model_predict.c - predictions of an ls_model on arrays, and softmax.
 */
#include "backends/devices.h"
#include "base/exact_math.h"
#include "base/handles.h"
#include "trained/model_handle.h"
#include "trained/outputs.h"
#include "trainer/sample_check.h"

/* Weights may have been set since the last time. */
static ls_status begin(ls_model *model)
{
	LS_TRY(ls_model_check_usable(model));
	ls_predictor_options options = { .graph = model->trained.graph,
					 .devices = model->devices,
					 .threads = model->threads };

	if (model->predictor && ls_predictor_is_lost(model->predictor)) { /* this process was forked: it gets its own */
		ls_predictor_free(model->predictor);
		model->predictor = NULL;
	}
	if (!model->predictor) {
		LS_TRY(ls_backend_choose(NULL, &options.backend));
		LS_TRY(ls_predictor_new(&model->predictor, &options));
	}
	ls_predictor_set_params(model->predictor, model->trained.params, model->trained.buffers);
	return LS_OK;
}

static ls_status check_count(int64_t count)
{
	return count >= 0 ? LS_OK : ls_fail(LS_EINVALID, "%lld samples cannot be predicted", (long long)count);
}

ls_status ls_model_predict_unchecked(ls_model *model, const float *images, int64_t count, float *logits)
{
	LS_TRY(check_count(count));
	LS_TRY(begin(model));
	return ls_predictor_run(model->predictor, images, count, logits);
}

ls_status ls_model_predict(ls_model *model, const float *images, int64_t count, float *logits)
{
	LS_TRY(ls_model_check_usable(model));
	const ls_graph *graph = model->trained.graph;
	if (images && graph->tokens_max == 0)
		LS_TRY(ls_sample_check_images(graph, images, count));
	return ls_model_predict_unchecked(model, images, count, logits);
}

ls_status ls_model_predict_text(ls_model *model, const ls_text_sample *samples, int64_t count, float *logits)
{
	LS_TRY(check_count(count));
	LS_TRY(begin(model));
	return ls_predictor_run_text(model->predictor, samples, count, logits);
}

static void softmax_row(float *row, int64_t outputs)
{
	float most = row[0];
	double sum = 0;

	for (int64_t i = 1; i < outputs; i++)
		most = row[i] > most ? row[i] : most;
	for (int64_t i = 0; i < outputs; i++)
		sum += ls_exact_exp((double)row[i] - (double)most);
	for (int64_t i = 0; i < outputs; i++)
		row[i] = (float)(ls_exact_exp((double)row[i] - (double)most) / sum);
}

/* The softmax of (0, x) has it in its second place: the same arithmetic as of classes. */
static void sigmoid_all(float *logits, int64_t count)
{
	for (int64_t i = 0; i < count; i++) {
		float pair[2] = { 0, logits[i] };
		softmax_row(pair, 2);
		logits[i] = pair[1];
	}
}

ls_status ls_model_interpret(const ls_model *model, float *logits, int64_t rows)
{
	LS_TRY(ls_handle_check(model, LS_MODEL_KIND));
	if (rows < 1)
		return LS_OK;
	LS_TRY(ls_argument_check(logits, "logits"));
	const ls_table_schema *s = &model->table;
	int64_t outputs = ls_graph_outputs(model->trained.graph);

	if (model->trained.task == LS_TASK_CLASSIFICATION)
		ls_softmax(logits, rows, outputs);
	else if (model->trained.task == LS_TASK_MULTI_LABEL)
		sigmoid_all(logits, rows * outputs);
	else
		for (int64_t i = 0; s->targets > 0 && i < rows * outputs; i++)
			logits[i] = (float)((double)logits[i] * s->target[i % outputs].deviation +
					    s->target[i % outputs].mean);
	return LS_OK;
}

void ls_softmax(float *logits, int64_t rows, int64_t outputs)
{
	for (int64_t i = 0; i < rows && outputs > 0; i++)
		softmax_row(logits + i * outputs, outputs);
}
