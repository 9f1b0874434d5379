/*
 * stream.h - the bytes of a file, a pipe or standard input, in order, plain or gzip, in bounded memory.
 *
 * gzip is recognised by its first bytes. A read returns what there is: lines of a pipe are seen when they arrive.
 */
#ifndef LS_DATA_READERS_STREAM_H
#define LS_DATA_READERS_STREAM_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef struct ls_stream ls_stream;

/* "-" is standard input. */
ls_status ls_stream_open(ls_stream **out, const char *path);
/* Bytes in memory, borrowed. */
ls_status ls_stream_of_bytes(ls_stream **out, const void *bytes, size_t count, const char *name);
void ls_stream_close(ls_stream *stream); /* harmless on NULL */

/* The path, or "standard input". */
const char *ls_stream_name(const ls_stream *stream);

/* The next bytes without taking them, `want` unless the end comes before; at most LS_STREAM_PEEK. */
enum { LS_STREAM_PEEK = 512 };
ls_status ls_stream_peek(ls_stream *stream, const uint8_t **bytes, size_t want, size_t *got);

/* At least one byte and at most `want`; *got is 0 at the end alone. */
ls_status ls_stream_read(ls_stream *stream, void *out, size_t want, size_t *got);

/* All of `want` bytes, fewer at the end alone. */
ls_status ls_stream_read_all(ls_stream *stream, void *out, size_t want, size_t *got);

/* What is left, in memory that the caller frees; more than `most` bytes are an error. */
ls_status ls_stream_take(ls_stream *stream, uint8_t **out, size_t *bytes, size_t most);

#endif
