/*
 * What happened to hosts waits for the run's metrics.jsonl, and is then written there in order, once.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cluster/host_log.h"
#include "unit/temp_dir.h"
#include "unit/test_main.h"

static void read_text(const char *dir, char *out, size_t size)
{
	FILE *file = fopen(in_dir(dir, "metrics.jsonl"), "r");
	assert_non_null(file);
	out[fread(out, 1, size - 1, file)] = '\0';
	fclose(file);
}

static void waits_for_the_run(void **state)
{
	ls_host_log t = { 0 };
	char text[1024];
	ls_host_log_stop(&t, 10, "lost", "node 1 (b) was ended");
	ls_host_log_host(&t, 10, "b", "lost", "");
	ls_host_log_write(&t, *state);
	assert_int_equal(t.count, 2);
	assert_int_equal(access(in_dir(*state, "metrics.jsonl"), F_OK), -1);
	put_file(in_dir(*state, "metrics.jsonl"), "", 0);
	ls_host_log_write(&t, *state);
	ls_host_log_write(&t, *state);
	read_text(*state, text, sizeof(text));
	assert_string_equal(
		text,
		"{\"kind\": \"stop\", \"step\": 0, \"time\": 10.000, \"outcome\": \"lost\", \"why\": \"node 1 (b) was "
		"ended\"}\n{\"kind\": \"host\", \"step\": 0, \"time\": 10.000, \"host\": \"b\", \"event\": "
		"\"lost\"}\n");
	ls_host_log_release(&t);
}

TEST_MAIN_EACH(temp_dir_make, temp_dir_remove, waits_for_the_run)
