/*
 * suspects.h - a start has failed before it trained: which of its hosts the next one does without.
 *
 * Hosts that trained before are above suspicion while there are others: what has changed is who joined. Those of them
 * that the report names are left out. Where it names none, all but the first are: it is tried alone, and left out by
 * itself when that fails, so that one bad host does not keep good ones away. Before
 * anything has trained only those that are named are (exclude_suspects()).
 */
#ifndef LS_CLUSTER_SUSPECTS_H
#define LS_CLUSTER_SUSPECTS_H

#include <stddef.h>

#include <lockstep/launch.h>

/* Whether a report is about this host: "node 1 (b) ...", "host b cannot run ...". */
int ls_suspects_names(const char *report, const char *host);

/* joined[i]: host i was not in the last start that trained. Sets out[i] for those to leave out; how many. Where nobody
 * joined, those that are named. */
size_t ls_suspects_find(const ls_host *hosts, const int *joined, size_t count, const char *report, int *out);

#endif
