/*
 * links.h - messages in flight between groups of nodes, as flows that share links and CPUs.
 *
 * A group is a number of nodes that behave alike; a channel carries what one node of a group sends to each node of
 * another. A channel has a queue of messages ordered by urgency and a window of bytes in flight, sent one message after
 * another, as a communication thread with MPI does. Active channels share with max-min fairness: each group's outgoing
 * link, its incoming link, both together, and its communication thread.
 *
 * With more shard owners than blocks per bucket, each bucket has different owners and several buckets are in flight at
 * once, each no faster than the links of its owners: messages then have `lanes` and a `cap`.
 */
#ifndef LS_TOOLS_FORECAST_LINKS_H
#define LS_TOOLS_FORECAST_LINKS_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

enum { LS_GROUPS_MAX = 32 };

typedef struct ls_parcel {
	int64_t step;
	int rank;           /* urgency within a step */
	int bucket, gather; /* gather: all-gather of new values; else reduce-scatter of partial sums */
	double bytes, left;
	double message; /* bytes of a message, where `bytes` is a mean over owners and few of them have one */
	double cap;     /* maximum bytes per second */
} ls_parcel;

typedef struct ls_channel {
	int from, to;       /* groups */
	double fan, fan_in; /* receivers per sender; senders per receiver */
	double window;      /* maximum bytes in flight; one parcel is always allowed */
	ls_parcel *waiting, *flying;
	int waiting_count, flying_count;
	double flying_bytes;
	double rate; /* bytes per second from one sender to one receiver */
} ls_channel;

/* What may limit a flow, most informative first. */
typedef enum ls_limit { LS_LIMIT_OUT, LS_LIMIT_IN, LS_LIMIT_BOTH, LS_LIMIT_COMM, LS_LIMIT_OWNERS, LS_LIMITS } ls_limit;

/* Capacities of one node of a group. */
typedef struct ls_port {
	double capacity[LS_LIMIT_OWNERS]; /* bytes per second; LS_LIMIT_COMM: CPU seconds per second */
	double used[LS_LIMIT_OWNERS];
	int full[LS_LIMIT_OWNERS];
} ls_port;

typedef struct ls_links {
	int groups, parcels; /* parcels: maximum per channel */
	ls_channel *channel; /* (groups, groups) */
	ls_port *port;       /* (groups) */
	int lanes;           /* buckets with different owners in flight at once, each with its own window */
	double cpu_s_per_byte, cpu_s_a_message;
} ls_links;

ls_status ls_links_init(ls_links *links, int groups, int parcels);
void ls_links_release(ls_links *links);

ls_channel *ls_links_channel(ls_links *links, int from, int to);
void ls_links_send(ls_links *links, int from, int to, ls_parcel parcel);

/* Start waiting parcels and compute the rates of all channels; `slow` (groups) scales the CPU speed of each group. */
void ls_links_share(ls_links *links, const double *slow);

/* Seconds until the next parcel arrives; INFINITY: nothing is in flight. */
double ls_links_next(const ls_links *links);

/* Advance the time by `seconds`; calls `through` for each parcel that arrives. */
void ls_links_pass(ls_links *links, double seconds,
		   void (*through)(void *context, ls_channel *channel, ls_parcel parcel), void *context);

/* CPU load of a group's messages, in cores. */
double ls_links_load(const ls_links *links, int group);

#endif
