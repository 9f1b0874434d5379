/*
 * cmd_predict.c - lockstep predict: labels and probabilities for files.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include <lockstep/predict.h>

#include "args.h"
#include "choice.h"
#include "command.h"
#include "model_rows.h"

enum { INPUTS_MAX = 1 << 16 };

typedef struct predict_options {
	ls_model_load_options load;
	ls_predict_options predict;
	const char *input_format, *format, *resize, *values;
} predict_options;

#define LOAD(member) offsetof(predict_options, load.member)
#define AT(member) offsetof(predict_options, predict.member)
#define OWN(member) offsetof(predict_options, member)

#define INPUT "Input"
#define OUTPUT "Output"

static const ls_setting rows[] = {
	{ "input-format", 'i', "KIND", INPUT, "read inputs as {values}", LS_SETTING_STRING, OWN(input_format), 0, 0,
	  0 },
	{ "column", 0, "NAME", INPUT, "read this CSV column, a name or number (default: text)", LS_SETTING_STRING,
	  AT(column), 0, 0, 0 },
	{ "values", 0, "KIND", INPUT, "numbers in CSV are {values}", LS_SETTING_STRING, OWN(values), 0, 0, 0 },
	{ "resize", 0, "HOW", INPUT, "images of another size: {values}", LS_SETTING_STRING, OWN(resize), 0, 0, 0 },
	{ "skip-bad", 0, NULL, INPUT, "skip unreadable inputs with a warning", LS_SETTING_FLAG, AT(skip_bad), 0, 1, 0 },

	{ "top", 'k', "K", OUTPUT, "print the K most probable classes", LS_SETTING_INT, AT(top), 1, 1e9, 0 },
	{ "format", 'f', "FORM", OUTPUT, "print {values}", LS_SETTING_STRING, OWN(format), 0, 0, 0 },
	{ "out", 'o', "FILE", OUTPUT, "write to FILE, not to standard output", LS_SETTING_STRING, AT(out), 0, 0, 0 },
	{ "quiet", 'q', NULL, OUTPUT, "print no warnings", LS_SETTING_FLAG, AT(quiet), 0, 1, 0 },

	{ "batch", 'b', "N", LS_MACHINE, "compute N samples at a time, same result", LS_SETTING_INT, AT(batch), 1,
	  1 << 20, LS_SETTING_NOT_0 },
	LS_DEVICE_ROWS(LS_MACHINE, LOAD),
	LS_MODEL_ROWS(LS_MODEL_GROUP, LOAD),
};
LS_ARGS_TABLE(row_at, rows)

/* Names of values; those of a setting stand in the order of its enum. */
static const struct {
	const char *setting;
	ls_setting_value value;
} names[] = {
	{ "input-format", { "auto", "by the first bytes and the file's name (the default)" } },
	{ "input-format", { "image", "PNG or JPEG, one image per file, or a tar file of them" } },
	{ "input-format", { "idx", "IDX, images as MNIST has them" } },
	{ "input-format", { "csv", "CSV, a row of pixels per image, or a column of text" } },
	{ "input-format", { "text", "a text per line" } },
	{ "input-format", { "npy", "a NumPy array of images, .npy or .npz" } },
	{ "values", { "pixels", "from 0 to 255, to be normalised (the default)" } },
	{ "values", { "normalised", "as the model takes them" } },
	{ "format", { "csv", "comma-separated values with a header (the default)" } },
	{ "format", { "jsonl", "a JSON object per line" } },
};

static int value_at(const ls_setting *row, size_t i, ls_setting_value *out)
{
	for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++)
		if (!strcmp(names[k].setting, row->name) && i-- == 0) {
			*out = names[k].value;
			return 1;
		}
	return ls_resize_value_at(row, i, out);
}

static const ls_args args = {
	.command = "lockstep predict",
	.operands = "RUN|FILE.safetensors INPUT...",
	.purpose = "Predict classes of images, rows of numbers or lines of text; - is stdin.",
	.example = "lockstep predict runs/first digit.png --top 3",
	.operands_min = 2,
	.operands_max = INPUTS_MAX,
	.at = row_at,
	.value_at = value_at,
};

static int choose_all(predict_options *o)
{
	int kind = ls_args_choose(&args, "input-format", o->input_format),
	    format = ls_args_choose(&args, "format", o->format);
	int resize = ls_args_choose(&args, "resize", o->resize), values = ls_args_choose(&args, "values", o->values);

	o->predict.kind = (ls_input_kind)kind;
	o->predict.format = (ls_predict_format)format;
	o->predict.resize = (ls_resize)resize;
	o->predict.is_normalised = values;
	return kind >= 0 && format >= 0 && resize >= 0 && values >= 0;
}

/* The name is tried before the model is loaded, which takes a while. */
static ls_status predict(const predict_options *o)
{
	ls_model *model = NULL;
	ls_status status = o->predict.out ? ls_check_file(o->predict.out) : LS_OK;

	if (status == LS_OK)
		status = ls_model_load(&model, &o->load);
	if (status == LS_OK)
		status = ls_predict(model, &o->predict, NULL);
	ls_model_free(model);
	return status;
}

int ls_cmd_predict(int argc, char **argv)
{
	predict_options options = { .load = LS_MODEL_LOAD_OPTIONS_INIT, .predict = LS_PREDICT_OPTIONS_INIT };
	static const char *operands[INPUTS_MAX];
	int code = ls_args_parse(&args, &options, operands, argc, argv);
	if (code != LS_ARGS_GO)
		return code;
	if (!choose_all(&options))
		return LS_EXIT_USAGE;
	options.load.source = operands[0];
	options.predict.inputs = operands + 1;
	while (options.predict.input_count + 1 < INPUTS_MAX && operands[options.predict.input_count + 1])
		options.predict.input_count++;
	if (!options.predict.out) /* a filter: a reader that has enough, like head, ends it in silence */
		signal(SIGPIPE, SIG_DFL);
	ls_status status = predict(&options);
	if (status == LS_EIO && ferror(stdout)) /* main() reports that */
		return LS_EXIT_FAILURE;
	return ls_command_finish(args.command, status);
}
