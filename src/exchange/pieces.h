/*
 * pieces.h - sums over leaves in the order of a fixed binary tree.
 *
 * Leaf i of a step is the i-th leaf of the tree; a node is left + right; a node without a right child is its left
 * child. The tree depends on the number of leaves alone, so whoever adds which aligned run of leaves gets the same
 * bits.
 *
 * One worker that meets leaves in order needs one buffer a level: the binary counter below. After leaf i the buffers
 * hold the pieces that the bits of i + 1 name, largest first. Adding costs one pass over `floats` a leaf, amortised.
 */
#ifndef LS_EXCHANGE_PIECES_H
#define LS_EXCHANGE_PIECES_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "base/team.h"

#define LS_PIECE_LEVELS 40

typedef struct ls_pieces {
	float *level[LS_PIECE_LEVELS]; /* held pieces, by stack position; [held] is where the next leaf is to be written
					*/
	int64_t leaves[LS_PIECE_LEVELS];
	int held, levels;
	size_t floats;
} ls_pieces;

/* Buffers of `floats` for steps of at most `leaves` leaves. */
ls_status ls_pieces_init(ls_pieces *pieces, size_t floats, int64_t leaves);
void ls_pieces_release(ls_pieces *pieces);
size_t ls_pieces_bytes(size_t floats, int64_t leaves);

/* Where the next leaf's sums are to be written. */
float *ls_pieces_next(ls_pieces *pieces);

/* The leaf has been written: join it with the pieces it completes. The team shares the additions. */
void ls_pieces_push(ls_pieces *pieces, ls_team *team);

/* Join what is held into one sum, borrowed until the next push, and start over. */
float *ls_pieces_finish(ls_pieces *pieces, ls_team *team);

#endif
