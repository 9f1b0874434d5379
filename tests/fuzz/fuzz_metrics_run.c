/*
 * Any bytes as the run.json that a resumed run finds: its settings are a JSON object or refused; damage is put aside,
 * and what is there afterwards is whole. A file of a later version stays as it is.
 */
#include <jansson.h>

#include "base/log.h"
#include "fuzz/common.h"
#include "metrics/metrics.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *settings = NULL;
	ls_log_set_level(LS_LOG_ERROR);
	setenv("HWLOC_SYNTHETIC", "core:1 pu:1", 1); /* looking at the machine takes ten times as long as all else */
	fuzz_write(fuzz_path("run.json"), data, size);
	if (ls_run_settings(fuzz_directory(), size & 1, &settings) == LS_OK) {
		json_t *object = json_loads(settings, 0, NULL);
		fuzz_require(json_is_object(object));
		json_decref(object);
		free(settings);
	}
	ls_status status = ls_run_describe(fuzz_directory(), "{}", "xsmm", "avx2", 1);
	fuzz_require(status == LS_OK || status == LS_EUNSUPPORTED); /* of a later version: it is left as it is */
	if (status == LS_OK) {
		ls_status ended = ls_run_conclude(fuzz_directory(), 1, 2);
		fuzz_require(ended == LS_OK);
	}
	json_t *whole = json_load_file(fuzz_path("run.json"), JSON_REJECT_DUPLICATES, NULL);
	fuzz_require(status != LS_OK || (json_is_array(json_object_get(whole, "resumes")) &&
					 json_is_object(json_object_get(whole, "end"))));
	json_decref(whole);
	fuzz_empty(fuzz_directory());
	return 0;
}
