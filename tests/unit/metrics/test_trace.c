/* Traces: what is recorded is what the file says, also when lanes are full, busy, or lie. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <jansson.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/clock.h"
#include "metrics/trace.h"
#include "metrics/trace_read.h"
#include "unit/metrics/scratch.h"
#include "unit/test_main.h"

static const ls_trace_kind compute = { .category = "compute", .arg0 = "micro-batch" };
static const ls_trace_kind push = { .category = "push", .arg0 = "bucket", .arg1 = "bytes", .overlaps = 1 };

static ls_trace *new_trace(int node, int lanes, size_t events)
{
	ls_trace *trace = NULL;
	assert_int_equal(ls_trace_new(&trace, node, "host \"a\"\\", lanes, events), LS_OK);
	return trace;
}

static ls_trace_packed pack(const ls_trace *trace)
{
	void *bytes = NULL;
	size_t size = 0;
	assert_int_equal(ls_trace_pack(trace, &bytes, &size), LS_OK);
	return (ls_trace_packed){ bytes, size };
}

static void release(ls_trace_packed *packs, size_t count)
{
	for (size_t i = 0; i < count; i++)
		free((void *)(uintptr_t)packs[i].bytes);
}

/* The file as JSON, and its list of events (borrowed). Releases the packs. */
static json_t *write_and_load(ls_trace_packed *packs, size_t count, json_t **events)
{
	json_error_t error;
	char path[1024];
	snprintf(path, sizeof(path), "%s", scratch_path("trace.json"));
	assert_int_equal(ls_trace_write(path, packs, count), LS_OK);
	release(packs, count);
	json_t *file = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
	if (!file)
		fail_msg("line %d: %s", error.line, error.text);
	*events = json_object_get(file, "traceEvents");
	assert_true(json_is_array(*events));
	return file;
}

static const char *text_at(const json_t *event, const char *key)
{
	const char *text = json_string_value(json_object_get(event, key));
	return text ? text : "";
}

static int64_t number_at(const json_t *event, const char *key)
{
	const json_t *number = json_object_get(event, key);
	assert_true(json_is_integer(number));
	return json_integer_value(number);
}

static double real_at(const json_t *event, const char *key)
{
	const json_t *number = json_object_get(event, key);
	assert_true(json_is_number(number));
	return json_number_value(number);
}

/* The n-th event of a phase (and of a name, unless that is NULL), or NULL. */
static const json_t *find(const json_t *events, const char *phase, const char *name, int n)
{
	for (size_t i = 0; i < json_array_size(events); i++) {
		const json_t *event = json_array_get(events, i);
		if (!strcmp(text_at(event, "ph"), phase) && (!name || !strcmp(text_at(event, "name"), name)) &&
		    n-- == 0)
			return event;
	}
	return NULL;
}

static void test_two_nodes_line_up(void **state)
{
	(void)state;
	ls_trace *nodes[2] = { new_trace(0, 2, 8), new_trace(1, 1, 8) };
	ls_trace_name_lane(nodes[0], 0, "device 0");
	ls_trace_name_lane(nodes[0], 1, "exchange");
	ls_trace_span(nodes[0], 0, "conv1", &compute, 100.0, 100.25, 17, 3, 99);
	ls_trace_span(nodes[1], 0, "conv1", &compute, 5000.125, 5000.5, -1, 4, 0);
	ls_trace_set_offset(nodes[1], -4900.0); /* 5000 there is 100 here */
	ls_trace_packed packs[3] = { pack(nodes[0]), { NULL, 0 }, pack(nodes[1]) };
	ls_trace_free(nodes[0]);
	ls_trace_free(nodes[1]);
	json_t *events, *file = write_and_load(packs, 3, &events);

	const json_t *first = find(events, "X", "conv1", 0), *second = find(events, "X", "conv1", 1);
	assert_null(find(events, "X", NULL, 2));
	assert_int_equal(number_at(first, "pid"), 0);
	assert_int_equal(number_at(second, "pid"), 1);
	assert_true(real_at(first, "ts") == 0 && real_at(first, "dur") == 250000.0);
	assert_true(real_at(second, "ts") == 125000.0 && real_at(second, "dur") == 375000.0);
	const json_t *args = json_object_get(first, "args");
	assert_int_equal(json_object_size(args), 2);
	assert_int_equal(number_at(args, "step"), 17);
	assert_int_equal(number_at(args, "micro-batch"), 3);
	args = json_object_get(second, "args"); /* no step */
	assert_int_equal(json_object_size(args), 1);
	assert_int_equal(number_at(args, "micro-batch"), 4);
	assert_string_equal(text_at(json_object_get(find(events, "M", "process_name", 0), "args"), "name"),
			    "node 0, host \"a\"\\");
	assert_int_equal(number_at(find(events, "M", "process_name", 1), "pid"), 1);
	const json_t *lane = find(events, "M", "thread_name", 1); /* named, though nothing happened there */
	assert_int_equal(number_at(lane, "tid"), 1);
	assert_string_equal(text_at(json_object_get(lane, "args"), "name"), "exchange");
	assert_string_equal(text_at(json_object_get(find(events, "M", "thread_name", 2), "args"), "name"), "lane 0");
	assert_null(find(events, "M", "process_labels", 0));
	json_decref(file);
}

/* Messages in flight overlap: begin and end share an id that no other pair has. */
static void test_overlapping_spans(void **state)
{
	(void)state;
	ls_trace *trace = new_trace(2, 1, 8);
	ls_trace_span(trace, 0, "push", &push, 1.0, 2.0, 5, 0, 1000);
	ls_trace_span(trace, 0, "push", &push, 1.5, 2.5, 5, 1, INT64_MAX);
	ls_trace_packed packed = pack(trace);
	ls_trace_free(trace);
	json_t *events, *file = write_and_load(&packed, 1, &events);
	for (int i = 0; i < 2; i++) {
		const json_t *begin = find(events, "b", "push", i), *end = find(events, "e", "push", i);
		assert_string_equal(text_at(begin, "id"), text_at(end, "id"));
		assert_string_equal(text_at(end, "cat"), "push");
		assert_true(real_at(begin, "ts") == 500000.0 * i && real_at(end, "ts") == 500000.0 * i + 1000000.0);
		const json_t *args = json_object_get(begin, "args");
		assert_int_equal(number_at(args, "bucket"), i);
		assert_true(number_at(args, "bytes") == (i ? INT64_MAX : 1000));
	}
	assert_string_not_equal(text_at(find(events, "b", "push", 0), "id"),
				text_at(find(events, "b", "push", 1), "id"));
	assert_null(find(events, "X", NULL, 0));
	json_decref(file);
}

static void test_full_lane_drops_the_oldest(void **state)
{
	(void)state;
	ls_trace *trace = new_trace(0, 2, 10);
	for (int i = 0; i < 10; i++)
		ls_trace_span(trace, 0, "s", &compute, i, i + 0.5, i, 0, 0);
	assert_int_equal(ls_trace_dropped(trace), 0);
	for (int i = 10; i < 37; i++)
		ls_trace_span(trace, 0, "s", &compute, i, i + 0.5, i, 0, 0);
	ls_trace_span(trace, 1, "other", &compute, 30, 31, 0, 0, 0);
	assert_int_equal(ls_trace_dropped(trace), 27);
	ls_trace_packed packed = pack(trace);
	ls_trace_free(trace);
	json_t *events, *file = write_and_load(&packed, 1, &events);
	for (int i = 0; i < 10; i++)
		assert_int_equal(number_at(json_object_get(find(events, "X", "s", i), "args"), "step"), 27 + i);
	assert_null(find(events, "X", "s", 10));
	assert_non_null(find(events, "X", "other", 0));
	assert_string_equal(text_at(json_object_get(find(events, "M", "process_labels", 0), "args"), "labels"),
			    "27 oldest spans dropped");
	json_decref(file);
}

static void test_names_of_any_bytes(void **state)
{
	(void)state;
	static const char *const names[][2] = {
		{ "say \"hi\"", "say \"hi\"" },
		{ "back\\slash", "back\\slash" },
		{ "tab\tline\nbell\a", "tab\tline\nbell\a" },
		{ "</script>", "</script>" },
		{ "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80",
		  "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80" },
		{ "bad \xff\xc3", "bad ??" },                  /* no UTF-8; cut inside a character */
		{ "\xc0\x80 \xed\xa0\x80", "?? ???" },         /* overlong; a surrogate */
		{ "\xf4\x90\x80\x80\xe0\x80\x80", "???????" }, /* past the last character; overlong */
		{ "", "" },
	};
	enum { COUNT = sizeof(names) / sizeof(names[0]) };
	ls_trace *trace = new_trace(0, 1, COUNT + 1);
	char longest[3000];
	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	for (int i = 0; i < COUNT; i++)
		ls_trace_span(trace, 0, names[i][0], &compute, i, i, 0, 0, 0);
	ls_trace_span(trace, 0, longest, &compute, 50, 50, 0, 0, 0);
	ls_trace_name_lane(trace, 0, longest);
	ls_trace_packed packed = pack(trace);
	ls_trace_free(trace);
	json_t *events, *file = write_and_load(&packed, 1, &events);
	for (int i = 0; i < COUNT; i++)
		assert_string_equal(text_at(find(events, "X", NULL, i), "name"), names[i][1]);
	assert_int_equal(strlen(text_at(find(events, "X", NULL, COUNT), "name")), LS_TRACE_TEXT_MAX);
	assert_int_equal(strlen(text_at(json_object_get(find(events, "M", "thread_name", 0), "args"), "name")), 63);
	json_decref(file);
}

/* A clock that lies costs the span alone. */
static void test_times(void **state)
{
	(void)state;
	ls_trace *trace = new_trace(0, 1, 16);
	const double base = 1e8; /* three years up */
	ls_trace_span(trace, 0, "nan", &compute, NAN, 1, 0, 0, 0);
	ls_trace_span(trace, 0, "endless", &compute, 1, INFINITY, 0, 0, 0);
	ls_trace_span(trace, 0, "back", &compute, base + 1, base, 0, 0, 0);
	ls_trace_span(trace, 0, "first", &compute, base, base + 1e-6, 0, 0, 0);
	ls_trace_span(trace, 0, "second", &compute, base + 3600.0000125, base + 7200, 0, 0, 0);
	ls_trace_packed packed = pack(trace);
	json_t *events, *file = write_and_load(&packed, 1, &events);
	assert_null(find(events, "X", NULL, 2));
	assert_true(fabs(real_at(find(events, "X", "first", 0), "dur") - 1.0) < 0.02);
	assert_true(fabs(real_at(find(events, "X", "second", 0), "ts") - 3600000012.5) < 0.02);
	json_decref(file);

	void *bytes = NULL;
	size_t size = 0;
	ls_trace_set_offset(trace, NAN);
	assert_int_equal(ls_trace_pack(trace, &bytes, &size), LS_EINVALID);
	assert_null(bytes);
	ls_trace_free(trace);
	double before = ls_clock_seconds();
	trace = new_trace(0, 1, 1);
	assert_true(ls_trace_now(trace) >= before && ls_trace_now(trace) <= ls_clock_seconds());
	ls_trace_free(trace);
}

static void test_no_trace(void **state)
{
	(void)state;
	void *bytes = &bytes;
	size_t size = 1;
	ls_trace_name_lane(NULL, 0, "x");
	ls_trace_span(NULL, 5, "x", &compute, 0, 1, 0, 0, 0);
	ls_trace_set_offset(NULL, 1);
	assert_true(ls_trace_now(NULL) == 0);
	assert_int_equal(ls_trace_dropped(NULL), 0);
	assert_int_equal(ls_trace_pack(NULL, &bytes, &size), LS_OK);
	assert_null(bytes);
	assert_int_equal(size, 0);
	ls_trace_free(NULL);
	json_t *events, *file = write_and_load(NULL, 0, &events);
	assert_int_equal(json_array_size(events), 0);
	json_decref(file);
}

static void test_refused(void **state)
{
	(void)state;
	ls_trace *trace = NULL;
	assert_int_equal(ls_trace_new(&trace, -1, "h", 1, 1), LS_EINVALID);
	assert_int_equal(ls_trace_new(&trace, 0, "h", 0, 1), LS_EINVALID);
	assert_int_equal(ls_trace_new(&trace, 0, "h", 1, 0), LS_EINVALID);
	assert_int_equal(ls_trace_new(&trace, 0, "h", 1000, SIZE_MAX / 100), LS_EINVALID);
	assert_null(trace);

	trace = new_trace(3, 1, 1);
	ls_trace_packed twins[2] = { pack(trace), pack(trace) };
	ls_trace_free(trace);
	assert_int_equal(ls_trace_write(scratch_path("twins.json"), twins, 2), LS_EFORMAT);
	assert_non_null(strstr(ls_last_error(), "node 3"));
	assert_int_equal(ls_trace_write(scratch_path("missing/trace.json"), twins, 1), LS_EIO);
	release(twins, 2);
	assert_int_equal(scratch_count(scratch, "twins", NULL), 0);
}

/* Every prefix is refused; a pack with a byte changed is refused or written as JSON, never worse. */
static void test_malformed_packs(void **state)
{
	(void)state;
	ls_trace *trace = new_trace(0, 2, 2);
	ls_trace_name_lane(trace, 0, "device 0");
	ls_trace_span(trace, 0, "conv1", &compute, 1, 2, 3, 4, 5);
	ls_trace_span(trace, 1, "push", &push, 1, 2, 3, 4, 5);
	ls_trace_packed good = pack(trace);
	ls_trace_free(trace);
	char path[1024];
	snprintf(path, sizeof(path), "%s", scratch_path("bad.json"));
	for (size_t size = 1; size < good.size; size++) {
		void *copy = malloc(size); /* exactly as long, so that reading on is noticed */
		memcpy(copy, good.bytes, size);
		ls_trace_packed packs[2] = { good, { copy, size } };
		assert_int_equal(ls_trace_write(path, packs, 2), LS_EFORMAT);
		free(copy);
	}
	assert_int_equal(scratch_count(scratch, "bad.json", NULL), 0); /* nothing, and no draft either */
	uint8_t *copy = malloc(good.size + 1);
	memcpy(copy, good.bytes, good.size);
	copy[good.size] = 0;
	assert_int_equal(ls_trace_write(path, &(ls_trace_packed){ copy, good.size + 1 }, 1), LS_EFORMAT);
	for (size_t at = 0; at < good.size; at++) {
		static const uint8_t changes[] = { 0x01, 0x80, 0xff };
		for (int c = 0; c < 3; c++) {
			copy[at] ^= changes[c];
			ls_trace_reader reader;
			ls_trace_record record = { 0 };
			ls_status status = ls_trace_reader_open(&reader, copy, good.size);
			for (int records = 0; !status && record.type != LS_TRACE_END; records++) {
				status = ls_trace_reader_next(&reader, &record);
				assert_true(records < 100);
			}
			assert_true(status == LS_OK || status == LS_EFORMAT);
			copy[at] ^= changes[c];
		}
	}
	free(copy);
	release(&good, 1);
}

/* ---- one thread a lane, and one that packs meanwhile ---- */

enum { LANES = 4, SPANS = 20000, KEPT = 500 };

static ls_trace *shared;
static atomic_int running;

/* All numbers of a span follow from one, so that a torn one shows. */
static void *record_lane(void *argument)
{
	static const char *const names[2] = { "even", "odd" };
	int lane = (int)(intptr_t)argument;
	for (int i = 0; i < SPANS; i++)
		ls_trace_span(shared, lane, names[i % 2], i % 2 ? &push : &compute, i, i + 1, i, (int64_t)i * 3,
			      (int64_t)i * 7);
	atomic_fetch_sub(&running, 1);
	return NULL;
}

static int check_span(const ls_trace_record *span, int64_t before)
{
	int64_t i = span->step;
	return i > before && span->args[0] == 3 * i && span->args[1] == 7 * i && span->begin_s == (double)i &&
	       span->end_s == (double)i + 1 && span->overlaps == i % 2 && span->name.length == (i % 2 ? 3 : 4);
}

/* Each lane's spans are whole and in order. Returns how many there are; `last` is the newest of the last lane. */
static int check_pack(ls_trace_packed packed, int64_t *last)
{
	ls_trace_reader reader;
	ls_trace_record record = { 0 };
	int count = 0;
	assert_int_equal(ls_trace_reader_open(&reader, packed.bytes, packed.size), LS_OK);
	while (record.type != LS_TRACE_END) {
		assert_int_equal(ls_trace_reader_next(&reader, &record), LS_OK);
		if (record.type == LS_TRACE_LANE)
			*last = -1;
		if (record.type != LS_TRACE_SPAN)
			continue;
		assert_true(check_span(&record, *last));
		*last = record.step;
		count++;
	}
	return count;
}

static void test_one_thread_a_lane(void **state)
{
	(void)state;
	pthread_t threads[LANES];
	int64_t last = -1;
	int packs = 0;
	shared = new_trace(0, LANES, KEPT);
	atomic_store(&running, LANES);
	for (int i = 0; i < LANES; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, record_lane, (void *)(intptr_t)i), 0);
	do {
		ls_trace_packed packed = pack(shared);
		assert_true(check_pack(packed, &last) <= LANES * KEPT);
		release(&packed, 1);
		packs++;
	} while (atomic_load(&running) && packs < 100000);
	for (int i = 0; i < LANES; i++)
		pthread_join(threads[i], NULL);
	ls_trace_packed packed = pack(shared);
	assert_int_equal(check_pack(packed, &last), LANES * KEPT);
	assert_int_equal(last, SPANS - 1);
	assert_int_equal(ls_trace_dropped(shared), LANES * (SPANS - KEPT));
	release(&packed, 1);
	ls_trace_free(shared);
}

TEST_MAIN_GROUP(scratch_make, scratch_remove, test_two_nodes_line_up, test_overlapping_spans,
		test_full_lane_drops_the_oldest, test_names_of_any_bytes, test_times, test_no_trace, test_refused,
		test_malformed_packs, test_one_thread_a_lane)
