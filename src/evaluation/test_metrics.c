#include "evaluation/test_metrics.h"

#include "base/names.h"

static int is_language(const ls_graph *graph)
{
	return graph->predicts_next;
}

static int is_pretraining(const ls_graph *graph)
{
	return !graph->predicts_next && graph->masked_max > 0;
}

static int classifies(const ls_graph *graph)
{
	return !graph->predicts_next && graph->masked_max == 0 && ls_graph_task(graph) == LS_TASK_CLASSIFICATION;
}

static double loss(const ls_eval_result *r, const ls_class_tally *tally)
{
	(void)tally;
	return r->loss;
}

static double accuracy(const ls_eval_result *r, const ls_class_tally *tally)
{
	(void)tally;
	return r->accuracy;
}

static double perplexity(const ls_eval_result *r, const ls_class_tally *tally)
{
	(void)tally;
	return r->perplexity;
}

static double masked_loss(const ls_eval_result *r, const ls_class_tally *tally)
{
	(void)tally;
	return r->token_loss;
}

static double masked_accuracy(const ls_eval_result *r, const ls_class_tally *tally)
{
	(void)tally;
	return r->token_accuracy;
}

static int has_accuracy(const ls_graph *graph)
{
	return ls_graph_task(graph) != LS_TASK_REGRESSION;
}

static int is_regression(const ls_graph *graph)
{
	return ls_graph_task(graph) == LS_TASK_REGRESSION;
}

static int has_labels(const ls_graph *graph)
{
	return ls_graph_task(graph) == LS_TASK_MULTI_LABEL;
}

static double mae(const ls_eval_result *r, const ls_class_tally *tally)
{
	(void)tally;
	return r->mae;
}

static double rmse(const ls_eval_result *r, const ls_class_tally *tally)
{
	(void)tally;
	return r->rmse;
}

static double r2(const ls_eval_result *r, const ls_class_tally *tally)
{
	(void)tally;
	return r->r2;
}

static double micro_f1(const ls_eval_result *r, const ls_class_tally *tally)
{
	(void)tally;
	return r->micro_f1;
}

static double macro_f1(const ls_eval_result *r, const ls_class_tally *tally)
{
	(void)tally;
	return r->macro_f1;
}

static double f1(const ls_eval_result *r, const ls_class_tally *tally)
{
	(void)r;
	return ls_class_tally_f1(tally);
}

static double top5(const ls_eval_result *r, const ls_class_tally *tally)
{
	(void)r;
	return ls_class_tally_top5(tally);
}

#define CLASSIFIERS "models that classify"
#define REGRESSION "regression"
#define MULTI_LABEL "data with several labels"
#define ACCURATE "models that predict labels"
#define LANGUAGE "language models"
#define PRETRAINING "models in pretraining"

/* name, summary, title, is_lower_better, counts_classes, fits, of, value */
static const ls_test_metric rows[] = {
	{ "loss", "the test loss, lower is better", "test loss", 1, 0, NULL, NULL, loss },
	{ "accuracy", "the test accuracy", "test accuracy", 0, 0, has_accuracy, ACCURATE, accuracy },
	{ "f1", "the mean of the classes' F1", "macro F1", 0, 1, classifies, CLASSIFIERS, f1 },
	{ "top5", "the top-5 accuracy", "top-5 accuracy", 0, 1, classifies, CLASSIFIERS, top5 },
	{ "perplexity", "of language models, lower is better", "perplexity", 1, 0, is_language, LANGUAGE, perplexity },
	{ "masked-loss", "of masked tokens, lower is better", "masked loss", 1, 0, is_pretraining, PRETRAINING,
	  masked_loss },
	{ "masked-accuracy", "of masked tokens", "masked accuracy", 0, 0, is_pretraining, PRETRAINING,
	  masked_accuracy },
	{ "mae", "the mean absolute error, lower is better", "MAE", 1, 0, is_regression, REGRESSION, mae },
	{ "rmse", "the root of the mean square error, lower is better", "RMSE", 1, 0, is_regression, REGRESSION, rmse },
	{ "r2", "the coefficient of determination", "R2", 0, 0, is_regression, REGRESSION, r2 },
	{ "micro-f1", "F1 over all labels together", "micro F1", 0, 0, has_labels, MULTI_LABEL, micro_f1 },
	{ "macro-f1", "the mean of all labels' F1", "macro F1", 0, 0, has_labels, MULTI_LABEL, macro_f1 },
};

const ls_test_metric *ls_test_metric_at(size_t i)
{
	return i < sizeof(rows) / sizeof(rows[0]) ? &rows[i] : NULL;
}

static const char *name_at(size_t i)
{
	const ls_test_metric *row = ls_test_metric_at(i);
	return row ? row->name : NULL;
}

ls_status ls_test_metric_find(const char *name, const ls_graph *graph, const ls_test_metric **out)
{
	size_t row;

	LS_TRY(ls_name_find("metric", name, name_at, &row));
	if (rows[row].fits && !rows[row].fits(graph))
		return ls_fail(LS_EINVALID, "options.keep_best %s is of %s, and this model is none", name,
			       rows[row].of);
	*out = &rows[row];
	return LS_OK;
}
