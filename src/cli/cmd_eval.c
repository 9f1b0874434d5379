/*
 * cmd_eval.c - lockstep eval: accuracy of a run or of a file of weights.
 */
#include <inttypes.h>
#include <stdio.h>

#include "args.h"
#include "command.h"

#define AT(member) offsetof(ls_eval_options, member)

static const ls_setting rows[] = {
	{ "data", 'd', "NAME", "Options", "dataset or folder; the run's own when not given", LS_SETTING_STRING,
	  AT(data), 0, 0, 0 },
	{ "data-dir", 0, "DIR", "Options", "where its files are; as the run says, or the cache", LS_SETTING_STRING,
	  AT(data_dir), 0, 0, 0 },
	{ "samples", 0, "N", "Options", "how many samples to use; as the run did, or all", LS_SETTING_COUNT,
	  AT(samples), 0, 0x1p53, 0 },
	{ "model", 'm', "NAME", "Options", "model of a file whose metadata does not name it", LS_SETTING_STRING,
	  AT(model), 0, 0, 0 },
	{ "batch", 'b', "N", "Options", "samples at a time; does not change the result", LS_SETTING_INT, AT(batch), 1,
	  1e9, 0 },
	{ "devices", 0, "N", "Options", "teams of threads that share them; 0: one a core", LS_SETTING_INT, AT(devices),
	  0, LS_THREADS_MAX, 0 },
	{ "threads", 't', "N", "Options", "threads of a device; neither changes the result", LS_SETTING_INT,
	  AT(threads), 1, LS_THREADS_MAX, 0 },
	{ "logits", 0, "FILE", "Options", "also write the model's outputs, as safetensors", LS_SETTING_STRING,
	  AT(logits), 0, 0, 0 },
	{ "quiet", 'q', NULL, "Options", "no progress line", LS_SETTING_FLAG, AT(quiet), 0, 1, 0 },
};
LS_ARGS_TABLE(row_at, rows)

static const ls_args args = {
	.command = "lockstep eval",
	.operands = "RUN|FILE.safetensors",
	.purpose = "Evaluate a run's newest checkpoint, or weights made elsewhere, on the test set.",
	.example = "lockstep eval runs/first",
	.operands_min = 1,
	.operands_max = 1,
	.columns = 1,
	.at = row_at,
};

int ls_cmd_eval(int argc, char **argv)
{
	ls_eval_options options = LS_EVAL_OPTIONS_INIT;
	int code = ls_args_parse(&args, &options, &options.source, argc, argv);
	if (code != LS_ARGS_GO)
		return code;
	ls_eval_result result;
	ls_status status = ls_eval(&options, &result);
	if (status == LS_OK)
		printf("test accuracy: %.4f, loss %.4f, %" PRIu64 " samples in %.2f sec\nparameters xxh64 %016" PRIx64
		       "\n",
		       result.accuracy, result.loss, result.samples, result.seconds, result.fingerprint);
	return ls_command_finish(args.command, status);
}
