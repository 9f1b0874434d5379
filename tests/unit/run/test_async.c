/*
 * Runs whose nodes do not complete steps together (ps-async), on threads of this process: all end after the same step,
 * whether the run is complete, one wishes to stop, or one alone finds a loss that is not finite.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "unit/run/train_gang.h"

enum { NODES = 3 }; /* the last is a server */

/* 16 steps per epoch. */
static ls_train_options job(void)
{
	ls_train_options o = short_run("mlp", 1000, 64, 8);
	o.test_samples = 100;
	o.steps = 40;
	o.strategy = "ps-async";
	o.servers = 1;
	return o;
}

static void run_nodes(node *nodes, const ls_train_options *options)
{
	memset(nodes, 0, NODES * sizeof(*nodes));
	for (int i = 0; i < NODES; i++)
		nodes[i].options = *options;
	train_nodes(nodes, NODES);
}

static void test_a_run_is_completed(void **state)
{
	node nodes[NODES];
	ls_train_options o = job();
	(void)state;
	run_nodes(nodes, &o);
	for (int i = 0; i < NODES; i++) {
		if (nodes[i].gang.status != LS_OK)
			fail_msg("node %d: %s", i, nodes[i].gang.message);
		assert_int_equal(nodes[i].result.steps, 40);
		assert_true(nodes[i].result.test_loss < 1.8); /* log 10 is 2.3 */
	}
	assert_true(isfinite(nodes[0].result.train_loss));
}

/* It is found by the worker whose samples it is of, or by both. They say who they are; to the others, the server among
 * them, they say that the run is over. */
static void test_a_loss_that_is_not_finite(void **state)
{
	node nodes[NODES];
	ls_train_options o = job();
	int finders = 0;
	(void)state;
	o.lr = 1e38, o.optimizer = "sgd";
	run_nodes(nodes, &o);
	for (int i = 0; i < NODES; i++) {
		char start[32];
		snprintf(start, sizeof(start), "node %d (", i);
		if (nodes[i].gang.status != LS_ENUMERIC) {
			assert_int_equal(nodes[i].gang.status, LS_EPEER);
			assert_string_equal(nodes[i].gang.message, "");
			continue;
		}
		finders++;
		assert_ptr_equal(strstr(nodes[i].gang.message, start), nodes[i].gang.message);
		assert_non_null(strstr(nodes[i].gang.message, "the loss became"));
	}
	assert_in_range(finders, 1, NODES - 1);
	assert_int_equal(nodes[NODES - 1].gang.status, LS_EPEER); /* a server has no loss */
}

/* When speeds are first exchanged or, where shares do not follow speeds, at the end of the epoch. */
static void test_a_wish_to_stop(void **state)
{
	static const struct {
		const char *share;
		int steps;
	} rows[] = { { "auto", 8 }, { "equal", 16 } };
	(void)state;
	ls_stop *stop = NULL;
	assert_int_equal(ls_stop_new(&stop), LS_OK);
	ls_stop_request(stop);
	for (size_t k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
		node nodes[NODES];
		ls_train_options o = job();
		o.share = rows[k].share;
		o.eval_every = 0;
		o.stop = stop;
		run_nodes(nodes, &o);
		for (int i = 0; i < NODES; i++) {
			if (nodes[i].gang.status != LS_EINTERRUPTED)
				fail_msg("share %s, node %d: %s, %s", o.share, i, ls_status_name(nodes[i].gang.status),
					 nodes[i].gang.message);
			assert_int_equal(nodes[i].result.steps, rows[k].steps);
		}
	}
	ls_stop_free(stop);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_run_is_completed),
		cmocka_unit_test(test_a_loss_that_is_not_finite),
		cmocka_unit_test(test_a_wish_to_stop),
	};
	ls_log_set_level(LS_LOG_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
