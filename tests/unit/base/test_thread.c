/*
 * Threads with enough stack, whatever `ulimit -s` says, and without signals that are not theirs.
 */
#include <stddef.h>
#include <stdint.h>

#include <signal.h>
#include <string.h>

#include "base/thread.h"
#include "unit/test_main.h"

/* Touches all of a large frame. */
static void go_deep(void *context)
{
	volatile char frame[400 << 10];
	pthread_t *caller = context;
	for (size_t i = 0; i < sizeof(frame); i += 512)
		frame[i] = (char)i;
	*caller = frame[512] == 0 ? pthread_self() : 0;
}

static void *call_from_small_stack(void *argument)
{
	pthread_t ran_in = 0;
	*(ls_status *)argument = ls_thread_call_deep(go_deep, &ran_in); /* without a thread of its own: a crash */
	return (void *)(uintptr_t)!pthread_equal(ran_in, pthread_self());
}

static void a_deep_call_has_stack(void **state)
{
	(void)state;
	pthread_attr_t small;
	pthread_t thread, ran_in = 0;
	void *moved = NULL;
	ls_status status = LS_EIO;
	assert_int_equal(pthread_attr_init(&small), 0);
	assert_int_equal(pthread_attr_setstacksize(&small, 128 << 10), 0);
	assert_int_equal(pthread_create(&thread, &small, call_from_small_stack, &status), 0);
	assert_int_equal(pthread_join(thread, &moved), 0);
	pthread_attr_destroy(&small);
	assert_int_equal(status, LS_OK);
	assert_non_null(moved);
	/* where there is room, nobody is started */
	assert_int_equal(ls_thread_call_deep(go_deep, &ran_in), LS_OK);
	assert_true(pthread_equal(ran_in, pthread_self()));
}

static void *look(void *argument)
{
	pthread_attr_t attributes;
	size_t *bytes = argument;
	sigset_t blocked;
	pthread_sigmask(SIG_SETMASK, NULL, &blocked);
	if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
		pthread_attr_getstacksize(&attributes, bytes);
		pthread_attr_destroy(&attributes);
	}
	return (void *)(uintptr_t)(sigismember(&blocked, SIGINT) && sigismember(&blocked, SIGUSR1) &&
				   !sigismember(&blocked, SIGBUS) && !sigismember(&blocked, SIGSEGV));
}

static void a_started_thread_takes_faults_alone(void **state)
{
	(void)state;
	pthread_t thread;
	pthread_attr_t usual, small;
	size_t bytes = 0;
	void *right = NULL;
	assert_int_equal(pthread_getattr_default_np(&usual), 0);
	assert_int_equal(pthread_attr_init(&small), 0);
	assert_int_equal(pthread_attr_setstacksize(&small, 64 << 10), 0);
	assert_int_equal(pthread_setattr_default_np(&small), 0); /* as after `ulimit -s 64` */
	int error = ls_thread_start(&thread, look, &bytes);
	assert_int_equal(pthread_setattr_default_np(&usual), 0);
	assert_int_equal(error, 0);
	assert_int_equal(pthread_join(thread, &right), 0);
	assert_non_null(right);
	assert_true(bytes >= 512 << 10);
}

TEST_MAIN(a_deep_call_has_stack, a_started_thread_takes_faults_alone)
