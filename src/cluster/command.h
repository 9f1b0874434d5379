/*
 * command.h - the command line of mpirun that starts the nodes of a job.
 */
#ifndef LS_CLUSTER_COMMAND_H
#define LS_CLUSTER_COMMAND_H

#include <stddef.h>

#include <lockstep/launch.h>

#include "base/memory.h"
#include "base/status.h"

/* Set in the environment of a node that ls_launch() has started. */
#define LS_LAUNCH_MARK "LOCKSTEP_LAUNCHED"

/* The same: the hosts of all nodes, as they are named for ls_launch(). */
#define LS_NODE_HOSTS "LOCKSTEP_NODE_HOSTS"

/* What the launcher writes to mpirun's standard input, and so to that of the first node, to ask for a stop. One
 * character, and a line break since mpirun may forward whole lines. */
#define LS_LAUNCH_REQUEST "s\n"

/* Seconds mpirun gives nodes between two ways of ending them: time to report which node died. */
#define LS_LAUNCH_WAIT_S 1

/* "3,2" for the environment of the nodes, or NULL when the hosts have no numbers. In the arena, as is the command. */
ls_status ls_launch_devices(ls_arena *arena, const ls_host *hosts, size_t count, char **out);

/* Words ending with NULL, the first being mpirun's path. is_watched: by a supervisor, so nodes that are left when one
 * is lost are ended at once, whatever they would still report. */
ls_status ls_launch_command(ls_arena *arena, const ls_launch_options *options, int is_watched, const ls_host *hosts,
			    size_t count, char ***out);

#endif
