#include "run/class_report.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/files.h"
#include "base/status.h"

static json_t *class_to_json(const ls_class_counts *c, int64_t i)
{
	ls_class_score s;

	ls_class_counts_at(c, i, &s);
	json_t *object = json_pack("{s:I, s:I, s:I, s:I, s:f, s:f, s:f}", "label", (json_int_t)i, "samples",
				   (json_int_t)s.samples, "predicted", (json_int_t)s.predicted, "right",
				   (json_int_t)s.right, "precision", s.precision, "recall", s.recall, "f1", s.f1);
	if (object && c->names)
		json_object_set_new(object, "name", json_string(c->names[i])); /* none where it is not UTF-8 */
	return object;
}

static json_t *row_to_json(const ls_class_counts *c, int64_t i)
{
	json_t *row = json_array();
	for (int64_t k = 0; k < c->classes; k++)
		json_array_append_new(row, json_integer((json_int_t)c->confusion[i * c->classes + k]));
	return row;
}

static json_t *to_json(const ls_eval_result *r, const ls_class_counts *c)
{
	json_t *classes = json_array(), *confusion = json_array();
	char fingerprint[20], top[32];

	snprintf(fingerprint, sizeof(fingerprint), "%016" PRIx64, r->fingerprint);
	snprintf(top, sizeof(top), "top_%" PRId64 "_accuracy", c->top);
	for (int64_t i = 0; i < c->classes; i++) {
		json_array_append_new(classes, class_to_json(c, i));
		json_array_append_new(confusion, row_to_json(c, i));
	}
	return json_pack("{s:s, s:i, s:s, s:I, s:f, s:f, s:f, s:o, s:o}", "format", "lockstep metrics of classes",
			 "version", 1, "fingerprint", fingerprint, "samples", (json_int_t)r->samples, "loss", r->loss,
			 "accuracy", r->accuracy, top, (double)c->among_top / (double)c->samples, "classes", classes,
			 "confusion", confusion);
}

ls_status ls_class_report_write(const ls_eval_result *result, const ls_class_counts *counts, const char *path)
{
	json_t *root = to_json(result, counts);
	char *text = root ? json_dumps(root, JSON_INDENT(1) | JSON_REAL_PRECISION(9)) : NULL;
	ls_status status = text ? ls_file_put_text(path, text) : ls_fail(LS_EMEMORY, "no memory for %s", path);

	free(text);
	json_decref(root);
	return status;
}
