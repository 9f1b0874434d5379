/*
 * kv_cache.h - keys and values that attention keeps between passes, so that a text can go on token by token.
 *
 * A pass with a cache has the next tokens of each sample; attention puts their keys and values behind those that are
 * there and lets the new tokens see all of them. What a token gives has the same bits as in a pass over the whole text.
 */
#ifndef LS_OPS_KV_CACHE_H
#define LS_OPS_KV_CACHE_H

#include "ops/op.h"

/* Of one attention: panels as those of its inputs, (blocks, samples * room, panel); sample i
 * has rows from i * room on. */
typedef struct ls_kv_layer {
	const ls_node *node;
	float *keys, *values;
} ls_kv_layer;

typedef struct ls_kv_cache {
	int64_t samples, room; /* tokens that a sample can have */
	ls_kv_layer *layers;
	int count;
	float *floats; /* all of them */
	size_t float_count;
} ls_kv_cache;

/* The layer of an attention; it is there, where the cache is of the same graph. */
static inline const ls_kv_layer *ls_kv_cache_layer(const ls_kv_cache *cache, const ls_node *node)
{
	int i = 0;
	while (i < cache->count - 1 && cache->layers[i].node != node)
		i++;
	return &cache->layers[i];
}

#endif
