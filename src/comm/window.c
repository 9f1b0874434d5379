#include "comm/window.h"

/*
 * A rate is measured over a fixed time, for messages arrive one by one and are seen at some polls. After a pause
 * without arrivals the count begins anew. Peers do not always have something to send, so the best rate stands, and
 * fades.
 */
#define SPAN_SECONDS 15e-3
#define PAUSE_SECONDS 50e-3
#define FADE 0.02
#define MOST_GROWTH 1.5

static void begin(ls_window *w, double now)
{
	w->since = now;
	w->bytes = 0;
}

void ls_window_arrived(ls_window *w, size_t bytes, double now)
{
	int paused = w->since <= 0 || now - w->last > PAUSE_SECONDS;

	w->last = now;
	if (paused) {
		begin(w, now);
		return;
	}
	w->bytes += bytes;
	if (now - w->since < SPAN_SECONDS)
		return;
	double rate = (double)w->bytes / (now - w->since);
	if (w->rate <= 0)
		w->rate = rate;
	else if (rate > w->rate) /* messages that had come before they were asked for look faster than any link */
		w->rate = (w->rate + (rate < MOST_GROWTH * w->rate ? rate : MOST_GROWTH * w->rate)) / 2;
	else
		w->rate = (1 - FADE) * w->rate + FADE * rate;
	begin(w, now);
}

size_t ls_window_of(double rate, int peers)
{
	size_t least = LS_WINDOW_LEAST / (size_t)(peers > 1 ? peers : 1);
	double bytes = rate * LS_WINDOW_SECONDS;
	if (bytes < (double)least)
		return least;
	return bytes < (double)LS_WINDOW_MOST ? (size_t)bytes : LS_WINDOW_MOST;
}

size_t ls_window_bytes(const ls_window *w, int peers)
{
	return ls_window_of(w->rate, peers);
}
