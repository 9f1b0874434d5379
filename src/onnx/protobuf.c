#include "onnx/protobuf.h"

#include <stdlib.h>
#include <string.h>

/* Wire types. */
enum { VARINT = 0, LENGTH = 2, FIXED32 = 5 };

void ls_pb_release(ls_pb *pb)
{
	free(pb->data);
	*pb = (ls_pb){ 0 };
}

static uint8_t *grow(ls_pb *pb, size_t more)
{
	if (pb->bytes + more > pb->room) {
		size_t room = 2 * pb->room + more + 64;
		uint8_t *data = pb->failed ? NULL : realloc(pb->data, room);
		if (!data) {
			pb->failed = 1;
			return NULL;
		}
		pb->data = data;
		pb->room = room;
	}
	pb->bytes += more;
	return pb->data + pb->bytes - more;
}

static void put(ls_pb *pb, const void *data, size_t bytes)
{
	uint8_t *to = bytes > 0 ? grow(pb, bytes) : NULL;
	if (to)
		memcpy(to, data, bytes);
}

static size_t varint(uint8_t out[10], uint64_t value)
{
	size_t bytes = 0;
	for (; value >= 0x80; value >>= 7)
		out[bytes++] = (uint8_t)(value | 0x80);
	out[bytes++] = (uint8_t)value;
	return bytes;
}

static void put_varint(ls_pb *pb, uint64_t value)
{
	uint8_t out[10];
	put(pb, out, varint(out, value));
}

static void put_tag(ls_pb *pb, int field, int type)
{
	put_varint(pb, (uint64_t)field << 3 | (uint64_t)type);
}

void ls_pb_number(ls_pb *pb, int field, int64_t value)
{
	put_tag(pb, field, VARINT);
	put_varint(pb, (uint64_t)value);
}

void ls_pb_float(ls_pb *pb, int field, float value)
{
	put_tag(pb, field, FIXED32);
	put(pb, &value, sizeof(value)); /* little-endian, as are all processors that we compile for */
}

void ls_pb_head(ls_pb *pb, int field, uint64_t bytes)
{
	put_tag(pb, field, LENGTH);
	put_varint(pb, bytes);
}

size_t ls_pb_head_bytes(int field, uint64_t bytes)
{
	uint8_t out[10];
	return varint(out, (uint64_t)field << 3) + varint(out, bytes);
}

void ls_pb_bytes(ls_pb *pb, int field, const void *data, size_t bytes)
{
	ls_pb_head(pb, field, bytes);
	put(pb, data, bytes);
}

void ls_pb_text(ls_pb *pb, int field, const char *text)
{
	ls_pb_bytes(pb, field, text, strlen(text));
}

void ls_pb_message(ls_pb *pb, int field, ls_pb *message)
{
	pb->failed |= message->failed;
	ls_pb_bytes(pb, field, message->data, message->bytes);
	ls_pb_release(message);
}
