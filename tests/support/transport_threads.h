/*
 * transport_threads.h - nodes that are threads of this process: a transport (comm/transport.h) for tests.
 */
#ifndef LS_TESTS_SUPPORT_TRANSPORT_THREADS_H
#define LS_TESTS_SUPPORT_TRANSPORT_THREADS_H

#include "comm/transport.h"

/* transports[size], each for one thread. `seed` shuffles the order in which operations are reported done. Freeing the
 * last transport frees what they share. */
ls_status ls_threads_transports(ls_transport **transports, int size, int slots, unsigned long long seed);

#endif
