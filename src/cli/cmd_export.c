/*
 * cmd_export.c - lockstep export: a trained model as a file for other programs.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <lockstep/model.h>

#include "args.h"
#include "command.h"
#include "text_rows.h"

typedef struct export_options {
	ls_model_load_options load;
	const char *onnx, *safetensors;
} export_options;

#define AT(member) offsetof(export_options, load.member)
#define OWN(member) offsetof(export_options, member)

#define OPTIONS "Options"
#define MODEL "Model (where neither the run nor the file says it)"

static const ls_setting rows[] = {
	{ "best", 0, NULL, OPTIONS, "take the run's best weights, not its newest", LS_SETTING_FLAG, AT(best), 0, 1, 0 },
	{ "onnx", 'o', "FILE", OPTIONS, "write an ONNX file (opset 17)", LS_SETTING_STRING, OWN(onnx), 0, 0, 0 },
	{ "safetensors", 's', "FILE", OPTIONS, "write the weights, adapters (LoRA) merged into them", LS_SETTING_STRING,
	  OWN(safetensors), 0, 0, 0 },

	{ "model", 'm', "NAME", MODEL, "name the model", LS_SETTING_STRING, AT(model), 0, 0, 0 },
	{ "input", 0, "CxHxW", MODEL, "give the shape of an image, such as 3x224x224", LS_SETTING_STRING, AT(input), 0,
	  0, 0 },
	{ "data", 'd', "NAME", MODEL, "take the shape of this dataset's samples", LS_SETTING_STRING, AT(data), 0, 0,
	  0 },
	{ "data-dir", 0, "DIR", MODEL, "read its files from DIR", LS_SETTING_STRING, AT(data_dir), 0, 0, 0 },
	LS_TEXT_SIZE_ROWS(MODEL, AT),
};
LS_ARGS_TABLE(row_at, rows)

static const ls_args args = {
	.command = "lockstep export",
	.operands = "RUN|FILE.safetensors",
	.purpose = "Write a run's newest checkpoint, or weights from a file, for other programs.",
	.example = "lockstep export runs/first --onnx first.onnx",
	.operands_min = 1,
	.operands_max = 1,
	.at = row_at,
};

/* An ONNX file has no products in bf16 with sums in fp32. */
static ls_status note_precision(const ls_model *model)
{
	ls_model_facts facts;
	ls_status status = ls_model_describe(model, &facts);

	if (status == LS_OK && strcmp(facts.precision, "fp32") != 0)
		fprintf(stderr,
			"note: the model was trained in %s; the ONNX file computes in fp32, so its logits differ by "
			"about 0.1 %% of the largest\n",
			facts.precision);
	return status;
}

/* The names are tried before the model is loaded, which takes a while. */
static ls_status write_model(const export_options *options)
{
	ls_model *model = NULL;

	ls_status status = options->onnx ? ls_check_file(options->onnx) : LS_OK;
	if (status == LS_OK && options->safetensors)
		status = ls_check_file(options->safetensors);
	if (status == LS_OK)
		status = ls_model_load(&model, &options->load);
	if (status == LS_OK && options->onnx)
		status = ls_model_export_onnx(model, options->onnx);
	if (status == LS_OK && options->onnx)
		status = note_precision(model);
	if (status == LS_OK && options->safetensors)
		status = ls_model_export_safetensors(model, options->safetensors);
	ls_model_free(model);
	return status;
}

static int is_one_inode(const char *a, const char *b)
{
	struct stat first, second;

	return stat(a, &first) == 0 && stat(b, &second) == 0 && first.st_dev == second.st_dev &&
	       first.st_ino == second.st_ino;
}

/* Directory of a path, malloc'd, and the name in it. */
static char *split(const char *path, const char **name)
{
	const char *slash = strrchr(path, '/');

	*name = slash ? slash + 1 : path;
	return slash ? strndup(path, (size_t)(*name - path)) : strdup(".");
}

/* "m" and "./m" are, and neither has to be there yet. */
static int are_one_file(const char *a, const char *b)
{
	const char *name_a, *name_b;
	char *in_a = split(a, &name_a), *in_b = split(b, &name_b);
	int found = is_one_inode(a, b) || (in_a && in_b && !strcmp(name_a, name_b) && is_one_inode(in_a, in_b));

	free(in_a);
	free(in_b);
	return found;
}

int ls_cmd_export(int argc, char **argv)
{
	export_options options = { .load = LS_MODEL_LOAD_OPTIONS_INIT };
	int code = ls_args_parse(&args, &options, &options.load.source, argc, argv);
	if (code != LS_ARGS_GO)
		return code;
	if (!options.onnx && !options.safetensors)
		return ls_usage_error(args.command, "nothing to write: give --onnx FILE or --safetensors FILE");
	if (options.onnx && options.safetensors && are_one_file(options.onnx, options.safetensors))
		return ls_usage_error(args.command, "--onnx and --safetensors are the same file");
	return ls_command_finish(args.command, write_model(&options));
}
