/*
 * collect.h - what nodes tell each other now and then: settings, checkpoints, evaluations.
 *
 * Each call waits until this node's part is done, and is made by all nodes in the same order (one thread of each), on
 * each between steps: after ls_exchange_await() of the last one.
 * Letters go through the courier, so a peer that dies is an error here and not a hang. A NULL courier is one node
 * alone: every call is then a copy or nothing at all.
 */
#ifndef LS_EXCHANGE_COLLECT_H
#define LS_EXCHANGE_COLLECT_H

#include <stddef.h>

#include "exchange/courier.h"

/* Everybody gets what `root` has. Large buffers go in parts, passed on from node to node. */
ls_status ls_collect_broadcast(ls_courier *courier, int root, void *buffer, size_t bytes, const char *what);

/* all (size * bytes, in node order) at the root is filled; elsewhere it may be NULL. */
ls_status ls_collect_gather(ls_courier *courier, int root, const void *mine, size_t bytes, void *all, const char *what);

/* The same, for everybody. */
ls_status ls_collect_everything(ls_courier *courier, const void *mine, size_t bytes, void *all, const char *what);

/* One buffer from one node to another; others do nothing. */
ls_status ls_collect_move(ls_courier *courier, int from, int to, const void *source, void *target, size_t bytes,
			  const char *what);

/* Nobody returns before everybody has called. */
ls_status ls_collect_meet(ls_courier *courier, const char *what);

#endif
