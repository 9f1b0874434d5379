/*
 * exec_checks.h - what holds for the executor whatever a micro-batch is made of: tests of images and of text share it.
 */
#ifndef LS_TESTS_EXEC_CHECKS_H
#define LS_TESTS_EXEC_CHECKS_H

#include <math.h>

#include "backends/cpu/exec_plan.h"
#include "base/array.h"
#include "unit/graph/allocations.h"
#include "unit/graph/net.h"

/* A net of either kind, which begins with a struct net. */
typedef struct exec_subject {
	size_t bytes;
	void (*init)(void *self, ls_graph *graph, int64_t count, int64_t other, int threads, int inference);
	ls_exec_microbatch (*microbatch)(void *self, int64_t count);
	void (*release)(void *self);
} exec_subject;

typedef ls_graph *(*exec_maker)(void);

#define EXEC_SUBJECT(kind, init_call, microbatch_call, release_call)                                                   \
	static void subject_init(void *self, ls_graph *graph, int64_t count, int64_t other, int threads,               \
				 int inference)                                                                        \
	{                                                                                                              \
		init_call(self, graph, count, other, threads, inference);                                              \
	}                                                                                                              \
	static ls_exec_microbatch subject_microbatch(void *self, int64_t count)                                        \
	{                                                                                                              \
		return microbatch_call(self, count);                                                                   \
	}                                                                                                              \
	static void subject_release(void *self)                                                                        \
	{                                                                                                              \
		release_call(self);                                                                                    \
	}                                                                                                              \
	static const exec_subject subject = { sizeof(kind), subject_init, subject_microbatch, subject_release }

/* Forward and backward; gradients start as NaN, so that all must be written. */
static inline void exec_train(const exec_subject *s, void *self, int64_t count)
{
	net *t = self;
	memset(t->grads, 0xff, t->graph->params.reachable * sizeof(float));
	t->microbatch = s->microbatch(self, count);
	ls_exec_train(t->exec, &t->microbatch);
}

/* Results of one net against another's, bit by bit. */
static inline void exec_same_results(const char *what, const net *got, const net *expected)
{
	const ls_exec_microbatch *a = &got->microbatch, *b = &expected->microbatch;
	assert_true(a->loss == b->loss && a->token_loss == b->token_loss);
	assert_int_equal(a->correct, b->correct);
	assert_int_equal(a->token_correct, b->token_correct);
	net_same_floats(what, got->grads, expected->grads, got->graph->params.reachable);
	net_same_floats(what, got->stats, expected->stats, got->graph->params.buffers);
}

static inline void exec_check_threads(const exec_subject *s, exec_maker make, int64_t count)
{
	void *one = net_take(s->bytes), *more = net_take(s->bytes);
	s->init(one, make(), count, 0, 1, 0);
	exec_train(s, one, count);
	for (int threads = 2; threads <= 4; threads++) {
		s->init(more, make(), count, 0, threads, 0);
		exec_train(s, more, count);
		exec_same_results("another number of threads", more, one);
		s->release(more);
	}
	s->release(one);
	free(more);
	free(one);
}

/* Nothing is read that was not written in the same micro-batch, whatever ran before. */
static inline void exec_check_stale_memory(const exec_subject *s, exec_maker make)
{
	void *fresh = net_take(s->bytes), *used = net_take(s->bytes);
	net *zeroed = fresh, *spoiled = used;
	s->init(fresh, make(), 90, 17, 1, 0);
	s->init(used, make(), 90, 17, 1, 0);
	for (int round = 0; round < 4; round++) {
		int64_t count = round % 2 ? 17 : 90;
		memset(zeroed->exec->workspace, 0, ls_exec_workspace(zeroed->exec));
		memset(spoiled->exec->workspace, 0xff, ls_exec_workspace(spoiled->exec));
		memset(spoiled->stats, 0xff, spoiled->graph->params.buffers * sizeof(float));
		exec_train(s, fresh, count);
		exec_train(s, used, count);
		exec_same_results("memory full of NaN", spoiled, zeroed);
		assert_true(isfinite(spoiled->microbatch.loss));
	}
	s->release(used);
	s->release(fresh);
	free(used);
	free(fresh);
}

/* The sum of gradients over the tiles of a micro-batch, against the micro-batch's own. */
static inline void exec_check_tile_sums(const net *whole, const float *sum)
{
	for (size_t i = 0; i < whole->graph->params.reachable; i++)
		if (!(fabsf(sum[i] - whole->grads[i]) <= 1e-4f + 1e-4f * fabsf(sum[i])))
			fail_msg("gradient %zu of a micro-batch in tiles is %g, of its tiles %g", i,
				 (double)whole->grads[i], (double)sum[i]);
}

/* The plan's size is known without making it. `counts` ends with 0. */
static inline void exec_check_bytes(const exec_subject *s, exec_maker make, const int64_t *counts)
{
	net *t = net_take(s->bytes);
	for (int c = 0; counts[c] > 0; c++)
		for (int inference = 0; inference < 2; inference++) {
			size_t bytes = 0;
			s->init(t, make(), counts[c], 0, 1, inference);
			assert_ok(ls_exec_bytes(t->graph, counts[c], 1, inference, &bytes));
			assert_int_equal(bytes, ls_exec_workspace(t->exec));
			assert_true(bytes > 0);
			s->release(t);
		}
	free(t);
}

/* Neither training nor inference allocates. */
static inline void exec_check_allocations(const exec_subject *s, exec_maker make)
{
	net *t = net_take(s->bytes);
	for (int threads = 1; threads <= 2; threads++) {
		s->init(t, make(), 70, 9, threads, 0);
		long before = atomic_load(&allocations);
		assert_true(before > 0);
		exec_train(s, t, 70);
		exec_train(s, t, 9);
		exec_train(s, t, 70);
		t->microbatch = s->microbatch(t, 70);
		if (!t->graph->coupled) /* else inference has a plan of its own */
			ls_exec_infer(t->exec, &t->microbatch, NULL);
		assert_int_equal(atomic_load(&allocations), before);
		s->release(t);
	}
	free(t);
}

/* What `ready` was called with. */
typedef struct exec_witness {
	float *params, *grads; /* poisoned, collected */
	int *seen;             /* (reachable) how often */
} exec_witness;

static inline void exec_on_ready(void *context, size_t begin, size_t end, const float *grads, ls_member member)
{
	exec_witness *w = context;
	int64_t first, last;
	ls_team_range(member, (int64_t)(end - begin), &first, &last);
	for (size_t i = begin + (size_t)first; i < begin + (size_t)last; i++) {
		w->grads[i] = grads[i - begin];
		w->params[i] = NAN; /* it is not read any more */
		w->seen[i]++;
	}
}

/* Every gradient is delivered once, when it is final. With `share` it lives only until then. */
static inline void exec_check_ready(const exec_subject *s, exec_maker make, int threads, int share)
{
	net *plain = net_take(s->bytes), *watched = net_take(s->bytes);
	s->init(plain, make(), 70, 0, 1, 0);
	s->init(watched, make(), 70, 0, threads, 0);
	exec_train(s, plain, 70);
	size_t reachable = plain->graph->params.reachable, shared = ls_backend_shared_grads(watched->graph, 70);
	exec_witness w = { watched->params, net_take(reachable * sizeof(float)), net_take(reachable * sizeof(int)) };
	float *grads = net_take((share ? shared : reachable) * sizeof(float));
	watched->microbatch = s->microbatch(watched, 70);
	watched->microbatch.grads = grads;
	watched->microbatch.share_grads = share;
	watched->microbatch.ready = exec_on_ready;
	watched->microbatch.ready_context = &w;
	ls_exec_train(watched->exec, &watched->microbatch);
	for (size_t i = 0; i < reachable; i++)
		if (w.seen[i] != 1)
			fail_msg("gradient %zu of %zu was delivered %d times", i, reachable, w.seen[i]);
	net_same_floats("gradients when delivered", w.grads, plain->grads, reachable);
	assert_true(watched->microbatch.loss == plain->microbatch.loss);
	free(grads);
	free(w.grads);
	free(w.seen);
	s->release(watched);
	s->release(plain);
	free(watched);
	free(plain);
}

/* Tests of all `makers` with micro-batches of these sizes. */
#define EXEC_TESTS(makers, ...)                                                                                        \
	static void test_threads(void **state)                                                                         \
	{                                                                                                              \
		static const int64_t counts[] = { __VA_ARGS__ };                                                       \
		(void)state;                                                                                           \
		for (size_t m = 0; m < LS_COUNT(makers); m++)                                                          \
			for (size_t c = 0; c < LS_COUNT(counts); c++)                                                  \
				exec_check_threads(&subject, (makers)[m], counts[c]);                                  \
	}                                                                                                              \
	static void test_stale_memory(void **state)                                                                    \
	{                                                                                                              \
		(void)state;                                                                                           \
		for (size_t m = 0; m < LS_COUNT(makers); m++)                                                          \
			exec_check_stale_memory(&subject, (makers)[m]);                                                \
	}                                                                                                              \
	static void test_no_allocation(void **state)                                                                   \
	{                                                                                                              \
		(void)state;                                                                                           \
		if (!OWN_MALLOC) {                                                                                     \
			print_message("a sanitizer brings its own malloc, which cannot be counted\n");                 \
			skip();                                                                                        \
		}                                                                                                      \
		for (size_t m = 0; m < LS_COUNT(makers); m++)                                                          \
			exec_check_allocations(&subject, (makers)[m]);                                                 \
	}

#endif
