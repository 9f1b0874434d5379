/*
 * launch_run.h - inside of launch.c and launch_learn.c: mpirun and its nodes, while they run and when they have ended.
 */
#ifndef LS_CLUSTER_LAUNCH_RUN_H
#define LS_CLUSTER_LAUNCH_RUN_H

#include <sys/types.h>

#include <lockstep/launch.h>

#include "base/memory.h"
#include "cluster/launch_watch.h"
#include "cluster/output.h"

typedef struct ls_launch_run {
	const ls_launch_options *options;
	ls_host *hosts;
	size_t count;
	ls_arena arena;
	char **command, *devices;
	char *names;       /* "a:2,b:2" */
	char **allocation; /* what mpirun is to take for Slurm's; NULL: what there is */
	ls_launch_output output;
	pid_t mpirun;
	int from; /* its standard error */
	int to;   /* its standard input */
	int stops;
	int late;   /* nodes were not up in time, or did not find each other */
	int killed; /* mpirun did not end by itself */
	double started, ending;
	int wait_status;
	ls_launch_watch *watch; /* NULL: no supervisor */
	double regroup;         /* when it has asked nodes to stop; 0: it has not */
} ls_launch_run;

/* All nodes were up, and did not find each other. */
int ls_launch_is_unjoined(const ls_launch_run *l);

/* mpirun says the same of a daemon that ends later, with its host: then nodes have been up. */
int ls_launch_is_unstarted(const ls_launch_run *l);

/* "node 1 (b)", where mpirun has noted which; "a node". */
void ls_launch_name_node(const ls_launch_run *l, int known, size_t node, char *out, size_t size);

/* Once mpirun has ended: into the watch. */
void ls_launch_learn(ls_launch_run *l, int exit_code);

#endif
