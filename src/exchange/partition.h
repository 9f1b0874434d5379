/*
 * partition.h - how the flat vector is cut: blocks, buckets, and shards with their owners.
 *
 * The vector that is exchanged has `reachable` floats of gradient and, behind them, `statistics` floats of step
 * statistics (of batch normalisation, loss, counts). It is cut into blocks, the unit of ownership and of norms; a run
 * of blocks is a bucket, the unit of readiness and of messages; and every bucket is cut into one shard per owner, so
 * that all links are busy while any bucket is under way.
 *
 * Invariants
 *  1. Buckets are in forward order, cover [0, width) without a gap, and begin at a multiple of `block`, but that the
 *     last one holds all step statistics and nothing else.
 *  2. A shard is a run of whole blocks of its bucket; shards of a bucket cover it. Some may be empty.
 *  3. Cuts depend on sizes and the number of owners alone: every node computes the same partition.
 */
#ifndef LS_EXCHANGE_PARTITION_H
#define LS_EXCHANGE_PARTITION_H

#include <stddef.h>

#include "base/status.h"

typedef struct ls_bucket {
	size_t begin, end;  /* floats of the flat vector */
	size_t first_block; /* of [0, blocks): blocks are numbered through */
	size_t blocks;
} ls_bucket;

typedef struct ls_partition {
	size_t reachable, statistics;
	size_t statistics_begin, width; /* where statistics begin; all floats, rounded up to whole cache lines */
	size_t block, blocks;
	int owners;
	int buckets; /* the last one is that of step statistics */
	ls_bucket *bucket;
} ls_partition;

/* `bucket` is how many floats a bucket should have; at least a block. */
ls_status ls_partition_init(ls_partition *partition, size_t reachable, size_t statistics, size_t block, size_t bucket,
			    int owners);
void ls_partition_release(ls_partition *partition);

/* Owner o's shard of bucket b. */
void ls_partition_shard(const ls_partition *partition, int b, int o, size_t *begin, size_t *end);

/* The bucket that float `at` lies in. */
int ls_partition_bucket_at(const ls_partition *partition, size_t at);

/* Block k of bucket b, or the number of a block from where it begins. */
void ls_partition_block(const ls_partition *partition, int b, size_t k, size_t *begin, size_t *end);
size_t ls_partition_block_at(const ls_partition *partition, size_t at);

#endif
