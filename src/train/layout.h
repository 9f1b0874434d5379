/*
 * layout.h - how a run is spread: nodes, who of them owns the parameters, their devices, and their shares of the
 * leaves.
 *
 * Nothing here changes the trained bits, but for the three modes that say so when they start.
 */
#ifndef LS_TRAIN_LAYOUT_H
#define LS_TRAIN_LAYOUT_H

#include <lockstep/train.h>

#include "base/pin.h"
#include "exchange/courier.h"
#include "exchange/exchange.h"

typedef enum ls_share { LS_SHARE_AUTO, LS_SHARE_EQUAL, LS_SHARE_GIVEN } ls_share;

typedef struct ls_layout {
	ls_courier *courier; /* borrowed; NULL: one node */
	int node, nodes;
	int servers;         /* the last so many nodes own all parameters and compute nothing */
	int devices;         /* of this node; 0 on a server */
	int threads;         /* of a device */
	int64_t all_devices; /* of all workers */
	int *devices_of;     /* (nodes) */
	ls_pin_mode pin;
	ls_wire wire;
	int staleness, library_sum;
	ls_share share;
	double *weight; /* (nodes) how many leaves a node is to get, relative to others; 0 for servers */
} ls_layout;

/* What can be checked without other nodes: names, and settings that exclude one another. */
ls_status ls_layout_check(const ls_train_options *options);

#endif
