/*
 * allreduce.h - lockstep/exchange.h over any transport: MPI's, and in tests threads.
 */
#ifndef LS_EXCHANGE_ALLREDUCE_H
#define LS_EXCHANGE_ALLREDUCE_H

#include <lockstep/exchange.h>

#include "comm/transport.h"

/* Operations per rank that are under way at once: what the transport needs slots for. */
enum { LS_ALLREDUCE_SLOTS = 2 };

#define LS_ALLREDUCE_KIND "all-reduce" /* handles.h */

/* Takes over the transport, also when it fails; NULL: this process is alone. */
ls_status ls_allreduce_over(ls_allreduce **out, ls_transport *transport, double timeout);

#endif
