/*
 * state_transfer.h - move parameters and optimizer state between the first node and the shard owners.
 *
 * Every node has whole parameters and running statistics; optimizer state is right on the owner of a shard alone, and
 * so are exact parameters when the wire is bf16, and the moving average of parameters. A checkpoint is the first node's
 * after gathering, and a run that is resumed begins by spreading: hence a checkpoint does not know how many nodes wrote
 * it. On one node both do nothing. Called by all nodes, when no step is under way.
 */
#ifndef LS_TRAINER_STATE_TRANSFER_H
#define LS_TRAINER_STATE_TRANSFER_H

#include "trainer/trainer.h"

/* The first node's parameters and statistics to everybody, and with `state` the moving average, and
 * optimizer state to its owners. */
ls_status ls_state_scatter(ls_node_trainer *trainer, ls_comm *comm, int state);

/* Owners' optimizer state and exact parameters to the first node, where trainer->master and trainer->average are then
 * whole. */
ls_status ls_state_gather(ls_node_trainer *trainer, ls_comm *comm);

/*
 * The shards of a node as a block of bytes that says what it is: a snapshot keeps them like that, and a start with
 * other nodes takes them apart. Parameters are in it where others have none that are exact.
 *
 *     uint64_t ranges, stores; { uint64_t begin, end; } (ranges); float (stores, floats of all ranges)
 */
int ls_state_owners(const ls_node_trainer *trainer);          /* of shards; 1: every node has whole state */
int ls_state_owner(const ls_node_trainer *trainer, int node); /* its place among them; -1: it owns nothing */
size_t ls_state_shard_bytes(const ls_node_trainer *trainer, int node);
void ls_state_pack(const ls_node_trainer *trainer, void *out); /* this node's */
ls_status ls_state_unpack(ls_node_trainer *trainer, const void *block, size_t bytes);

/* Bytes of the largest block of such a trainer, before it is there; a little too many. */
size_t ls_state_shard_most(const ls_node_trainer_options *options, int nodes);

/* The moving average, whole, to everybody. */
ls_status ls_state_share_average(ls_node_trainer *trainer, ls_comm *comm);

#endif
