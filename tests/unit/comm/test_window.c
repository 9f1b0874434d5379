/*
 * The window: it follows the rate of the link, within its bounds, and time without messages does not count.
 */
#include "comm/window.h"
#include "unit/test_main.h"

#include <stddef.h>
#include <stdint.h>

/* `count` times `together` messages of a MB, at `rate` bytes per second, without a pause. */
static double stream(ls_window *w, int count, int together, double rate, double now)
{
	for (int i = 0; i < count; i++) {
		now += together * 1e6 / rate;
		for (int k = 0; k < together; k++)
			ls_window_arrived(w, 1000000, now);
	}
	return now;
}

static void follows(void **state)
{
	(void)state;
	for (int together = 1; together <= 4; together++) {
		ls_window w = { 0 };
		assert_int_equal(ls_window_bytes(&w, 1), LS_WINDOW_LEAST);
		double now = stream(&w, 40, together, 218e6, 100);
		assert_in_range(ls_window_bytes(&w, 1), 1700000, 2200000); /* 8 ms of it */
		stream(&w, 200, together, 300e6, now + 50);                /* the pause before it is not slowness */
		assert_in_range(ls_window_bytes(&w, 1), 2300000, 3000000);
	}
}

static void fades(void **state)
{
	ls_window w = { 0 };

	(void)state;
	double now = stream(&w, 100, 1, 1e9, 1);
	assert_int_equal(ls_window_bytes(&w, 1), LS_WINDOW_MOST);
	now = stream(&w, 3, 1, 50e6, now); /* a peer with little to say does not make the link slow */
	assert_int_equal(ls_window_bytes(&w, 1), LS_WINDOW_MOST);
	stream(&w, 400, 1, 50e6, now);
	assert_in_range(ls_window_bytes(&w, 8), 390000, 420000);
	assert_int_equal(ls_window_bytes(&w, 1), LS_WINDOW_LEAST);
}

/* Messages that arrived before their receive was posted are there at once: that is no rate of the link. */
static void is_not_fooled(void **state)
{
	ls_window w = { 0 };

	(void)state;
	double now = stream(&w, 100, 1, 118e6, 1);
	assert_int_equal(ls_window_bytes(&w, 1), LS_WINDOW_LEAST);
	now = stream(&w, 25, 1, 1.5e9, now);
	assert_in_range(ls_window_bytes(&w, 1), LS_WINDOW_LEAST, 3 * LS_WINDOW_LEAST / 2);
	stream(&w, 200, 1, 118e6, now);
	assert_int_equal(ls_window_bytes(&w, 1), LS_WINDOW_LEAST);
}

TEST_MAIN(follows, fades, is_not_fooled)
