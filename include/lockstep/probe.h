/*
 * probe.h - what a test bed can do, measured: cores, arithmetic, memory, links, and the exchange on top of them.
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
	int64_t devices;      /* that exchange a gradient; 0: two and all cores of a lone node, all cores of several */
	uint64_t bytes;       /* of gradient; 0: 44 MB (ResNet-18's), quick: 4 MB */
	int64_t bucket_bytes; /* of it that go out together; 0: training's default */
	int64_t servers;      /* also measure a parameter server on the last so many nodes; 0: do not */
	int64_t repeat;       /* of every figure; 0: 9, quick: 3 */
	int64_t timeout;      /* seconds until a silent node counts as lost */
	int quick;            /* a second or two in all, and less exact */
} ls_probe_options;
#define LS_PROBE_OPTIONS_INIT                                                                                          \
	{                                                                                                              \
		.timeout = 30                                                                                          \
	}

/* GB are 10^9 bytes, Gbit 10^9 bits. */
typedef struct ls_probe_memory {
	double read_gb_per_s; /* bytes read */
	double copy_gb_per_s; /* bytes read and bytes written, together */
} ls_probe_memory;

/*
 * Every device of a node has a gradient of `bytes`; all of it is ready at once. `seconds` later all of it has been
 * summed over the devices and `update` (here: a copy of the sum, past the caches) has written all parameters, where
 * every device sees them. gb_per_s is bytes / seconds: the gradient of one device, counted once.
 */
typedef struct ls_probe_inside {
	int devices; /* 0: not measured, as on a node with one core */
	double seconds, gb_per_s;
} ls_probe_inside;

/* Node 0 and another node, by messages of the exchange's size. */
typedef struct ls_probe_link {
	double to_gbit_per_s, from_gbit_per_s; /* one way at a time, seen from node 0 */
	double both_gbit_per_s;                /* each way while both are busy */
	double round_trip_us;                  /* of 8 bytes, as a node's threads see it */
} ls_probe_link;

typedef struct ls_probe_node {
	char host[64], cpu[96], system[96];     /* "Linux 6.1.0" */
	char version[32], kernels[32], isa[32]; /* of this library; "xsmm"; "avx512" */
	char mpi[96];                           /* the MPI library, "" in a build without */
	int cores;                              /* this node may use */
	int devices;                            /* of this node: as asked for, else one per core */
	double gflop_per_s_core, gflop_per_s;   /* of the 64x64 product: of one core alone, of all together */
	ls_probe_memory memory_core, memory;
	double unsteady; /* 0.2: repeats of one of these differ by 20 %, however often it was tried; 0: they are steady
			  */
	uint64_t memory_bytes; /* each core went over */
	ls_probe_inside inside[2];
	ls_probe_link link; /* to node 0; zero there */
} ls_probe_node;

/*
 * All nodes exchange a gradient of `bytes`: `seconds` from when all of it is ready on all nodes until all have the new
 * parameters. wire_bytes went the busier way through the busiest node in that time, at gbit_per_s; limit_gbit_per_s is
 * the slowest link both ways. library_seconds is what the MPI library's own sum of the same bytes took in turns with
 * it.
 */
typedef struct ls_probe_between {
	char strategy[16], wire[16]; /* "allreduce" or "ps"; "fp32" or "bf16" */
	double seconds, gb_per_s;
	double wire_bytes, gbit_per_s, limit_gbit_per_s;
	double library_seconds, library_gb_per_s;
} ls_probe_between;
#define LS_PROBE_BETWEEN_MAX 4

typedef struct ls_probe_result {
	int node; /* this one; the rest is for node 0 */
	int node_count;
	ls_probe_node *nodes; /* freed by ls_probe_result_release() */
	uint64_t bytes;       /* of gradient */
	int64_t repeat;
	int between_count; /* 0 on a lone node */
	ls_probe_between between[LS_PROBE_BETWEEN_MAX];
} ls_probe_result;

LS_API ls_status ls_probe(const ls_probe_options *options, ls_probe_result *result);
LS_API void ls_probe_result_release(ls_probe_result *result);

#ifdef __cplusplus
}
#endif
#endif
