/*
 * job_training.c - see job_training.h. Options after the "--" are parsed with the table of train, so that errors are
 * found now, with the same messages, and the job has the long names of all options.
 */
#include "job_training.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <lockstep/models.h>
#include <lockstep/names.h>

#include "args.h"
#include "command.h"
#include "quote.h"

/* Train's table with values as typed: each row stores into its element of `values`, a flag into `flags`. */
typedef struct typed_options {
	const char *values[LS_ARGS_MAX];
	int flags[LS_ARGS_MAX];
} typed_options;

static const ls_setting *typed_row_at(size_t i)
{
	static ls_setting copies[LS_ARGS_MAX];
	const ls_setting *row = i < LS_ARGS_MAX ? ls_train_setting_at(i) : NULL;
	if (!row)
		return NULL;
	copies[i] = *row;
	if (row->kind == LS_SETTING_FLAG) {
		copies[i].offset = offsetof(typed_options, flags) + i * sizeof(int);
	} else {
		copies[i].kind = LS_SETTING_STRING;
		copies[i].offset = offsetof(typed_options, values) + i * sizeof(char *);
	}
	return &copies[i];
}

/* Errors after the "--" are reported as those of lockstep train. */
static const ls_args train_args = { .command = "lockstep train", .at = typed_row_at };

static int check_place(const job_scheduler *scheduler, const char *name)
{
	const char *command = scheduler->command;
	if (!strcmp(name, "devices") || !strcmp(name, "threads"))
		return ls_usage_error(command, "--%s goes before the --: the cores of the job depend on it", name);
	if (!strcmp(name, "hosts"))
		return ls_usage_error(command, "--hosts: %s chooses the hosts; set their number with --nodes",
				      scheduler->name);
	if (!strcmp(name, "discover"))
		return ls_usage_error(command,
				      "--discover: the nodes of an elastic run are those that %s gives the job",
				      scheduler->name);
	if (!strcmp(name, "elastic") && !scheduler->has_elastic)
		return ls_usage_error(command, "--elastic: %s starts a job that lost a node again, and it resumes",
				      scheduler->name);
	if (!strcmp(name, "help"))
		return ls_usage_error(command, "'lockstep train --help' lists the options that go after the --");
	return LS_ARGS_GO;
}

static int check_model(const char *command, const char *model)
{
	const char *names[LS_ARGS_MAX];
	size_t count = 0;
	const ls_model_row *row;
	for (; count < LS_ARGS_MAX && (row = ls_model_row_at(count)); count++) {
		if (!strcmp(row->name, model))
			return LS_ARGS_GO;
		names[count] = row->name;
	}
	const char *nearest = ls_name_nearest(model, names, count);
	if (nearest)
		return ls_usage_error(command, "unknown model '%s'; did you mean '%s'?", model, nearest);
	return ls_usage_error(command, "unknown model '%s'; 'lockstep models' lists them", model);
}

/* Set every given option as train does. */
static int collect(const job_scheduler *scheduler, const typed_options *typed, ls_train_options *options,
		   job_word *words, size_t *count)
{
	const ls_setting *row;
	for (size_t i = 0; (row = typed_row_at(i)); i++) {
		if (!typed->values[i] && !typed->flags[i])
			continue;
		int code = check_place(scheduler, row->name);
		if (code != LS_ARGS_GO)
			return code;
		ls_status status = ls_train_options_set(options, row->name, typed->values[i]);
		if (status)
			return ls_command_finish(train_args.command, status);
		if (strcmp(row->name, "init") != 0) /* goes with a first start only */
			words[(*count)++] = (job_word){ row, typed->values[i] };
	}
	return LS_ARGS_GO;
}

static int check_training(const char *command, const ls_train_options *options)
{
	if (options->resume && !options->run)
		return ls_usage_error(command, "--resume needs --run, the directory of the run to continue");
	if (options->resume && options->init)
		return ls_usage_error(command, "--init and --resume: a resumed run has its weights already");
	if (options->elastic && !options->run)
		return ls_usage_error(command, "--elastic needs --run: a run goes on from its checkpoints");
	if (!options->run)
		fprintf(stderr, "%s: without --run nothing is saved, and a requeued job starts from the beginning\n",
			command);
	return check_model(command, options->model);
}

int ls_job_training_read(const job_scheduler *scheduler, int argc, char **argv, job_word *words, job_training *out)
{
	typed_options typed = { .values = { NULL } };
	ls_train_options options = LS_TRAIN_OPTIONS_INIT;
	size_t count = 0;
	for (int i = 1; i < argc; i++) /* the parser would print help instead of a script */
		if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h"))
			return check_place(scheduler, "help");
	int code = ls_args_parse(&train_args, &typed, NULL, argc, argv);
	if (code == LS_ARGS_GO)
		code = collect(scheduler, &typed, &options, words, &count);
	if (code == LS_ARGS_GO)
		code = check_training(scheduler->command, &options);
	*out = (job_training){ words, count, options.run, options.init, options.elastic };
	return code;
}

/* ---- in a script ---- */

static void write_option(FILE *to, const char *name, const char *value)
{
	fprintf(to, "\t--%s", name);
	if (value) {
		fputc(' ', to);
		ls_shell_quote(to, value);
	}
	fputc('\n', to);
}

static void write_arguments(FILE *to, const job_training *training, int64_t devices, int64_t threads)
{
	char number[32];
	fputs("\n# Options of lockstep train.\narguments=(\n", to);
	snprintf(number, sizeof(number), "%" PRId64, devices);
	write_option(to, "devices", number);
	snprintf(number, sizeof(number), "%" PRId64, threads);
	write_option(to, "threads", number);
	for (size_t i = 0; i < training->count; i++)
		write_option(to, training->words[i].row->name, training->words[i].value);
	fputs(")\n", to);
}

/* Without a run directory there is nothing to resume. --init is for the first start only: a resumed run has its
 * weights. */
static void write_start(FILE *to, const job_training *training)
{
	fputs("start=(", to);
	if (training->init) {
		fputs("--init ", to);
		ls_shell_quote(to, training->init);
	}
	fputs(")\n", to);
	if (!training->run)
		return;
	fputs("\n# When the job is requeued or submitted again, it resumes its run.\nrun=", to);
	ls_shell_quote(to, training->run);
	fputs("\nfor found in \"$run\"/run.json \"$run\"/ckpt/step-*; do\n"
	      "\tif [ -e \"$found\" ]; then\n\t\tstart=(--resume)\n\tfi\ndone\n",
	      to);
}

void ls_job_training_write(FILE *to, const job_training *training, int64_t devices, int64_t threads)
{
	write_arguments(to, training, devices, threads);
	write_start(to, training);
}
