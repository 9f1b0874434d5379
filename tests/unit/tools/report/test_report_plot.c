/*
 * Plots: axes end at the bound of their quantity, a single mark has no line, and lines join only points of one kind.
 */
#include "tools/report/plot.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/report/page.h"
#include "unit/test_main.h"

static char svg[1 << 16];

typedef struct mark {
	double x, y;
	int simulated;
} mark;

/* A plot of a measured curve, and a simulated one where there are such marks, in `svg`. */
static void draw(double y_most, const mark *marks, size_t count)
{
	ls_page page = LS_PAGE_INIT;
	ls_plot *plot = ls_page_plot(&page);
	assert_non_null(plot);
	plot->title = plot->x_name = plot->y_name = "name";
	plot->whole_x = 1;
	plot->y_most = y_most;
	ls_curve *curves[] = { ls_plot_curve(plot, "c", LS_CURVE_MEASURED),
			       ls_plot_curve(plot, "s", LS_CURVE_SIMULATED) };
	for (size_t i = 0; i < count; i++)
		ls_curve_add(curves[marks[i].simulated], marks[i].x, marks[i].y, "t");
	FILE *to = fmemopen(svg, sizeof(svg), "w");
	assert_non_null(to);
	ls_plot_svg(plot, to);
	assert_int_equal(fclose(to), 0);
	assert_true(strlen(svg) + 1 < sizeof(svg));
	ls_page_release(&page);
}

static size_t times(const char *text, const char *part)
{
	size_t count = 0;
	for (; (text = strstr(text, part)); text += strlen(part))
		count++;
	return count;
}

/* The largest number that stands at a tick. */
static double last_tick(void)
{
	double most = -1e9;
	for (const char *at = svg; (at = strstr(at, "class=\"tick\"")); at++) {
		double value = strtod(strchr(at, '>') + 1, NULL);
		most = value > most ? value : most;
	}
	return most;
}

static void test_accuracy_ends_at_one(void **state)
{
	static const double ends[] = { 0.97, 0.9999, 1, 0.61 };
	(void)state;
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		for (size_t count = 1; count <= 2; count++) {
			const mark marks[] = { { 0, 0.35, 0 }, { 1, ends[i], 0 } };
			draw(1, marks + 2 - count, count);
			if (last_tick() > 1.0001)
				fail_msg("an accuracy of %g: the axis goes to %g", ends[i], last_tick());
			assert_null(strstr(svg, "nan"));
			assert_null(strstr(svg, "inf"));
		}
}

/* Values above the bound are shown. */
static void test_more_than_the_most(void **state)
{
	(void)state;
	draw(1, (const mark[]){ { 0, 0.5, 0 }, { 2, 3, 0 } }, 2);
	assert_true(last_tick() >= 3);
}

static void test_one_epoch_is_a_mark(void **state)
{
	(void)state;
	draw(1, (const mark[]){ { 1, 0.9, 0 } }, 1);
	assert_int_equal(times(svg, "<g class=\"pt\">"), 1);
	assert_int_equal(times(svg, "class=\"line"), 0);
	assert_int_equal(times(svg, "class=\"lead"), 0);
}

/* 1 and 2 were measured, 1, 4 and 8 simulated: two lines, none from 2 to 4, and hollow marks. */
static void test_kinds_are_not_joined(void **state)
{
	(void)state;
	draw(0, (const mark[]){ { 1, 1, 0 }, { 1, 1, 1 }, { 2, 2, 0 }, { 4, 4, 1 }, { 8, 8, 1 } }, 5);
	assert_int_equal(times(svg, "hollow\""), 3 + 1); /* and the one beside the name */
	char *first = strstr(svg, "class=\"line"), *second;
	assert_non_null(first);
	second = strstr(first + 1, "class=\"line");
	assert_non_null(second);
	*strstr(first, "/>") = '\0';
	*strstr(second, "/>") = '\0';
	assert_int_equal(times(strstr(first, "d=\"M"), "L"), 1);
	assert_int_equal(times(strstr(second, "d=\"M"), "L"), 2);
}

TEST_MAIN(test_accuracy_ends_at_one, test_more_than_the_most, test_one_epoch_is_a_mark, test_kinds_are_not_joined)
