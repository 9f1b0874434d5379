/*
 * Plots: axes that end where their quantity does, marks that are no lines, and lines that join what belongs together.
 */
#include "report/plot.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "report/page.h"

static ls_plot *plot_of(ls_page *page, double y_most)
{
	ls_plot *plot = ls_page_plot(page);
	assert_non_null(plot);
	plot->title = plot->x_name = plot->y_name = "name";
	plot->whole_x = 1;
	plot->y_most = y_most;
	return plot;
}

static char svg[1 << 16];

static void draw(const ls_plot *plot)
{
	FILE *to = fmemopen(svg, sizeof svg, "w");
	assert_non_null(to);
	ls_plot_svg(plot, to);
	assert_int_equal(fclose(to), 0);
	assert_true(strlen(svg) + 1 < sizeof svg);
}

static size_t times(const char *text, const char *part)
{
	size_t count = 0;
	for (; (text = strstr(text, part)) != NULL; text += strlen(part))
		count++;
	return count;
}

/* The largest number that stands at a tick. */
static double last_tick(void)
{
	double most = -1e9;
	for (const char *at = svg; (at = strstr(at, "class=\"tick\"")) != NULL; at++) {
		double value = strtod(strchr(at, '>') + 1, NULL);
		most = value > most ? value : most;
	}
	return most;
}

static void test_accuracy_ends_at_one(void **state)
{
	static const double ends[] = { 0.97, 0.9999, 1, 0.61 };
	(void)state;
	for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
		for (int marks = 1; marks <= 2; marks++) {
			ls_page page = LS_PAGE_INIT;
			ls_plot *plot = plot_of(&page, 1);
			ls_curve *curve = ls_plot_curve(plot, "c", LS_CURVE_MEASURED);
			if (marks == 2)
				ls_curve_add(curve, 0, 0.35, "t");
			ls_curve_add(curve, 1, ends[i], "t");
			draw(plot);
			if (last_tick() > 1.0001)
				fail_msg("an accuracy of %g: the axis goes to %g", ends[i], last_tick());
			assert_null(strstr(svg, "nan"));
			assert_null(strstr(svg, "inf"));
			ls_page_release(&page);
		}
}

/* What is above the limit all the same is shown. */
static void test_more_than_the_most(void **state)
{
	ls_page page = LS_PAGE_INIT;
	ls_plot *plot = plot_of(&page, 1);
	(void)state;
	ls_curve *curve = ls_plot_curve(plot, "c", LS_CURVE_MEASURED);
	ls_curve_add(curve, 0, 0.5, "t");
	ls_curve_add(curve, 2, 3, "t");
	draw(plot);
	assert_true(last_tick() >= 3);
	ls_page_release(&page);
}

static void test_one_epoch_is_a_mark(void **state)
{
	ls_page page = LS_PAGE_INIT;
	ls_plot *plot = plot_of(&page, 1);
	(void)state;
	ls_curve_add(ls_plot_curve(plot, "c", LS_CURVE_MEASURED), 1, 0.9, "t");
	draw(plot);
	assert_int_equal(times(svg, "<g class=\"pt\">"), 1);
	assert_int_equal(times(svg, "class=\"line"), 0);
	assert_int_equal(times(svg, "class=\"lead"), 0);
	ls_page_release(&page);
}

/* 1 and 2 were measured, 1, 4 and 8 replayed: two lines, and none from 2 to 4. */
static void test_replayed_is_not_joined(void **state)
{
	ls_page page = LS_PAGE_INIT;
	ls_plot *plot = plot_of(&page, 0);
	(void)state;
	ls_curve *curve = ls_plot_curve(plot, "c", LS_CURVE_MEASURED);
	ls_curve_add(curve, 1, 1, "t");
	ls_curve_add_hollow(curve, 1, 1, "t");
	ls_curve_add(curve, 2, 2, "t");
	ls_curve_add_hollow(curve, 4, 4, "t");
	ls_curve_add_hollow(curve, 8, 8, "t");
	draw(plot);
	char *first = strstr(svg, "class=\"line"), *second;
	assert_non_null(first);
	second = strstr(first + 1, "class=\"line");
	assert_non_null(second);
	*strstr(first, "/>") = '\0';
	*strstr(second, "/>") = '\0';
	assert_int_equal(times(strstr(first, "d=\"M"), "L"), 1);
	assert_int_equal(times(strstr(second, "d=\"M"), "L"), 2);
	ls_page_release(&page);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_accuracy_ends_at_one),
		cmocka_unit_test(test_more_than_the_most),
		cmocka_unit_test(test_one_epoch_is_a_mark),
		cmocka_unit_test(test_replayed_is_not_joined),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
