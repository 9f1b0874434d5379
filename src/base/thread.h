/*
 * thread.h - threads with enough stack, blocked signals and the usual rounding (float_rules.h).
 */
#ifndef LS_BASE_THREAD_H
#define LS_BASE_THREAD_H

#include <pthread.h>

#include "base/status.h"

/* pthread_create(), for a thread that takes no signals but the faults it causes itself (the program that runs the
 * training handles the others), with a stack that does not shrink with `ulimit -s`. Where address space is limited when
 * the first one is started (ulimit -v), all allocate from one heap. Returns an errno. */
int ls_thread_start(pthread_t *thread, void *(*work)(void *), void *context);

/* Bytes of address space that such a thread takes: its stack, whether or not it is used. */
size_t ls_thread_addresses(void);

/* Run `work` with at least 512 kB of stack: on this thread if it has that much left, else in a new one, and wait for
 * it. */
ls_status ls_thread_call_deep(void (*work)(void *), void *context);

#endif
