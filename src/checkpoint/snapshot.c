#include "checkpoint/snapshot.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* Each store begins at a cache line. */
static size_t padded(size_t floats)
{
	return ls_round_up64(floats * sizeof(float)) / sizeof(float);
}

static size_t floats_of(const ls_param_table *table, int slots)
{
	return padded(table->total) + padded(table->buffers) + (size_t)slots * padded(table->reachable);
}

size_t ls_snapshot_bytes(const ls_param_table *table, int slots)
{
	return floats_of(table, slots) * sizeof(float);
}

static void lay_out(ls_snapshot *s)
{
	const ls_param_table *table = s->content.table;
	float *at = s->floats;

	s->content.params = at;
	at += padded(table->total);
	s->content.buffers = at;
	at += padded(table->buffers);
	for (int i = 0; i < s->content.slots; i++, at += padded(table->reachable))
		s->slot[i] = at;
	s->content.slot = s->slot;
}

ls_status ls_snapshot_new(ls_snapshot **out, const ls_ckpt_content *like)
{
	ls_snapshot *s = calloc(1, sizeof(*s));
	if (!s)
		return ls_fail(LS_EMEMORY, "no memory for a snapshot");
	*s = (ls_snapshot){ .content = *like, .count = floats_of(like->table, like->slots) };
	s->slot = calloc((size_t)like->slots + 1, sizeof(*s->slot));
	ls_status status = s->slot ? ls_floats_new(&s->floats, s->count, "snapshot")
				   : ls_fail(LS_EMEMORY, "no memory for a snapshot of %d slots", like->slots);
	if (status != LS_OK) {
		ls_snapshot_free(s);
		return status;
	}
	lay_out(s);
	*out = s;
	return LS_OK;
}

void ls_snapshot_free(ls_snapshot *s)
{
	if (!s)
		return;
	ls_floats_free(s->floats, s->count);
	free(s->slot);
	free(s);
}

void ls_snapshot_take(ls_snapshot *s, const ls_ckpt_content *from)
{
	const ls_param_table *table = from->table;
	float *params = s->content.params, *buffers = s->content.buffers;

	memcpy(params, from->params, table->total * sizeof(float));
	memcpy(buffers, from->buffers, table->buffers * sizeof(float));
	for (int i = 0; i < from->slots; i++)
		memcpy(s->slot[i], from->slot[i], table->reachable * sizeof(float));
	s->content = *from;
	s->content.params = params;
	s->content.buffers = buffers;
	s->content.slot = s->slot;
}
