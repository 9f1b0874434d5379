#include "run/best.h"

#include <math.h>
#include <string.h>

#include "base/files.h"
#include "base/log.h"
#include "trained/weights.h"
#include "trainer/state_transfer.h"

#define USUAL "loss" /* every model has one */

static const char *name_of(const ls_train_options *o)
{
	return o->keep_best ? o->keep_best : USUAL;
}

/* What was the best loss says nothing about accuracies. */
void ls_best_forget(ls_ckpt_progress *p, const ls_train_options *was, const ls_train_options *now)
{
	if (p->eval_step == 0 || strcmp(name_of(was), name_of(now)) == 0)
		return;
	ls_log_note("evaluations were compared by %s: from now on they are by %s", name_of(was), name_of(now));
	p->eval_step = p->best_step = p->stale = p->has_reference = 0;
	p->best = p->reference = 0;
}

ls_status ls_best_begin(ls_best *b, const ls_setup *s)
{
	const ls_train_options *o = s->options;

	*b = (ls_best){ .setup = s, .value = NAN };
	if ((!o->keep_best && o->early_stop == 0) || !s->evaluator)
		return LS_OK;
	LS_TRY(ls_test_metric_find(name_of(o), s->graph, &b->metric));
	if (!b->metric->counts_classes)
		return LS_OK;
	if (ls_dataset_describe(s->test_set)->targets > 0)
		return ls_fail(LS_EINVALID,
			       "options.keep_best %s needs a label per sample, and dataset %s has float targets",
			       b->metric->name, ls_dataset_describe(s->test_set)->name);
	return ls_class_tally_new(&b->tally, s->graph->values[s->graph->logits].channels);
}

void ls_best_end(ls_best *b)
{
	ls_class_tally_free(b->tally);
	b->tally = NULL;
}

static int is_better(const ls_test_metric *metric, double value, double than, double delta)
{
	return metric->is_lower_better ? value < than - delta : value > than + delta;
}

ls_status ls_best_recall(ls_ckpt_progress *p, const ls_setup *s)
{
	const ls_train_options *o = s->options;
	const ls_test_metric *metric = NULL;
	char path[4096];
	double value = 0;
	uint64_t step = 0;
	int found = 0;

	if (!o->run || !o->keep_best || !s->evaluator)
		return LS_OK;
	LS_TRY(ls_path_join(path, sizeof(path), o->run, LS_WEIGHTS_BEST));
	if (!ls_path_exists(path))
		return LS_OK;
	LS_TRY(ls_test_metric_find(o->keep_best, s->graph, &metric));
	if (ls_weights_read_best(path, metric->name, &value, &step, &found) != LS_OK) {
		ls_log_warning("the next evaluation replaces the best weights of the run: %s", ls_last_error());
		p->best_step = 0;
		return LS_OK;
	}
	if (found && (p->best_step == 0 || is_better(metric, value, p->best, 0))) {
		p->best = value;
		p->best_step = step;
	}
	return LS_OK;
}

/* Of evaluations that are due. The first that is a number is the reference. */
static void count(const ls_best *b, ls_ckpt_progress *p)
{
	double delta = b->setup->options->early_stop_delta;
	int is_first = !p->has_reference;

	p->stale++;
	if (!isfinite(b->value) || (!is_first && !is_better(b->metric, b->value, p->reference, delta)))
		return;
	p->has_reference = 1;
	p->reference = b->value;
	p->stale = 0;
}

static void judge(ls_best *b, ls_ckpt_progress *p)
{
	/* the evaluation that the best weights are of comes again where the run was resumed from before it */
	b->is_new = isfinite(b->value) &&
		    (p->best_step == 0 || p->best_step == p->step || is_better(b->metric, b->value, p->best, 0));
	if (b->is_new) {
		p->best = b->value;
		p->best_step = p->step;
	}
	p->eval_step = p->step;
}

ls_status ls_best_evaluate(ls_best *b, ls_ckpt_progress *p, int is_due, ls_eval_result *out)
{
	ls_node_trainer *t = b->setup->trainer;
	ls_comm *comm = b->setup->layout.comm;
	ls_evaluator_sink sink = b->tally ? ls_class_tally_count : NULL;

	b->is_new = 0;
	LS_TRY(ls_state_share_average(t, comm));
	if (b->tally)
		ls_class_tally_clear(b->tally);
	LS_TRY(ls_evaluator_run(b->setup->evaluator, ls_node_trainer_weights(t), t->buffers, sink, b->tally, out));
	if (b->tally)
		LS_TRY(ls_class_tally_share(b->tally, comm));
	if (!b->metric)
		return LS_OK;
	b->value = b->metric->value(out, b->tally);
	if (p->eval_step == p->step) /* it was counted before a resume */
		return LS_OK;
	judge(b, p);
	if (is_due)
		count(b, p);
	return LS_OK;
}

int ls_best_has_ended(const ls_best *b, const ls_ckpt_progress *p)
{
	int64_t most = b->setup->options->early_stop;
	return b->metric && most > 0 && p->stale >= (uint64_t)most;
}
