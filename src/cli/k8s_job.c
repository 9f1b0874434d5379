/*
 * k8s_job.c - see k8s_job.h. The comments in the file are for users who adapt it to their cluster.
 *
 * Both kinds start a small shell script, because only at the start is it known whether there is a run to resume. The
 * pod of a Job, and the launcher of an MPIJob, that is moved or preempted gets SIGTERM and `grace` seconds: nodes
 * write a checkpoint and exit, and the job's controller starts them again. A worker's pod runs sshd, so nobody asks
 * its node: the others end, and the run resumes from its last checkpoint.
 */
#include "k8s_job.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "quote.h"

/* ---- the script in the container ---- */

static void write_program(FILE *to, const k8s_job *job)
{
	ls_shell_quote(to, job->program);
	fputs(" train \"${arguments[@]}\" \"${start[@]}\"", to);
}

/* mpirun ends its nodes on SIGTERM, but passes SIGUSR1 on, which asks them to stop as SIGTERM would. */
static void write_mpirun(FILE *to, const k8s_job *job)
{
	fprintf(to,
		"\n# The operator names the workers in a host file. Their keys are new for every job. One process per "
		"worker, unbound:\n"
		"# Lockstep pins its threads itself.\n"
		"mpirun --allow-run-as-root -np %" PRId64 " --map-by node --bind-to none -x LOCKSTEP_DATA \\\n"
		"\t--mca plm_rsh_args '-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR "
		"-o "
		"ConnectionAttempts=10' \\\n\t",
		job->nodes);
	write_program(to, job);
	fputs(" &\n"
	      "# All nodes write a checkpoint when asked to stop: mpirun passes USR1 on, TERM would have it end them.\n"
	      "trap 'trap \"\" TERM; kill -USR1 \"$!\"' TERM\n"
	      "wait \"$!\"\nstatus=$?\n"
	      "while kill -0 \"$!\" 2>/dev/null; do # the signal ended the first one early\n"
	      "\twait \"$!\"\n\tstatus=$?\ndone\nexit \"$status\"\n",
	      to);
}

static void write_script(FILE *to, const k8s_job *job, const job_training *training)
{
	fputs("set -u\n", to);
	ls_job_training_write(to, training, job->devices, job->threads);
	if (job->nodes > 1) {
		write_mpirun(to, job);
		return;
	}
	fputs("\n# In place of the shell, so that it gets the signal to stop, and writes a checkpoint.\nexec ", to);
	write_program(to, job);
	fputc('\n', to);
}

/* ---- YAML ---- */

static void indent(FILE *to, int spaces)
{
	fprintf(to, "%*s", spaces, "");
}

/* A literal block: every line as it is, behind spaces. Words of the script have no line breaks (quote.h). */
static void write_block(FILE *to, int spaces, const char *text)
{
	while (*text) {
		size_t length = strcspn(text, "\n");
		if (length)
			indent(to, spaces);
		fprintf(to, "%.*s\n", (int)length, text);
		text += length + (text[length] == '\n');
	}
}

static void write_command(FILE *to, int spaces, const char *script)
{
	indent(to, spaces);
	fputs("command: [\"/bin/bash\", \"-c\"]\n", to);
	indent(to, spaces);
	fputs("args:\n", to);
	indent(to, spaces);
	fputs("- |\n", to);
	write_block(to, spaces + 2, script);
}

/* Requests that equal limits: cores are not shared with other pods. */
static void write_resources(FILE *to, int spaces, int64_t cores, const char *memory)
{
	static const char *const kinds[] = { "requests", "limits" };
	indent(to, spaces);
	fputs("resources:\n", to);
	for (int i = 0; i < 2; i++) {
		indent(to, spaces + 2);
		fprintf(to, "%s: { cpu: \"%" PRId64 "\"", kinds[i], cores);
		if (memory)
			fprintf(to, ", memory: \"%s\"", memory);
		fputs(" }\n", to);
	}
}

static void write_container(FILE *to, int spaces, const k8s_job *job, const char *name)
{
	indent(to, spaces - 2);
	fprintf(to, "- name: %s\n", name);
	indent(to, spaces);
	fprintf(to, "image: \"%s\"\n", job->image);
	indent(to, spaces);
	fprintf(to, "workingDir: \"%s\"\n", job->mount);
	indent(to, spaces);
	fputs("env:\n", to);
	indent(to, spaces);
	fprintf(to, "- { name: LOCKSTEP_DATA, value: \"%s/data\" }\n", strcmp(job->mount, "/") ? job->mount : "");
	if (job->nodes > 1) {
		indent(to, spaces);
		fputs("securityContext: { runAsUser: 0 } # sshd and the operator's keys are root's\n", to);
	}
	if (job->claim) {
		indent(to, spaces);
		fputs("volumeMounts:\n", to);
		indent(to, spaces);
		fprintf(to, "- { name: work, mountPath: \"%s\" }\n", job->mount);
	}
}

static void write_pod(FILE *to, int spaces, const k8s_job *job, const char *restart)
{
	indent(to, spaces);
	if (restart)
		fprintf(to, "restartPolicy: %s\n%*s", restart, spaces, "");
	fprintf(to, "terminationGracePeriodSeconds: %" PRId64 "\n", job->grace);
	if (job->claim) {
		indent(to, spaces);
		fputs("volumes:\n", to);
		indent(to, spaces);
		fprintf(to, "- { name: work, persistentVolumeClaim: { claimName: \"%s\" } }\n", job->claim);
	}
	indent(to, spaces);
	fputs("containers:\n", to);
}

static void write_head(FILE *to, const k8s_job *job, int argc, char **argv)
{
	fputs("# Trains with Lockstep under Kubernetes. Submit it with kubectl apply -f. Made by\n#   lockstep k8s",
	      to);
	for (int i = 1; i < argc; i++) {
		fputc(' ', to);
		ls_shell_quote(to, argv[i]);
	}
	fputs("\n# Its fields were checked against those that Kubernetes and the MPI operator document; it was never "
	      "run on "
	      "a cluster.\n",
	      to);
	fprintf(to, "apiVersion: %s\nkind: %s\nmetadata:\n  name: \"%s\"\n",
		job->nodes > 1 ? "kubeflow.org/v2beta1" : "batch/v1", job->nodes > 1 ? "MPIJob" : "Job", job->name);
	if (job->namespace)
		fprintf(to, "  namespace: \"%s\"\n", job->namespace);
}

/* ---- the two kinds ---- */

static void write_job(FILE *to, const k8s_job *job, const char *script)
{
	fprintf(to,
		"spec:\n  # A pod that fails, or is stopped because its machine is needed, is replaced and resumes the "
		"run.\n"
		"  backoffLimit: %" PRId64 "\n  template:\n    spec:\n",
		job->retries);
	write_pod(to, 6, job, "Never");
	write_container(to, 8, job, "lockstep");
	write_resources(to, 8, job->devices * job->threads, job->memory);
	write_command(to, 8, script);
}

/* Without a command of their own workers run sshd, which is what the operator expects of them. */
static void write_mpi_job(FILE *to, const k8s_job *job, const char *script)
{
	fprintf(to,
		"spec:\n  slotsPerWorker: 1 # one process each, with all devices\n  mpiImplementation: OpenMPI\n"
		"  runPolicy:\n    cleanPodPolicy: Running\n    # When a node is lost, all start again and resume the "
		"run.\n"
		"    backoffLimit: %" PRId64 "\n  mpiReplicaSpecs:\n    Launcher:\n      replicas: 1\n"
		"      restartPolicy: OnFailure\n      template:\n        spec:\n",
		job->retries);
	write_pod(to, 10, job, NULL);
	write_container(to, 12, job, "launcher");
	write_resources(to, 12, 1, NULL);
	write_command(to, 12, script);
	fprintf(to,
		"    Worker:\n      replicas: %" PRId64
		"\n      restartPolicy: OnFailure\n      template:\n        spec:\n",
		job->nodes);
	write_pod(to, 10, job, NULL);
	write_container(to, 12, job, "worker");
	write_resources(to, 12, job->devices * job->threads, job->memory);
	indent(to, 12);
	fputs("command: [\"/usr/sbin/sshd\", \"-De\"]\n", to);
}

int ls_k8s_job(FILE *to, const k8s_job *job, const job_training *training, int argc, char **argv)
{
	char *text = NULL;
	size_t length = 0;
	FILE *script = open_memstream(&text, &length);

	if (script) {
		write_script(script, job, training);
		script = fclose(script) == 0 ? script : NULL;
	}
	if (!script || !text) {
		free(text);
		return 0;
	}
	write_head(to, job, argc, argv);
	if (job->nodes > 1)
		write_mpi_job(to, job, text);
	else
		write_job(to, job, text);
	free(text);
	return 1;
}
