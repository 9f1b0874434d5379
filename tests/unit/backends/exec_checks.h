/*
 * exec_checks.h - what holds for the executor whatever a micro-batch is made of: tests of images and of text share it.
 */
#ifndef LS_TESTS_EXEC_CHECKS_H
#define LS_TESTS_EXEC_CHECKS_H

#include <math.h>

#include "backends/cpu/exec_plan.h"
#include "unit/graph/net.h"

/* A net of either kind, which begins with a struct net. */
typedef struct exec_subject {
	size_t bytes;
	void (*init)(void *self, ls_graph *graph, int64_t count, int64_t other, int threads);
	void (*train)(void *self, int64_t count);
	void (*release)(void *self);
} exec_subject;

#define EXEC_SUBJECT(kind, init_call, train_call, release_call)                                                        \
	static void subject_init(void *self, ls_graph *graph, int64_t count, int64_t other, int threads)               \
	{                                                                                                              \
		init_call(self, graph, count, other, threads, 0);                                                      \
	}                                                                                                              \
	static void subject_train(void *self, int64_t count)                                                           \
	{                                                                                                              \
		train_call(self, count);                                                                               \
	}                                                                                                              \
	static void subject_release(void *self)                                                                        \
	{                                                                                                              \
		release_call(self);                                                                                    \
	}                                                                                                              \
	static const exec_subject subject = { sizeof(kind), subject_init, subject_train, subject_release }

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

static inline void exec_check_threads(const exec_subject *s, ls_graph *(*make)(void), int64_t count)
{
	void *one = net_take(s->bytes), *more = net_take(s->bytes);
	s->init(one, make(), count, 0, 1);
	s->train(one, count);
	for (int threads = 2; threads <= 4; threads++) {
		s->init(more, make(), count, 0, threads);
		s->train(more, count);
		exec_same_results("another number of threads", more, one);
		s->release(more);
	}
	s->release(one);
	free(more);
	free(one);
}

/* Nothing is read that was not written in the same micro-batch, whatever ran before. */
static inline void exec_check_stale_memory(const exec_subject *s, ls_graph *(*make)(void))
{
	void *fresh = net_take(s->bytes), *used = net_take(s->bytes);
	net *zeroed = fresh, *spoiled = used;
	s->init(fresh, make(), 90, 17, 1);
	s->init(used, make(), 90, 17, 1);
	for (int round = 0; round < 4; round++) {
		int64_t count = round % 2 ? 17 : 90;
		memset(zeroed->exec->workspace, 0, ls_exec_workspace(zeroed->exec));
		memset(spoiled->exec->workspace, 0xff, ls_exec_workspace(spoiled->exec));
		memset(spoiled->stats, 0xff, spoiled->graph->params.buffers * sizeof(float));
		s->train(fresh, count);
		s->train(used, count);
		exec_same_results("memory full of NaN", spoiled, zeroed);
		assert_true(isfinite(spoiled->microbatch.loss));
	}
	s->release(used);
	s->release(fresh);
	free(used);
	free(fresh);
}

#endif
