/*
 * reach.h - after nodes could not be started: which of the hosts cannot be reached, and why.
 */
#ifndef LS_CLUSTER_REACH_H
#define LS_CLUSTER_REACH_H

#include <stddef.h>

#include <lockstep/launch.h>

/* "lm9: Name or service not known; lm6: No route to host" of those that neither accept nor refuse a connection within
 * `seconds`; "" when all do. */
void ls_launch_reach(const ls_host *hosts, size_t count, double seconds, char *out, size_t size);

/* Whether each of the hosts answers: answers[i] is 1 or 0. This host does. */
void ls_launch_answers(const ls_host *hosts, size_t count, double seconds, int *answers);

#endif
