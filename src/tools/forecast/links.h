/*
 * links.h - messages on their way between groups, as flows that share links and processors.
 *
 * A group is a number of nodes that behave alike; a channel is what one node of a group sends to each node of another.
 * A channel keeps messages waiting by urgency and a window of bytes under way, which go one behind the other, as with a
 * communication thread and MPI. All channels under way share, max-min fair: each group's link out, its link in, both
 * together, and the thread that carries its messages.
 *
 * Where there are more owners than a bucket has blocks, each bucket has other owners and several are under way at once,
 * though each no faster than its own owners' links: messages then have `lanes` and a `cap`.
 */
#ifndef LS_TOOLS_FORECAST_LINKS_H
#define LS_TOOLS_FORECAST_LINKS_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

enum { LS_GROUPS_MAX = 32 };

typedef struct ls_parcel {
	int64_t step;
	int rank;         /* urgency is the step, then this */
	int bucket, pull; /* a pull brings new values, else partial sums */
	double bytes, left;
	double message; /* bytes of a message, where `bytes` is the mean over owners of whom few have one */
	double cap;     /* bytes a second at most */
} ls_parcel;

typedef struct ls_channel {
	int from, to;       /* groups */
	double fan, fan_in; /* nodes each sender sends to; nodes each receiver hears */
	double window;      /* bytes under way; one parcel always may be */
	ls_parcel *waiting, *flying;
	int waiting_count, flying_count;
	double flying_bytes;
	double rate; /* bytes a second of one sender to one receiver */
} ls_channel;

/* What may limit a flow, most telling first. */
typedef enum ls_limit { LS_LIMIT_OUT, LS_LIMIT_IN, LS_LIMIT_BOTH, LS_LIMIT_COMM, LS_LIMIT_OWNERS, LS_LIMITS } ls_limit;

/* Of one node of a group. */
typedef struct ls_port {
	double capacity[LS_LIMIT_OWNERS]; /* bytes a second; the communication thread's: seconds a second */
	double used[LS_LIMIT_OWNERS];
	int full[LS_LIMIT_OWNERS];
} ls_port;

typedef struct ls_links {
	int groups, parcels; /* parcels: most that a channel can hold */
	ls_channel *channel; /* (groups, groups) */
	ls_port *port;       /* (groups) */
	int lanes;           /* buckets with other owners that are under way at once, each with a window of its own */
	double cpu_s_per_byte, cpu_s_a_message;
} ls_links;

ls_status ls_links_init(ls_links *links, int groups, int parcels);
void ls_links_release(ls_links *links);

ls_channel *ls_links_channel(ls_links *links, int from, int to);
void ls_links_send(ls_links *links, int from, int to, ls_parcel parcel);

/* Start what may start and share the links out; `slow` (groups) scales what a group's processor lets through. */
void ls_links_share(ls_links *links, const double *slow);

/* Seconds until the next parcel is through; INFINITY: nothing moves. */
double ls_links_next(const ls_links *links);

/* Let `seconds` pass. Parcels that are through are told. */
void ls_links_pass(ls_links *links, double seconds,
		   void (*through)(void *context, ls_channel *channel, ls_parcel parcel), void *context);

/* Processor seconds a second that a group's messages take. */
double ls_links_load(const ls_links *links, int group);

#endif
