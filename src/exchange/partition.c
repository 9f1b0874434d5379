#include "exchange/partition.h"

#include <stdlib.h>

static size_t divide_up(size_t a, size_t b)
{
	return a / b + (a % b != 0);
}

/* The bucket whose exchange nothing hides is the first one, ready last and needed first: it is a small one. */
enum { FIRST_PART = 4 };

static void add_bucket(ls_partition *p, size_t begin, size_t end)
{
	ls_bucket *b = &p->bucket[p->buckets++];
	*b = (ls_bucket){
		.begin = begin, .end = end, .first_block = p->blocks, .blocks = divide_up(end - begin, p->block)
	};
	p->blocks += b->blocks;
}

static void cut(ls_partition *p, size_t bucket)
{
	size_t step = divide_up(bucket, p->block) * p->block, first = divide_up(step / FIRST_PART, p->block) * p->block;

	for (size_t begin = 0; begin < p->statistics_begin;) {
		size_t end = begin + (begin == 0 ? first : step);
		end = end < p->statistics_begin ? end : p->statistics_begin;
		add_bucket(p, begin, end);
		begin = end;
	}
	add_bucket(p, p->statistics_begin, p->width);
}

ls_status ls_partition_init(ls_partition *p, size_t reachable, size_t statistics, size_t block, size_t bucket,
			    int owners)
{
	*p = (ls_partition){ .reachable = reachable, .statistics = statistics, .block = block, .owners = owners };
	p->statistics_begin = divide_up(reachable, 16) * 16;
	p->width = p->statistics_begin + divide_up(statistics, 16) * 16;
	bucket = bucket < block ? block : bucket;
	p->bucket = calloc(p->statistics_begin / bucket + 4, sizeof(*p->bucket));
	if (!p->bucket)
		return ls_fail(LS_EMEMORY, "no memory for the buckets of the exchange");
	cut(p, bucket);
	return LS_OK;
}

void ls_partition_release(ls_partition *p)
{
	free(p->bucket);
	*p = (ls_partition){ 0 };
}

/* Owners take turns in being first, so that buckets of few blocks do not all fall to the same ones. */
void ls_partition_shard(const ls_partition *p, int b, int o, size_t *begin, size_t *end)
{
	const ls_bucket *bucket = &p->bucket[b];
	size_t owners = (size_t)p->owners, turn = ((size_t)o + (size_t)b) % owners;
	size_t first = bucket->blocks * turn / owners, last = bucket->blocks * (turn + 1) / owners;

	*begin = bucket->begin + first * p->block;
	*end = bucket->begin + last * p->block;
	*begin = *begin < bucket->end ? *begin : bucket->end;
	*end = *end < bucket->end ? *end : bucket->end;
}

int ls_partition_bucket_at(const ls_partition *p, size_t at)
{
	int low = 0, high = p->buckets;
	while (high - low > 1) {
		int middle = low + (high - low) / 2;
		if (p->bucket[middle].begin <= at)
			low = middle;
		else
			high = middle;
	}
	return low;
}

void ls_partition_block(const ls_partition *p, int b, size_t k, size_t *begin, size_t *end)
{
	const ls_bucket *bucket = &p->bucket[b];
	*begin = bucket->begin + k * p->block;
	*end = *begin + p->block < bucket->end ? *begin + p->block : bucket->end;
}

size_t ls_partition_block_at(const ls_partition *p, size_t at)
{
	const ls_bucket *bucket = &p->bucket[ls_partition_bucket_at(p, at)];
	return bucket->first_block + (at - bucket->begin) / p->block;
}
