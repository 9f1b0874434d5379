#include "settings/class_weights.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/names.h"
#include "base/status.h"
#include "data/dataset.h"
#include "data/task.h"
#include "graph/task.h"

static ls_status count_labels(const ls_dataset *set, uint64_t *count)
{
	float *room = malloc(ls_dataset_values(&set->info) * sizeof(*room) + 1);
	ls_status status = room ? LS_OK : ls_fail(LS_EMEMORY, "no memory for a sample");

	for (uint64_t i = 0; status == LS_OK && i < set->info.samples; i++) {
		int32_t label = 0;
		status = ls_dataset_read_label(set, i, room, &label);
		if (status == LS_OK)
			count[label]++;
	}
	free(room);
	return status;
}

/* "1.25,0.8": as short as reads back to the same float. */
static char *to_text(const ls_dataset *set, const uint64_t *count)
{
	double samples = (double)set->info.samples, classes = set->info.classes;
	char *text = NULL;
	size_t bytes = 0;
	FILE *to = open_memstream(&text, &bytes);

	for (int i = 0; to && i < set->info.classes; i++)
		fprintf(to, "%s%.9g", i > 0 ? "," : "",
			count[i] > 0 ? (double)(float)(samples / (classes * (double)count[i])) : 1);
	if (!to || fclose(to) != 0) {
		free(text);
		return NULL;
	}
	return text;
}

static ls_status balance(char **out, const ls_dataset *set)
{
	uint64_t *count = calloc((size_t)set->info.classes, sizeof(*count));
	ls_status status = count ? count_labels(set, count) : ls_fail(LS_EMEMORY, "no memory for counts of classes");

	if (status == LS_OK) {
		*out = to_text(set, count);
		status = *out ? LS_OK : ls_fail(LS_EMEMORY, "no memory for the weights of classes");
	}
	free(count);
	return status;
}

ls_status ls_class_weights_resolve(char **out, const ls_train_options *o, const ls_dataset *train)
{
	const ls_dataset_info *info = ls_dataset_describe(train);

	*out = NULL;
	if (!o->class_weights || !strcmp(o->class_weights, "none"))
		return LS_OK;
	if (info->task != LS_TASK_CLASSIFICATION || info->masked_max > 0)
		return ls_fail(LS_EINVALID, "options.class_weights is for classes, and dataset %s is for %s",
			       info->name, info->masked_max > 0 ? "predicting tokens" : ls_task_title(info->task));
	if (!strcmp(o->class_weights, "auto"))
		return balance(out, train);
	*out = strdup(o->class_weights);
	return *out ? LS_OK : ls_fail(LS_EMEMORY, "no memory for the weights of classes");
}

static ls_status parse(float *weight, int classes, const char *list)
{
	const char *at = list;

	for (int i = 0; i < classes; i++) {
		size_t length = ls_decimal_span(at);
		double value = length > 0 ? strtod(at, NULL) : -1;
		if (length == 0 || !isfinite(value) || value < 0 || at[length] != (i + 1 < classes ? ',' : '\0'))
			return ls_fail(
				LS_EINVALID,
				"options.class_weights is '%s'; it is auto, none, or a number of 0 or more for each of "
				"the %d classes, with commas between them",
				list, classes);
		weight[i] = (float)value;
		at += length + 1;
	}
	return LS_OK;
}

ls_status ls_class_weights_set(ls_graph *graph, const char *list)
{
	int classes = ls_graph_outputs(graph);

	if (!list || !strcmp(list, "none") || !strcmp(list, "auto") || graph->predicts_next)
		return LS_OK;
	float *weight = calloc((size_t)classes, sizeof(*weight));
	ls_status status =
		weight ? parse(weight, classes, list) : ls_fail(LS_EMEMORY, "no memory for the weights of classes");
	if (status == LS_OK)
		status = ls_graph_weigh_classes(graph, weight);
	free(weight);
	return status;
}
