/*
 * probe.h - measure a machine or cluster: cores, arithmetic, memory, links, and the exchange of gradients.
 *
 *     ls_probe_options options = LS_PROBE_OPTIONS_INIT;
 *     ls_probe_result result;
 *     if (ls_probe(&options, &result) == LS_OK)
 *             printf("%.1f GFLOP/s\n", result.nodes[0].gflop_per_s);
 *     ls_probe_result_release(&result);
 *
 * Under a launcher (mpirun, srun) every process calls it and is a node; the result is complete on node 0 alone. Nodes
 * on different hosts measure themselves at the same time, nodes of one host take turns. All figures are medians.
 */
#ifndef LOCKSTEP_PROBE_H
#define LOCKSTEP_PROBE_H

#include <stddef.h>
#include <stdint.h>

#include <lockstep/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ls_probe_options {
	size_t size;          /* set by LS_PROBE_OPTIONS_INIT */
	int64_t devices;      /* that exchange a gradient; 0: on one node 2 and all cores, on several all cores */
	uint64_t bytes;       /* of gradient; 0: 44 MB (ResNet-18's), quick: 4 MB */
	int64_t bucket_bytes; /* bytes of gradient sent together; 0: training's default */
	int64_t servers;      /* also measure parameter servers, on the last N nodes; 0: do not */
	int64_t repeat;       /* repeats per figure; 0: 9, quick: 3 */
	int64_t timeout;      /* give up on a silent node after this many seconds */
	int quick;            /* take 1 to 2 seconds, less precise */
	int unused;           /* fills the struct up; stays 0 */
} ls_probe_options;
#define LS_PROBE_OPTIONS_INIT                                                                                          \
	{                                                                                                              \
		.size = sizeof(ls_probe_options), .timeout = 30                                                        \
	}

/* GB are 10^9 bytes, Gbit 10^9 bits. */
typedef struct ls_probe_memory {
	double read_gb_per_s; /* bytes read */
	double copy_gb_per_s; /* bytes read plus bytes written */
	uint64_t reserved[4]; /* 0 */
} ls_probe_memory;

/*
 * Every device of a node has a gradient of `bytes`, ready at once. After `seconds` the gradients are summed over the
 * devices and the update (here: a copy of the sum that bypasses the caches) has written all parameters, which all
 * devices share. gb_per_s is bytes / seconds: the gradient of one device, counted once.
 */
typedef struct ls_probe_inside {
	int devices; /* 0: not measured, as on a node with one core */
	double seconds, gb_per_s;
	uint64_t reserved[4]; /* 0 */
} ls_probe_inside;

/* Link between node 0 and another node, with messages of the size that the exchange uses. */
typedef struct ls_probe_link {
	double to_gbit_per_s, from_gbit_per_s; /* one way at a time, seen from node 0 */
	double both_gbit_per_s;                /* each way while both are busy */
	double round_trip_us;                  /* of 8 bytes, between threads of the nodes */
	uint64_t reserved[4];                  /* 0 */
} ls_probe_link;

typedef struct ls_probe_node {
	char host[64], cpu[96], system[96];     /* "Linux 6.1.0" */
	char version[32], kernels[32], isa[32]; /* of this library; "xsmm"; "avx512" */
	char mpi[96];                           /* the MPI library, "" in a build without MPI */
	int cores;                              /* that this node may use */
	int devices;                            /* of this node: options.devices, else one per core */
	double gflop_per_s_core, gflop_per_s;   /* of 64x64 matrix products: one core alone, all cores together */
	ls_probe_memory memory_core, memory;
	double unsteady; /* largest spread of repeats of a figure that did not become steady: 0.2 is 20 %; 0: all are
			    steady */
	uint64_t memory_bytes; /* used per core */
	ls_probe_inside inside[2];
	ls_probe_link link;   /* to node 0; zero there */
	int numa_domains;     /* of its cores, at least 1 */
	int unused;           /* 0 */
	uint64_t reserved[7]; /* 0 */
} ls_probe_node;

/*
 * All nodes exchange a gradient of `bytes` bytes: `seconds` from when it is ready on all nodes until all have the new
 * parameters. wire_bytes is the traffic in the busier direction of the busiest node in that time, gbit_per_s its rate;
 * limit_gbit_per_s is the rate of the slowest link with both directions busy. library_seconds is the time of the MPI
 * library's own all-reduce of the same number of bytes, measured in turns with the exchange.
 */
typedef struct ls_probe_between {
	char strategy[16], wire[16]; /* "allreduce" or "ps"; "fp32" or "bf16" */
	double seconds, gb_per_s;
	double wire_bytes, gbit_per_s, limit_gbit_per_s;
	double library_seconds, library_gb_per_s;
	int64_t servers;      /* of strategy ps; 0: it has none */
	uint64_t bytes;       /* of gradient: the probe's, or fewer where links are slow and options.bytes is 0 */
	uint64_t reserved[2]; /* 0 */
} ls_probe_between;
#define LS_PROBE_BETWEEN_MAX 4

typedef struct ls_probe_result {
	int node; /* this node; the other fields are set on node 0 */
	int node_count;
	ls_probe_node *nodes; /* freed by ls_probe_result_release() */
	uint64_t bytes;       /* of gradient */
	int64_t repeat;
	int between_count; /* 0 with one node */
	ls_probe_between between[LS_PROBE_BETWEEN_MAX];
	uint64_t reserved[8]; /* 0 */
} ls_probe_result;

LS_API ls_status ls_probe(const ls_probe_options *options, ls_probe_result *result);
LS_API void ls_probe_result_release(ls_probe_result *result);

#ifdef __cplusplus
}
#endif
#endif
