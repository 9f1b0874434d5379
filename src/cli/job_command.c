/*
 * job_command.c - see job_command.h. Nothing is written before everything is checked: a job that waits in a queue must
 * not fail for a mistake that could have been seen here.
 */
#include "job_command.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "command.h"
#include "quote.h"

/* Written atomically: an incomplete script could run. */
static int save(const job_command *command, const job_file *file, const char *text, size_t length)
{
	const char *name = command->args->command;
	struct stat there;
	if (!file->force && lstat(file->path, &there) == 0)
		return ls_usage_error(name, "%s exists; add --force to replace it", file->path);
	ls_status status =
		file->force ? ls_write_file(file->path, text, length) : ls_create_file(file->path, text, length);
	if (status != LS_OK)
		return ls_command_finish(name, status);
	fputs("wrote ", stdout);
	ls_shell_quote(stdout, file->path);
	printf("; submit it with: %s ", command->submit);
	ls_shell_quote(stdout, file->path);
	putchar('\n');
	return LS_EXIT_OK;
}

/* The job is complete in memory before the file is touched. */
static int write_job(const job_command *command, const void *options, const job_file *file,
		     const job_training *training, int argc, char **argv)
{
	char *text = NULL;
	size_t length = 0;
	FILE *to = open_memstream(&text, &length);
	int failed = !to;
	if (to) {
		failed = !command->write(to, options, training, argc, argv) || ferror(to);
		failed |= fclose(to) != 0;
	}
	int code = LS_EXIT_OK;
	if (failed) {
		fprintf(stderr, "%s: no memory for the script\n", command->args->command);
		code = LS_EXIT_FAILURE;
	} else if (file->path) {
		code = save(command, file, text, length);
	} else {
		fwrite(text, 1, length, stdout); /* main() reports write errors */
	}
	free(text);
	return code;
}

int ls_job_command_run(const job_command *command, void *options, const job_file *file, int argc, char **argv)
{
	job_word words[LS_ARGS_MAX];
	job_training training = { .words = words };
	int split = 1;
	while (split < argc && strcmp(argv[split], "--") != 0)
		split++;
	int code = ls_args_parse(command->args, options, NULL, split, argv);
	if (code == LS_ARGS_GO)
		code = command->check(options);
	if (code == LS_ARGS_GO && split == argc)
		code = ls_usage_error(command->args->command,
				      "what to train is missing: add -- and options of 'lockstep train'");
	if (code == LS_ARGS_GO) /* the "--" takes the place of argv[0] */
		code = ls_job_training_read(&command->scheduler, argc - split, argv + split, words, &training);
	if (code == LS_ARGS_GO)
		code = command->check_training(options, &training);
	return code == LS_ARGS_GO ? write_job(command, options, file, &training, argc, argv) : code;
}
