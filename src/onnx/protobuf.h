/*
 * protobuf.h - messages of protocol buffers, written into memory: the little of it that ONNX needs.
 *
 *     ls_pb inner = { 0 }, outer = { 0 };
 *     ls_pb_text(&inner, 1, "domain");
 *     ls_pb_number(&inner, 2, 17);
 *     ls_pb_message(&outer, 8, &inner);       releases inner
 *
 * A message that ran out of memory stays so (`failed`), and so does every message that takes it in: one check at the
 * end is enough.
 */
#ifndef LS_ONNX_PROTOBUF_H
#define LS_ONNX_PROTOBUF_H

#include <stddef.h>
#include <stdint.h>

typedef struct ls_pb {
	uint8_t *data;
	size_t bytes, room;
	int failed;
} ls_pb;

void ls_pb_release(ls_pb *pb);

/* Field `field` as an integer, a float, bytes or text. */
void ls_pb_number(ls_pb *pb, int field, int64_t value);
void ls_pb_float(ls_pb *pb, int field, float value);
void ls_pb_bytes(ls_pb *pb, int field, const void *data, size_t bytes);
void ls_pb_text(ls_pb *pb, int field, const char *text);

/* A message as a field of another; `message` is empty afterwards. */
void ls_pb_message(ls_pb *pb, int field, ls_pb *message);

/* The head of a field of `bytes` bytes that follow by other means. */
void ls_pb_head(ls_pb *pb, int field, uint64_t bytes);
size_t ls_pb_head_bytes(int field, uint64_t bytes);

#endif
