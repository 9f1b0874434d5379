/*
 * kv_cache.h - making a cache of keys and values (ops/kv_cache.h) for a graph of causal attention.
 */
#ifndef LS_GRAPH_KV_CACHE_H
#define LS_GRAPH_KV_CACHE_H

#include "graph/graph.h"
#include "ops/kv_cache.h"

/* For `samples` texts of up to `room` tokens. */
ls_status ls_kv_cache_new(ls_kv_cache **out, const ls_graph *graph, int64_t samples, int64_t room);
void ls_kv_cache_free(ls_kv_cache *cache); /* harmless on NULL */

#endif
