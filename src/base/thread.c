#include "base/thread.h"

#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/float_rules.h"
#include "base/log.h"
#include "base/memory.h"

#define STACK_LEAST ((size_t)1 << 20)
#define STACK_DEEP ((size_t)512 << 10)

/* The usual size is the limit on the main thread's stack, which may be anything. */
static int make_attributes(pthread_attr_t *attributes)
{
	size_t bytes = 0;
	int error = pthread_attr_init(attributes);
	if (!error && pthread_attr_getstacksize(attributes, &bytes) == 0 && bytes < STACK_LEAST)
		error = pthread_attr_setstacksize(attributes, STACK_LEAST);
	return error;
}

size_t ls_thread_addresses(void)
{
	pthread_attr_t attributes;
	size_t stack = STACK_LEAST, guard = (size_t)sysconf(_SC_PAGESIZE);
	if (make_attributes(&attributes) != 0)
		return stack + guard;
	pthread_attr_getstacksize(&attributes, &stack);
	pthread_attr_getguardsize(&attributes, &guard);
	pthread_attr_destroy(&attributes);
	return stack + guard;
}

/* glibc maps 64 MB for the heap of each thread that allocates, for up to eight threads per core, and keeps it. Our
 * threads hardly allocate: where address space is limited they share one heap, which leaves the rest to training. */
static void share_heap(void)
{
#ifdef M_ARENA_MAX
	if (ls_memory_addresses().left != UINT64_MAX)
		mallopt(M_ARENA_MAX, 1);
#endif
}

/* Lines of a thread go where those of its starter go. */
typedef struct sunk_thread {
	void *(*work)(void *);
	void *context;
	const ls_log_sink *sink;
} sunk_thread;

static void *run_sunk(void *argument)
{
	sunk_thread t = *(sunk_thread *)argument;
	free(argument);
	ls_log_use(t.sink);
	return t.work(t.context);
}

static int create(pthread_t *thread, const pthread_attr_t *attributes, void *(*work)(void *), void *context)
{
	if (!ls_log_in_use())
		return pthread_create(thread, attributes, work, context);
	sunk_thread *t = malloc(sizeof(*t));
	if (!t)
		return ENOMEM;
	*t = (sunk_thread){ .work = work, .context = context, .sink = ls_log_in_use() };
	int error = pthread_create(thread, attributes, run_sunk, t);
	if (error)
		free(t);
	return error;
}

int ls_thread_start(pthread_t *thread, void *(*work)(void *), void *context)
{
	static const int faults[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT };
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	sigset_t blocked, before;
	pthread_attr_t attributes;
	pthread_once(&once, share_heap);
	int error = make_attributes(&attributes);
	if (error)
		return error;
	sigfillset(&blocked);
	for (size_t i = 0; i < LS_COUNT(faults); i++)
		sigdelset(&blocked, faults[i]);
	pthread_sigmask(SIG_SETMASK, &blocked, &before);
	uint64_t rules = ls_float_rules_set(); /* which the thread inherits, as it does the signals */
	error = create(thread, &attributes, work, context);
	ls_float_rules_restore(rules);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	return error;
}

/* Bytes of stack below this frame. The start of a stack is looked up once per thread: for the main thread glibc reads
 * /proc. */
static size_t stack_left(void)
{
	static _Thread_local uintptr_t lowest;
	pthread_attr_t attributes;
	void *begin = NULL;
	size_t bytes = 0;
	if (!lowest && pthread_getattr_np(pthread_self(), &attributes) == 0) {
		if (pthread_attr_getstack(&attributes, &begin, &bytes) == 0)
			lowest = (uintptr_t)begin;
		pthread_attr_destroy(&attributes);
	}
	uintptr_t here = (uintptr_t)__builtin_frame_address(0);
	return lowest && here > lowest ? here - lowest : 0;
}

typedef struct deep_call {
	void (*work)(void *);
	void *context;
} deep_call;

static void *run_deep(void *argument)
{
	const deep_call *call = argument;
	call->work(call->context);
	return NULL;
}

ls_status ls_thread_call_deep(void (*work)(void *), void *context)
{
	deep_call call = { work, context };
	pthread_t thread;
	if (stack_left() >= STACK_DEEP) {
		work(context);
		return LS_OK;
	}
	int error = ls_thread_start(&thread, run_deep, &call);
	if (error)
		return ls_fail(LS_EMEMORY, "cannot start a thread with more stack: %s; raise the limit (ulimit -s)",
			       strerror(error));
	pthread_join(thread, NULL);
	return LS_OK;
}
