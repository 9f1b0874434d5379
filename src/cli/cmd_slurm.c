/*
 * cmd_slurm.c - lockstep slurm: write a job script; its options are checked before it is submitted.
 *
 * Options before "--" are about the job, options after it are those of lockstep train (job_command.c).
 */
#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "command.h"
#include "job_command.h"
#include "quote.h"
#include "slurm_script.h"

typedef struct slurm_options {
	slurm_job job;
	job_file file;
} slurm_options;

#define JOB(member) offsetof(slurm_options, job) + offsetof(slurm_job, member)
#define OWN(member) offsetof(slurm_options, file) + offsetof(job_file, member)

static const ls_setting rows[] = {
	{ "nodes", 0, "N", "Job", "number of nodes, with one process on each", LS_SETTING_INT, JOB(nodes), 1, 1e6, 0 },
	{ "devices", 0, "N", "Job", "devices per node", LS_SETTING_INT, JOB(devices), 1, 4096, 0 },
	{ "threads", 't', "N", "Job", "threads per device", LS_SETTING_INT, JOB(threads), 1, LS_THREADS_MAX, 0 },
	{ "time", 0, "TIME", "Job", "time limit: minutes, H:MM:SS or D-HH:MM:SS", LS_SETTING_STRING, JOB(time), 0, 0,
	  0 },
	{ "mem", 0, "SIZE", "Job", "memory per node, for example 64G", LS_SETTING_STRING, JOB(memory), 0, 0, 0 },
	{ "partition", 0, "NAME", "Job", "partition to submit to", LS_SETTING_STRING, JOB(partition), 0, 0, 0 },
	{ "account", 0, "NAME", "Job", "account to charge", LS_SETTING_STRING, JOB(account), 0, 0, 0 },
	{ "job-name", 0, "NAME", "Job", "name of the job and of its log file", LS_SETTING_STRING, JOB(name), 0, 0, 0 },
	{ "grace", 0, "SECONDS", "Job", "stop and write a checkpoint N seconds before the limit", LS_SETTING_INT,
	  JOB(grace), 1, 65535, 0 },
	{ "requeue", 0, "N", "Job", "requeue the job at its time limit, N times at most (default: 100)", LS_SETTING_INT,
	  JOB(requeues), 0, 1e6, 0 },
	{ "mpi", 0, "TYPE", "Start", "how srun starts MPI: pmix, or pmi2 for MPICH (default: the site's)",
	  LS_SETTING_STRING, JOB(mpi), 0, 0, 0 },
	{ "setup", 0, "COMMAND", "Start", "run this shell command first: 'module load openmpi'", LS_SETTING_STRING,
	  JOB(setup), 0, 0, 0 },
	{ "program", 0, "PATH", "Start", "path of lockstep on the nodes", LS_SETTING_STRING, JOB(program), 0, 0, 0 },
	{ "output", 'o', "FILE", "Script", "write the script to FILE, not to standard output", LS_SETTING_STRING,
	  OWN(path), 0, 0, 0 },
	{ "force", 0, NULL, "Script", "overwrite FILE if it exists", LS_SETTING_FLAG, OWN(force), 0, 1, 0 },
};
LS_ARGS_TABLE(row_at, rows)

static const ls_args args = {
	.command = "lockstep slurm",
	.purpose = "Write a Slurm job script that trains, stops in time and resumes when requeued.\n"
		   "Options of 'lockstep train' follow after -- and are checked now.",
	.example = "lockstep slurm --nodes 4 --devices 8 --time 2:00:00 -o job.sh -- \\\n"
		   "           --model resnet18 --data mnist --run runs/job\n"
		   "         sbatch job.sh",
	.at = row_at,
};

/* ---- the job ---- */

/* Directives are parsed by sbatch, not by a shell, with other rules of quoting: only words that need none are accepted.
 */
static int check_word(const char *option, const char *word)
{
	if (!word || ls_shell_is_plain(word))
		return LS_ARGS_GO;
	return ls_usage_error(args.command, "--%s: '%s' has a character other than letters, digits and _@%%+=:,./-",
			      option, word);
}

static int check_words(const slurm_job *job)
{
	const struct {
		const char *option, *word;
	} words[] = { { "partition", job->partition },
		      { "account", job->account },
		      { "job-name", job->name },
		      { "mpi", job->mpi } };
	int code = LS_ARGS_GO;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]) && code == LS_ARGS_GO; i++)
		code = check_word(words[i].option, words[i].word);
	return code;
}

/* Numbers of at most six digits, separated by ':'; returns how many, 0: anything else. */
static int read_clock(const char *text, int64_t parts[3])
{
	for (int count = 0; count < 3; text++) {
		size_t digits = strspn(text, "0123456789");
		if (!digits || digits > 6)
			return 0;
		parts[count++] = strtol(text, NULL, 10);
		text += digits;
		if (*text != ':')
			return *text ? 0 : count;
	}
	return 0;
}

/* The formats of sbatch: M, M:S, H:M:S, D-H, D-H:M, D-H:M:S. Seconds, or -1. */
static int64_t read_time(const char *text)
{
	static const int64_t units[2][3][3] = { { { 60 }, { 60, 1 }, { 3600, 60, 1 } },
						{ { 3600 }, { 3600, 60 }, { 3600, 60, 1 } } };
	size_t days = strspn(text, "0123456789");
	int has_days = days > 0 && days <= 6 && text[days] == '-';
	int64_t parts[3] = { 0 }, seconds = has_days ? strtol(text, NULL, 10) * 86400 : 0;
	int count = read_clock(has_days ? text + days + 1 : text, parts);
	for (int i = 0; i < count; i++)
		seconds += parts[i] * units[has_days][count - 1][i];
	return count ? seconds : -1;
}

static int check_time(const slurm_job *job)
{
	if (!job->time)
		return LS_ARGS_GO;
	int64_t seconds = read_time(job->time);
	if (seconds < 1)
		return ls_usage_error(args.command,
				      "--time: '%s' is not a time; write 90 (minutes), 1:30:00 or 2-12:00:00",
				      job->time);
	if (seconds <= job->grace)
		return ls_usage_error(args.command, "--time %s is not longer than the --grace of %" PRId64 " seconds",
				      job->time, job->grace);
	return LS_ARGS_GO;
}

static int check_memory(const slurm_job *job)
{
	const char *text = job->memory;
	if (!text)
		return LS_ARGS_GO;
	size_t digits = strspn(text, "0123456789");
	const char *unit = text + digits;
	if (digits && digits < 16 && (!*unit || (strchr("KMGT", toupper((unsigned char)*unit)) && !unit[1])))
		return LS_ARGS_GO;
	return ls_usage_error(args.command, "--mem: '%s' is not a size; write 65536 (megabytes), 64G or 512M", text);
}

/* The quote that is open at the end of a shell command, '\\' when it ends with one, or 0. */
static char open_quote(const char *text)
{
	char quote = 0;
	int escapes = 1, begins_word = 1; /* '...' has no escapes, $'...' has */

	for (char before = 0; *text; before = *text++) {
		if (*text == '\\' && escapes) {
			if (*++text == '\0')
				return '\\';
		} else if (quote && *text == quote) {
			quote = 0, escapes = 1;
		} else if (!quote && (*text == '\'' || *text == '"')) {
			quote = *text;
			escapes = quote == '"' || before == '$';
		} else if (!quote && begins_word && *text == '#') {
			while (text[1] && text[1] != '\n')
				text++;
		}
		begins_word = !quote && strchr(" \t\n;&|(", *text) != NULL;
	}
	return quote;
}

static int check_setup(const char *setup)
{
	char quote = setup ? open_quote(setup) : 0;
	if (!quote)
		return LS_ARGS_GO;
	return ls_usage_error(args.command, "--setup takes a whole shell command: <%s> ends %s", setup,
			      quote == '\\'  ? "with a backslash"
			      : quote == '"' ? "inside double quotes"
					     : "inside single quotes");
}

static int check_job(const void *options)
{
	const slurm_job *job = &((const slurm_options *)options)->job;
	int code = check_words(job);
	if (code == LS_ARGS_GO)
		code = check_setup(job->setup);
	if (code == LS_ARGS_GO)
		code = check_time(job);
	return code == LS_ARGS_GO ? check_memory(job) : code;
}

static int check_training(const void *options, const job_training *training)
{
	const slurm_options *own = options;
	if (training->elastic && own->job.mpi)
		return ls_usage_error(args.command,
				      "--mpi: with --elastic Open MPI's mpirun starts the nodes, not srun");
	return LS_ARGS_GO;
}

static int write_script(FILE *to, const void *options, const job_training *training, int argc, char **argv)
{
	ls_slurm_script(to, &((const slurm_options *)options)->job, training, argc, argv);
	return 1;
}

static const job_command command = { .args = &args,
				     .scheduler = { .command = "lockstep slurm", .name = "Slurm", .has_elastic = 1 },
				     .submit = "sbatch",
				     .check = check_job,
				     .check_training = check_training,
				     .write = write_script };

int ls_cmd_slurm(int argc, char **argv)
{
	slurm_options options = { .job = { .nodes = 1,
					   .devices = 1,
					   .threads = 1,
					   .grace = 60,
					   .requeues = 100,
					   .name = "lockstep",
					   .program = "lockstep" } };
	return ls_job_command_run(&command, &options, &options.file, argc, argv);
}
