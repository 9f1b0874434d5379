/* The event file, read back by a reader that shares nothing with the writer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <math.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "metrics/crc32c.h"
#include "metrics/events.h"
#include "unit/metrics/scratch.h"

/* Bit by bit, from the definition. */
static uint32_t slow_crc(const uint8_t *data, size_t bytes)
{
	uint32_t crc = ~0u;
	for (size_t bit = 0; bit < 8 * bytes; bit++) {
		uint32_t in = (data[bit / 8] >> (bit % 8)) & 1;
		crc = (crc >> 1) ^ (((crc & 1) ^ in) ? 0x82f63b78u : 0);
	}
	return ~crc;
}

static void test_crc_known_answers(void **state)
{
	(void)state;
	uint8_t bytes[300];
	assert_int_equal(ls_crc32c("123456789", 9), 0xe3069283u);
	assert_int_equal(ls_crc32c("", 0), 0);
	memset(bytes, 0, 32); /* RFC 3720, B.4 */
	assert_int_equal(ls_crc32c(bytes, 32), 0x8a9136aau);
	memset(bytes, 0xff, 32);
	assert_int_equal(ls_crc32c(bytes, 32), 0x62a8ab43u);
	for (int i = 0; i < 300; i++)
		bytes[i] = (uint8_t)(i * 7);
	for (size_t length = 0; length <= 300; length += 13)
		assert_int_equal(ls_crc32c(bytes, length), slow_crc(bytes, length));
}

/* ---- the reader ---- */

typedef struct event {
	double wall;
	uint64_t step;
	char version[32], tag[300];
	float value;
	int session; /* status of a session log, or 0 */
} event;

typedef struct cursor {
	const uint8_t *at, *end;
} cursor;

static uint64_t little(const uint8_t *at, int bytes)
{
	uint64_t value = 0;
	for (int i = bytes; i-- > 0;)
		value = value << 8 | at[i];
	return value;
}

static uint64_t take_varint(cursor *c)
{
	uint64_t value = 0;
	for (int shift = 0; shift < 64; shift += 7) {
		assert_true(c->at < c->end);
		uint8_t byte = *c->at++;
		value |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80)
			return value;
	}
	fail_msg("varint without end");
	return 0;
}

/* The next field: its number, and its value or its bytes by wire type. 0 at the end. */
static unsigned take_field(cursor *c, uint64_t *value, cursor *inner)
{
	if (c->at == c->end)
		return 0;
	uint64_t key = take_varint(c);
	size_t bytes = 0;
	switch (key & 7) {
	case 0:
		*value = take_varint(c);
		return (unsigned)(key >> 3);
	case 1:
		bytes = 8;
		break;
	case 2:
		bytes = take_varint(c);
		break;
	case 5:
		bytes = 4;
		break;
	default:
		fail_msg("wire type %d", (int)(key & 7));
	}
	assert_true(bytes <= (size_t)(c->end - c->at));
	*inner = (cursor){ c->at, c->at + bytes };
	*value = bytes <= 8 ? little(c->at, (int)bytes) : 0;
	c->at += bytes;
	return (unsigned)(key >> 3);
}

static void copy_text(char *out, size_t size, cursor text)
{
	assert_true((size_t)(text.end - text.at) < size);
	memcpy(out, text.at, (size_t)(text.end - text.at));
	out[text.end - text.at] = '\0';
}

static void read_value(cursor c, event *out)
{
	uint64_t bits;
	cursor inner;
	for (unsigned field; (field = take_field(&c, &bits, &inner));) {
		if (field == 1)
			copy_text(out->tag, sizeof(out->tag), inner);
		if (field == 2) {
			uint32_t word = (uint32_t)bits;
			memcpy(&out->value, &word, 4);
		}
	}
}

static void read_event(cursor c, event *out)
{
	uint64_t bits;
	cursor inner;
	memset(out, 0, sizeof(*out));
	for (unsigned field; (field = take_field(&c, &bits, &inner));) {
		if (field == 1)
			memcpy(&out->wall, &bits, 8);
		if (field == 2)
			out->step = bits;
		if (field == 3)
			copy_text(out->version, sizeof(out->version), inner);
		if (field == 5) {
			assert_int_equal(take_field(&inner, &bits, &c), 1);
			read_value(c, out);
			c.at = c.end = inner.end; /* summary is the last field */
		}
		if (field == 7 && take_field(&inner, &bits, &inner) == 1)
			out->session = (int)bits;
	}
}

static uint32_t unmask(uint32_t masked)
{
	uint32_t rotated = masked - 0xa282ead8u;
	return rotated >> 17 | rotated << 15;
}

static int read_events(const char *path, event *out, int capacity)
{
	size_t bytes = 0;
	int count = 0;
	char *text = scratch_read(path, &bytes);
	assert_non_null(text);
	const uint8_t *at = (const uint8_t *)text, *end = at + bytes;
	while (at < end) {
		assert_true(end - at >= 16);
		uint64_t length = little(at, 8);
		assert_int_equal(unmask((uint32_t)little(at + 8, 4)), slow_crc(at, 8));
		assert_true(length <= (uint64_t)(end - at) - 16);
		assert_int_equal(unmask((uint32_t)little(at + 12 + length, 4)), slow_crc(at + 12, length));
		assert_true(count < capacity);
		read_event((cursor){ at + 12, at + 12 + length }, &out[count++]);
		at += 16 + length;
	}
	free(text);
	return count;
}

/* ---- the tests ---- */

static void path_of_only_file(char path[1024])
{
	char name[256];
	assert_int_equal(scratch_count(scratch, "events.out.tfevents.", name), 1);
	snprintf(path, 1024, "%s", scratch_path(name));
}

static void test_scalars_read_back(void **state)
{
	(void)state;
	static const uint64_t steps[] = { 0, 1, 127, 128, 300, 1ull << 40 };
	ls_events *events = NULL;
	event got[16];
	char path[1024];
	assert_int_equal(ls_events_open(&events, scratch, 0), LS_OK);
	for (int i = 0; i < 6; i++)
		assert_int_equal(ls_events_scalar(events, 1000.5 + i, steps[i], "step", "loss", 0.1 * i - 0.25), LS_OK);
	assert_int_equal(ls_events_scalar(events, 2.0, 7, "epoch", "accuracy", NAN), LS_OK);
	assert_int_equal(ls_events_flush(events), LS_OK);
	path_of_only_file(path);
	assert_int_equal(read_events(path, got, 16), 8); /* readable while it is open */
	ls_events_close(events);

	assert_string_equal(got[0].version, "brain.Event:2");
	assert_true(got[0].wall > 1e9);
	for (int i = 0; i < 6; i++) {
		assert_true(got[i + 1].wall == 1000.5 + i && got[i + 1].value == (float)(0.1 * i - 0.25));
		assert_true(got[i + 1].step == steps[i]);
		assert_string_equal(got[i + 1].tag, "step/loss");
		assert_string_equal(got[i + 1].version, "");
	}
	assert_string_equal(got[7].tag, "epoch/accuracy");
	assert_true(isnan(got[7].value));
}

static void test_file_name(void **state)
{
	(void)state;
	char name[256], host[256] = "", expected[600];
	long long seconds = 0;
	assert_int_equal(scratch_count(scratch, "events.out.tfevents.", name), 1);
	assert_int_equal(sscanf(name, "events.out.tfevents.%lld", &seconds), 1);
	assert_true(seconds > 1000000000);
	gethostname(host, sizeof(host) - 1);
	snprintf(expected, sizeof(expected), "events.out.tfevents.%010lld.%s.%ld", seconds, host, (long)getpid());
	assert_string_equal(name, expected);
}

/* A resume adds a file whose START record makes readers forget the steps that are done again. */
static void test_resume_adds_a_file(void **state)
{
	(void)state;
	ls_events *events = NULL;
	char first[256], name[256] = "";
	event got[4];
	assert_int_equal(scratch_count(scratch, "events.out.tfevents.", first), 1);
	assert_int_equal(ls_events_open(&events, scratch, 41), LS_OK);
	ls_events_close(events);
	DIR *directory = opendir(scratch);
	for (struct dirent *entry; (entry = readdir(directory));)
		if (strncmp(entry->d_name, "events.", 7) == 0 && strcmp(entry->d_name, first) != 0)
			snprintf(name, sizeof(name), "%s", entry->d_name);
	closedir(directory);
	assert_true(name[0]);
	assert_int_equal(read_events(scratch_path(name), got, 4), 2);
	assert_string_equal(got[0].version, "brain.Event:2");
	assert_int_equal(got[1].session, 1);
	assert_int_equal(got[1].step, 42);

	assert_int_equal(ls_events_open(&events, scratch, 0), LS_OK); /* afresh */
	ls_events_close(events);
	assert_int_equal(scratch_count(scratch, "events.out.tfevents.", NULL), 1);
}

static void test_long_names_are_refused(void **state)
{
	(void)state;
	ls_events *events = NULL;
	char name[400];
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	assert_int_equal(ls_events_open(&events, scratch, 0), LS_OK);
	assert_int_equal(ls_events_scalar(events, 1.0, 1, "step", name, 0.0), LS_EINVALID);
	name[250] = '\0'; /* "step/" and 250 are 255, the longest accepted */
	assert_int_equal(ls_events_scalar(events, 1.0, 1, "step", name, 0.0), LS_OK);
	ls_events_close(events);
}

/* A reader gives up at a torn record, so a full disk must not leave one. */
static void test_full_disk_keeps_whole_records(void **state)
{
	(void)state;
	ls_events *events = NULL;
	struct rlimit before, limit;
	event got[64];
	char path[1024];
	uint64_t step = 0;
	ls_status status = LS_OK;
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(ls_events_open(&events, scratch, 0), LS_OK);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	limit = before;
	limit.rlim_cur = 1000;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	while (status == LS_OK && step < 60) {
		assert_int_equal(ls_events_scalar(events, 1.0, ++step, "step", "loss", 1.0), LS_OK);
		status = ls_events_flush(events);
	}
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_int_equal(status, LS_EIO);
	assert_int_equal(ls_events_scalar(events, 1.0, 100, "step", "loss", 1.0), LS_OK);
	assert_int_equal(ls_events_flush(events), LS_OK);
	ls_events_close(events);
	path_of_only_file(path);
	assert_int_equal(read_events(path, got, 64), step + 1); /* version, the ones before, the one after */
	assert_int_equal(got[step - 1].step, step - 1);
	assert_int_equal(got[step].step, 100);
}

/* For tests/cli/t0410-tensorboard.sh: a run of 10 steps that was stopped at step 8 and resumed from step 5. */
static int write_sample(const char *directory)
{
	ls_events *events = NULL;
	for (int part = 0; part < 2; part++) {
		if (ls_events_open(&events, directory, part ? 5 : 0) != LS_OK)
			return 1;
		for (uint64_t step = part ? 6 : 1; step <= (part ? 10u : 8u); step++) {
			double value = (double)step + (part ? 0.5 : 0.25);
			if (ls_events_scalar(events, 1000.0 + 100.0 * part + (double)step, step, "step", "loss",
					     value) != LS_OK)
				return 1;
		}
		if (ls_events_flush(events) != LS_OK)
			return 1;
		ls_events_close(events);
	}
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "write") == 0)
		return write_sample(argv[2]);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_crc_known_answers),
		cmocka_unit_test(test_scalars_read_back),
		cmocka_unit_test(test_file_name),
		cmocka_unit_test(test_resume_adds_a_file),
		cmocka_unit_test(test_long_names_are_refused),
		cmocka_unit_test(test_full_disk_keeps_whole_records),
	};
	return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
