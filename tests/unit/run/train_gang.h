/*
 * train_gang.h - a training run on nodes that are threads of this process.
 */
#ifndef LS_TESTS_TRAIN_GANG_H
#define LS_TESTS_TRAIN_GANG_H

#include "run/node.h"
#include "unit/trainer/gang.h"

/* One node's run. */
typedef struct node {
	gang_node gang;
	ls_train_options options;
	ls_train_result result;
} node;

static inline ls_status train_node(gang_node *self, ls_comm *comm)
{
	node *n = (node *)self;
	return ls_train_node(&n->options, comm, &n->result);
}

/* Each with the options in its struct. */
static inline void train_nodes(node *nodes, int count)
{
	gang_run(nodes, sizeof(*nodes), count, train_node);
}

/* A short run on glyphs, one device per node. */
static inline ls_train_options short_run(const char *model, int64_t samples, int64_t batch, int64_t micro_batch)
{
	ls_train_options o = LS_TRAIN_OPTIONS_INIT;
	o.model = model;
	o.data = "glyphs";
	o.samples = samples;
	o.batch = batch;
	o.micro_batch = micro_batch;
	o.devices = 1;
	o.schedule = "constant";
	o.pin = "off";
	return o;
}

#endif
