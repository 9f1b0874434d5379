/*
 * cmd_models.c - lockstep models: what each model costs; of one, its layers.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <lockstep/inspect.h>
#include <lockstep/models.h>

#include "args.h"
#include "command.h"
#include "text_table.h"

typedef struct models_options {
	int64_t channels, size, classes;
} models_options;

static const ls_setting rows[] = {
	{ "channels", 0, "N", "Options", "set the channels of an image", LS_SETTING_INT,
	  offsetof(models_options, channels), 1, 4096, 0 },
	{ "image-size", 0, "N", "Options", "set its height and width", LS_SETTING_INT, offsetof(models_options, size),
	  1, 4096, 0 },
	{ "classes", 0, "N", "Options", "set the number of classes", LS_SETTING_INT, offsetof(models_options, classes),
	  1, 1000000, 0 },
};
LS_ARGS_TABLE(row_at, rows)

static const ls_args args = {
	.command = "lockstep models",
	.operands = "[NAME]",
	.purpose = "Print the table of models, or the layers of one. GFLOP: arithmetic to train on\n"
		   "one sample, counting filter taps inside the image; padded GFLOP: all taps, as\n"
		   "usually published. gradient MB: gradient of one step, without taps that see\n"
		   "only padding.",
	.example = "lockstep models --channels 3 --image-size 224 --classes 1000",
	.operands_max = 1,
	.at = row_at,
};

static ls_status build_model(ls_graph **out, const char *name, const models_options *options)
{
	ls_model_options build = LS_MODEL_OPTIONS_INIT;
	build.name = name;
	build.channels = (int)options->channels;
	build.height = build.width = (int)options->size;
	build.classes = (int)options->classes;
	return ls_model_build(out, &build);
}

static ls_status add_model(ls_text_table *table, const ls_model_row *row, const models_options *options)
{
	ls_graph *graph = NULL;
	ls_status status = build_model(&graph, row->name, options);
	if (status)
		return status;
	ls_graph_facts facts = ls_graph_describe(graph);
	ls_graph_free(graph);
	ls_text_table_add(table, "%s", row->name);
	ls_text_table_add(table, "%" PRIu64, facts.parameters);
	ls_text_table_add(table, "%.4f", facts.flop_per_sample / 1e9);
	ls_text_table_add(table, "%.4f", facts.padded_flop_per_sample / 1e9);
	ls_text_table_add(table, "%.2f", (double)facts.gradient_bytes / 1e6);
	ls_text_table_add(table, "%s", row->summary);
	return LS_OK;
}

static ls_status add_models(ls_text_table *table, const models_options *options)
{
	static const char *const heads[] = { "<model", "parameters", "GFLOP", "padded GFLOP", "gradient MB", "<what" };
	ls_status status = LS_OK;
	const ls_model_row *row;

	table->columns = 6;
	memcpy(table->heads, heads, sizeof(heads));
	for (size_t i = 0; !status && (row = ls_model_row_at(i)); i++)
		status = add_model(table, row, options);
	return status;
}

/* ---- the layers of one model ---- */

/* "64x28x28"; of text "up to 128 tokens x 256". */
static void add_shape(ls_text_table *table, const ls_value_shape *s)
{
	if (s->rows == LS_ROWS_POSITIONS)
		ls_text_table_add(table, "%dx%dx%d", s->channels, s->height, s->width);
	else
		ls_text_table_add(table, "%d %s x %d", s->height, s->rows == LS_ROWS_TOKENS ? "tokens" : "predicted",
				  s->channels);
}

/* The numbers of the nodes that it reads; 0 is the input. */
static void add_inputs(ls_text_table *table, const ls_graph_node *node)
{
	char text[64] = "";
	for (int k = 0; k < node->inputs; k++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%d", k ? ", " : "", node->input[k] + 1);
	ls_text_table_add(table, "%s", text);
}

/* A parameter that an earlier node has: words that the last layer uses again. */
static int is_shared(const ls_graph *graph, int i, int param)
{
	ls_graph_node node;

	for (int earlier = 0; earlier < i && ls_graph_node_at(graph, earlier, &node); earlier++)
		for (int k = 0; k < node.params; k++)
			if (node.param[k] == param)
				return 1;
	return 0;
}

static uint64_t count_parameters(const ls_graph *graph, int i, const ls_graph_node *node)
{
	ls_graph_param param;
	uint64_t sum = 0;

	for (int k = 0; k < node->params; k++) {
		uint64_t elements = 1;
		if (!ls_graph_param_at(graph, node->param[k], &param) || !param.is_trained ||
		    is_shared(graph, i, node->param[k]))
			continue;
		for (int d = 0; d < param.rank; d++)
			elements *= (uint64_t)param.shape[d];
		sum += elements;
	}
	return sum;
}

static void add_node(ls_text_table *table, const ls_graph *graph, int i, const ls_graph_node *node)
{
	ls_text_table_add(table, "%d", i + 1);
	ls_text_table_add(table, "%s", node->layer);
	ls_text_table_add(table, "%s%s%s", node->operator_name, node->fused ? ", " : "",
			  node->fused ? node->fused : "");
	add_inputs(table, node);
	if (node->is_loss)
		ls_text_table_add(table, "loss");
	else
		add_shape(table, &node->output);
	ls_text_table_add(table, "%" PRIu64, count_parameters(graph, i, node));
	ls_text_table_add(table, "%.4f", node->flop / 1e9);
}

static ls_status add_layers(ls_text_table *table, const char *name, const models_options *options)
{
	static const char *const heads[] = {
		"node", "<layer", "<operator", "<reads", "<output", "parameters", "GFLOP"
	};
	ls_graph *graph = NULL;
	ls_graph_node node;
	ls_status status = build_model(&graph, name, options);

	if (status)
		return status;
	table->columns = 7;
	memcpy(table->heads, heads, sizeof(heads));
	for (int i = 0; ls_graph_node_at(graph, i, &node); i++)
		add_node(table, graph, i, &node);
	ls_graph_free(graph);
	return LS_OK;
}

int ls_cmd_models(int argc, char **argv)
{
	models_options options = { .channels = 1, .size = 28, .classes = 10 };
	const char *name = NULL;
	int code = ls_args_parse(&args, &options, &name, argc, argv);
	if (code != LS_ARGS_GO)
		return code;
	ls_text_table table = { 0 };
	ls_status status = name ? add_layers(&table, name, &options) : add_models(&table, &options);
	int failed = status ? 0 : ls_text_table_print(&table, stdout);
	ls_text_table_release(&table);
	return failed ? LS_EXIT_FAILURE : ls_command_finish(args.command, status);
}
