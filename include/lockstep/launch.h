/*
 * launch.h - start this program as nodes on several hosts, through Open MPI's mpirun.
 *
 * `lockstep train --hosts lm1:3,lm6:2` calls ls_launch() with its own command line. Each entry becomes a node, in the
 * order given. The nodes learn their number of devices from LOCKSTEP_DEVICES_PER_NODE="3,2", one entry per rank;
 * without numbers each node uses its default. The nodes' output appears on this process's standard output and error;
 * messages of mpirun itself are summarised in one error message.
 */
#ifndef LOCKSTEP_LAUNCH_H
#define LOCKSTEP_LAUNCH_H

#include <stddef.h>

#include <lockstep/status.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LS_DEVICES_PER_NODE "LOCKSTEP_DEVICES_PER_NODE"

typedef struct ls_host {
	char name[256];
	int devices; /* 0: not given */
} ls_host;

/* "lm1:3,lm6:2": one entry per node. A host may have several entries. Either all entries give a number of devices or
 * none does. "@FILE": from a file with an entry per line, "lm1:3", "lm1 3" or "lm1 slots=3"; '#' begins a comment.
 * Free with ls_hosts_free(). */
LS_API ls_status ls_hosts_parse(ls_host **out, size_t *count, const char *text);
LS_API void ls_hosts_free(ls_host *hosts);

/* Whether a name means this machine: "localhost", or its host name with or without domain. */
LS_API int ls_host_is_here(const char *name);

/* Number of nodes that a launcher (mpirun, srun) started together with this process; 1: no launcher. */
LS_API int ls_launched(void);

/* Number of devices that ls_launch() assigned to the node of this rank; 0: none assigned. */
LS_API ls_status ls_launched_devices(int node, int *devices);

/* Whether ls_launch() has started this process. */
LS_API int ls_launched_by_us(void);

/* A node started by ls_launch() calls this as soon as it handles SIGUSR1. When the launcher is asked to stop, the first
 * node raises SIGUSR1 in itself and must stop the other nodes (ls_train() does that). The request arrives on standard
 * input, which is therefore empty for the program. If the node ends with a status other than zero or by a signal, and
 * mpirun does not end its daemon on that host within seconds, a process that this starts ends it. */
LS_API void ls_launch_report(void);

/* Print the final error message of this program on standard error, as one line. In a node started by ls_launch() the
 * line is marked: the launcher recognises a failed node and its reason, ends the other nodes, and prints the message
 * without the mark, once even if several nodes report it. LS_EINTERRUPTED means that the node stops on request; the
 * other nodes are left to finish. */
LS_API void ls_launch_report_end(ls_status status, const char *message);

typedef struct ls_launch_options {
	size_t size;       /* set by LS_LAUNCH_OPTIONS_INIT */
	const char *hosts; /* as for ls_hosts_parse() */
	char *const
		*argv;  /* arguments of this program, ending with NULL; argv[0] is replaced by the path it runs from */
	double timeout; /* seconds within which all nodes must have started */
} ls_launch_options;
#define LS_LAUNCH_OPTIONS_INIT                                                                                         \
	{                                                                                                              \
		.size = sizeof(ls_launch_options), .timeout = 30                                                       \
	}

/*
 * Start the nodes and wait until all have ended. LS_OK: they ran, and *exit_code is 0 on success, else the exit code of
 * a failed node, which has printed the reason. LS_EINTERRUPTED: ended after ls_launch_stop(). Any other status: a
 * failure that no node could report (a host that cannot be reached, a node that was killed); the message names it.
 */
LS_API ls_status ls_launch(const ls_launch_options *options, int *exit_code);

/* A run that goes on while hosts die, leave and join. In a job of Slurm hosts and discover may both be NULL: the nodes
 * are those that the job has, asked for every ten seconds. */
typedef struct ls_elastic_options {
	size_t size;          /* set by LS_ELASTIC_OPTIONS_INIT */
	const char *hosts;    /* as for ls_hosts_parse(), one entry per host; a file is read again when it changes */
	const char *discover; /* in place of hosts: a command that prints them, run by the shell every other second */
	char *const *argv;    /* of the first start, as in ls_launch_options */
	char *const *resume_argv; /* of every later one, once RUN/run.json is there: the run goes on */
	const char *run;          /* the run directory, which every host and this one must see under this name */
	double timeout;           /* seconds within which nodes must have started, and a silent one counts as lost */
	int min_nodes;            /* wait while fewer hosts can take part */
	int max_restarts;         /* lost nodes after which the run ends; counted anew after five minutes of training */
} ls_elastic_options;
#define LS_ELASTIC_OPTIONS_INIT                                                                                        \
	{                                                                                                              \
		.size = sizeof(ls_elastic_options), .timeout = 30, .min_nodes = 1, .max_restarts = 100                 \
	}

/*
 * The same as ls_launch(), on as many of the hosts as can take part. When a node dies, is silent or cut off, the others
 * are ended, and all hosts that answer start again from the newest checkpoint, to the bits of a run that nothing
 * happened to; a host that comes back or is new makes the nodes stop with a checkpoint and start again with it, soon
 * for the first time, and less often where hosts change again and again. A host that fails three times in a row is left
 * out for a minute, then for longer; so is one with which a start fails before it trains, where others trained before.
 * Any other failure that another start would come to as well ends the run. Lines that begin with "Elastic:" report it
 * on standard output.
 */
LS_API ls_status ls_launch_elastic(const ls_elastic_options *options, int *exit_code);

/* Ask all nodes, through the first one, to finish the step, write a checkpoint and exit; a second call ends them at
 * once. Async-signal-safe. */
LS_API void ls_launch_stop(void);

#ifdef __cplusplus
}
#endif
#endif
