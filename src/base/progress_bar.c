#include "base/progress_bar.h"

#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"

#define BAR 20

void ls_progress_bar_begin(ls_progress_bar *meter, const char *title, const char *unit, double scale, uint64_t first,
			   uint64_t total, int quiet)
{
	*meter = (ls_progress_bar){ .title = title, .unit = unit, .scale = scale, .first = first, .total = total };
	meter->start = ls_clock_seconds();
	meter->on = !quiet && ls_log_prints() && isatty(STDERR_FILENO);
}

static void draw_bar(char bar[BAR + 1], double share)
{
	for (int i = 0; i < BAR; i++)
		bar[i] = i < (int)(share * BAR) ? '#' : '-';
	bar[BAR] = 0;
}

void ls_progress_bar_update(ls_progress_bar *meter, uint64_t done)
{
	double now = ls_clock_seconds();
	if (!meter->on || now - meter->shown < 0.1)
		return;
	meter->shown = now;
	double rate = (double)(done - meter->first) / (now - meter->start + 1e-9);
	if (!meter->total) {
		fprintf(stderr, "\r\033[K%s  %.1f %s", meter->title, (double)done / meter->scale, meter->unit);
		return;
	}
	char bar[BAR + 1];
	draw_bar(bar, (double)done / (double)meter->total);
	double left = rate > 0 && done < meter->total ? (double)(meter->total - done) / rate : 0;
	fprintf(stderr, "\r\033[K%s |%s| %.1f/%.1f %s  %.1f %s/s  %d:%02d left", meter->title, bar,
		(double)done / meter->scale, (double)meter->total / meter->scale, meter->unit, rate / meter->scale,
		meter->unit, (int)(left / 60), (int)left % 60);
}

void ls_progress_bar_end(ls_progress_bar *meter)
{
	if (meter->on && meter->shown > 0)
		fputs("\r\033[K", stderr);
	meter->on = 0;
}
