#include "evaluation/target_report.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/status.h"
#include "data/dataset.h"
#include "data/readers/table_schema.h"
#include "data/task.h"

ls_status ls_target_scales(const ls_dataset *dataset, double **out)
{
	ls_table_schema s;

	*out = NULL;
	if (!dataset->columns || dataset->info.task != LS_TASK_REGRESSION)
		return LS_OK;
	LS_TRY(ls_table_schema_from_text(&s, dataset->columns, dataset->info.name));
	double *scale = calloc(s.targets, sizeof(*scale));
	for (size_t i = 0; scale && i < s.targets; i++)
		scale[i] = s.target[i].deviation;
	ls_table_schema_release(&s);
	*out = scale;
	return scale ? LS_OK : ls_fail(LS_EMEMORY, "no memory for the units of targets");
}

void ls_target_scores_release(ls_target_scores *s)
{
	if (!s)
		return;
	for (int64_t i = 0; s->names && i < s->outputs; i++)
		free(s->names[i]);
	free(s->names);
	free(s->score);
	*s = (ls_target_scores){ .outputs = 0 };
}

static int copy_names(ls_target_scores *s, const char *const *names)
{
	s->names = calloc((size_t)s->outputs, sizeof(*s->names));
	int is_whole = s->names != NULL;
	for (int64_t i = 0; is_whole && i < s->outputs; i++) {
		s->names[i] = strdup(names[i]);
		is_whole = s->names[i] != NULL;
	}
	return is_whole;
}

ls_status ls_target_scores_make(ls_target_scores *out, const ls_dataset *dataset, const ls_target_sums *sums,
				const double *scale)
{
	const ls_dataset_info *info = &dataset->info;
	ls_target_scores s = { .task = info->task,
			       .outputs = info->targets,
			       .score = calloc((size_t)info->targets, sizeof(*s.score)) };

	if (!s.score || (dataset->class_names && !copy_names(&s, dataset->class_names))) {
		ls_target_scores_release(&s);
		return ls_fail(LS_EMEMORY, "no memory for the scores of %d targets", info->targets);
	}
	for (int i = 0; i < info->targets; i++)
		ls_target_score_of(info->task, &sums[i], (double)info->samples, scale ? scale[i] : 1, &s.score[i]);
	*out = s;
	return LS_OK;
}

/* ---- the file ---------------------------------------------------------------------------------------------------- */

static json_t *score_json(const ls_target_scores *s, int64_t i)
{
	const ls_target_score *score = &s->score[i];
	json_t *object = s->task == LS_TASK_REGRESSION
				 ? json_pack("{s:f,s:f,s:f}", "mae", score->mae, "rmse", score->rmse, "r2", score->r2)
				 : json_pack("{s:I,s:I,s:f,s:f,s:f}", "support", (json_int_t)score->support,
					     "predicted", (json_int_t)score->predicted, "precision", score->precision,
					     "recall", score->recall, "f1", score->f1);

	if (object && s->names)
		json_object_set_new(object, "name", json_string(s->names[i]));
	return object;
}

static json_t *report_json(const ls_eval_result *r, const ls_target_scores *s)
{
	char fingerprint[20];
	json_t *list = json_array(), *root;

	snprintf(fingerprint, sizeof(fingerprint), "%016" PRIx64, r->fingerprint);
	for (int64_t i = 0; i < s->outputs; i++)
		json_array_append_new(list, score_json(s, i));
	root = json_pack("{s:s,s:i,s:s,s:s,s:I,s:f}", "format", "lockstep target metrics", "version", 1, "task",
			 ls_task_name(s->task), "fingerprint", fingerprint, "samples", (json_int_t)r->samples, "loss",
			 r->loss);
	if (root && s->task == LS_TASK_REGRESSION)
		json_object_update_new(root, json_pack("{s:f,s:f,s:f}", "mae", r->mae, "rmse", r->rmse, "r2", r->r2));
	else if (root)
		json_object_update_new(root, json_pack("{s:f,s:f,s:f}", "accuracy", r->accuracy, "micro_f1",
						       r->micro_f1, "macro_f1", r->macro_f1));
	if (root)
		json_object_set_new(root, "targets", list);
	else
		json_decref(list);
	return root;
}

ls_status ls_target_report_write(const ls_eval_result *r, const ls_target_scores *s, const char *path)
{
	json_t *root = report_json(r, s);
	char *text = root ? json_dumps(root, JSON_INDENT(1) | JSON_REAL_PRECISION(9)) : NULL;
	ls_file_draft draft;

	json_decref(root);
	if (!text)
		return ls_fail(LS_EMEMORY, "no memory for the metrics in %s", path);
	ls_status status = ls_file_begin(&draft, path);
	if (status == LS_OK) {
		fprintf(draft.stream, "%s\n", text);
		status = ls_file_finish(&draft, LS_OK);
	}
	free(text);
	return status;
}
