/*
 * form_epochs.c - the log lines of every point, under a heading with its hosts, its rate and its speedup over one
 * device. The original logs the rate since the epoch began, Lockstep that of the steps since the last line: both are
 * shown.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/array.h"
#include "tools/report/form.h"
#include "tools/report/launches.h"
#include "tools/report/text.h"
#include "tools/report/variant.h"

enum { LINES_MAX = 200 };

static const ls_point_epoch *last_epoch(const ls_point *point)
{
	return point->epoch_count > 0 ? &point->epochs[point->epoch_count - 1] : NULL;
}

static int is_of_worker(const ls_point *point)
{
	return !strcmp(point->job.epoch, "worker");
}

/* Over the data in an epoch: one, or one of each device where every device reads all data. */
static int64_t passes_of(const ls_point *point)
{
	return is_of_worker(point) ? point->job.devices : 1;
}

/* Nothing is exchanged on one node. */
static const char *strategy_text(const ls_point *point)
{
	return strcmp(point->job.strategy, "local") ? ls_strategy_title(point->job.strategy) : "-";
}

static void add_summary(const ls_study *study)
{
	static const char *const heads[] = {
		"Run",
		"Model",
		"Data",
		"Hosts",
		"Strategy",
		"Nodes",
		"Devices per node",
		"Batch per device",
		"Figure",
		"Samples/s",
		"Speedup",
		"Passes per epoch",
		"Epoch (s)",
		"Test (s)",
		"Accuracy",
		LS_LAUNCH_HEADS,
	};
	ls_grid *grid = ls_page_table(study->page, LS_COUNT(heads), heads);
	if (grid)
		grid->text_columns = 5;
	for (size_t l = 0; l < study->line_count; l++)
		for (size_t i = 0; i < study->lines[l].count; i++) {
			const ls_point *point = study->lines[l].points[i];
			const ls_point_epoch *epoch = last_epoch(point);
			if (ls_study_seen(study, l, point))
				continue;
			ls_grid_add(grid, "%s", study->runs ? ls_run_name(point) : "-");
			ls_grid_add(grid, "%s", ls_variant_model(study->page, study->results, point));
			ls_grid_add(grid, "%s", point->job.data[0] ? point->job.data : "-");
			ls_grid_add(grid, "%s", ls_point_hosts(study->page, study->results, point));
			ls_grid_add(grid, "%s", study->runs ? strategy_text(point) : "-");
			ls_grid_add(grid, "%" PRId64, point->job.nodes);
			ls_grid_add(grid, "%s", ls_point_shape(study->page, &point->job));
			ls_grid_add(grid, "%" PRId64, point->job.batch);
			ls_grid_figure(grid, ls_point_figure(point));
			ls_grid_add(grid, "%.2f", point->samples_per_s);
			ls_grid_fixed(grid, ls_study_speedup(study, point), 2, "");
			ls_grid_note(grid, ls_study_flag(study, point));
			ls_grid_whole(grid, passes_of(point) > 1 ? passes_of(point) : 0);
			ls_grid_number(grid, epoch ? epoch->seconds : 0);
			ls_grid_number(grid, epoch ? epoch->test_seconds : 0);
			ls_grid_fixed(grid, epoch && isfinite(epoch->accuracy) ? epoch->accuracy : 0, 4, "");
			ls_grid_launches(grid, point);
		}
	ls_grid_drop_empty(grid);
}

/* An earlier point of the study with the same parameters after the same step; NULL: none. */
static const ls_point *same_end(const ls_study *study, const ls_point *point)
{
	for (size_t l = 0; l < study->line_count; l++)
		for (size_t i = 0; i < study->lines[l].count; i++) {
			const ls_point *other = study->lines[l].points[i];
			if (other == point)
				return NULL;
			if (other->end_step == point->end_step && !strcmp(other->fingerprint, point->fingerprint))
				return other;
		}
	return NULL;
}

/* The fingerprint, by which runs are compared bit for bit. */
static void add_fingerprint(const ls_study *study, const ls_point *point)
{
	const ls_point *same = study->runs ? same_end(study, point) : NULL;

	if (point->fingerprint[0])
		ls_page_item(study->page, "Fingerprint after step %" PRId64 ": xxh64 %s%s%s", point->end_step,
			     point->fingerprint, same ? ", the same bits as " : "", same ? ls_run_name(same) : "");
}

/* "lm6: 198.38 samples/s, 1.65 times one device (120.70)"; of several nodes "lm1:3, lm6:2: ...". */
static void add_heading(const ls_study *study, const ls_point *point)
{
	const ls_point *base = ls_study_base(study, point);
	const char *where = ls_point_host(study->results, point);
	ls_page *page = study->page;

	if (point->node_count > 1) {
		where = ls_page_text(page, "%s:%" PRId64, point->nodes[0].host, point->nodes[0].devices);
		for (size_t i = 1; i < point->node_count && i < 16; i++)
			where = ls_page_text(page, "%s, %s:%" PRId64, where, point->nodes[i].host,
					     point->nodes[i].devices);
	}
	ls_block *block = !base || base == point
				  ? ls_page_heading(page, 4, "%s: %.2f samples/s", where, point->samples_per_s)
				  : ls_page_heading(page, 4, "%s: %.2f samples/s, %.3g times one device (%.2f)", where,
						    point->samples_per_s, point->samples_per_s / base->samples_per_s,
						    base->samples_per_s);
	ls_page_flag(page, block, ls_study_flag(study, point));
}

/* Steps per epoch: from the number of samples, the last step or, if need be, the step of the last rate. */
static int64_t steps_of_epoch(const ls_point *point)
{
	int64_t batch = point->job.batch * point->job.devices, epochs = (int64_t)point->epoch_count;
	if (point->job.samples > 0 && batch > 0)
		return passes_of(point) * ((point->job.samples + batch - 1) / batch);
	int64_t last = point->rate_count > 0 ? point->rates[point->rate_count - 1].step : 0;
	if (point->end_step > last)
		last = point->end_step;
	return epochs > 0 ? (last + epochs - 1) / epochs : last;
}

/* The rate since the epoch began, as the original logs it: its steps over their time. */
typedef struct cumulative {
	int64_t begin, last; /* the epoch's first step, the step of the last line */
	double steps, times; /* steps, and steps over rates, since `begin` */
} cumulative;

static void begin_epoch(cumulative *c, int64_t step)
{
	*c = (cumulative){ .begin = step, .last = c->last };
}

/* Of a line that includes steps of the epoch before, those of this one count, at the rate of the line. */
static double add_interval(cumulative *c, const ls_point_rate *rate)
{
	double steps = (double)(rate->step - (c->last > c->begin ? c->last : c->begin));
	c->last = rate->step;
	if (steps > 0 && rate->samples_per_s > 0) {
		c->steps += steps;
		c->times += steps / rate->samples_per_s;
	}
	return c->times > 0 ? c->steps / c->times : rate->samples_per_s;
}

/* A run's metrics.jsonl has rates of single steps: nothing can be said of the steps between. */
static void add_rate_line(const ls_study *study, const ls_point_rate *rate, int64_t since, double whole)
{
	if (study->runs)
		ls_page_item(study->page, "Step %" PRId64 ": %.2f samples/s in this step", rate->step,
			     rate->samples_per_s);
	else
		ls_page_item(study->page,
			     "Step %" PRId64 ": %.2f samples/s since the epoch began, %.2f since step %" PRId64,
			     rate->step, whole, rate->samples_per_s, since);
}

static void add_epoch(ls_page *page, const ls_point *point, const ls_point_epoch *e)
{
	const char *passes =
		passes_of(point) > 1 ? ls_page_text(page, " (%" PRId64 " passes over the data)", passes_of(point)) : "";
	const char *length =
		e->seconds > 0 ? ls_page_text(page, "Epoch %" PRId64 "%s: %.2f s", e->epoch + 1, passes, e->seconds)
			       : ls_page_text(page, "Ended in epoch %" PRId64, e->epoch + 1);
	if (isfinite(e->accuracy))
		ls_page_item(page, "%s, test %.2f s, test accuracy %.4f", length, e->test_seconds, e->accuracy);
	else
		ls_page_item(page, "%s", length);
}

/* The last step of an epoch; files may have any number. */
static int64_t end_of(int64_t epoch, int64_t steps)
{
	return steps > INT64_MAX / (epoch + 1) ? INT64_MAX : (epoch + 1) * steps;
}

/* Log lines in the order they came; lines past LINES_MAX are thinned out. */
static void add_curve(const ls_study *study, const ls_point *point)
{
	int64_t steps = steps_of_epoch(point);
	size_t stride = 1 + point->rate_count / LINES_MAX, epoch_stride = 1 + point->epoch_count / LINES_MAX, r = 0;
	cumulative c = { 0 };

	for (size_t e = 0; e <= point->epoch_count; e++) {
		int64_t end = e < point->epoch_count ? end_of(point->epochs[e].epoch, steps) : INT64_MAX;
		for (; r < point->rate_count && point->rates[r].step <= end; r++) {
			int64_t since = c.last;
			double whole = add_interval(&c, &point->rates[r]);
			if (r % stride == 0 || r + 1 == point->rate_count)
				add_rate_line(study, &point->rates[r], since, whole);
		}
		if (e < point->epoch_count && (e % epoch_stride == 0 || e + 1 == point->epoch_count))
			add_epoch(study->page, point, &point->epochs[e]);
		begin_epoch(&c, end);
	}
}

/* The rate since the last epoch with a log line began; 0: not known. */
static double last_cumulative(const ls_point *point)
{
	int64_t steps = steps_of_epoch(point),
		last = point->rate_count > 0 ? point->rates[point->rate_count - 1].step : 0;
	cumulative c = { 0 };
	double rate = 0;

	if (steps > 0)
		c.begin = (last - 1) / steps * steps;
	for (size_t r = 0; r < point->rate_count; r++)
		if (point->rates[r].step > c.begin)
			rate = add_interval(&c, &point->rates[r]);
		else
			c.last = point->rates[r].step;
	return rate;
}

static void add_headline(const ls_study *study, const ls_point *point)
{
	double whole = study->runs ? 0 : last_cumulative(point);
	const char *original =
		whole > 0
			? ls_page_text(study->page, "; %.2f since the last epoch began, as the original counts", whole)
			: "";
	ls_page_item(study->page, "Headline rate: %.2f samples/s (%s; median of steps)%s", point->samples_per_s,
		     ls_figure_name(ls_point_figure(point)), original);
}

static void say_epochs(const ls_study *study)
{
	for (size_t i = 0; i < study->results->point_count; i++)
		if (study->results->points[i].state == LS_POINT_DONE && is_of_worker(&study->results->points[i])) {
			ls_page_paragraph(
				study->page,
				"An epoch is that of a worker, as in the original: every device reads all data, so "
				"that an epoch on n devices is n passes over the data.");
			return;
		}
}

void ls_form_epochs(const ls_study *study)
{
	say_epochs(study);
	if (study->line_count > 0)
		add_summary(study);
	if (!study->runs)
		ls_form_repeats(study);
	for (size_t l = 0; l < study->line_count; l++)
		for (size_t i = 0; i < study->lines[l].count; i++) {
			const ls_point *point = study->lines[l].points[i];
			if (ls_study_seen(study, l, point) || point->rate_count + point->epoch_count == 0)
				continue;
			ls_page_heading(study->page, 3, "%s%s%s-%sxdevices-%" PRId64 "batch_size",
					study->runs ? ls_run_name(point) : "", study->runs ? ": " : "",
					ls_variant_model(study->page, study->results, point),
					ls_point_shape(study->page, &point->job), point->job.batch);
			add_heading(study, point);
			add_headline(study, point);
			add_curve(study, point);
			add_fingerprint(study, point);
		}
}
