/*
 * cmd_generate.c - lockstep generate: text from a language model, as it comes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lockstep/generate.h>

#include "args.h"
#include "command.h"
#include "model_rows.h"
#include "stop.h"

typedef struct generate_options {
	ls_model_load_options load;
	ls_generate_options generate;
	int no_prompt, quiet;
} generate_options;

#define LOAD(member) offsetof(generate_options, load.member)
#define AT(member) offsetof(generate_options, generate.member)
#define OWN(member) offsetof(generate_options, member)

#define TEXT "Text"
#define SAMPLING "Sampling"

static const ls_setting rows[] = {
	{ "max-new-tokens", 'n', "N", TEXT, "generate up to N tokens per sample", LS_SETTING_INT, AT(max_new_tokens), 0,
	  1 << 30, 0 },
	{ "num-samples", 0, "N", TEXT, "generate N texts from the prompt", LS_SETTING_INT, AT(num_samples), 1, 4096,
	  0 },
	{ "no-prompt", 0, NULL, TEXT, "print the new text without the prompt", LS_SETTING_FLAG, OWN(no_prompt), 0, 1,
	  0 },
	{ "ignore-eos", 0, NULL, TEXT, "continue after an end-of-text token", LS_SETTING_FLAG, AT(ignore_eos), 0, 1,
	  0 },
	{ "quiet", 'q', NULL, TEXT, "print no line about the speed", LS_SETTING_FLAG, OWN(quiet), 0, 1, 0 },

	{ "temperature", 0, "T", SAMPLING, "divide logits by T; 0: always the most probable token", LS_SETTING_REAL,
	  AT(temperature), 0, 1e6, 0 },
	{ "top-k", 'k', "K", SAMPLING, "sample from the K most probable tokens; 0: from all", LS_SETTING_INT, AT(top_k),
	  0, 1 << 24, 0 },
	{ "top-p", 'p', "P", SAMPLING, "sample from the most probable tokens of probability P", LS_SETTING_REAL,
	  AT(top_p), 0, 1, LS_SETTING_NOT_0 },
	{ "seed", 's', "N", SAMPLING, "seed the sampling", LS_SETTING_SEED, AT(seed), 0, 0x1p53, 0 },

	{ "threads", 't', "N", LS_MACHINE, "compute with N threads (default: all cores)", LS_SETTING_INT, AT(threads),
	  1, LS_THREADS_MAX, LS_SETTING_NOT_0 },
	{ "lookup", 0, "N", LS_MACHINE, "guess up to N tokens ahead where text repeats: same text, faster; 0: off",
	  LS_SETTING_INT, AT(lookup), 0, 31, 0 },

	LS_FLAG_ROW("best", LS_MODEL_GROUP, "take the run's best weights, not its newest", LOAD(best)),
	{ "model", 'm', "NAME", LS_MODEL_GROUP, "use this architecture, such as gpt2", LS_SETTING_STRING, LOAD(model),
	  0, 0, 0 },
	{ "data", 'd', "NAME", LS_MODEL_GROUP, "read text as this dataset does", LS_SETTING_STRING, LOAD(data), 0, 0,
	  0 },
	LS_STRING_ROW("data-dir", "DIR", LS_MODEL_GROUP, "read its files from DIR", LOAD(data_dir)),
	LS_STRING_ROW("vocab", "DIR", LS_MODEL_GROUP, "tokenize with vocab.json and merges.txt of DIR", LOAD(vocab)),
	LS_SIZE_ROW("seq-len", LS_MODEL_GROUP, "use a context of N tokens", LOAD(seq_len), LS_TOKENS_MAX),
};
LS_ARGS_TABLE(row_at, rows)

static const ls_args args = {
	.command = "lockstep generate",
	.operands = "RUN|FILE.safetensors [PROMPT]",
	.purpose = "Generate text that begins with PROMPT; - reads it from stdin.",
	.example = "lockstep generate runs/gpt \"Fellow citizens,\" --max-new-tokens 100 --temperature 0.8",
	.operands_min = 1,
	.operands_max = 2,
	.at = row_at,
};

/* One text is printed as it comes; several are printed whole, each when it ends. */
typedef struct output {
	int64_t texts;
	const char *prompt;
	size_t prompt_bytes;
	int has_begun; /* the prompt of the only text is printed */
	FILE **to;     /* (texts) in memory; NULL: one text */
	char **text;
	size_t *bytes;
} output;

static void write_text(const output *out, int64_t text)
{
	fclose(out->to[text]);
	printf("--- %lld ---\n", (long long)text + 1);
	fwrite(out->prompt, 1, out->prompt_bytes, stdout);
	fwrite(out->text[text], 1, out->bytes[text], stdout);
	printf("\n");
	free(out->text[text]);
	out->to[text] = NULL;
	out->text[text] = NULL;
}

static void take_piece(void *context, int64_t text, const char *bytes, size_t count)
{
	output *out = context;

	if (!out->to) {
		if (!out->has_begun)
			fwrite(out->prompt, 1, out->prompt_bytes, stdout);
		out->has_begun = 1;
		fwrite(count > 0 ? bytes : "\n", 1, count > 0 ? count : 1, stdout);
		fflush(stdout);
	} else if (count > 0) {
		fwrite(bytes, 1, count, out->to[text]);
	} else {
		write_text(out, text);
	}
}

static int must_stop(void *context)
{
	(void)context;
	return ls_stop_signal() != 0 || ferror(stdout);
}

/* 0: there is no memory. */
static int begin_output(output *out)
{
	if (out->texts == 1)
		return 1;
	out->to = calloc((size_t)out->texts, sizeof(FILE *));
	out->text = calloc((size_t)out->texts, sizeof(char *));
	out->bytes = calloc((size_t)out->texts, sizeof(size_t));
	int has_all = out->to && out->text && out->bytes;
	for (int64_t i = 0; i < out->texts && has_all; i++)
		has_all = (out->to[i] = open_memstream(&out->text[i], &out->bytes[i])) != NULL;
	return has_all;
}

static void end_output(output *out)
{
	for (int64_t i = 0; out->to && i < out->texts; i++)
		if (out->to[i]) {
			fclose(out->to[i]);
			free(out->text[i]);
		}
	free(out->to);
	free(out->text);
	free(out->bytes);
}

static void print_speed(const ls_generate_result *r)
{
	fprintf(stderr, "prompt: %lld token%s in %.2f sec; generated %lld in %.2f sec, %.1f tokens/sec",
		(long long)r->prompt_tokens, r->prompt_tokens == 1 ? "" : "s", r->prompt_s, (long long)r->tokens,
		r->tokens_s, r->tokens_s > 0 ? (double)r->tokens / r->tokens_s : 0);
	if (r->guesses > 0)
		fprintf(stderr, "; %lld of %lld guesses right", (long long)r->right_guesses, (long long)r->guesses);
	fputc('\n', stderr);
}

/* Returns the code to exit with. */
static int generate(generate_options *o)
{
	ls_generate_options *g = &o->generate;
	output out = { .texts = g->num_samples,
		       .prompt = o->no_prompt ? "" : g->prompt,
		       .prompt_bytes = o->no_prompt ? 0 : (size_t)g->prompt_bytes };
	ls_generate_result result = { .tokens = 0 };
	ls_model *model = NULL;

	ls_status status = ls_model_load(&model, &o->load);
	if (status != LS_OK)
		return ls_command_finish(args.command, status);
	ls_stop_on_signals(LS_STOP_TEXT, 0);
	g->write = take_piece;
	g->stop = must_stop;
	g->context = &out;
	if (begin_output(&out)) {
		status = ls_generate(model, g, &result);
	} else {
		status = LS_EMEMORY;
		ls_command_end(args.command, status, "no memory for %lld texts", (long long)out.texts);
	}
	if (status == LS_OK && !o->quiet)
		print_speed(&result);
	end_output(&out);
	ls_model_free(model);
	if (status == LS_EINTERRUPTED && ferror(stdout)) /* main() reports that */
		return LS_EXIT_FAILURE;
	return ls_command_finish(args.command, status);
}

/* All of stdin, malloc'd; NULL: it cannot be read. */
static char *read_stdin(size_t *bytes)
{
	char *text = NULL, block[4096];
	FILE *to = open_memstream(&text, bytes);
	size_t got;

	while (to && (got = fread(block, 1, sizeof(block), stdin)) > 0)
		fwrite(block, 1, got, to);
	if (!to || fclose(to) != 0 || ferror(stdin)) {
		free(text);
		return NULL;
	}
	return text;
}

int ls_cmd_generate(int argc, char **argv)
{
	generate_options options = { .load = LS_MODEL_LOAD_OPTIONS_INIT, .generate = LS_GENERATE_OPTIONS_INIT };
	const char *operands[2] = { NULL, NULL };
	int code = ls_args_parse(&args, &options, operands, argc, argv);
	if (code != LS_ARGS_GO)
		return code;
	const char *prompt = operands[1] ? operands[1] : "";
	size_t bytes = strlen(prompt);
	char *from_stdin = strcmp(prompt, "-") == 0 ? read_stdin(&bytes) : NULL;
	if (strcmp(prompt, "-") == 0 && !from_stdin)
		return ls_usage_error(args.command, "the prompt cannot be read from stdin");
	options.load.source = operands[0];
	options.generate.prompt = from_stdin ? from_stdin : prompt;
	options.generate.prompt_bytes = (int64_t)bytes;
	code = generate(&options);
	free(from_stdin);
	return code;
}
