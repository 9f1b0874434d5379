/*
 * cmd_k8s.c - lockstep k8s: write a Kubernetes job; its options are checked before it is submitted.
 *
 * Options before "--" are about the job, options after it are those of lockstep train (job_command.c).
 */
#include <ctype.h>
#include <string.h>

#include "args.h"
#include "command.h"
#include "job_command.h"
#include "k8s_job.h"
#include "quote.h"

typedef struct k8s_options {
	k8s_job job;
	job_file file;
} k8s_options;

#define JOB(member) offsetof(k8s_options, job) + offsetof(k8s_job, member)
#define OWN(member) offsetof(k8s_options, file) + offsetof(job_file, member)

static const ls_setting rows[] = {
	{ "image", 0, "IMAGE", "Job", "container image with lockstep and bash; several nodes: with mpirun and sshd",
	  LS_SETTING_STRING, JOB(image), 0, 0, 0 },
	{ "nodes", 0, "N", "Job", "number of nodes; more than one need Kubeflow's MPI operator", LS_SETTING_INT,
	  JOB(nodes), 1, 1e4, 0 },
	{ "devices", 0, "N", "Job", "devices per node", LS_SETTING_INT, JOB(devices), 1, 4096, 0 },
	{ "threads", 't', "N", "Job", "threads per device", LS_SETTING_INT, JOB(threads), 1, LS_THREADS_MAX, 0 },
	{ "mem", 0, "SIZE", "Job", "memory per node, for example 64Gi", LS_SETTING_STRING, JOB(memory), 0, 0, 0 },
	{ "job-name", 0, "NAME", "Job", "name of the job", LS_SETTING_STRING, JOB(name), 0, 0, 0 },
	{ "namespace", 0, "NAME", "Job", "namespace of the job", LS_SETTING_STRING, JOB(namespace), 0, 0, 0 },
	{ "claim", 0, "NAME", "Job", "persistent volume claim with data and runs; several nodes: ReadWriteMany",
	  LS_SETTING_STRING, JOB(claim), 0, 0, 0 },
	{ "mount", 0, "PATH", "Job", "working directory, where the claim is mounted", LS_SETTING_STRING, JOB(mount), 0,
	  0, 0 },
	{ "grace", 0, "SECONDS", "Job", "time to write a checkpoint when a pod is stopped", LS_SETTING_INT, JOB(grace),
	  1, 65535, 0 },
	{ "retries", 0, "N", "Job", "start the job again after a failure, N times at most", LS_SETTING_INT,
	  JOB(retries), 0, 1e6, 0 },
	{ "program", 0, "PATH", "Job", "path of lockstep in the image", LS_SETTING_STRING, JOB(program), 0, 0, 0 },
	{ "output", 'o', "FILE", "File", "write the job to FILE, not to standard output", LS_SETTING_STRING, OWN(path),
	  0, 0, 0 },
	{ "force", 0, NULL, "File", "overwrite FILE if it exists", LS_SETTING_FLAG, OWN(force), 0, 1, 0 },
};
LS_ARGS_TABLE(row_at, rows)

static const ls_args args = {
	.command = "lockstep k8s",
	.purpose = "Write a Kubernetes job that trains and resumes: a Job for one node, a\n"
		   "Kubeflow MPIJob (v2beta1) for several. Options of 'lockstep train' follow\n"
		   "after -- and are checked now. The job is checked against documented fields\n"
		   "only: it was never run on a cluster.",
	.example = "lockstep k8s --nodes 4 --devices 8 --claim work -o job.yaml -- \\\n"
		   "           --model resnet18 --data mnist --run runs/pods\n"
		   "         kubectl apply -f job.yaml",
	.at = row_at,
};

/* Names of objects are labels of DNS; of a job shorter ones, because pods and services are named after it (the
 * operator adds "-launcher-abcde"). A claim's may have dots. */
static int check_name(const char *option, const char *name, size_t most, int may_have_dots)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789-.";
	size_t length = name ? strlen(name) : 0;
	if (!name)
		return LS_ARGS_GO;
	if (length && length <= most && name[strspn(name, letters)] == '\0' && (may_have_dots || !strchr(name, '.')) &&
	    isalnum((unsigned char)name[0]) && isalnum((unsigned char)name[length - 1]))
		return LS_ARGS_GO;
	return ls_usage_error(args.command,
			      "--%s: '%s' is not a name in Kubernetes: up to %zu small letters, digits%s and hyphens, "
			      "with a letter or a digit at either end",
			      option, name, most, may_have_dots ? ", dots" : "");
}

static int check_memory(const char *text)
{
	static const char *const units[] = { "", "k", "M", "G", "T", "Ki", "Mi", "Gi", "Ti" };
	if (!text)
		return LS_ARGS_GO;
	size_t digits = strspn(text, "0123456789");
	for (size_t i = 0; digits && digits < 16 && i < sizeof(units) / sizeof(units[0]); i++)
		if (!strcmp(text + digits, units[i]))
			return LS_ARGS_GO;
	return ls_usage_error(args.command, "--mem: '%s' is not a size; write 64Gi or 512Mi", text);
}

static int check_job(const void *options)
{
	const k8s_job *job = &((const k8s_options *)options)->job;
	int code = check_name("job-name", job->name, 40, 0);
	if (code == LS_ARGS_GO)
		code = check_name("namespace", job->namespace, 63, 0);
	if (code == LS_ARGS_GO)
		code = check_name("claim", job->claim, 253, 1);
	if (code == LS_ARGS_GO)
		code = check_memory(job->memory);
	if (code == LS_ARGS_GO && !ls_shell_is_plain(job->image))
		code = ls_usage_error(args.command, "--image: '%s' is not the name of an image", job->image);
	if (code == LS_ARGS_GO && (job->mount[0] != '/' || !ls_shell_is_plain(job->mount)))
		code = ls_usage_error(args.command,
				      "--mount: '%s' must begin with / and have letters, digits and _@%%+=:,./- only",
				      job->mount);
	return code;
}

static int check_training(const void *options, const job_training *training)
{
	const k8s_options *own = options;
	if (training->run && !own->job.claim)
		fprintf(stderr, "%s: without --claim the run is lost with the pod that wrote it\n", args.command);
	return LS_ARGS_GO;
}

static int write_job(FILE *to, const void *options, const job_training *training, int argc, char **argv)
{
	return ls_k8s_job(to, &((const k8s_options *)options)->job, training, argc, argv);
}

static const job_command command = { .args = &args,
				     .scheduler = { .command = "lockstep k8s", .name = "Kubernetes" },
				     .submit = "kubectl apply -f",
				     .check = check_job,
				     .check_training = check_training,
				     .write = write_job };

int ls_cmd_k8s(int argc, char **argv)
{
	k8s_options options = { .job = { .nodes = 1,
					 .devices = 1,
					 .threads = 1,
					 .grace = 60,
					 .retries = 10,
					 .image = "lockstep",
					 .name = "lockstep",
					 .mount = "/work",
					 .program = "lockstep" } };
	return ls_job_command_run(&command, &options, &options.file, argc, argv);
}
