/*
 * Any bytes as the run.json that a resumed run finds: its settings are a JSON object or refused; damage is put aside,
 * and what is there afterwards is whole.
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
	if (ls_run_settings(fuzz_directory(), &settings) == LS_OK) {
		json_t *object = json_loads(settings, 0, NULL);
		fuzz_require(json_is_object(object));
		json_decref(object);
		free(settings);
	}
	fuzz_require(ls_run_describe(fuzz_directory(), "{}", "xsmm", "avx2", 1) == LS_OK);
	json_t *whole = json_load_file(fuzz_path("run.json"), JSON_REJECT_DUPLICATES, NULL);
	fuzz_require(json_is_array(json_object_get(whole, "resumes")));
	json_decref(whole);
	fuzz_empty(fuzz_directory());
	return 0;
}
