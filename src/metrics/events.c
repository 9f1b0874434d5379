/*
 * events.c - TensorBoard event files, by hand.
 *
 * The file is a run of records (TFRecord framing, all little-endian):
 *
 *     uint64 length | uint32 masked crc32c of the length | length bytes | uint32 masked crc32c of the bytes
 *
 * and each record is one Event message in protocol buffer encoding. Of its fields we write
 *
 *   - Event: 1 wall_time double, 2 step int64, 3 file_version string, 5 summary Summary, 7 session_log SessionLog
 *   - Summary: 1 value Value, repeated
 *   - Value: 1 tag string, 2 simple_value float
 *   - SessionLog: 1 status enum, 1 = START
 *
 * The first record of a file has file_version "brain.Event:2". A START at step s makes a reader drop what it has
 * from step s on: a resumed run does those steps again.
 */
#include "metrics/events.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files.h"
#include "metrics/append.h"
#include "metrics/crc32c.h"

#define LS_EVENT_PREFIX "events.out.tfevents."

struct ls_events {
	ls_append file;
};

enum { LS_WIRE_VARINT = 0, LS_WIRE_FIXED64 = 1, LS_WIRE_BYTES = 2, LS_WIRE_FIXED32 = 5 };

/* A message under construction. What does not fit sets `full`, and the record is refused. */
typedef struct ls_message {
	uint8_t bytes[512];
	size_t length;
	int full;
} ls_message;

static void put_bytes(ls_message *message, const void *bytes, size_t count)
{
	if (count > sizeof(message->bytes) - message->length) {
		message->full = 1;
		return;
	}
	memcpy(message->bytes + message->length, bytes, count);
	message->length += count;
}

static void put_varint(ls_message *message, uint64_t value)
{
	uint8_t byte;
	for (; value >= 0x80; value >>= 7) {
		byte = (uint8_t)(value | 0x80);
		put_bytes(message, &byte, 1);
	}
	byte = (uint8_t)value;
	put_bytes(message, &byte, 1);
}

static void put_little(ls_message *message, uint64_t value, int count)
{
	for (int i = 0; i < count; i++) {
		uint8_t byte = (uint8_t)(value >> (8 * i));
		put_bytes(message, &byte, 1);
	}
}

static void put_key(ls_message *message, unsigned field, unsigned wire)
{
	put_varint(message, field << 3 | wire);
}

static void put_double(ls_message *message, unsigned field, double value)
{
	uint64_t bits;
	memcpy(&bits, &value, sizeof(bits));
	put_key(message, field, LS_WIRE_FIXED64);
	put_little(message, bits, 8);
}

static void put_float(ls_message *message, unsigned field, float value)
{
	uint32_t bits;
	memcpy(&bits, &value, sizeof(bits));
	put_key(message, field, LS_WIRE_FIXED32);
	put_little(message, bits, 4);
}

static void put_integer(ls_message *message, unsigned field, uint64_t value)
{
	put_key(message, field, LS_WIRE_VARINT);
	put_varint(message, value);
}

static void put_field(ls_message *message, unsigned field, const void *bytes, size_t count)
{
	put_key(message, field, LS_WIRE_BYTES);
	put_varint(message, count);
	put_bytes(message, bytes, count);
}

static void put_message(ls_message *message, unsigned field, const ls_message *inner)
{
	put_field(message, field, inner->bytes, inner->length);
	message->full |= inner->full;
}

static ls_status write_record(ls_events *events, const ls_message *event)
{
	if (event->full)
		return ls_fail(LS_EINVALID, "a metric's name is too long for a TensorBoard event");
	ls_message head = { .length = 0 }, tail = { .length = 0 };
	put_little(&head, event->length, 8);
	put_little(&head, ls_crc32c_masked(head.bytes, 8), 4);
	put_little(&tail, ls_crc32c_masked(event->bytes, event->length), 4);
	FILE *to = events->file.stream; /* ls_append_commit() notices what fails here */
	fwrite(head.bytes, 1, head.length, to);
	fwrite(event->bytes, 1, event->length, to);
	fwrite(tail.bytes, 1, tail.length, to);
	return LS_OK;
}

static ls_status write_version(ls_events *events)
{
	static const char version[] = "brain.Event:2";
	ls_message event = { .length = 0 };
	put_double(&event, 1, ls_clock_wall());
	put_field(&event, 3, version, sizeof(version) - 1);
	return write_record(events, &event);
}

static ls_status write_restart(ls_events *events, uint64_t first_step)
{
	ls_message event = { .length = 0 }, session = { .length = 0 };
	put_integer(&session, 1, 1);
	put_double(&event, 1, ls_clock_wall());
	put_integer(&event, 2, first_step);
	put_message(&event, 7, &session);
	return write_record(events, &event);
}

ls_status ls_events_scalar(ls_events *events, double wall, uint64_t step, const char *kind, const char *name,
			   double scalar)
{
	char tag[256];
	int length = snprintf(tag, sizeof(tag), "%s/%s", kind, name);
	if (length < 0 || (size_t)length >= sizeof(tag))
		return ls_fail(LS_EINVALID, "metric name '%s/%s' is longer than %zu characters", kind, name,
			       sizeof(tag) - 1);
	ls_message event = { .length = 0 }, summary = { .length = 0 }, value = { .length = 0 };
	put_field(&value, 1, tag, (size_t)length);
	put_float(&value, 2, (float)scalar);
	put_message(&summary, 1, &value);
	put_double(&event, 1, wall);
	put_integer(&event, 2, step);
	put_message(&event, 5, &summary);
	return write_record(events, &event);
}

/* Event files of a run that is started afresh would be shown mixed with the new ones. */
static ls_status remove_old(const char *run)
{
	DIR *directory = opendir(run);
	ls_status status = LS_OK;
	if (!directory)
		return ls_fail_errno(LS_EIO, "cannot read directory %s", run);
	for (struct dirent *entry; status == LS_OK && (entry = readdir(directory));) {
		if (strncmp(entry->d_name, LS_EVENT_PREFIX, sizeof(LS_EVENT_PREFIX) - 1) != 0)
			continue;
		if (unlinkat(dirfd(directory), entry->d_name, 0) != 0 && errno != ENOENT)
			status = ls_fail_errno(LS_EIO, "cannot remove %s/%s of an earlier run", run, entry->d_name);
	}
	closedir(directory);
	return status;
}

/* The name has a second's resolution: a process that opens two in one second numbers the later ones. */
static ls_status create(ls_events *events, const char *run)
{
	char path[4096], name[512], host[256] = "localhost";
	ls_status status = LS_OK;
	gethostname(host, sizeof(host) - 1);
	for (int attempt = 0; attempt < 100; attempt++) {
		int length = snprintf(name, sizeof(name), LS_EVENT_PREFIX "%010lld.%s.%ld", (long long)ls_clock_wall(),
				      host, (long)getpid());
		if (attempt > 0)
			snprintf(name + length, sizeof(name) - (size_t)length, ".%d", attempt);
		LS_TRY(ls_path_join(path, sizeof(path), run, name));
		status = ls_append_open(&events->file, path, O_EXCL);
		if (status == LS_OK || errno != EEXIST)
			break;
	}
	return status;
}

ls_status ls_events_open(ls_events **out, const char *run, uint64_t resume_step)
{
	if (resume_step == 0)
		LS_TRY(remove_old(run));
	ls_events *events = calloc(1, sizeof(*events));
	if (!events)
		return ls_fail(LS_EMEMORY, "no memory for TensorBoard events");
	ls_status status = create(events, run);
	if (status == LS_OK)
		status = write_version(events);
	if (status == LS_OK && resume_step > 0)
		status = write_restart(events, resume_step + 1);
	if (status == LS_OK)
		status = ls_events_flush(events);
	if (status != LS_OK) {
		ls_events_close(events);
		return status;
	}
	*out = events;
	return LS_OK;
}

ls_status ls_events_flush(ls_events *events)
{
	return ls_append_commit(&events->file);
}

int ls_events_share(const ls_events *events)
{
	return ls_append_share(&events->file);
}

void ls_events_close(ls_events *events)
{
	if (!events)
		return;
	ls_append_close(&events->file);
	free(events);
}
