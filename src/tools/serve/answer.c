#include "tools/serve/answer.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/names.h"
#include "base/topk.h"

enum { DIGITS = 9 }; /* of a number that reads back to the same float */

static char *dump(json_t *root, size_t flags)
{
	char *text = root ? json_dumps(root, flags | JSON_REAL_PRECISION(DIGITS)) : NULL;
	json_decref(root);
	return text;
}

static json_t *class_of(const ls_model *model, int64_t label, float chance)
{
	const char *name = ls_model_class_name(model, label);
	json_t *object = json_pack("{s:I}", "label", (json_int_t)label);

	if (object && name)
		json_object_set_new(object, "name", json_string(name));
	if (object)
		json_object_set_new(object, "probability", json_real((double)chance));
	return object;
}

/* best: (top) labels, the most probable first */
static json_t *prediction_of(const ls_model *model, const float *chances, const int64_t *best, int64_t top)
{
	json_t *object = class_of(model, best[0], chances[best[0]]), *list;

	if (!object || top <= 1)
		return object;
	list = json_array();
	for (int64_t k = 0; k < top; k++)
		json_array_append_new(list, class_of(model, best[k], chances[best[k]]));
	json_object_set_new(object, "top", list);
	return object;
}

/* {"values": {"price": 3.5}}, or a probability for every label. */
static json_t *values_of(const ls_model *model, const ls_model_facts *facts, const float *values)
{
	json_t *object = json_object();
	char room[32];

	for (int64_t i = 0; object && i < facts->outputs; i++) {
		const char *name = ls_model_class_name(model, i);
		snprintf(room, sizeof(room), "output_%" PRId64, i);
		json_object_set_new(object, name ? name : room, json_real((double)values[i]));
	}
	return json_pack("{s:o}", facts->task == LS_TASK_REGRESSION ? "values" : "probabilities", object);
}

char *ls_answer_predictions(const ls_model *model, const ls_model_facts *facts, const float *chances, int64_t count,
			    int64_t top)
{
	int64_t shown = top < 1 ? 1 : top < facts->outputs ? top : facts->outputs;
	int64_t *best = calloc((size_t)shown, sizeof(*best));
	json_t *list = best ? json_array() : NULL;

	for (int64_t i = 0; list && i < count; i++) {
		const float *sample = chances + i * facts->outputs;
		if (facts->task != LS_TASK_CLASSIFICATION) {
			json_array_append_new(list, values_of(model, facts, sample));
			continue;
		}
		ls_topk(sample, facts->outputs, shown, best);
		json_array_append_new(list, prediction_of(model, sample, best, top > 1 ? shown : 1));
	}
	free(best);
	return list ? dump(json_pack("{s:o}", "predictions", list), JSON_COMPACT) : NULL;
}

char *ls_answer_error(const char *message)
{
	char shown[512];
	json_t *root = json_pack("{s:s}", "error", ls_text_printable(shown, sizeof(shown), message));
	if (!root) /* bytes of the request that are no UTF-8 */
		root = json_pack("{s:s}", "error", "the request cannot be read");
	return dump(root, JSON_COMPACT);
}

static json_t *describe_columns(const ls_model *model)
{
	json_t *list = json_array();
	ls_model_column column;

	for (size_t i = 0; ls_model_column_at(model, i, &column); i++) {
		json_t *object = json_object();
		json_object_set_new(object, "name", json_string(column.name));
		json_object_set_new(object, "kind", json_string(column.categories ? "category" : "number"));
		json_t *values = column.categories ? json_array() : NULL;
		for (uint64_t k = 0; k < column.category_count; k++)
			json_array_append_new(values, json_string(column.categories[k]));
		if (values)
			json_object_set_new(object, "values", values);
		json_array_append_new(list, object);
	}
	return list;
}

static json_t *describe_input(const ls_model *model, const ls_model_facts *f)
{
	if (ls_model_column_at(model, 0, NULL))
		return json_pack("{s:s,s:o}", "kind", "table", "columns", describe_columns(model));
	if (f->tokens_max > 0)
		return json_pack("{s:s,s:i,s:i}", "kind", "text", "tokens_max", f->tokens_max, "vocabulary",
				 f->vocabulary);
	return json_pack("{s:s,s:[iii],s:s}", "kind", "image", "shape", f->channels, f->height, f->width, "values",
			 "pixels from 0 to 255, or \"values\": \"normalised\"");
}

static json_t *describe_names(const ls_model *model, int64_t outputs)
{
	json_t *list = json_array();

	for (int64_t i = 0; i < outputs && ls_model_class_name(model, i); i++)
		json_array_append_new(list, json_string(ls_model_class_name(model, i)));
	return list;
}

static const char *show_request(const ls_model *model, const ls_model_facts *f)
{
	if (ls_model_column_at(model, 0, NULL))
		return f->task == LS_TASK_CLASSIFICATION ? "{\"rows\": [{\"COLUMN\": VALUE, ...}], \"top\": 1}"
							 : "{\"rows\": [{\"COLUMN\": VALUE, ...}]}";
	if (f->tokens_max > 0)
		return f->task == LS_TASK_CLASSIFICATION ? "{\"text\": [\"...\"], \"top\": 1}"
							 : "{\"text\": [\"...\"]}";
	return "{\"inputs\": [[...]]} or {\"images\": [\"base64\"]}, \"top\": 1; or an image file";
}

/* How many "classes", "labels" or "targets" there are. */
static const char *outputs_name(ls_task task)
{
	return task == LS_TASK_REGRESSION ? "targets" : task == LS_TASK_MULTI_LABEL ? "labels" : "classes";
}

char *ls_answer_description(const ls_model *model, const ls_model_facts *f)
{
	char fingerprint[20];
	json_t *root;

	snprintf(fingerprint, sizeof(fingerprint), "%016" PRIx64, f->fingerprint);
	root = json_pack("{s:s,s:s,s:I,s:o,s:I,s:o,s:{s:s,s:s,s:s}}", "model", f->name ? f->name : "model",
			 "fingerprint", fingerprint, "parameters", (json_int_t)f->parameters, "input",
			 describe_input(model, f), outputs_name(f->task), (json_int_t)f->outputs, "names",
			 describe_names(model, f->outputs), "paths", "POST /predict", show_request(model, f),
			 "GET /healthz", "whether it answers", "GET /metrics", "counters, as Prometheus reads them");
	return dump(root, JSON_INDENT(2));
}
