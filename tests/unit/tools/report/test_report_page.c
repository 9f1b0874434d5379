/*
 * Pages: a table in Markdown and in HTML, each note numbered once, all marks of a plot drawn, and markup in names
 * escaped.
 */
#include "tools/report/page.h"
#include "unit/test_main.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef enum kind { MARKDOWN, HTML, BRIEF } kind;

static char *written(const ls_page *page, kind as)
{
	char *text = NULL;
	size_t bytes = 0;
	FILE *to = open_memstream(&text, &bytes);
	assert_non_null(to);
	if (as == HTML)
		ls_page_html(page, "<title>", to);
	else
		ls_page_markdown(page, as == BRIEF, to);
	assert_int_equal(fclose(to), 0);
	return text;
}

static size_t times(const char *text, const char *part)
{
	size_t count = 0;
	for (; (text = strstr(text, part)); text += strlen(part))
		count++;
	return count;
}

static void fill_table(ls_page *page)
{
	static const char *const heads[] = { "name|", "a", "gone", "b" };
	ls_page_heading(page, 2, "Head <1>");
	ls_grid *grid = ls_page_table(page, 4, heads);
	for (int i = 0; i < 40; i++) { /* more than it has room for at first */
		ls_grid_add(grid, "r%d", i);
		ls_grid_fixed(grid, i, 1, "x");
		ls_grid_note(grid, i == 3 || i == 7 ? "once" : i == 5 ? "twice" : NULL);
		ls_grid_add(grid, "-");
		ls_grid_whole(grid, i);
	}
	ls_grid_bold(grid);
	ls_grid_drop_empty(grid);
}

static void test_table(void **state)
{
	ls_page page = LS_PAGE_INIT;
	(void)state;
	fill_table(&page);
	char *markdown = written(&page, MARKDOWN), *html = written(&page, HTML);
	assert_non_null(strstr(markdown, "## Head &lt;1&gt;\n"));
	assert_non_null(strstr(markdown, "| name\\|  | a         | b      |\n"));
	assert_non_null(strstr(markdown, "| r3      | 3.0x †1   | 3      |\n"));
	assert_non_null(strstr(markdown, "| r5      | 5.0x †2   | 5      |\n"));
	assert_non_null(strstr(markdown, "| **r39** | **39.0x** | **39** |\n"));
	assert_non_null(strstr(markdown, "| r0      | -         | -      |\n"));
	assert_int_equal(times(markdown, "\n†1 once\n"), 1);
	assert_int_equal(times(markdown, "\n†2 twice\n"), 1);
	assert_int_equal(times(html, "<tr>"), 41);
	assert_int_equal(times(html, "gone"), 0);
	assert_non_null(strstr(html, "<td>7.0x<sup class=\"flag\">†1</sup></td>"));
	assert_non_null(strstr(html, "<title>&lt;title&gt;</title>"));
	assert_int_equal(page.flags, 3);
	free(markdown);
	free(html);
	ls_page_release(&page);
}

static void test_folded(void **state)
{
	ls_page page = LS_PAGE_INIT;
	(void)state;
	for (int i = 0; i < 2; i++) {
		ls_grid *grid = ls_page_table(&page, 1, (const char *const[]){ "head" });
		ls_grid_add(grid, i ? "each" : "all");
		grid->summary = i ? "All repeats" : NULL;
	}
	char *markdown = written(&page, MARKDOWN), *brief = written(&page, BRIEF), *html = written(&page, HTML);
	assert_non_null(strstr(markdown, "| each |"));
	assert_null(strstr(brief, "each"));
	assert_non_null(strstr(brief, "| all  |"));
	assert_int_equal(times(html, "<summary>All repeats</summary>"), 1);
	free(markdown);
	free(brief);
	free(html);
	ls_page_release(&page);
}

static void test_lists(void **state)
{
	ls_page page = LS_PAGE_INIT;
	(void)state;
	for (int i = 0; i < 3; i++)
		ls_page_item(&page, "<li>%d", i);
	ls_page_paragraph(&page, "after");
	char *markdown = written(&page, MARKDOWN), *html = written(&page, HTML);
	assert_non_null(strstr(markdown, "- &lt;li&gt;0\n- &lt;li&gt;1\n- &lt;li&gt;2\n\nafter\n"));
	assert_int_equal(times(html, "<li>&lt;li&gt;"), 3);
	assert_int_equal(times(html, "<ul>"), 1);
	free(markdown);
	free(html);
	ls_page_release(&page);
}

static ls_plot *begin_plot(ls_page *page)
{
	ls_plot *plot = ls_page_plot(page);
	assert_non_null(plot);
	plot->title = "</figcaption>";
	plot->x_name = "devices";
	plot->y_name = "\"samples/s\"";
	plot->unit = "ms";
	return plot;
}

static void test_curves(void **state)
{
	ls_page page = LS_PAGE_INIT;
	ls_plot *plot = begin_plot(&page);
	ls_curve *curve = ls_plot_curve(plot, "<b>a", LS_CURVE_MEASURED);
	ls_curve *simulated = ls_plot_curve(plot, "s", LS_CURVE_SIMULATED);
	ls_curve *ideal = ls_plot_curve(plot, "ideal", LS_CURVE_IDEAL);
	(void)state;
	for (int i = 1; i <= 4; i++)
		ls_curve_add(curve, i, i == 3 ? NAN : i * 10.0, "<i>tip");
	ls_curve_add(simulated, 5, 50, "<i>tip");
	ls_curve_add(ideal, 1, 10, "");
	ls_curve_add(ideal, 5, 50, "");
	assert_int_equal(ls_plot_marks(plot), 4);
	char *html = written(&page, HTML), *markdown = written(&page, MARKDOWN);
	assert_int_equal(times(html, "<g class=\"pt\">"), 4);
	assert_int_equal(times(html, "<title>&lt;i&gt;tip</title>"), 4);
	assert_int_equal(times(html, "class=\"mark c1 hollow\""), 1 + 1);
	assert_int_equal(times(html, "<b>"), 0);
	assert_int_equal(times(html, "nan"), 0);
	assert_non_null(
		strstr(html, "role=\"img\" aria-label=\"&lt;/figcaption&gt;: &quot;samples/s&quot; by devices"));
	assert_non_null(strstr(html, "data-marks=\"4\""));
	assert_string_equal(markdown, "");
	free(html);
	free(markdown);
	ls_page_release(&page);
}

/* Whatever is plotted, coordinates are numbers. */
static void test_odd_curves(void **state)
{
	static const double odd[][2] = { { 0, 0 }, { -5, 1e300 }, { 1e300, -1e300 }, { 1e-300, 0 }, { 3, 3 } };
	(void)state;
	for (int axes = 0; axes < 8; axes++) {
		ls_page page = LS_PAGE_INIT;
		ls_plot *plot = begin_plot(&page);
		plot->log_x = axes & 1;
		plot->log_y = axes >> 1 & 1;
		plot->counts_x = axes >> 2;
		for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
			ls_curve *curve = ls_plot_curve(plot, "", LS_CURVE_MEASURED);
			ls_curve_add(curve, odd[i][0], odd[i][1], "");
			ls_curve_add(curve, 1, 2, "");
		}
		char *html = written(&page, HTML);
		assert_int_equal(times(html, "nan") + times(html, "\"inf") + times(html, "-inf"), 0);
		free(html);
		ls_page_release(&page);
	}
}

static void test_bars(void **state)
{
	ls_page page = LS_PAGE_INIT;
	ls_plot *plot = begin_plot(&page);
	(void)state;
	plot->parts[0] = "compute";
	plot->parts[1] = "waiting";
	ls_plot_bar(plot, "a & b", (const double[LS_BAR_PARTS]){ 30, 10 });
	ls_plot_bar(plot, "c", (const double[LS_BAR_PARTS]){ 40, 0 });
	char *html = written(&page, HTML);
	assert_int_equal(times(html, "<g class=\"pt\">"), 3); /* empty parts are not drawn */
	assert_non_null(strstr(html, "<title>a &amp; b: compute 30.00 ms (75 %)</title>"));
	assert_non_null(strstr(html, "data-marks=\"2\""));
	free(html);
	ls_page_release(&page);
}

static void test_empty_plot(void **state)
{
	ls_page page = LS_PAGE_INIT;
	(void)state;
	begin_plot(&page);
	char *html = written(&page, HTML);
	assert_int_equal(times(html, "<figure"), 0);
	free(html);
	ls_page_release(&page);
}

TEST_MAIN(test_table, test_folded, test_lists, test_curves, test_odd_curves, test_bars, test_empty_plot)
