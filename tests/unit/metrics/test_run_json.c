/* run.json. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <jansson.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "metrics/metrics.h"
#include "unit/metrics/scratch.h"
#include "unit/test_main.h"

static json_t *load(void)
{
	json_error_t error;
	json_t *run = json_load_file(scratch_path("run/run.json"), JSON_REJECT_DUPLICATES, &error);
	assert_non_null(run);
	return run;
}

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));
	assert_non_null(text);
	return text;
}

static void describe(const char *settings, int resumed)
{
	char run[1024];
	snprintf(run, sizeof(run), "%s", scratch_path("run"));
	assert_int_equal(ls_run_describe(run, settings, "portable", "avx2", resumed), LS_OK);
}

static void assert_start(const json_t *start, double lr)
{
	struct tm utc;
	char host[256] = "";
	const json_t *machine = json_object_get(start, "machine");
	gethostname(host, sizeof(host) - 1);
	assert_string_equal(text_of(start, "lockstep"), ls_version());
	assert_string_equal(text_of(start, "kernels"), "portable");
	assert_string_equal(text_of(start, "isa"), "avx2");
	assert_true(strlen(text_of(start, "compiler")) > 4);
	const char *end = strptime(text_of(start, "started"), "%Y-%m-%dT%H:%M:%SZ", &utc);
	assert_true(end && *end == '\0');
	assert_true(llabs((long long)(timegm(&utc) - time(NULL))) < 100);
	assert_true(json_real_value(json_object_get(json_object_get(start, "settings"), "lr")) == lr);
	assert_string_equal(text_of(machine, "hostname"), host);
	assert_int_equal(strncmp(text_of(machine, "kernel"), "Linux ", 6), 0);
	assert_true(json_integer_value(json_object_get(machine, "memory_bytes")) > 1 << 26);
	assert_true(json_integer_value(json_object_get(machine, "threads")) >= 1);
	assert_non_null(json_object_get(machine, "cpu"));
	assert_non_null(json_object_get(json_object_get(machine, "cache_bytes"), "L2"));
}

static void test_fresh_and_resumed(void **state)
{
	(void)state;
	size_t bytes;
	double odd = 0.1 + 0.2;
	describe("{\"lr\": 0.1, \"model\": \"cnn\"}", 0);
	char *text = scratch_read(scratch_path("run/run.json"), &bytes);
	assert_non_null(strstr(text, "\"lr\": 0.1,")); /* as people write it */
	free(text);
	json_t *run = load();
	assert_start(run, 0.1);
	assert_int_equal(json_array_size(json_object_get(run, "resumes")), 0);
	json_decref(run);

	describe("{\"lr\": 0.30000000000000004}", 1);
	describe("{\"lr\": 0.25}", 1);
	run = load();
	assert_start(run, 0.1);
	assert_int_equal(json_array_size(json_object_get(run, "resumes")), 2);
	assert_start(json_array_get(json_object_get(run, "resumes"), 0), odd); /* no bit lost */
	assert_start(json_array_get(json_object_get(run, "resumes"), 1), 0.25);
	json_decref(run);

	describe("{\"lr\": 0.5}", 0); /* a new run in the same place */
	run = load();
	assert_start(run, 0.5);
	assert_int_equal(json_array_size(json_object_get(run, "resumes")), 0);
	json_decref(run);
}

static void test_refusals(void **state)
{
	(void)state;
	char run[1024];
	size_t bytes;
	snprintf(run, sizeof(run), "%s", scratch_path("run"));
	assert_int_equal(ls_run_describe(run, "[1]", "xsmm", "avx2", 0), LS_EINVALID);
	assert_int_equal(ls_run_describe(run, "{", "xsmm", "avx2", 0), LS_EINVALID);
	assert_int_equal(ls_run_describe(NULL, "{", "xsmm", "avx2", 0), LS_OK); /* no run directory, nothing to do */

	FILE *stream = fopen(scratch_path("run/run.json"), "w");
	assert_non_null(stream);
	fputs("{\"lockstep\": ", stream);
	fclose(stream);
	char *settings = NULL;
	assert_int_equal(ls_run_settings(run, 0, &settings), LS_EFORMAT);
	assert_non_null(strstr(ls_last_error(), "run.json"));
	ls_log_set_level(LS_LOG_ERROR);
	describe("{\"lr\": 0.125}", 1); /* damage does not stop a run from going on */
	ls_log_set_level(LS_LOG_INFO);
	assert_int_equal(ls_run_settings(run, 0, &settings), LS_OK);
	assert_string_equal(settings, "{\"lr\": 0.125}");
	free(settings);
	char *text = scratch_read(scratch_path("run/run.json.aside"), &bytes);
	assert_string_equal(text, "{\"lockstep\": "); /* left for the user to look at */
	free(text);
}

/* A file of a later version is neither read nor replaced; what an unknown field says stays. */
static void test_later_format(void **state)
{
	(void)state;
	static const char later[] = "{\"format\": 2, \"settings\": {\"lr\": 1}}";
	char run[1024], *settings = NULL;
	size_t bytes;
	snprintf(run, sizeof(run), "%s", scratch_path("run"));
	describe("{\"lr\": 0.5}", 0);
	FILE *stream = fopen(scratch_path("run/run.json"), "w");
	assert_non_null(stream);
	fputs(later, stream);
	fclose(stream);
	assert_int_equal(ls_run_describe(run, "{\"lr\": 1}", "xsmm", "avx2", 1), LS_EUNSUPPORTED);
	assert_non_null(strstr(ls_last_error(), "later version"));
	assert_int_equal(ls_run_settings(run, 0, &settings), LS_EUNSUPPORTED);
	char *text = scratch_read(scratch_path("run/run.json"), &bytes);
	assert_string_equal(text, later);
	free(text);

	stream = fopen(scratch_path("run/run.json"),
		       "w"); /* of a version that wrote no format, with a field of its own */
	assert_non_null(stream);
	fputs("{\"settings\": {\"lr\": 1}, \"mine\": 7}", stream);
	fclose(stream);
	describe("{\"lr\": 2}", 1);
	json_t *again = load();
	assert_int_equal(json_integer_value(json_object_get(again, "mine")), 7);
	assert_int_equal(json_array_size(json_object_get(again, "resumes")), 1);
	json_decref(again);
}

TEST_MAIN_GROUP(scratch_make, scratch_remove, test_fresh_and_resumed, test_refusals, test_later_format)
