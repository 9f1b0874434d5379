/*
 * cmd_eval.c - lockstep eval: evaluate a run or a file of weights.
 */
#include <inttypes.h>
#include <stdio.h>

#include "args.h"
#include "command.h"
#include "eval_print.h"
#include "text_rows.h"

typedef struct eval_options {
	ls_eval_options eval;
	int per_class;
} eval_options;

#define AT(member) offsetof(eval_options, eval.member)
#define OWN(member) offsetof(eval_options, member)

#define OPTIONS "Options"
#define TEXT "Text (where neither the run nor the file says it)"

static const ls_setting rows[] = {
	{ "data", 'd', "NAME", OPTIONS, "evaluate on this dataset, folder or file (default: the run's)",
	  LS_SETTING_STRING, AT(data), 0, 0, 0 },
	{ "data-dir", 0, "DIR", OPTIONS, "read its files from DIR (default: the run's)", LS_SETTING_STRING,
	  AT(data_dir), 0, 0, 0 },
	{ "samples", 0, "N", OPTIONS, "use N samples (default: the run's number, or all)", LS_SETTING_COUNT,
	  AT(samples), 0, 0x1p53, LS_SETTING_NOT_0 },
	{ "skip-bad", 0, "N", OPTIONS, "skip up to N unreadable rows or files (default: as the run did)",
	  LS_SETTING_COUNT, AT(skip_bad), 0, 0x1p53, 0 },
	{ "cache", 0, "WHERE", OPTIONS, "keep decoded images of a folder: auto, off, or a folder (default: the run's)",
	  LS_SETTING_STRING, AT(cache), 0, 0, 0 },
	{ "model", 'm', "NAME", OPTIONS, "name the model of a file that does not say it", LS_SETTING_STRING, AT(model),
	  0, 0, 0 },
	{ "batch", 'b', "N", OPTIONS, "compute N samples at a time, same result", LS_SETTING_INT, AT(batch), 1, 1e9,
	  0 },
	{ "devices", 0, "N", OPTIONS, "use N devices (default: one per core)", LS_SETTING_INT, AT(devices), 0,
	  LS_THREADS_MAX, 0 },
	{ "threads", 't', "N", OPTIONS, "use N threads per device", LS_SETTING_INT, AT(threads), 1, LS_THREADS_MAX, 0 },
	{ "best", 0, NULL, OPTIONS, "evaluate the run's best weights, not its newest", LS_SETTING_FLAG, AT(best), 0, 1,
	  0 },
	{ "logits", 0, "FILE", OPTIONS, "write the model's outputs as safetensors", LS_SETTING_STRING, AT(logits), 0, 0,
	  0 },
	{ "per-class", 0, NULL, OPTIONS, "print precision, recall and F1, or errors, of each class or target",
	  LS_SETTING_FLAG, OWN(per_class), 0, 1, 0 },
	{ "metrics", 0, "FILE", OPTIONS, "write all metrics and the confusion matrix as JSON", LS_SETTING_STRING,
	  AT(metrics), 0, 0, 0 },
	{ "save", 0, NULL, OPTIONS, "write them to RUN/eval.json, for lockstep report", LS_SETTING_FLAG, AT(save), 0, 1,
	  0 },
	{ "quiet", 'q', NULL, OPTIONS, "print no progress line", LS_SETTING_FLAG, AT(quiet), 0, 1, 0 },

	{ "vocab", 0, "FILE", TEXT, "tokenize with this vocabulary (default: the run's)", LS_SETTING_STRING, AT(vocab),
	  0, 0, 0 },
	{ "cased", 0, NULL, TEXT, "keep capitals and accents", LS_SETTING_FLAG, AT(cased), 0, 1, 0 },
	{ "replace-invalid", 0, NULL, TEXT, "replace bytes that are not UTF-8", LS_SETTING_FLAG, AT(replace_invalid), 0,
	  1, 0 },
	LS_TEXT_SIZE_ROWS(TEXT, AT),
};
LS_ARGS_TABLE(row_at, rows)

static const ls_args args = {
	.command = "lockstep eval",
	.operands = "RUN|FILE.safetensors",
	.purpose = "Evaluate a run's newest checkpoint, or weights made elsewhere, on the test set.",
	.example = "lockstep eval runs/first",
	.operands_min = 1,
	.operands_max = 1,
	.at = row_at,
};

/* With tokens to be predicted the accuracy is that of the next sentence; in language models, of tokens. */
static void print_result(const ls_eval_result *r)
{
	const char *of = r->perplexity > 0                ? "next-token"
			 : r->masked                      ? "next-sentence"
			 : r->task == LS_TASK_MULTI_LABEL ? "subset"
							  : "test";

	if (r->task == LS_TASK_REGRESSION)
		printf("MAE %.6g, RMSE %.6g, R2 %.4f, loss %.4f", r->mae, r->rmse, r->r2, r->loss);
	else
		printf("%s accuracy: %.4f, loss %.4f", of, r->accuracy, r->loss);
	if (r->task == LS_TASK_MULTI_LABEL)
		printf(", micro F1 %.4f, macro F1 %.4f", r->micro_f1, r->macro_f1);
	if (r->perplexity > 0)
		printf(", perplexity %.2f", r->perplexity);
	else if (r->masked)
		printf(", masked loss %.4f, masked accuracy %.4f", r->token_loss, r->token_accuracy);
	printf(", %" PRIu64 " sample%s in %.2f sec\nparameters xxh64 %016" PRIx64 "\n", r->samples,
	       ls_plural(r->samples, "s"), r->seconds, r->fingerprint);
}

static ls_status evaluate(eval_options *o)
{
	ls_class_counts counts = { .classes = 0 };
	ls_target_scores scores = { .outputs = 0 };
	ls_eval_result result;

	if (o->per_class) {
		o->eval.counts = &counts;
		o->eval.scores = &scores;
	}
	ls_status status = ls_eval(&o->eval, &result);
	if (status == LS_OK)
		print_result(&result);
	if (status == LS_OK && o->per_class)
		scores.outputs > 0 ? ls_eval_print_targets(&scores, stdout) : ls_eval_print_classes(&counts, stdout);
	ls_class_counts_release(&counts);
	ls_target_scores_release(&scores);
	return status;
}

int ls_cmd_eval(int argc, char **argv)
{
	eval_options options = { .eval = LS_EVAL_OPTIONS_INIT };
	int code = ls_args_parse(&args, &options, &options.eval.source, argc, argv);
	if (code != LS_ARGS_GO)
		return code;
	return ls_command_finish(args.command, evaluate(&options));
}
