/*
 * slurm_script.c - see slurm_script.h. The comments in the script are for users who adapt it to their cluster.
 */
#include "slurm_script.h"

#include <inttypes.h>
#include <string.h>

#include <lockstep/names.h>

#include "quote.h"

static void write_head(FILE *to, int argc, char **argv)
{
	fputs("#!/bin/bash\n"
	      "# Trains with Lockstep under Slurm. Submit it with sbatch; options on the command line of sbatch "
	      "override "
	      "those below,\n"
	      "# and arguments after the script's name are added to those of lockstep train. Made by\n"
	      "#   lockstep slurm",
	      to);
	for (int i = 1; i < argc; i++) {
		fputc(' ', to);
		ls_shell_quote(to, argv[i]);
	}
	fputs("\n\n", to);
}

static void write_directive(FILE *to, const char *option, const char *value)
{
	if (value)
		fprintf(to, "#SBATCH --%s=%s\n", option, value);
}

static void write_directives(FILE *to, const slurm_job *job)
{
	write_directive(to, "job-name", job->name);
	write_directive(to, "account", job->account);
	write_directive(to, "partition", job->partition);
	write_directive(to, "time", job->time);
	write_directive(to, "mem", job->memory);
	fprintf(to,
		"# One process per node and one core per thread: %" PRId64 " device%s with %" PRId64 " thread%s%s.\n"
		"#SBATCH --nodes=%" PRId64 "\n#SBATCH --ntasks-per-node=1\n#SBATCH --cpus-per-task=%" PRId64 "\n",
		job->devices, ls_plural((uint64_t)job->devices, "s"), job->threads,
		ls_plural((uint64_t)job->threads, "s"), job->devices > 1 ? " each" : "", job->nodes,
		job->devices * job->threads);
	fprintf(to,
		"# Ask this script (B: not the training itself) to stop %" PRId64
		" seconds before the time is up, so that the run\n"
		"# can write a checkpoint; see the traps below.\n#SBATCH --signal=B:USR1@%" PRId64 "\n",
		job->grace, job->grace);
	fputs("# After a node failure or preemption the job is requeued and appends to its log.\n"
	      "#SBATCH --requeue\n#SBATCH --open-mode=append\n#SBATCH --output=%x-%j.out\n",
	      to);
}

static void write_no_kill(FILE *to)
{
	fputs("# A node that fails does not end the job: the run goes on with the others. The first node must last.\n"
	      "#SBATCH --no-kill\n",
	      to);
}

static void write_program(FILE *to, const slurm_job *job)
{
	ls_shell_quote(to, job->program);
	fputs(" train \"${arguments[@]}\" \"${start[@]}\" \"$@\" &\n", to);
}

static void write_srun(FILE *to, const slurm_job *job)
{
	fprintf(to,
		"\n# --cpus-per-task again, because srun does not take it from the job. No binding: Lockstep pins its "
		"threads\n"
		"# itself. A node that ends must not have the others killed, one may still be writing the checkpoint; "
		"after a\n"
		"# failure they end by themselves. In the background, because bash handles signals only while it "
		"waits.\n"
		"srun --cpus-per-task=\"${SLURM_CPUS_PER_TASK:-%" PRId64 "}\" --cpu-bind=none --kill-on-bad-exit=0 ",
		job->devices * job->threads);
	if (job->mpi)
		fprintf(to, "--mpi=%s ", job->mpi);
	fputs("\\\n\t", to);
	write_program(to, job);
}

static void write_supervisor(FILE *to, const slurm_job *job)
{
	fputs("\n# One process here, which starts the nodes of the job by mpirun (Open MPI's, which uses srun) and "
	      "starts those\n"
	      "# that are left again when one is lost. In the background, because bash handles signals only while it "
	      "waits.\n",
	      to);
	write_program(to, job);
}

/* srun answers SIGTERM by killing its tasks, so nodes that it started are asked through scancel. */
static void write_wait(FILE *to, int elastic)
{
	fprintf(to,
		"\n# All nodes finish their step and write a checkpoint when asked to stop. USR1 comes to this script "
		"alone, "
		"before the\n"
		"# time limit; TERM to everything, when the job is cancelled or preempted. A second request would end "
		"them at "
		"once.\n"
		"stopped=\n"
		"trap 'stopped=time; trap \"\" USR1 TERM; %s' USR1\n"
		"trap 'stopped=cancel; trap \"\" USR1 TERM' TERM\n",
		elastic ? "kill -TERM \"$!\"" : "scancel --signal=TERM \"$SLURM_JOB_ID\"");
	fputs("wait \"$!\"\nstatus=$?\n"
	      "if [ -n \"$stopped\" ]; then\n"
	      "\twait \"$!\" # the signal ended the first one early\n\tstatus=$?\nfi\n",
	      to);
}

/* A run without a directory would begin anew for ever. */
static void write_requeue(FILE *to, const slurm_job *job)
{
	fprintf(to,
		"\n# Time was up before training was: the job goes back into the queue, at most %" PRId64 " times.\n"
		"if [ \"$stopped\" = time ] && [ \"$status\" = 143 ] && [ \"${SLURM_RESTART_COUNT:-0}\" -lt %" PRId64
		" ]; then\n"
		"\tscontrol requeue \"$SLURM_JOB_ID\"\nfi\n",
		job->requeues, job->requeues);
}

void ls_slurm_script(FILE *to, const slurm_job *job, const job_training *training, int argc, char **argv)
{
	write_head(to, argc, argv);
	write_directives(to, job);
	if (training->elastic)
		write_no_kill(to);
	if (job->setup)
		fprintf(to, "\n# What the nodes need before lockstep can start; they inherit this environment.\n%s\n",
			job->setup);
	ls_job_training_write(to, training, job->devices, job->threads);
	if (training->elastic)
		write_supervisor(to, job);
	else
		write_srun(to, job);
	write_wait(to, training->elastic);
	if (training->run && job->requeues > 0)
		write_requeue(to, job);
	fputs("exit \"$status\"\n", to);
}
