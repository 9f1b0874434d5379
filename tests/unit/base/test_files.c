/*
 * Paths, drafts that are whole or absent, and maps.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"

static char dir[256], path[512];

static int make_dir(void **state)
{
	(void)state;
	const char *parent = getenv("TMPDIR");
	int length = snprintf(dir, sizeof dir, "%s/ls-files-XXXXXX", parent ? parent : "/tmp");
	return length > 0 && (size_t)length < sizeof dir && mkdtemp(dir) &&
			       ls_path_join(path, sizeof path, dir, "file") == LS_OK
		       ? 0
		       : -1;
}

static int remove_dir(void **state)
{
	(void)state;
	return ls_path_remove_tree(dir) == LS_OK ? 0 : -1;
}

static void check_content(const char *expected)
{
	ls_file_map map;
	assert_int_equal(ls_file_map_open(&map, path), LS_OK);
	assert_int_equal(map.bytes, strlen(expected));
	if (map.bytes)
		assert_memory_equal(map.data, expected, map.bytes);
	ls_file_map_close(&map);
}

static ls_status write_file(const char *text)
{
	ls_file_draft draft;
	LS_TRY(ls_file_begin(&draft, path));
	if (ls_file_write(&draft, text, strlen(text)) != LS_OK) {
		ls_file_abandon(&draft);
		return LS_EIO;
	}
	return ls_file_publish(&draft);
}

static void joins(void **state)
{
	(void)state;
	char out[10];
	assert_int_equal(ls_path_join(out, sizeof out, "a", "b"), LS_OK);
	assert_string_equal(out, "a/b");
	assert_int_equal(ls_path_join(out, sizeof out, "a/", "b"), LS_OK);
	assert_string_equal(out, "a/b");
	assert_int_equal(ls_path_join(out, sizeof out, "/", "b"), LS_OK);
	assert_string_equal(out, "/b");
	assert_int_equal(ls_path_join(out, sizeof out, "", "b"), LS_OK);
	assert_string_equal(out, "b");
	assert_int_equal(ls_path_join(out, sizeof out, "1234", "5678"), LS_OK);
	assert_int_equal(ls_path_join(out, sizeof out, "12345", "6789"), LS_EINVALID);
}

static void makes_and_removes_trees(void **state)
{
	(void)state;
	char deep[512], file[1024];
	assert_int_equal(ls_path_join(deep, sizeof deep, dir, "a/b//c/"), LS_OK);
	assert_int_equal(ls_path_make(deep), LS_OK);
	assert_int_equal(ls_path_make(deep), LS_OK);
	assert_true(ls_path_is_directory(deep));
	assert_int_equal(ls_path_join(file, sizeof file, deep, "f"), LS_OK);
	fclose(fopen(file, "w"));
	assert_true(ls_path_exists(file));
	assert_false(ls_path_is_directory(file));
	assert_int_equal(ls_path_make(file), LS_EIO); /* a file is in the way */
	assert_non_null(strstr(ls_last_error(), file));
	assert_int_equal(ls_path_join(deep, sizeof deep, dir, "a"), LS_OK);
	assert_int_equal(symlink(dir, path), 0); /* removed as a link, not followed */
	assert_int_equal(ls_path_remove_tree(deep), LS_OK);
	assert_false(ls_path_exists(deep));
	assert_int_equal(ls_path_remove_tree(path), LS_OK);
	assert_true(ls_path_is_directory(dir));
	assert_int_equal(ls_path_remove_tree(deep), LS_OK);
	assert_int_equal(ls_path_sync(dir), LS_OK);
	assert_int_equal(ls_path_make(""), LS_EINVALID);
}

static void a_draft_is_seen_when_published(void **state)
{
	(void)state;
	ls_file_draft draft;
	assert_int_equal(ls_file_begin(&draft, path), LS_OK);
	assert_int_equal(ls_file_write(&draft, "new", 3), LS_OK);
	assert_int_equal(ls_file_write(&draft, NULL, 0), LS_OK);
	assert_false(ls_path_exists(path));
	assert_int_equal(ls_file_publish(&draft), LS_OK);
	ls_file_abandon(&draft);
	check_content("new");
	assert_false(ls_path_exists(draft.draft));
	assert_int_equal(write_file("newer and longer"), LS_OK);
	check_content("newer and longer");
	assert_int_equal(write_file(""), LS_OK);
	check_content("");
}

static void an_abandoned_draft_changes_nothing(void **state)
{
	(void)state;
	assert_int_equal(write_file("old"), LS_OK);
	ls_file_draft draft;
	assert_int_equal(ls_file_begin(&draft, path), LS_OK);
	assert_int_equal(ls_file_write(&draft, "half", 4), LS_OK);
	ls_file_abandon(&draft);
	ls_file_abandon(&draft);
	assert_false(ls_path_exists(draft.draft));
	check_content("old");
}

/* A killed writer leaves its draft; the next one starts from nothing, not from what is in there. */
static void leftovers_are_overwritten(void **state)
{
	(void)state;
	char left[1024];
	snprintf(left, sizeof left, "%s.draft", path);
	FILE *file = fopen(left, "w");
	assert_non_null(file);
	fputs("a long leftover of a writer that was killed", file);
	fclose(file);
	assert_int_equal(write_file("ok"), LS_OK);
	check_content("ok");
}

static void two_writers_do_not_mix(void **state)
{
	(void)state;
	ls_file_draft first, second;
	assert_int_equal(ls_file_begin(&first, path), LS_OK);
	assert_int_equal(ls_file_begin(&second, path), LS_EIO);
	assert_non_null(strstr(ls_last_error(), "another"));
	ls_file_abandon(&second);
	assert_int_equal(ls_file_write(&first, "1", 1), LS_OK);
	assert_int_equal(ls_file_publish(&first), LS_OK);
	check_content("1");
}

static void errors_name_the_file(void **state)
{
	(void)state;
	ls_file_draft draft;
	char absent[512];
	assert_int_equal(ls_path_join(absent, sizeof absent, dir, "no/such"), LS_OK);
	assert_int_equal(ls_file_begin(&draft, absent), LS_EIO);
	assert_non_null(strstr(ls_last_error(), "no/such"));
	ls_file_abandon(&draft);
	ls_file_map map = { (const uint8_t *)"x", 1 };
	assert_int_equal(ls_file_map_open(&map, absent), LS_ENOTFOUND);
	assert_non_null(strstr(ls_last_error(), "no/such"));
	assert_int_equal(ls_file_map_open(&map, dir), LS_EIO);
	assert_int_equal(map.bytes, 1); /* untouched on failure */
}

/* Every write to /dev/full fails as on a full disk, some as late as at the flush. */
static void a_full_disk_is_reported_and_the_old_file_stays(void **state)
{
	(void)state;
	if (access("/dev/full", W_OK) != 0) {
		print_message("no /dev/full\n");
		skip();
	}
	assert_int_equal(write_file("old"), LS_OK);
	char link[1024];
	snprintf(link, sizeof link, "%s.draft", path);
	assert_int_equal(symlink("/dev/full", link), 0);
	ls_file_draft draft;
	ls_status status = ls_file_begin(&draft, path);
	if (status == LS_OK && (status = ls_file_write(&draft, "text", 4)) == LS_OK)
		status = ls_file_publish(&draft);
	else
		ls_file_abandon(&draft);
	assert_int_equal(status, LS_EIO);
	check_content("old");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(joins),
		cmocka_unit_test_setup_teardown(makes_and_removes_trees, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(a_draft_is_seen_when_published, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(an_abandoned_draft_changes_nothing, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(leftovers_are_overwritten, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(two_writers_do_not_mix, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(errors_name_the_file, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(a_full_disk_is_reported_and_the_old_file_stays, make_dir, remove_dir),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
