/*
 * The hosts of an elastic run on its page: a bar per host and start, marks with their reasons, a table of
 * starts; names of hosts are text.
 */
#include <lockstep/report.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit/assert_status.h"
#include "unit/temp_dir.h"
#include "unit/test_main.h"

static const char run[] =
	"{\"lockstep\": \"0.1.0\", \"settings\": {\"version\": 2, \"model\": \"cnn\", \"data\": \"glyphs\", "
	"\"samples\": 64, "
	"\"epochs\": 1, \"batch\": 32, \"devices\": 1, \"threads\": 1, \"servers\": 0}, \"machine\": {}}";
static const char metrics[] =
	"{\"kind\": \"start\", \"step\": 0, \"time\": 100, \"generation\": 1, \"nodes\": 2, \"devices\": 2, \"hosts\": "
	"\"a:1,<b>:1\", "
	"\"source\": \"new\"}\n"
	"{\"kind\": \"step\", \"step\": 5, \"time\": 102, \"loss\": 1, \"samples_per_s\": 10}\n"
	"{\"kind\": \"stop\", \"step\": 0, \"time\": 104, \"outcome\": \"lost\", \"why\": \"node 1 was ended\"}\n"
	"{\"kind\": \"host\", \"step\": 0, \"time\": 104, \"host\": \"<b>\", \"event\": \"lost\", \"why\": \"a "
	"\\\"signal\\\"\"}\n"
	"{\"kind\": \"host\", \"step\": 0, \"time\": 105, \"host\": \"<b>\", \"event\": \"back\"}\n"
	"{\"kind\": \"start\", \"step\": 5, \"time\": 106, \"generation\": 2, \"nodes\": 1, \"devices\": 1, \"hosts\": "
	"\"a:1\", "
	"\"source\": \"snapshot\", \"steps_again\": 3}\n"
	"{\"kind\": \"step\", \"step\": 9, \"time\": 110, \"loss\": 1, \"samples_per_s\": 10}\n";

/* The page; freed by the caller. */
static char *page_of(const char *dir, const char *lines)
{
	ls_report_options options = LS_REPORT_OPTIONS_INIT;
	ls_report_result result;
	char *text = calloc(1, 1 << 20);
	put_file(in_dir(dir, "run.json"), run, strlen(run));
	put_file(in_dir(dir, "metrics.jsonl"), lines, strlen(lines));
	options.paths = &dir;
	options.path_count = 1;
	assert_ok(ls_report_write(&options, &result));
	FILE *file = fopen(result.path, "r");
	assert_true(text && file && fread(text, 1, (1 << 20) - 1, file) > 0);
	fclose(file);
	return text;
}

static size_t count_of(const char *text, const char *part)
{
	size_t count = 0;
	for (const char *at = text; (at = strstr(at, part)); at += strlen(part))
		count++;
	return count;
}

static void test_elastic_run(void **state)
{
	static const char *const parts[] = {
		"hosts over time</h3>",
		"2 starts, 1 of which ended because a node was lost; 3 steps computed again",
		"Nodes trained for 8.0 of 10.0 s (80.0 %).",
		"data-marks=\"5\"",
		"<title>a: start 2, 1 node, 4.0 s, steps 5 to 9, from snapshots in memory</title>",
		"<title>&lt;b&gt; was lost after 4.0 s: a &quot;signal&quot;</title>",
		"<title>&lt;b&gt; came back after 5.0 s</title>",
		"node 1 was ended",
	};
	char *page = page_of(*state, metrics);
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (!strstr(page, parts[i]))
			fail_msg("the page has no %s", parts[i]);
	assert_null(strstr(page, "<b>"));
	assert_int_equal(count_of(page, "<g class=\"pt\"><rect class=\"part p0\""), 3);
	free(page);
}

static void test_other_runs(void **state)
{
	char *page = page_of(*state, strrchr(metrics, '{'));
	assert_null(strstr(page, "hosts over time"));
	free(page);
	page = page_of(
		*state,
		"{\"kind\": \"start\", \"step\": 0, \"generation\": 1}\n"); /* an older one, which names no hosts */
	assert_non_null(strstr(page, "hosts over time"));
	assert_null(strstr(page, "Hosts of"));
	free(page);
}

TEST_MAIN_EACH(temp_dir_make, temp_dir_remove, test_elastic_run, test_other_runs)
