/*
 * launch.h - start this program as nodes on several hosts, through Open MPI's mpirun.
 *
 * `lockstep train --hosts lm1:3,lm6:2` is ls_launch() of its own command line. Each entry becomes a node, in the order
 * given; how many devices each has reaches them as LOCKSTEP_DEVICES_PER_NODE="3,2", of which a node takes the entry of
 * its rank; without numbers each has its own default. The nodes' output arrives on this process's; what mpirun itself
 * has to say is told in one message.
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
	int devices; /* 0: not said */
} ls_host;

/* "lm1:3,lm6:2": an entry a node. A host may have several; all of them say how many devices, or none does. Free with
 * ls_hosts_free(). */
LS_API ls_status ls_hosts_parse(ls_host **out, size_t *count, const char *text);
LS_API void ls_hosts_free(ls_host *hosts);

/* Whether a name means the machine this runs on: "localhost", or its host name with or without domain. */
LS_API int ls_host_is_here(const char *name);

/* How many nodes a launcher (mpirun, srun) has started this process among; 1: none has. */
LS_API int ls_launched(void);

/* How many devices ls_launch() wants a node to have, by its rank; 0: it did not say. */
LS_API ls_status ls_launched_devices(int node, int *devices);

/* Whether ls_launch() has started this process. */
LS_API int ls_launched_by_us(void);

/* A node that ls_launch() has started calls this as soon as it handles SIGUSR1, which it then gets from itself when the
 * launcher is asked to stop: the first node does, and has to stop the others (ls_train() does that). Takes over
 * standard input, by which the request comes; it is empty for the program. When the node exits with a status other than
 * zero, mpirun's daemon on its host is ended if mpirun does not end it within seconds. */
LS_API void ls_launch_report(void);

/* Print the message that this program ends with on standard error, as one line. In a node that ls_launch() has started
 * it is marked: the launcher then knows that a node has failed and why, ends the others, and prints it without the
 * mark, once if several nodes end with the same message. A status of LS_EINTERRUPTED means that the node stops on
 * request: the others are left to finish. */
LS_API void ls_launch_report_end(ls_status status, const char *message);

typedef struct ls_launch_options {
	const char *hosts; /* as for ls_hosts_parse() */
	char *const
		*argv;  /* arguments of this program, ending with NULL; argv[0] is replaced by the path it runs from */
	double timeout; /* seconds in which nodes must have come up */
} ls_launch_options;
#define LS_LAUNCH_OPTIONS_INIT                                                                                         \
	{                                                                                                              \
		.timeout = 30                                                                                          \
	}

/*
 * Start the nodes and wait until all have ended. LS_OK: they ran, and *exit_code is 0 when all went well, else that of
 * a node that failed and has told why. LS_EINTERRUPTED: ended after ls_launch_stop(). Otherwise something happened that
 * no node could tell (a host that cannot be reached, a node that was killed), and the message says what.
 */
LS_API ls_status ls_launch(const ls_launch_options *options, int *exit_code);

/* Ask the first node to finish its step, write a checkpoint and end with all others; called again, end them. Safe in a
 * signal handler. */
LS_API void ls_launch_stop(void);

#ifdef __cplusplus
}
#endif
#endif
