/*
 * pack.h - partial sums without their zeros: what a message carries when that is fewer bytes.
 *
 * A step has words of a few rows of an embedding; the gradient of all others is zero. A partial sum of it is cut into
 * grains of up to 64 elements, and those whose bits are not all zero are sent, followed by a bit for every grain:
 * whether it is there. Nothing is lost (-0.0 has a bit set), so what is added, and in which order, stays as it was.
 *
 *     plain    [ 0 | a | 0 | 0 | b | c | 0 ]
 *     packed   [ a | b | c | 0110010 ]          bit i % 8 of byte i / 8 of the marks is grain i's
 *
 * The length tells which it is: a packed message has three quarters of a plain one's bytes or fewer. Marks come last,
 * so that packing moves grains to the front of the partial sum where it lies and needs no memory but for the marks.
 *
 * Every partial sum is looked at, whatever layer it is of. One that has no zeros costs a cache line in every thirteenth
 * grain, a fiftieth of what is sent: a sample of them decides whether all are looked at.
 */
#ifndef LS_EXCHANGE_PACK_H
#define LS_EXCHANGE_PACK_H

#include <stddef.h>

#include "base/status.h"

#define LS_GRAIN_MOST 64

/* A plain message. */
typedef struct ls_pack_form {
	size_t count; /* elements */
	size_t width; /* bytes of one: 4, or 2 of bf16 */
	size_t grain; /* elements; the last grain may have fewer */
} ls_pack_form;

/* The largest grain of which blocks of so many floats consist. */
size_t ls_pack_grain(size_t block);

size_t ls_pack_marks(const ls_pack_form *form); /* bytes */

/* Pack the message where it lies, if that pays; `marks` is scratch. Returns how many bytes it has then. */
size_t ls_pack(const ls_pack_form *form, void *message, unsigned char *marks);

/* Whether a message of so many bytes can have come out of ls_pack(). */
ls_status ls_pack_check(const ls_pack_form *form, const void *message, size_t bytes);

/* Elements [begin, end) of the plain message as floats, from a packed one that was checked; begin is a grain's. */
void ls_pack_open(const ls_pack_form *form, const void *message, size_t bytes, size_t begin, size_t end, float *out);

#endif
