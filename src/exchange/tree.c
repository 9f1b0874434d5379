#include "exchange/tree.h"

#include <assert.h>
#include <string.h>

#include "exchange/simd.h"

/* A node without a right sibling inside the step is its parent, too. */
static ls_partial raise_partial(ls_partial p, int64_t microbatches)
{
	while (p.level < 62 && (p.first >> p.level) % 2 == 0 && p.first + (INT64_C(1) << p.level) >= microbatches &&
	       (INT64_C(1) << p.level) < microbatches)
		p.level++;
	return p;
}

ls_partial ls_partial_leaf(int64_t first, int64_t microbatches)
{
	return raise_partial((ls_partial){ .first = first, .level = 0 }, microbatches);
}

int ls_partial_join(ls_partial *a, ls_partial b, int64_t microbatches)
{
	if (a->level != b.level || (a->first >> a->level) % 2 != 0 || a->first + (INT64_C(1) << a->level) != b.first)
		return 0;
	*a = raise_partial((ls_partial){ .first = a->first, .level = a->level + 1 }, microbatches);
	return 1;
}

int64_t ls_partial_list(const int *holder, int64_t microbatches, int worker, ls_partial *out, int64_t most)
{
	int64_t held = 0;
	for (int64_t i = 0; i < microbatches; i++) {
		if (holder[i] != worker)
			continue;
		assert(held < most);
		out[held++] = ls_partial_leaf(i, microbatches);
		while (held > 1 && ls_partial_join(&out[held - 2], out[held - 1], microbatches))
			held--;
	}
	return held;
}

/* The lowest slot that no held partial sum uses. */
static int free_slot(const ls_device_schedule *s)
{
	for (int slot = 0;; slot++) {
		int used = 0;
		for (int i = 0; i < s->partials && !used; i++)
			used = s->partial_slot[i] == slot;
		if (!used)
			return slot;
	}
}

static int join_top(ls_device_schedule *s, int64_t microbatches, int next_join)
{
	int joins = 0;
	while (s->partials > 1 &&
	       ls_partial_join(&s->partial[s->partials - 2], s->partial[s->partials - 1], microbatches)) {
		s->join[next_join + joins++] = (ls_schedule_join){ .into = s->partial_slot[s->partials - 2],
								   .from = s->partial_slot[s->partials - 1] };
		s->partials--;
	}
	return joins;
}

void ls_device_schedule_make(ls_device_schedule *s, const int *node_of, const int *device_of, int64_t microbatches,
			     int node, int device)
{
	int joined = 0;

	s->count = 0;
	s->partials = s->slots = 0;
	for (int64_t i = 0; i < microbatches; i++) {
		if (node_of[i] != node || device_of[i] != device)
			continue;
		assert(s->count < s->capacity);
		int slot = free_slot(s);
		s->slots = slot + 1 > s->slots ? slot + 1 : s->slots;
		s->partial[s->partials] = ls_partial_leaf(i, microbatches);
		s->partial_slot[s->partials++] = slot;
		int joins = join_top(s, microbatches, joined);
		s->index[s->count] = i;
		s->microbatch[s->count++] =
			(ls_schedule_microbatch){ .slot = slot, .first_join = joined, .joins = joins };
		joined += joins;
	}
}

void ls_fold_make(ls_fold *fold, const ls_partial *inputs, int count, int64_t microbatches)
{
	fold->inputs = count;
	fold->outputs = 0;
	for (int i = 0; i < count; i++) {
		ls_partial *held = fold->partial;
		fold->joins[i] = 0;
		fold->begin[fold->outputs] = i;
		held[fold->outputs++] = inputs[i];
		while (fold->outputs > 1 &&
		       ls_partial_join(&held[fold->outputs - 2], held[fold->outputs - 1], microbatches)) {
			fold->joins[i]++;
			fold->outputs--;
		}
	}
	fold->begin[fold->outputs] = count;
}

/* A stack holds partial sums of different levels, and one more before the two on top are added. */
size_t ls_fold_scratch(int64_t microbatches)
{
	size_t levels = 2;
	for (; microbatches > 1; microbatches = (microbatches + 1) / 2)
		levels++;
	return levels * LS_FOLD_CHUNK;
}

void ls_sum_into(float *left, const float *right, size_t count)
{
	ls_exchange_simd_get()->add(left, right, count);
}

/* The stack: what an entry points at is an input, or its own chunk of scratch. */
typedef struct stack {
	const float *top[LS_TREE_DEPTH];
	float *scratch;
	int height;
} stack;

static void add_top(stack *s, size_t count, float *into)
{
	int left = s->height - 2;
	float *out = into ? into : s->scratch + (size_t)left * LS_FOLD_CHUNK;
	if (out == s->top[left])
		ls_sum_into(out, s->top[left + 1], count);
	else
		ls_exchange_simd_get()->sum(out, s->top[left], s->top[left + 1], count);
	s->top[left] = out;
	s->height--;
}

static void fold_chunk(const ls_fold *fold, int j, const float *const *inputs, size_t at, size_t count, float *out,
		       float *scratch)
{
	stack s = { .scratch = scratch };
	int last = fold->begin[j + 1] - 1;

	for (int i = fold->begin[j]; i <= last; i++) {
		s.top[s.height++] = inputs[i] + at;
		for (int k = 0; k < fold->joins[i]; k++)
			add_top(&s, count, i == last && s.height == 2 ? out + at : NULL);
	}
	assert(s.height == 1);
	if (s.top[0] != out + at)
		memcpy(out + at, s.top[0], count * sizeof(float));
}

void ls_fold_run(const ls_fold *fold, int j, const float *const *inputs, size_t count, float *out, float *scratch)
{
	for (size_t at = 0; at < count; at += LS_FOLD_CHUNK) {
		size_t left = count - at;
		fold_chunk(fold, j, inputs, at, left < LS_FOLD_CHUNK ? left : LS_FOLD_CHUNK, out, scratch);
	}
}
