/*
 * codec.h - how messages between nodes encode floats: a table with one row per codec, in codecs/. A new codec is a
 * file there, a name below and an entry in codecs/table.c.
 *
 * A codec is orthogonal to strategies (strategy.h). It serves two kinds of messages:
 *
 *     reduce-scatter   a partial sum: encoded block by block as it is made, packed as a whole before it is sent,
 *                      checked when it arrives, and decoded block by block as it is added
 *     all-gather       new values: as they are, or as changes that every receiver adds to the values it has
 *
 * Functions that are NULL have nothing to do; without any of them the floats travel as they lie in memory. Step
 * statistics always travel as fp32.
 */
#ifndef LS_EXCHANGE_CODEC_H
#define LS_EXCHANGE_CODEC_H

#include <stddef.h>

#include "base/status.h"

/* A message with a whole partial sum of a shard. */
typedef struct ls_codec_form {
	size_t count; /* elements */
	size_t width; /* bytes of one: 4, or 2 of bf16 */
	size_t grain; /* sparse: elements that are sent or left out together; the last grain may have fewer */
} ls_codec_form;

typedef struct ls_codec {
	const char *name, *summary;
	const char *wire; /* what asks for it in --wire; NULL: nothing, it is for other purposes */
	int exact;        /* decoded floats have the bits of the encoded ones */
	size_t width;     /* bytes per element, before packing */

	/* Partial sums. */
	void (*encode)(void *to, const float *from, size_t count);
	void (*decode)(float *to, const void *from, size_t count);
	/* Make the message shorter where it lies, if that pays; `scratch` has ls_sparse_bitmap() bytes. Returns its
	 * bytes. */
	size_t (*pack)(const ls_codec_form *form, void *message, unsigned char *scratch);
	/* Whether a message of this length can have come out of pack(). */
	ls_status (*check)(const ls_codec_form *form, const void *message, size_t bytes);
	/* Elements [begin, end) of a packed message that was checked, as floats; begin is a grain's. */
	void (*unpack)(const ls_codec_form *form, const void *message, size_t bytes, size_t begin, size_t end,
		       float *out);

	/* New values. The change takes `values` towards `target`, rounded; `values` go there, and what rounding left
	 * out is part of the next change. */
	void (*encode_change)(void *change, float *values, const float *target, size_t count);
	void (*add_change)(float *values, const void *change, size_t count);
} ls_codec;

/* The rows, one per file. */
extern const ls_codec ls_codec_fp32, ls_codec_bf16, ls_codec_sparse_fp32, ls_codec_sparse_bf16;

const ls_codec *ls_codec_at(size_t i); /* NULL past the end */

/* The codecs that --wire can ask for, in the order of help; NULL past the end. */
const ls_codec *ls_wire_at(size_t i);
ls_status ls_wire_find(const char *wire, const ls_codec **out);

#endif
