/*
 * section_nodes.c - elastic runs: which hosts took part when, as a picture, and a table of starts.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/array.h"
#include "base/names.h"
#include "tools/report/sections.h"
#include "tools/report/text.h"

enum { ROWS_MOST = 64, OPEN_STARTS = 40, NAME = 256 };

static const struct {
	const char *event, *text;
	ls_gantt_kind kind;
} event_words[] = {
	{ "lost", "was lost", LS_GANTT_LOSS },    { "silent", "was excluded", LS_GANTT_LOSS },
	{ "out", "was excluded", LS_GANTT_LOSS }, { "removed", "was removed from the list", LS_GANTT_LOSS },
	{ "new", "joined", LS_GANTT_COME },       { "back", "came back", LS_GANTT_COME },
};

static const char *source_text(const ls_start *s)
{
	return !strcmp(s->source, "snapshot")     ? "snapshots in memory"
	       : !strcmp(s->source, "checkpoint") ? "a checkpoint"
	       : !strcmp(s->source, "new")        ? "the beginning"
						  : "-";
}

static const char *end_text(const ls_start *s)
{
	static const char *const words[][2] = { { "regroup", "the hosts changed" },
						{ "stopped", "stopped on request" },
						{ "unstarted", "nodes did not start" },
						{ "ended", "the run ended" } };

	if (s->why[0])
		return s->why;
	for (size_t i = 0; i < LS_COUNT(words); i++)
		if (!strcmp(s->outcome, words[i][0]))
			return words[i][1];
	return s->outcome[0] ? s->outcome : "-";
}

/* ---- the picture ------------------------------------------------------------------------------------------------- */

/* The row of a host, which is added while there is room; ROWS_MOST: there is none. */
static size_t row_of(ls_page *page, ls_gantt *g, const char *name)
{
	for (size_t i = 0; i < g->rows; i++)
		if (!strcmp(g->names[i], name))
			return i;
	if (g->rows == ROWS_MOST)
		return ROWS_MOST;
	const char *kept = ls_page_text(page, "%s", name);
	g->names[g->rows] = kept ? kept : "";
	return g->rows++;
}

static size_t count_spans(const ls_memberships *m)
{
	size_t count = 0;
	char name[NAME];

	for (size_t i = 0; i < m->count; i++)
		for (const char *at = m->starts[i].hosts; (at = ls_memberships_host(at, name, sizeof(name)));)
			count++;
	return count;
}

static void add_start(ls_page *page, ls_gantt *g, const ls_start *s)
{
	char name[NAME];

	for (const char *at = s->hosts; (at = ls_memberships_host(at, name, sizeof(name)));) {
		size_t row = row_of(page, g, name);
		if (row == ROWS_MOST)
			continue;
		const char *tip = ls_page_text(page,
					       "%s: start %" PRId64 ", %" PRId64 " node%s, %.1f s, steps %" PRId64
					       " to %" PRId64 ", from %s",
					       name, s->number, s->nodes, ls_plural((uint64_t)s->nodes, "s"),
					       s->end - s->begin, s->step, s->last_step, source_text(s));
		g->spans[g->span_count++] =
			(ls_gantt_span){ .row = row, .begin = s->begin, .end = s->end, .tip = tip ? tip : "" };
	}
}

static void add_event(ls_page *page, ls_gantt *g, const ls_host_event *e)
{
	size_t row = row_of(page, g, e->host), word = 0;

	while (word < LS_COUNT(event_words) && strcmp(e->event, event_words[word].event) != 0)
		word++;
	if (row == ROWS_MOST || word == LS_COUNT(event_words))
		return;
	const char *tip = ls_page_text(page, "%s %s after %.1f s%s%s", e->host, event_words[word].text, e->at,
				       e->why[0] ? ": " : "", e->why);
	g->flags[g->flag_count++] =
		(ls_gantt_flag){ .row = row, .at = e->at, .kind = event_words[word].kind, .tip = tip ? tip : "" };
}

static void draw(ls_page *page, const char *run, const ls_memberships *m)
{
	size_t spans = count_spans(m);
	ls_gantt *g = spans > 0 ? ls_page_alloc(page, sizeof(*g)) : NULL;

	if (!g)
		return;
	g->names = ls_page_alloc(page, ROWS_MOST * sizeof(*g->names));
	g->spans = ls_page_alloc(page, spans * sizeof(*g->spans));
	g->flags = ls_page_alloc(page, (m->event_count + 1) * sizeof(*g->flags));
	ls_plot *plot = g->names && g->spans && g->flags ? ls_page_plot(page) : NULL;
	if (!plot)
		return;
	for (size_t i = 0; i < m->count; i++)
		add_start(page, g, &m->starts[i]);
	for (size_t i = 0; i < m->event_count; i++)
		add_event(page, g, &m->events[i]);
	plot->gantt = g;
	plot->title = ls_page_text(page, "Hosts of %s", run);
	plot->x_name = "seconds since the first start";
	if (g->rows == ROWS_MOST)
		ls_page_paragraph(page, "The picture shows the first %d hosts; the table of starts has all.",
				  ROWS_MOST);
}

/* ---- words ------------------------------------------------------------------------------------------------------- */

static void introduce(ls_page *page, const char *run, const ls_memberships *m)
{
	int64_t again = 0, losses = 0;
	double trained = 0, whole = m->starts[m->count - 1].end - m->starts[0].begin;

	for (size_t i = 0; i < m->count; i++) {
		again += m->starts[i].again;
		losses += !strcmp(m->starts[i].outcome, "lost");
		trained += m->starts[i].end - m->starts[i].begin;
	}
	ls_page_heading(page, 3, "%s: hosts over time", run);
	ls_page_paragraph(page,
			  "%zu start%s, %" PRId64 " of which ended because a node was lost; %" PRId64
			  " step%s computed again (as far as steps were recorded). Nodes trained for %.1f of %.1f s%s",
			  m->count, ls_plural(m->count, "s"), losses, again, ls_plural((uint64_t)again, "s"), trained,
			  whole, whole > 0 ? ls_page_text(page, " (%.1f %%).", 100 * trained / whole) : ".");
}

/* "a:1, b:1": a long list has places to break. */
static const char *spaced(ls_page *page, const char *hosts)
{
	size_t length = strlen(hosts), used = 0;
	char *text = ls_page_alloc(page, 2 * length + 1);

	for (size_t i = 0; text && i < length; i++) {
		text[used++] = hosts[i];
		if (hosts[i] == ',')
			text[used++] = ' ';
	}
	return text ? text : hosts;
}

static void list_starts(ls_page *page, const ls_memberships *m)
{
	static const char *const heads[] = { "Start",     "Hosts",       "State from", "Ended because",
					     "After (s)", "Trained (s)", "Nodes",      "Devices",
					     "From step", "To step",     "Steps again" };
	ls_grid *grid = ls_page_table(page, LS_COUNT(heads), heads);

	if (grid) {
		grid->text_columns = 4;
		if (m->count > OPEN_STARTS)
			grid->summary = ls_page_text(page, "%zu starts", m->count);
	}
	for (size_t i = 0; i < m->count; i++) {
		const ls_start *s = &m->starts[i];
		ls_grid_add(grid, "%" PRId64, s->number);
		ls_grid_add(grid, "%s", spaced(page, s->hosts ? s->hosts : "-"));
		ls_grid_add(grid, "%s", source_text(s));
		ls_grid_add(grid, "%s", end_text(s));
		ls_grid_add(grid, "%.1f", s->begin);
		ls_grid_add(grid, "%.1f", s->end - s->begin);
		ls_grid_whole(grid, s->nodes);
		ls_grid_whole(grid, s->devices);
		ls_grid_add(grid, "%" PRId64, s->step);
		ls_grid_add(grid, "%" PRId64, s->last_step);
		ls_grid_add(grid, "%" PRId64, s->again);
	}
}

void ls_section_nodes(ls_page *page, const ls_study *study)
{
	for (size_t i = 0; i < study->results->point_count; i++) {
		const ls_memberships *m = &study->logs[i].nodes;
		const char *run = ls_run_name(&study->results->points[i]);
		if (m->count == 0)
			continue;
		introduce(page, run, m);
		draw(page, run, m);
		list_starts(page, m);
	}
}
