/*
 * Any bytes as lines and as CSV, plain or gzip: records that fit the limit, or errors that name a line. The first byte
 * chooses.
 */
#include "data/readers/records.h"
#include "fuzz/common.h"

enum { MOST = 4096 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	ls_stream *stream = NULL;
	ls_records *records = NULL;
	ls_record record;
	uint64_t line = 0, last = 0;
	int found = 1;
	if (size < 1)
		return 0;
	const char *path = fuzz_path("records");
	fuzz_write(path, data + 1, size - 1);
	fuzz_require(ls_stream_open(&stream, path) == LS_OK);
	fuzz_require(ls_records_new(&records, stream, "\0,;\t"[data[0] & 3], MOST) == LS_OK);
	while (found) {
		ls_status status = ls_records_next(records, &record, &found, &line);
		fuzz_require(line >= last);
		last = line;
		if (status != LS_OK && !strstr(ls_last_error(), "records:"))
			fuzz_require(0);
		if (status != LS_OK && strstr(ls_last_error(), "gzip"))
			break;
		if (status != LS_OK) {
			found = 1;
			continue;
		}
		for (size_t i = 0; found && i < record.fields; i++)
			fuzz_require(record.bytes[i] <= MOST && record.field[i][record.bytes[i]] == '\0');
	}
	ls_records_free(records);
	ls_stream_close(stream);
	return 0;
}
