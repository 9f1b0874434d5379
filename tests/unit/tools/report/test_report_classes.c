/*
 * eval.json and the log of a run, as the report reads them: what is there, what is refused, and by which name.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tools/report/class_metrics.h"
#include "tools/report/run_log.h"
#include "unit/assert_status.h"
#include "unit/temp_dir.h"
#include "unit/test_main.h"

#define HEAD "{\"format\": \"lockstep class metrics\", \"version\": 1, \"samples\": 5, \"loss\": 0.5, \"accuracy\": 0.8"
#define ROW "{\"support\": 3, \"precision\": 1, \"recall\": 0.5, \"f1\": 0.6}"

static ls_status parse(ls_class_metrics *m, const char *text)
{
	return ls_class_metrics_parse(m, text, strlen(text), "eval.json");
}

static void test_classes(void **state)
{
	ls_class_metrics m = { 0 };
	char text[1024], name[200];
	(void)state;
	memset(name, 'x', sizeof(name));
	memcpy(name + LS_CLASS_NAME - 2, "é", 2); /* a character that a cut name would end inside of */
	name[sizeof(name) - 1] = '\0';
	snprintf(text, sizeof(text),
		 HEAD ", \"data\": \"pets\", \"top\": 2, \"top_accuracy\": 1, \"classes\": [" ROW
		      ", {\"name\": \"%s\", \"support\": 2, \"precision\": 0, \"recall\": 1, \"f1\": 0.6}], "
		      "\"confusion\": [[2, 1], [0, 2]]}",
		 name);
	assert_ok(parse(&m, text));
	assert_int_equal(m.count, 2);
	assert_string_equal(m.classes[0].name, "0");
	assert_int_equal(strlen(m.classes[1].name), LS_CLASS_NAME - 2);
	assert_int_equal(m.confusion[1], 1);
	assert_int_equal(m.confusion[2], 0);
	assert_true(m.top_accuracy == 1 && isnan(m.perplexity));
	ls_class_metrics_release(&m);
	assert_ok(parse(&m, HEAD ", \"perplexity\": 12.5}"));
	assert_true(m.count == 0 && m.perplexity == 12.5);
	ls_class_metrics_release(&m);
}

static void test_refused(void **state)
{
	static const struct {
		const char *text, *message;
	} rows[] = {
		{ "[]", "eval.json: not a lockstep class metrics" },
		{ "{\"format\": \"lockstep class metrics\", \"version\": 2}",
		  "version is 2; this program reads 1 to 1" },
		{ "{\"format\": \"lockstep class metrics\", \"version\": 1}", "eval.json: samples is missing" },
		{ HEAD ", \"classes\": [" ROW "]}", "confusion has 0 rows, and there are 1 classes" },
		{ HEAD ", \"classes\": [" ROW "], \"confusion\": [[1, 2]]}", "confusion[0] has 2 numbers" },
		{ HEAD ", \"classes\": [" ROW "], \"confusion\": [[-1]]}",
		  "confusion[0][0] is not a number of the 5 samples" },
		{ HEAD ", \"classes\": [" ROW "], \"confusion\": [[6]]}",
		  "confusion[0][0] is not a number of the 5 samples" },
		{ HEAD ", \"classes\": [{\"support\": 1}]}", "classes[0].precision is missing" },
	};
	ls_class_metrics m = { 0 };
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_fails(parse(&m, rows[i].text), LS_EFORMAT, rows[i].message);
}

static void put(const char *dir, const char *name, const char *text)
{
	put_file(in_dir(dir, name), text, strlen(text));
}

#define TEST(step, epoch, more)                                                                                        \
	"{\"kind\": \"test\", \"step\": " #step ", \"loss\": 1, \"accuracy\": 0.5, \"epoch\": " #epoch more "}\n"
#define EPOCH(step, epoch)                                                                                             \
	"{\"kind\": \"epoch\", \"step\": " #step ", \"loss\": 1, \"accuracy\": 0.5, \"epoch\": " #epoch "}\n"

static void test_log(void **state)
{
	ls_run_log log = { 0 };

	assert_ok(ls_run_log_read(&log, *state)); /* nothing there yet */
	assert_true(log.tests.count == 0 && log.classes.samples == 0 && ls_run_log_best(&log) == SIZE_MAX);
	put(*state, "metrics.jsonl",
	    "{\"kind\": \"step\", \"step\": 5, \"loss\": 2, \"lr\": 0.25}\n" EPOCH(10, 0) TEST(
		    10, 0, ", \"is_best\": 1") EPOCH(20, 1) TEST(20, 1, ", \"is_best\": 1, \"f1\": 0.75") EPOCH(30, 2)
		    TEST(30, 2, ", \"is_best\": 0") "{\"kind\": \"early_stop\", \"step\": 30, \"best\": 1}\n");
	put(*state, "eval.json", HEAD "}");
	assert_ok(ls_run_log_read(&log, *state));
	assert_true(log.steps.count == 1 && log.steps.rows[0].lr == 0.25 && isnan(log.steps.rows[0].f1));
	assert_true(log.epochs.count == 3 && log.tests.count == 3 && log.tests.rows[1].f1 == 0.75);
	assert_int_equal(ls_run_log_best(&log), 1);
	assert_int_equal(log.stopped_step, 30);
	assert_true(!log.by_steps && log.classes.samples == 5);
	ls_run_log_release(&log);

	/* it went on, and was tested inside of an epoch */
	put(*state, "metrics.jsonl",
	    EPOCH(10, 0) TEST(10, 0, "") "{\"kind\": \"early_stop\", \"step\": 10}\n" TEST(15, 1, ""));
	assert_ok(ls_run_log_read(&log, *state));
	assert_true(log.stopped_step == 0 && log.by_steps);
	ls_run_log_release(&log);
	put(*state, "eval.json", "{}");
	assert_fails(ls_run_log_read(&log, *state), LS_EFORMAT, "eval.json: not a lockstep class metrics");
}

TEST_MAIN_EACH(temp_dir_make, temp_dir_remove, test_classes, test_refused, test_log)
