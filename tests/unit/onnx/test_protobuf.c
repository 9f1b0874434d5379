/* Messages of protocol buffers, byte by byte as the format's documentation has them. */
#include "onnx/protobuf.h"

#include "unit/test_main.h"

static void expect(ls_pb *pb, const char *bytes, size_t count)
{
	assert_false(pb->failed);
	assert_int_equal(pb->bytes, count);
	assert_memory_equal(pb->data, bytes, count);
	ls_pb_release(pb);
}

static void test_numbers(void **state)
{
	ls_pb pb = { 0 };
	(void)state;
	ls_pb_number(&pb, 1, 150);
	expect(&pb, "\x08\x96\x01", 3);
	ls_pb_number(&pb, 20, 0);
	expect(&pb, "\xa0\x01\x00", 3);
	ls_pb_number(&pb, 1, -1); /* ten bytes, as every negative number */
	expect(&pb, "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11);
	ls_pb_float(&pb, 2, 1.0f);
	expect(&pb, "\x15\x00\x00\x80\x3f", 5);
}

static void test_messages(void **state)
{
	ls_pb pb = { 0 }, inner = { 0 };
	(void)state;
	ls_pb_text(&pb, 2, "testing");
	expect(&pb, "\x12\x07testing", 9);
	ls_pb_text(&pb, 1, "");
	expect(&pb, "\x0a\x00", 2);
	ls_pb_number(&inner, 1, 150);
	ls_pb_message(&pb, 3, &inner);
	assert_null(inner.data);
	expect(&pb, "\x1a\x03\x08\x96\x01", 5);
	ls_pb_message(&pb, 3, &inner); /* an empty one */
	expect(&pb, "\x1a\x00", 2);
}

/* The bytes that follow come from elsewhere: their number is known before. */
static void test_heads(void **state)
{
	static const uint64_t sizes[] = { 0, 127, 128, 16384, 1u << 31 };
	(void)state;
	for (int field = 1; field <= 16; field += 15)
		for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
			ls_pb pb = { 0 };
			ls_pb_head(&pb, field, sizes[i]);
			assert_int_equal(pb.bytes, ls_pb_head_bytes(field, sizes[i]));
			ls_pb_release(&pb);
		}
}

static void test_failure_spreads(void **state)
{
	ls_pb pb = { 0 }, inner = { .failed = 1 };
	(void)state;
	ls_pb_message(&pb, 1, &inner);
	assert_true(pb.failed);
	ls_pb_release(&pb);
}

TEST_MAIN(test_numbers, test_messages, test_heads, test_failure_spreads)
