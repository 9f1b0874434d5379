/*
 * Text from files cannot become markup, and numbers read as people write them.
 */
#include "tools/report/text.h"
#include "unit/test_main.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static void expect_put(void (*put)(FILE *, const char *), const char *text, const char *expected)
{
	char *out = NULL;
	size_t bytes = 0;
	FILE *to = open_memstream(&out, &bytes);
	assert_non_null(to);
	put(to, text);
	assert_int_equal(fclose(to), 0);
	assert_string_equal(out, expected);
	free(out);
}

static void test_html(void **state)
{
	(void)state;
	expect_put(ls_write_html, "resnet18", "resnet18");
	expect_put(ls_write_html, "<b a=\"1\" c='2'>&", "&lt;b a=&quot;1&quot; c=&#39;2&#39;&gt;&amp;");
	expect_put(ls_write_html,
		   "a\nb\x01"
		   "c\x7f",
		   "a b c ");
	expect_put(ls_write_html, "2 × 4", "2 × 4");
}

static void test_markdown(void **state)
{
	(void)state;
	expect_put(ls_write_markdown, "resnet18-128batch_size", "resnet18-128batch_size");
	expect_put(ls_write_markdown, "_em_ a_b", "\\_em\\_ a_b");
	expect_put(ls_write_markdown, "a|b", "a\\|b");
	expect_put(ls_write_markdown, "**x** `y` ~~z~~ \\", "\\*\\*x\\*\\* \\`y\\` \\~\\~z\\~\\~ \\\\");
	expect_put(ls_write_markdown, "838.2 *", "838.2 *");
	expect_put(ls_write_markdown, "* no item", "\\* no item");
	expect_put(ls_write_markdown, "gn[01-03]", "gn[01-03]");
	expect_put(ls_write_markdown, "[y](u) [y][u] [y]: u", "[y\\](u) [y\\][u] [y\\]: u");
	expect_put(ls_write_markdown, "<script>&amp;\n# h", "&lt;script&gt;&amp;amp; # h");
}

static void test_numbers(void **state)
{
	char text[LS_NUMBER_TEXT];
	(void)state;
	assert_string_equal(ls_number_text(text, 4456), "4456.0");
	assert_string_equal(ls_number_text(text, 198.384), "198.38");
	assert_string_equal(ls_number_text(text, 1.6479), "1.648");
	assert_string_equal(ls_number_text(text, 0.0123), "0.01230");
	assert_string_equal(ls_number_text(text, 2.5e12), "2.5e+12");
	assert_string_equal(ls_number_text(text, NAN), "-");
	assert_string_equal(ls_short_text(text, 0), "0");
	assert_string_equal(ls_short_text(text, 2000), "2000");
	assert_string_equal(ls_short_text(text, 15000), "15k");
	assert_string_equal(ls_short_text(text, 2.5e6), "2.5M");
	assert_string_equal(ls_runtime_text(text, 14 * 3600 + 36 * 60 + 52), "14:36:52");
	assert_string_equal(ls_runtime_text(text, 12.344), "0:00:12.34");
	assert_string_equal(ls_runtime_text(text, 59.999), "0:01:00");
	assert_string_equal(ls_runtime_text(text, -1), "-");
	assert_string_equal(ls_bytes_text(text, 44700000), "44.7 MB");
	assert_string_equal(ls_bytes_text(text, 12), "12 B");
}

TEST_MAIN(test_html, test_markdown, test_numbers)
