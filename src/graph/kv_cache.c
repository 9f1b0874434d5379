/*
 * kv_cache.c - a cache for all attentions of a graph.
 */
#include "graph/kv_cache.h"

#include <stdlib.h>

static int is_attention(const ls_node *node)
{
	return node->type == &ls_op_attention && !node->dropped;
}

static size_t layer_floats(const ls_graph *graph, const ls_node *node, int64_t rows)
{
	const ls_tensor *t = &graph->values[node->inputs[0]];
	return (size_t)t->blocks * (size_t)t->panel * (size_t)rows;
}

static ls_status count_layers(const ls_graph *graph, ls_kv_cache *cache)
{
	for (int i = 0; i < graph->node_count; i++) {
		const ls_node *node = &graph->nodes[i];
		if (!is_attention(node))
			continue;
		if (!((const ls_attention_options *)node->attributes)->is_causal)
			return ls_fail(LS_EUNSUPPORTED,
				       "the model's attention looks ahead: it cannot go on token by token");
		cache->count++;
		cache->float_count += 2 * layer_floats(graph, node, cache->samples * cache->room);
	}
	return LS_OK;
}

static void place_layers(const ls_graph *graph, ls_kv_cache *cache)
{
	float *next = cache->floats;
	int count = 0;

	for (int i = 0; i < graph->node_count; i++) {
		const ls_node *node = &graph->nodes[i];
		if (!is_attention(node))
			continue;
		size_t floats = layer_floats(graph, node, cache->samples * cache->room);
		cache->layers[count++] = (ls_kv_layer){ .node = node, .keys = next, .values = next + floats };
		next += 2 * floats;
	}
}

ls_status ls_kv_cache_new(ls_kv_cache **out, const ls_graph *graph, int64_t samples, int64_t room)
{
	ls_kv_cache *cache = calloc(1, sizeof(*cache));
	if (!cache)
		return ls_fail(LS_EMEMORY, "no memory for keys and values");
	cache->samples = samples;
	cache->room = room;
	ls_status status = count_layers(graph, cache);
	if (status == LS_OK)
		status = ls_floats_new(&cache->floats, cache->float_count, "keys and values");
	cache->layers = calloc(cache->count > 0 ? (size_t)cache->count : 1, sizeof(*cache->layers));
	if (status == LS_OK && !cache->layers)
		status = ls_fail(LS_EMEMORY, "no memory for keys and values");
	if (status != LS_OK) {
		ls_kv_cache_free(cache);
		return status;
	}
	place_layers(graph, cache);
	*out = cache;
	return LS_OK;
}

void ls_kv_cache_free(ls_kv_cache *cache)
{
	if (!cache)
		return;
	if (cache->floats)
		ls_floats_free(cache->floats, cache->float_count);
	free(cache->layers);
	free(cache);
}
