/*
 * A thread for work beside: one piece at a time, in order, and nothing is lost at the end.
 */
#include <stdatomic.h>
#include <time.h>

#include "base/background.h"
#include "unit/test_main.h"

typedef struct job {
	atomic_int may_go;
	int done, order;
	int *count;
} job;

static void work(void *context)
{
	job *j = context;
	const struct timespec moment = { .tv_nsec = 100000 };
	while (!atomic_load(&j->may_go))
		nanosleep(&moment, NULL);
	j->order = (*j->count)++;
	j->done = 1;
}

static void goes_beside(void **state)
{
	ls_background b;
	int count = 0;
	job held = { .count = &count };
	(void)state;
	assert_int_equal(ls_background_begin(&b, "a test"), LS_OK);
	assert_false(ls_background_is_busy(&b));
	ls_background_do(&b, work, &held);
	assert_true(ls_background_is_busy(&b)); /* and we are here */
	assert_int_equal(held.done, 0);
	atomic_store(&held.may_go, 1);
	ls_background_wait(&b);
	assert_int_equal(held.done, 1);
	assert_false(ls_background_is_busy(&b));
	ls_background_wait(&b); /* for nothing */
	ls_background_end(&b);
	ls_background_end(&b);
}

static void in_order(void **state)
{
	enum { JOBS = 200 };
	static job jobs[JOBS];
	ls_background b;
	int count = 0;
	(void)state;
	assert_int_equal(ls_background_begin(&b, "a test"), LS_OK);
	for (int i = 0; i < JOBS; i++) {
		jobs[i] = (job){ .may_go = 1, .count = &count };
		ls_background_do(&b, work, &jobs[i]);
		if (i > 0) /* the one before is done when the next is taken */
			assert_int_equal(jobs[i - 1].done, 1);
	}
	ls_background_end(&b); /* waits for the last */
	for (int i = 0; i < JOBS; i++)
		assert_int_equal(jobs[i].order, i);
}

static void never_begun(void **state)
{
	ls_background b = { 0 };
	(void)state;
	assert_false(ls_background_is_busy(&b));
	ls_background_wait(&b);
	ls_background_end(&b);
}

TEST_MAIN(goes_beside, in_order, never_begun)
