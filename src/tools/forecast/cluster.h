/*
 * cluster.h - description of a cluster, real or planned: kinds of nodes, their links and their failures.
 *
 * Read from a short file like this one, or from the output of `lockstep probe --json`:
 *
 *     { "format": "lockstep cluster", "version": 2,
 *       "nodes": [ { "name": "new", "count": 12, "devices": 4, "gbit_per_s": 10 },
 *                  { "name": "old", "count": 4, "devices": 2, "speed": 0.6, "gbit_per_s": 1 } ],
 *       "spread": 0.03 }
 *
 * Invariants of a cluster that was read
 *  1. At least one node computes, and all fields are known: a misspelt field is an error.
 *  2. Numbers are finite and in their ranges; missing fields have their defaults.
 */
#ifndef LS_TOOLS_FORECAST_CLUSTER_H
#define LS_TOOLS_FORECAST_CLUSTER_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

#define LS_CLUSTER_VERSION 2
enum { LS_CLUSTER_NAME = 64, LS_CLUSTER_KINDS = 32, LS_CLUSTER_EXCHANGES = 4 };

/* A number of identical nodes. */
typedef struct ls_machine_kind {
	char name[LS_CLUSTER_NAME];
	int64_t count;
	int64_t devices;        /* per node; 0: it can only be a server */
	double speed;           /* of a device, relative to the profile's */
	int probed;             /* the speed was measured by a probe */
	double replay_speed;    /* then, of devices with simulated compute */
	double gbit_per_s;      /* payload rate of its link one way, not the nominal rate */
	double both_gbit_per_s; /* each way while both are busy; 0: as much as one way alone */
	double latency_us;      /* one way, until a thread of the other node has the message */
	int64_t cores;          /* 0: one per thread of its devices, and one for communication */
	double inside_ms;       /* per step, exchange among its devices that does not overlap; 0: from copy_gb_per_s */
} ls_machine_kind;

/* An exchange of gradients, without training, that a probe has measured among all nodes. */
typedef struct ls_measured_exchange {
	int64_t servers; /* of strategy ps, the last nodes; 0: allreduce */
	int bf16;
	double bytes;   /* of a gradient in fp32 */
	double seconds; /* until all nodes have the new parameters */
} ls_measured_exchange;

typedef struct ls_cluster {
	char name[LS_CLUSTER_NAME];
	double spread;          /* standard deviation of the speeds of identical nodes: 0.05 is 5 % */
	int64_t shared_cores;   /* all nodes are emulated on one machine with N cores; 0: each has its own */
	double copy_gb_per_s;   /* memory bandwidth of a core: bytes read and written */
	double net_ns_per_byte; /* CPU time per byte sent or received */
	double message_us;      /* CPU time per message */
	double mtbf_hours;      /* mean time between failures of one node; 0: no failures */
	double checkpoint_s;    /* seconds that a checkpoint stops training */
	double interval_s;      /* between checkpoints; 0: the interval that loses least */
	double snapshot_s;      /* seconds that a snapshot in memory stops training; negative: none are taken */
	double restart_s;       /* from a failure until training continues */
	size_t kinds;
	ls_machine_kind *kind;
	size_t exchanges;
	ls_measured_exchange exchange[LS_CLUSTER_EXCHANGES];
} ls_cluster;

/* Defaults without nodes. */
void ls_cluster_init(ls_cluster *cluster);
ls_machine_kind ls_machine_kind_default(void);

/* `label` names the text in errors, which say line or field and reason. On failure the output is unchanged. */
ls_status ls_cluster_parse(ls_cluster *out, const void *text, size_t bytes, const char *label);
ls_status ls_cluster_read(ls_cluster *out, const char *path);
void ls_cluster_release(ls_cluster *cluster);

/* Zeroed kinds of a cluster that has none. */
ls_status ls_cluster_make_kinds(ls_cluster *cluster, size_t kinds);

/* A cluster of `nodes` identical nodes. */
ls_status ls_cluster_of(ls_cluster *out, int64_t nodes, int64_t devices, double gbit_per_s);

/* The same kinds in the same proportions, `nodes` in all; every kind keeps at least one node where possible. */
ls_status ls_cluster_resize(ls_cluster *out, const ls_cluster *from, int64_t nodes);

int64_t ls_cluster_nodes(const ls_cluster *cluster);
int64_t ls_cluster_devices(const ls_cluster *cluster);

/* "1gbit", "100mbit", "2.5gbit/s" in Gbit/s. */
ls_status ls_rate_parse(const char *text, double *gbit_per_s);
/* Gbit/s to text; returns `out`. */
const char *ls_rate_text(char *out, size_t size, double gbit_per_s);

/* Payload part of a nominal rate, without headers of Ethernet, IP and TCP. */
#define LS_RATE_PAYLOAD 0.949
/* The same in each direction while both are busy: measured with the exchange in the lab at 1 Gbit/s. */
#define LS_RATE_BOTH 0.89

#endif
