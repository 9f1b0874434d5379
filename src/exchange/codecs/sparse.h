/*
 * sparse.h - partial sums without their zeros: what a message carries when that is fewer bytes.
 *
 * A step has words of a few rows of an embedding; the gradient of all other rows is zero. A partial sum is cut into
 * grains of up to 64 elements. Grains whose bits are not all zero are sent, followed by a bitmap with one bit per
 * grain: whether it is there. Nothing is lost (-0.0 has a bit set), so what is added, and in which order, stays as it
 * was.
 *
 *     dense    [ 0 | a | 0 | 0 | b | c | 0 ]
 *     packed   [ a | b | c | 0110010 ]          bit i % 8 of byte i / 8 of the bitmap is grain i's
 *
 * The length shows which one it is: a packed message has at most three quarters of the bytes of a dense one. The bitmap
 * comes last, so that packing moves grains to the front of the partial sum where it lies and needs no memory but for
 * the bitmap.
 *
 * Every partial sum is examined, whatever layer it belongs to. One without zeros costs a cache line in every thirteenth
 * grain, a fiftieth of what is sent: this sample decides whether all grains are examined.
 */
#ifndef LS_EXCHANGE_CODECS_SPARSE_H
#define LS_EXCHANGE_CODECS_SPARSE_H

#include "exchange/codec.h"

#define LS_GRAIN_MOST 64

/* The largest grain of which blocks of `block` floats consist. */
size_t ls_sparse_grain(size_t block);

size_t ls_sparse_bitmap(const ls_codec_form *form); /* bytes */

/* The functions of a codec. */
size_t ls_sparse_pack(const ls_codec_form *form, void *message, unsigned char *bitmap);
ls_status ls_sparse_check(const ls_codec_form *form, const void *message, size_t bytes);
void ls_sparse_unpack(const ls_codec_form *form, const void *message, size_t bytes, size_t begin, size_t end,
		      float *out);

#endif
