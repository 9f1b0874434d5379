/*
 * reach.h - whether hosts answer at the port of ssh: after nodes could not be started, and while hosts are waited for.
 */
#ifndef LS_CLUSTER_REACH_H
#define LS_CLUSTER_REACH_H

#include <stdatomic.h>
#include <stddef.h>
#include <sys/socket.h>

#include <lockstep/launch.h>

/* "lm9: Name or service not known; lm6: No route to host" of those that neither accept nor refuse a connection within
 * `seconds`; "" when all do. */
void ls_launch_reach(const ls_host *hosts, size_t count, double seconds, char *out, size_t size);

/* Where a host is; length 0: not known. */
typedef struct ls_address {
	struct sockaddr_storage bytes;
	socklen_t length;
} ls_address;

typedef struct ls_reach {
	const char *host;
	ls_address address; /* where it is not known, the resolver is asked, which may take its time */
	int is_asked;       /* 0: leave this one out */
	int answers;
} ls_reach;

#define LS_REACH_ANSWER_S 1.0 /* in which a host that is up answers */

/* Whether each of the hosts answers within `seconds`. This host does. *cancel ends it after the name under way; NULL:
 * nobody does. */
void ls_reach_ask(ls_reach *list, size_t count, double seconds, const atomic_int *cancel);

#endif
