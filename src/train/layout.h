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

/* What this node knows by itself; `courier` is borrowed. */
ls_status ls_layout_init(ls_layout *out, const ls_train_options *options, ls_courier *courier);

/* All nodes tell how many devices they have. Called by all of them. */
ls_status ls_layout_meet(ls_layout *layout);
void ls_layout_release(ls_layout *layout);

/* What gives up the same bits on any layout, said by the node that speaks. */
void ls_layout_note_modes(const ls_layout *layout);

static inline int ls_layout_is_server(const ls_layout *layout)
{
	return layout->node >= layout->nodes - layout->servers;
}

#endif
