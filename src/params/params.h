/*
 * params.h - the table of a model's parameters and where each lies in the flat stores.
 *
 * Invariants
 *  1. A store is one array of floats. Its reachable part [0, reachable) holds every weight that can ever have a
 *     gradient, in forward order; gradients and optimizer state are arrays of `reachable` floats with the same
 *     offsets.
 *  2. Behind it, [reachable, total) holds unreachable weights: filter taps that see nothing but padding at every
 *     position of the image. They have no gradient and no state, are never exchanged, and are in checkpoints like any
 *     other. Frozen parameters lie there as a whole, in front of those: what trains, exchanges and updates sees
 *     [0, reachable) and therefore nothing of them.
 *  3. Buffers (running statistics) are not trained and have an array of their own, `buffers` floats.
 *  4. Kernels see blocked weights [slot][out block][in block][in_panel][out_panel]; the outside world sees PyTorch's
 *     shapes. Padding inside blocks is zero, always has gradient zero, and stays zero.
 */
#ifndef LS_PARAMS_PARAMS_H
#define LS_PARAMS_PARAMS_H

#include <stddef.h>
#include <stdint.h>

#include "base/memory.h"
#include "base/status.h"

typedef enum ls_param_role {
	LS_ROLE_WEIGHT, /* decays */
	LS_ROLE_BIAS,
	LS_ROLE_NORM,   /* scale or shift of a normalisation */
	LS_ROLE_BUFFER, /* running statistics: in the buffers array, not trained */
	LS_ROLE_COUNTER /* num_batches_tracked: an int64 scalar, in checkpoints only */
} ls_param_role;

typedef enum ls_param_init {
	LS_INIT_ZERO,
	LS_INIT_ONE,
	LS_INIT_UNIFORM_FAN_IN, /* U(-b, b), b = 1/sqrt(fan_in): PyTorch's default for conv and linear, bias too */
	LS_INIT_HE_FAN_OUT,     /* N(0, sqrt(2 / fan_out)): torchvision's ResNet convolutions */
	LS_INIT_HE_FAN_IN,      /* N(0, sqrt(2 / fan_in)) */
	LS_INIT_NORMAL          /* N(0, deviation): BERT's and GPT's, whatever the layer */
} ls_param_init;

/* Logical (out, in, taps), stored in blocks. A vector is in = taps = 1. A table of rows, as an embedding, is out_panel
 * = 1: one block per output, contiguous. */
typedef struct ls_weight_layout {
	int out, in, taps;
	int out_panel, in_panel; /* gathered: in_panel = in * taps, depth index = tap * in + channel */
	int gathered;
	int is_transposed;   /* logical is (in, out): a linear layer as GPT-2's files have it; taps is 1 */
	int reachable_taps;  /* slots [0, reachable_taps) are reachable */
	const int16_t *slot; /* (taps) tap -> slot; NULL means identity, all reachable */
} ls_weight_layout;

typedef struct ls_param {
	const char *name; /* "layer1.0.conv1.weight" */
	ls_param_role role;
	ls_param_init init;
	float deviation; /* of LS_INIT_NORMAL; 0: 0.02 */
	int fan_in;      /* of the layer (a bias uses its layer's) */
	int rank;
	int64_t shape[4]; /* as PyTorch has it; rank 0 for a counter */
	ls_weight_layout layout;
	int is_frozen;        /* keeps its values in training: graph/freeze.c */
	size_t offset, count; /* reachable part, in floats, padding included (or place in buffers) */
	size_t unreachable_offset, unreachable_count;
} ls_param;

/* A parameter, frozen or not; otherwise it is in the buffers or a counter. */
static inline int ls_param_is_trained(const ls_param *param)
{
	return param->role != LS_ROLE_BUFFER && param->role != LS_ROLE_COUNTER;
}

/* It changes in training: it has a gradient and optimizer state. */
static inline int ls_param_has_gradient(const ls_param *param)
{
	return ls_param_is_trained(param) && !param->is_frozen;
}

typedef struct ls_param_table {
	ls_param *rows;
	size_t count, capacity;
	size_t reachable, total; /* floats */
	size_t buffers;
	uint64_t trainable; /* logical elements, unreachable ones included, padding not */
	uint64_t frozen;    /* how many of them are frozen */
} ls_param_table;

/* Assign offsets once all rows are there. `all` treats every weight as reachable: coupled weight decay and norms of
 * whole tensors need that. */
void ls_params_lay_out(ls_param_table *table, int all);

size_t ls_param_elements(const ls_param *param); /* logical; 1 for a counter */

/* Which part of a store an array has. */
typedef enum ls_store_kind {
	LS_STORE_WHOLE,    /* `total` floats: parameters */
	LS_STORE_REACHABLE /* `reachable` floats: gradients, optimizer state. For unreachable and frozen weights, export
			 gives 0 and import does nothing */
} ls_store_kind;

/* Between a store and the logical, row-major layout of param->shape. For a buffer, `store` is the buffers array. */
void ls_param_export(const ls_param *param, ls_store_kind kind, const float *store, float *logical);
void ls_param_import(const ls_param *param, ls_store_kind kind, const float *logical, float *store);

/* Fill store and buffers with initial values: a function of (seed, parameter name, logical index) alone. */
ls_status ls_params_init(const ls_param_table *table, uint64_t seed, float *store, float *buffers);

/* The distribution of initial values, "~ U(-0.022, 0.022)", "~ N(0, 0.02)" or "= 0". Returns out. */
const char *ls_param_init_text(const ls_param *param, char *out, size_t size);

/* xxh64 over all trainable parameters and buffers in table order, logical layout: the fingerprint of a run. */
ls_status ls_params_fingerprint(const ls_param_table *table, const float *store, const float *buffers, uint64_t *out);

#endif
