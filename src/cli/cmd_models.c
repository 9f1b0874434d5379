/*
 * cmd_models.c - lockstep models: what each model costs.
 */
#include <inttypes.h>
#include <stdio.h>

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
	{ "size", 0, "N", "Options", "set its height and width", LS_SETTING_INT, offsetof(models_options, size), 1,
	  4096, 0 },
	{ "classes", 0, "N", "Options", "set the number of classes", LS_SETTING_INT, offsetof(models_options, classes),
	  1, 1000000, 0 },
};
LS_ARGS_TABLE(row_at, rows)

static const ls_args args = {
	.command = "lockstep models",
	.purpose = "Print the table of models. GFLOP: arithmetic to train on one sample, counting\n"
		   "filter taps inside the image; padded GFLOP: all taps, as usually published.\n"
		   "gradient MB: gradient of one step, without taps that see only padding.",
	.example = "lockstep models --channels 3 --size 224 --classes 1000",
	.at = row_at,
};

static ls_status add_model(ls_text_table *table, const ls_model_row *row, const models_options *options)
{
	ls_model_options build = LS_MODEL_OPTIONS_INIT;
	build.name = row->name;
	build.channels = (int)options->channels;
	build.height = build.width = (int)options->size;
	build.classes = (int)options->classes;
	ls_graph *graph = NULL;
	ls_status status = ls_model_build(&graph, &build);
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

int ls_cmd_models(int argc, char **argv)
{
	models_options options = { .channels = 1, .size = 28, .classes = 10 };
	int code = ls_args_parse(&args, &options, NULL, argc, argv);
	if (code != LS_ARGS_GO)
		return code;
	ls_text_table table = { .columns = 6,
				.heads = { "<model", "parameters", "GFLOP", "padded GFLOP", "gradient MB", "<what" } };
	ls_status status = LS_OK;
	const ls_model_row *row;
	for (size_t i = 0; !status && (row = ls_model_row_at(i)); i++)
		status = add_model(&table, row, &options);
	int failed = status ? 0 : ls_text_table_print(&table, stdout);
	ls_text_table_release(&table);
	return failed ? LS_EXIT_FAILURE : ls_command_finish(args.command, status);
}
