/*
 * on_hosts.h - a command with --hosts starts itself there.
 */
#ifndef LS_CLI_ON_HOSTS_H
#define LS_CLI_ON_HOSTS_H

#include <stdint.h>

#include <lockstep/launch.h>

/* Go on in this process: ls_on_hosts() returns this, or else the code to exit with. */
enum { LS_ON_HOSTS_HERE = -1 };

typedef struct ls_on_hosts_options {
	const char *command;               /* "lockstep bench": as errors begin */
	const char *hosts;                 /* NULL: this process is a node, or all there is */
	double timeout;                    /* seconds in which nodes must have come up */
	int64_t servers;                   /* of the nodes; fewer than them, so that somebody computes */
	int keeps;                         /* there is a run directory: the first signal writes a checkpoint */
	const ls_elastic_options *elastic; /* of a run that goes on when hosts die, leave or join; NULL: none */
	int argc;
	char **argv; /* of the command, which nodes get as it is */
} ls_on_hosts_options;

/*
 * Start the nodes and wait for them, unless there is nothing to start: no hosts, this host alone, or this process is
 * one of those that were started. *devices becomes what --hosts says of the node that is alone.
 */
int ls_on_hosts(const ls_on_hosts_options *options, int64_t *devices);

/* In a node of a command that keeps nothing: tell the launcher that it is up, and end when the launcher asks for it. */
void ls_on_hosts_report(void);

#endif
