/* metrics.jsonl: lines, resume, and what happens when the disk is full. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "metrics/metrics.h"
#include "unit/metrics/scratch.h"
#include "unit/test_main.h"

/* Line `index` of RUN/metrics.jsonl as JSON; NULL past the end. Owned by the caller. */
static json_t *line_at(const char *run, int index)
{
	char path[2048];
	size_t bytes;
	snprintf(path, sizeof(path), "%s/metrics.jsonl", run);
	char *text = scratch_read(path, &bytes), *line = text;
	assert_non_null(text);
	for (; index > 0 && line; index--)
		line = (line = strchr(line, '\n')) ? line + 1 : NULL;
	json_t *object = NULL;
	if (line && *line) {
		char *end = strchr(line, '\n');
		assert_non_null(end);
		object = json_loadb(line, (size_t)(end - line), JSON_REJECT_DUPLICATES, NULL);
		assert_non_null(object);
	}
	free(text);
	return object;
}

static json_int_t step_at(const char *run, int index)
{
	json_t *object = line_at(run, index);
	json_int_t step = object ? json_integer_value(json_object_get(object, "step")) : -1;
	json_decref(object);
	return step;
}

static void record(ls_metrics *metrics, uint64_t step, double loss)
{
	ls_metric values[] = { { "loss", loss }, { "lr", 0.1 } };
	assert_int_equal(ls_metrics_record(metrics, "step", step, values, 2), LS_OK);
}

static void test_lines(void **state)
{
	(void)state;
	char run[1024];
	ls_metrics *metrics = NULL;
	double odd = 0.1 + 0.2;
	snprintf(run, sizeof(run), "%s", scratch_path("lines/deep"));
	assert_int_equal(ls_metrics_open(&metrics, run, 0), LS_OK);
	record(metrics, 200, odd);
	record(metrics, 400, NAN);
	record(metrics, 600, -INFINITY);
	ls_metric strange = { "a \"b\"\\\n", 1e300 };
	assert_int_equal(ls_metrics_record(metrics, "epoch", 600, &strange, 1), LS_OK);

	json_t *line = line_at(run, 0); /* before close or flush: lines are out at once */
	assert_string_equal(json_string_value(json_object_get(line, "kind")), "step");
	assert_int_equal(json_integer_value(json_object_get(line, "step")), 200);
	assert_true(json_real_value(json_object_get(line, "time")) > 1e9);
	assert_true(json_real_value(json_object_get(line, "loss")) == odd);
	assert_true(json_real_value(json_object_get(line, "lr")) == 0.1);
	json_decref(line);
	for (int i = 1; i <= 2; i++) {
		line = line_at(run, i);
		assert_true(json_is_null(json_object_get(line, "loss")));
		json_decref(line);
	}
	line = line_at(run, 3);
	assert_true(json_real_value(json_object_get(line, "a \"b\"\\\n")) == 1e300);
	json_decref(line);
	assert_null(line_at(run, 4));
	assert_int_equal(ls_metrics_flush(metrics), LS_OK);
	ls_metrics_close(metrics);
	assert_int_equal(scratch_count(run, "events.out.tfevents.", NULL), 1);
}

static void append(const char *run, const char *text)
{
	char path[2048];
	snprintf(path, sizeof(path), "%s/metrics.jsonl", run);
	FILE *stream = fopen(path, "a");
	assert_non_null(stream);
	fputs(text, stream);
	fclose(stream);
}

static void test_resume_drops_later_lines(void **state)
{
	(void)state;
	char run[1024];
	ls_metrics *metrics = NULL;
	snprintf(run, sizeof(run), "%s", scratch_path("resume"));
	assert_int_equal(ls_metrics_open(&metrics, run, 0), LS_OK);
	for (uint64_t step = 1; step <= 9; step++)
		record(metrics, step, 1.0);
	ls_metrics_close(metrics);
	append(run, "{\"kind\": \"note\", \"text\": \"mine\"}\n");                             /* not ours to drop */
	append(run, "not json\n{\"kind\": \"step\", \"step\": 5}\n{\"kind\": \"step\", \"st"); /* torn by a kill */

	ls_log_set_level(LS_LOG_ERROR);
	assert_int_equal(ls_metrics_open(&metrics, run, 6), LS_OK);
	ls_log_set_level(LS_LOG_INFO);
	record(metrics, 7, 2.0);
	ls_metrics_close(metrics);
	for (int i = 0; i < 6; i++)
		assert_int_equal(step_at(run, i), i + 1);
	json_t *kept = line_at(run, 6);
	assert_string_equal(json_string_value(json_object_get(kept, "text")), "mine");
	json_decref(kept);
	assert_int_equal(step_at(run, 7), 5);
	assert_int_equal(step_at(run, 8), 7);
	assert_int_equal(step_at(run, 9), -1);
	assert_int_equal(scratch_count(run, "events.out.tfevents.", NULL), 2);
	assert_int_equal(scratch_count(run, "metrics.jsonl", NULL), 1); /* no draft left */

	assert_int_equal(ls_metrics_open(&metrics, run, 0), LS_OK);
	ls_metrics_close(metrics);
	assert_int_equal(step_at(run, 0), -1);
}

static void test_resume_without_a_file(void **state)
{
	(void)state;
	ls_metrics *metrics = NULL;
	char run[1024];
	snprintf(run, sizeof(run), "%s", scratch_path("none"));
	assert_int_equal(ls_metrics_open(&metrics, run, 10), LS_OK);
	record(metrics, 11, 0.0);
	ls_metrics_close(metrics);
	assert_int_equal(step_at(run, 0), 11);
}

static void test_no_run_is_no_op(void **state)
{
	(void)state;
	ls_metrics *metrics = (ls_metrics *)state;
	ls_metric value = { "loss", 1.0 };
	assert_int_equal(ls_metrics_open(&metrics, NULL, 0), LS_OK);
	assert_null(metrics);
	assert_int_equal(ls_metrics_record(metrics, "step", 1, &value, 1), LS_OK);
	assert_int_equal(ls_metrics_flush(metrics), LS_OK);
	ls_metrics_close(metrics);
}

static void test_unwritable(void **state)
{
	(void)state;
	char file[1024];
	ls_metrics *metrics = NULL;
	snprintf(file, sizeof(file), "%s", scratch_path("a-file"));
	FILE *stream = fopen(file, "w");
	assert_non_null(stream);
	fclose(stream);
	assert_int_equal(ls_metrics_open(&metrics, file, 0), LS_EIO);
	assert_null(metrics);
	assert_non_null(strstr(ls_last_error(), file));
}

static void limit_file_size(rlim_t bytes)
{
	struct rlimit limit;
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	limit.rlim_cur = bytes;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* A file-size limit stands in for a full disk. The file keeps whole lines, and goes on when there is room
 * again. */
static void test_full_disk_is_reported(void **state)
{
	(void)state;
	ls_metrics *metrics = NULL;
	char run[1024];
	ls_metric value = { "loss", 0.5 };
	ls_status status = LS_OK;
	uint64_t step = 0;
	snprintf(run, sizeof(run), "%s", scratch_path("full"));
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(ls_metrics_open(&metrics, run, 0), LS_OK);
	limit_file_size(2000);
	while (status == LS_OK && step < 100)
		status = ls_metrics_record(metrics, "step", ++step, &value, 1);
	limit_file_size(RLIM_INFINITY);
	assert_int_equal(status, LS_EIO);
	assert_true(step > 5 && step < 100);
	assert_non_null(strstr(ls_last_error(), "metrics.jsonl"));
	assert_non_null(strstr(ls_last_error(), strerror(EFBIG)));
	assert_int_equal(ls_metrics_record(metrics, "step", step + 1, &value, 1), LS_OK);
	ls_metrics_close(metrics);
	for (uint64_t i = 1; i < step; i++)
		assert_int_equal(step_at(run, (int)i - 1), i);
	assert_int_equal(step_at(run, (int)step - 1), step + 1); /* only the line that was refused is missing */
	assert_int_equal(step_at(run, (int)step), -1);
}

/* What happened to nodes stays, whichever steps are done again, also from the very beginning. */
static void test_lines_about_nodes(void **state)
{
	static const ls_metric_text texts[] = { { "host", "b" }, { "why", "\"caf\xc3\xa9\" \xff\n" } };
	static const ls_metric value = { "nodes", 3 };
	char run[1024];
	ls_metrics *metrics = NULL;
	uint64_t reached = 7;
	(void)state;
	snprintf(run, sizeof(run), "%s", scratch_path("nodes"));
	assert_int_equal(ls_metrics_append(run, "host", 1.5, texts, 2), LS_OK); /* no run yet: nothing is made */
	assert_int_equal(access(run, F_OK), -1);
	assert_int_equal(ls_metrics_open(&metrics, run, 0), LS_OK);
	assert_int_equal(ls_metrics_record_texts(metrics, LS_METRICS_START, 0, texts, 1, &value, 1), LS_OK);
	record(metrics, 4, 1.0);
	assert_int_equal(ls_metrics_record_texts(metrics, LS_METRICS_START, 4, texts, 1, &value, 1), LS_OK);
	record(metrics, 9, 1.0);
	ls_metrics_close(metrics);
	append(run, "{\"kind\": \"step\", \"st"); /* a node was killed while it wrote */
	assert_int_equal(ls_metrics_append(run, LS_METRICS_HOST, 1.5, texts, 2), LS_OK);
	assert_int_equal(ls_metrics_append(run, LS_METRICS_STOP, 2.5, texts, 1), LS_OK);
	json_t *line = line_at(run, 4);
	assert_true(json_real_value(json_object_get(line, "time")) == 1.5);
	assert_string_equal(json_string_value(json_object_get(line, "why")), "\"caf??\" ?\n");
	json_decref(line);

	assert_int_equal(ls_metrics_continue(&metrics, run, 3, &reached), LS_OK);
	ls_metrics_close(metrics);
	assert_int_equal(reached, 9);
	line = line_at(run, 1); /* step 4 has gone, the start at step 4 has not */
	assert_int_equal(json_integer_value(json_object_get(line, "nodes")), 3);
	json_decref(line);
	assert_null(line_at(run, 4));
	assert_int_equal(ls_metrics_continue(&metrics, run, 0, &reached), LS_OK);
	ls_metrics_close(metrics);
	assert_int_equal(reached, 0);
	line = line_at(run, 3);
	assert_string_equal(json_string_value(json_object_get(line, "kind")), LS_METRICS_STOP);
	json_decref(line);
	assert_int_equal(ls_metrics_open(&metrics, run, 0), LS_OK); /* another run */
	ls_metrics_close(metrics);
	assert_null(line_at(run, 0));
}

TEST_MAIN_GROUP(scratch_make, scratch_remove, test_lines, test_resume_drops_later_lines, test_lines_about_nodes,
		test_resume_without_a_file, test_no_run_is_no_op, test_unwritable, test_full_disk_is_reported)
