/*
 * Weights of every model for another number of classes: the layer of classes keeps its values, every other tensor is
 * the file's, element by element.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <lockstep/models.h>

#include "checkpoint/checkpoint.h"
#include "checkpoint/tensors.h"
#include "graph/graph.h"
#include "unit/test_main.h"

enum { FROM = 10, TO = 7 };
static const float untouched = -77;

typedef struct weights {
	ls_graph *graph;
	float *params, *buffers;
} weights;

static weights make(const char *name, int classes)
{
	ls_model_options options = { .size = sizeof(ls_model_options), .name = name, .classes = classes };
	options.text = (ls_text_model){ .tokens = 16, .vocabulary = 50, .layers = 1, .hidden = 32, .heads = 2 };
	if (strncmp(name, "bert", 4) == 0)
		options.text.layers = options.text.hidden = options.text.heads = 0;
	weights w;
	assert_int_equal(ls_model_build(&w.graph, &options), LS_OK);
	w.params = calloc(w.graph->params.total + 1, sizeof(float));
	w.buffers = calloc(w.graph->params.buffers + 1, sizeof(float));
	assert_true(w.params && w.buffers);
	return w;
}

static void set_all(weights *w, int distinct)
{
	for (size_t i = 0; i < w->graph->params.total; i++)
		w->params[i] = distinct ? (float)(i % 65521) + 1 : untouched;
	for (size_t i = 0; i < w->graph->params.buffers; i++)
		w->buffers[i] = distinct ? (float)(i % 65521) + 2 : untouched;
}

static void release(weights *w)
{
	free(w->params);
	free(w->buffers);
	ls_graph_free(w->graph);
}

static void save(const weights *w, const char *path)
{
	ls_ckpt_content content = { .table = &w->graph->params };
	ls_ckpt_tensors entries;
	assert_int_equal(ls_ckpt_tensors_model(&entries, &w->graph->params, w->params, w->buffers, 3), LS_OK);
	assert_int_equal(ls_ckpt_tensors_write(&entries, path, &content, NULL), LS_OK);
	ls_ckpt_tensors_release(&entries);
}

static float *values_of(const weights *w, const ls_param *param)
{
	float *out = malloc((ls_param_elements(param) + 1) * sizeof(float));
	assert_non_null(out);
	ls_param_export(param, LS_STORE_WHOLE, ls_param_is_trained(param) ? w->params : w->buffers, out);
	return out;
}

/* Returns whether the row belongs to the head. */
static int check_row(const weights *from, const weights *to, size_t row, const char *head)
{
	const ls_param *param = &to->graph->params.rows[row], *source = &from->graph->params.rows[row];
	size_t length = strlen(head), elements = ls_param_elements(param);
	int is_head = strncmp(param->name, head, length) == 0 && param->name[length] == '.';

	assert_string_equal(param->name, source->name);
	if (param->role == LS_ROLE_COUNTER)
		return 0;
	float *got = values_of(to, param), *want = values_of(from, source);
	for (size_t i = 0; i < elements; i++)
		if (got[i] != (is_head ? untouched : want[i]))
			fail_msg("%s[%zu] is %g, expected %g", param->name, i, (double)got[i],
				 is_head ? (double)untouched : (double)want[i]);
	free(got);
	free(want);
	return is_head;
}

static void check_model(const char *name, const char *head)
{
	char path[] = "/tmp/lockstep-heads-XXXXXX";
	weights from = make(name, FROM), to = make(name, TO);
	int64_t counter, rows = 0;
	int file = mkstemp(path);

	assert_true(file >= 0);
	close(file);
	set_all(&from, 1);
	set_all(&to, 0);
	save(&from, path);
	assert_string_equal(ls_graph_head(to.graph), head);
	ls_ckpt_import how = { .fresh_heads = 1, .head = ls_graph_head(to.graph) };
	assert_int_equal(ls_ckpt_load_weights(path, &to.graph->params, &how, to.params, to.buffers, &counter), LS_OK);
	assert_int_equal(from.graph->params.count, to.graph->params.count);
	for (size_t i = 0; i < to.graph->params.count; i++)
		rows += check_row(&from, &to, i, head);
	assert_int_equal(rows, 2); /* weight and bias */
	how.fresh_heads = 0;
	assert_int_equal(ls_ckpt_load_weights(path, &to.graph->params, &how, to.params, to.buffers, &counter),
			 LS_EMISMATCH);
	release(&from);
	release(&to);
	unlink(path);
}

static void every_model(void **state)
{
	(void)state;
	check_model("mlp", "fc3");
	check_model("cnn", "fc2");
	check_model("resnet18", "fc");
	check_model("resnet50", "fc");
	check_model("transformer", "fc");
	check_model("bert-tiny", "classifier");
}

TEST_MAIN(every_model)
