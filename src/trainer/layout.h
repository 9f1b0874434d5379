/*
 * layout.h - how a run is distributed: nodes, parameter servers among them, devices, and shares of the micro-batches.
 *
 * Nothing here changes the trained bits, but for strategies and codecs that say so when they start.
 */
#ifndef LS_TRAINER_LAYOUT_H
#define LS_TRAINER_LAYOUT_H

#include <lockstep/train.h>

#include "base/pin.h"
#include "comm/comm.h"
#include "exchange/assigner.h"
#include "exchange/exchange.h"

typedef enum ls_share { LS_SHARE_AUTO, LS_SHARE_EQUAL, LS_SHARE_GIVEN } ls_share;

typedef struct ls_layout {
	ls_comm *comm; /* borrowed; NULL: one node */
	int node, nodes;
	int servers;         /* the last nodes own all parameters and compute nothing */
	int devices;         /* of this node; 0 on a server */
	int unused_devices;  /* of this node: asked for, and not started because a step has too few micro-batches */
	int threads;         /* per device */
	int64_t all_devices; /* of all workers */
	int *devices_of;     /* (nodes) */
	ls_pin_mode pin;
	const ls_strategy *strategy; /* on one node: local */
	const ls_codec *codec;
	int staleness; /* of ps-async */
	ls_share share;
	double *weight; /* (nodes) how many micro-batches a node is to get, relative to others; 0 for servers */
} ls_layout;

/* The ways to pin threads and to share micro-batches that have names, in the order of ls_pin_mode and
 * ls_share; NULL past the end. */
const ls_setting_value *ls_layout_pin_at(size_t i);
const ls_setting_value *ls_layout_share_at(size_t i);

/* What can be checked without other nodes: names, and settings that exclude one another. */
ls_status ls_layout_check(const ls_train_options *options);

/* What this node knows by itself; `comm` is borrowed. */
ls_status ls_layout_init(ls_layout *out, const ls_train_options *options, ls_comm *comm);

/* Choose devices and threads where they were left open (0), and start no device that would have no micro-batch;
 * `micro_batches` are those of a step, 0: as many as devices. Before this layout.devices and layout.threads are as
 * asked for. */
void ls_layout_fit(ls_layout *layout, int64_t micro_batches);

/* All nodes learn how many devices each has. Called by all of them, after ls_layout_fit(). */
ls_status ls_layout_meet(ls_layout *layout);
void ls_layout_release(ls_layout *layout);

/* Assign the micro-batches of a step: to nodes by cut (nodes + 1), this node's micro-batches by device_cut (devices
 * + 1), which is filled in. node and device (micro-batches). */
void ls_layout_assign(const ls_layout *layout, const int64_t *cut, int64_t *device_cut, int *node, int *device);

/* What the exchange needs for steps of up to `microbatches` micro-batches and for the epoch's last one (0: there is
 * none): as micro-batches are assigned at the beginning, and as they may be assigned later when shares follow speeds.
 */
ls_status ls_layout_sum_buffers(const ls_layout *layout, int64_t microbatches, int64_t last,
				ls_summation_buffers *first, ls_summation_buffers *most);

/* Warn of devices that have no micro-batch in any step; `samples` are those of the training set. A run that is resumed
 * keeps its batch and its micro-batches. */
void ls_layout_warn_idle(const ls_layout *layout, int64_t global_batch, int64_t microbatch, uint64_t samples,
			 int resumed);

/* The first node warns of strategies and codecs whose bits depend on the layout. */
void ls_layout_note_modes(const ls_layout *layout);

static inline int ls_layout_is_server(const ls_layout *layout)
{
	return layout->node >= layout->nodes - layout->servers;
}

#endif
