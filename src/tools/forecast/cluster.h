/*
 * cluster.h - a cluster that need not be there: kinds of nodes, their links, and what goes wrong with them.
 *
 * A short file, or one that `lockstep probe --json` has written:
 *
 *     { "format": "lockstep cluster", "version": 2,
 *       "nodes": [ { "name": "new", "count": 12, "devices": 4, "gbit_per_s": 10 },
 *                  { "name": "old", "count": 4, "devices": 2, "speed": 0.6, "gbit_per_s": 1 } ],
 *       "spread": 0.03 }
 *
 * Invariants of a cluster that was read
 *  1. There is at least one node that computes, and no field that is not known: a misspelt one is refused, not ignored.
 *  2. Numbers are finite and in their ranges; what was not given has its default.
 */
#ifndef LS_TOOLS_FORECAST_CLUSTER_H
#define LS_TOOLS_FORECAST_CLUSTER_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

#define LS_CLUSTER_VERSION 2
enum { LS_CLUSTER_NAME = 64, LS_CLUSTER_KINDS = 32 };

/* Nodes alike. */
typedef struct ls_machine_kind {
	char name[LS_CLUSTER_NAME];
	int64_t count;
	int64_t devices;        /* of each; 0: it can only be a server */
	double speed;           /* of a device, times the profile's */
	int probed;             /* the speed was measured, not asked for */
	double gbit_per_s;      /* of its link, one way: payload, not the nominal rate */
	double both_gbit_per_s; /* each way while both are busy; 0: as much as one way alone */
	double latency_us;      /* of a message, until the other node's thread has it */
	int64_t cores;          /* 0: its devices' threads and one for messages */
	double inside_ms;       /* a step's exchange among its devices that nothing hides; 0: as measured by copying */
} ls_machine_kind;

typedef struct ls_cluster {
	char name[LS_CLUSTER_NAME];
	double spread;          /* standard deviation of the speed of nodes that should be alike: 0.05 is 5 % */
	int64_t shared_cores;   /* all nodes are emulated on one machine with N cores cores; 0: each has its own */
	double copy_gb_per_s;   /* memory of a core: bytes read and written */
	double net_ns_per_byte; /* of a core, for a byte that is sent or received */
	double message_us;      /* of a core, for a message */
	double mtbf_hours;      /* between failures of one node; 0: none fails */
	double checkpoint_s;    /* training stands still for so long */
	double interval_s;      /* between checkpoints; 0: what loses least */
	double restart_s;       /* from a failure until training goes on */
	size_t kinds;
	ls_machine_kind *kind;
} ls_cluster;

/* Defaults without nodes. */
void ls_cluster_init(ls_cluster *cluster);
ls_machine_kind ls_machine_kind_default(void);

/* `label` names the text in errors, which say line or field and reason. The output is left alone on failure. */
ls_status ls_cluster_parse(ls_cluster *out, const void *text, size_t bytes, const char *label);
ls_status ls_cluster_read(ls_cluster *out, const char *path);
void ls_cluster_release(ls_cluster *cluster);

/* One kind of `nodes` nodes. */
ls_status ls_cluster_of(ls_cluster *out, int64_t nodes, int64_t devices, double gbit_per_s);

/* The same kinds in the same proportions, `nodes` in all: every kind keeps at least one node while there are enough. */
ls_status ls_cluster_resize(ls_cluster *out, const ls_cluster *from, int64_t nodes);

int64_t ls_cluster_nodes(const ls_cluster *cluster);
int64_t ls_cluster_devices(const ls_cluster *cluster);

/* "1gbit", "100mbit", "2.5gbit/s" in Gbit/s. */
ls_status ls_rate_parse(const char *text, double *gbit_per_s);
/* The other way; returns `out`. */
const char *ls_rate_text(char *out, size_t size, double gbit_per_s);

/* What of a nominal rate is left for messages' bytes: headers of Ethernet, IP and TCP. */
#define LS_RATE_PAYLOAD 0.949
/* And each way while both are busy: what the exchange moved in the lab at 1 Gbit/s. */
#define LS_RATE_BOTH 0.89

#endif
