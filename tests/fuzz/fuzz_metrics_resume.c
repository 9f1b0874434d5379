/*
 * Any bytes as the metrics.jsonl that a resumed run finds: torn lines and those of steps to be done again go, and what
 * is there afterwards is whole.
 */
#include <jansson.h>
#include <string.h>

#include "base/log.h"
#include "fuzz/common.h"
#include "metrics/metrics.h"

enum { STEP = 100 };

static int is_about_nodes(const json_t *object)
{
	const char *kind = json_string_value(json_object_get(object, "kind"));
	return kind &&
	       (!strcmp(kind, LS_METRICS_START) || !strcmp(kind, LS_METRICS_STOP) || !strcmp(kind, LS_METRICS_HOST));
}

/* Every line is a JSON object, and of no step that is done again. */
static void check_lines(void)
{
	FILE *file = fopen(fuzz_path("metrics.jsonl"), "r");
	char *line = NULL;
	size_t room = 0;
	fuzz_require(file != NULL);
	for (ssize_t bytes; (bytes = getline(&line, &room, file)) > 0;) {
		fuzz_require(line[bytes - 1] == '\n');
		json_t *object = json_loadb(line, (size_t)bytes, 0, NULL);
		const json_t *step = json_object_get(object, "step");
		fuzz_require(json_is_object(object));
		fuzz_require(is_about_nodes(object) || !json_is_integer(step) || json_integer_value(step) <= STEP);
		json_decref(object);
	}
	free(line);
	fclose(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	ls_metrics *metrics;
	ls_log_set_level(LS_LOG_ERROR);
	fuzz_write(fuzz_path("metrics.jsonl"), data, size);
	fuzz_require(ls_metrics_open(&metrics, fuzz_directory(), STEP) == LS_OK);
	ls_metrics_close(metrics);
	check_lines();
	fuzz_empty(fuzz_directory());
	return 0;
}
