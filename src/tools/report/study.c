#include "tools/report/study.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/report/plausibility.h"
#include "tools/report/variant.h"

enum { KEY = 768 };

/* Parts of a job that may differ between lines of a sweep. */
typedef enum part {
	MODEL,
	ARGUMENTS,
	DATA,
	OPTIMIZER,
	BATCH,
	STRATEGY,
	WIRE,
	RATE,
	SERVERS,
	THREADS,
	FIGURE,
	KIND,
	HOST,
	PARTS
} part;

/* One node by itself: nothing goes over a link. Servers are not among a job's nodes. */
static int is_one(const ls_point *point)
{
	return point->job.nodes == 1 && !ls_strategy_has_servers(point->job.strategy);
}

static const char *part_text(const ls_point *point, part which, char out[KEY])
{
	const ls_point_job *job = &point->job;
	int servers = ls_strategy_has_servers(job->strategy), alone = is_one(point);
	int64_t number = which == BATCH ? job->batch : which == SERVERS ? (servers ? job->servers : 0) : job->threads;
	switch (which) {
	case MODEL:
		return job->model;
	case ARGUMENTS:
		return job->arguments;
	case DATA:
		return job->data;
	case OPTIMIZER:
		return job->optimizer;
	case STRATEGY: /* one node needs none: it is where all begin */
		return alone ? "local" : job->strategy;
	case WIRE:
		return !alone && !strcmp(job->wire, "bf16") ? "bf16" : "fp32";
	case RATE:
		return alone ? "" : job->rate;
	case KIND:
		return job->kind;
	case FIGURE:
		return ls_figure_name(ls_point_figure(point));
	case HOST:
		return point->node_count > 0 ? point->nodes[0].host : "";
	default:
		snprintf(out, KEY, "%" PRId64, number);
		return out;
	}
}

/* The parts in `mask` of a point as one text, and whether it has one node or several. */
static const char *key_of(ls_page *page, const ls_point *point, unsigned mask)
{
	const char *key = is_one(point) ? "one" : "several";
	char text[KEY];
	for (int which = 0; which < PARTS; which++)
		if (mask & 1u << which)
			key = ls_page_text(page, "%s\x1f%s", key, part_text(point, (part)which, text));
	return key;
}

/* FIGURE is one: a line has figures of one kind. */
#define LINE_PARTS ((1u << PARTS) - 1u - (1u << HOST))
#define BASE_PARTS                                                                                                     \
	(1u << MODEL | 1u << ARGUMENTS | 1u << DATA | 1u << OPTIMIZER | 1u << BATCH | 1u << THREADS | 1u << KIND)

/* Irrelevant to one node. */
#define BETWEEN_NODES (1u << STRATEGY | 1u << WIRE | 1u << RATE | 1u << SERVERS)

static int is_done(const ls_point *point)
{
	return point->state == LS_POINT_DONE;
}

static int same(const ls_point *a, const ls_point *b, unsigned mask)
{
	char left[KEY], right[KEY];
	for (int which = 0; which < PARTS; which++)
		if (mask & 1u << which &&
		    strcmp(part_text(a, (part)which, left), part_text(b, (part)which, right)) != 0)
			return 0;
	return 1;
}

/* ---- baselines --------------------------------------------------------------------------------------------------- */

static int is_base(const ls_point *point)
{
	return is_done(point) && point->job.devices == 1 && is_one(point);
}

/* The same work on one device, of the same host if there is one; `any`: also where it was measured in another way. */
static const ls_point *find_base(const ls_study *study, const ls_point *point, int any)
{
	const ls_results *results = study->results;
	const ls_point *found = NULL;

	for (size_t i = 0; i < results->point_count; i++) {
		const ls_point *base = &results->points[i];
		if (!is_base(base) || !same(base, point, BASE_PARTS) || !(any || ls_point_comparable(base, point)))
			continue;
		if (same(base, point, 1u << HOST))
			return base;
		if (!found)
			found = base;
	}
	return found;
}

const ls_point *ls_study_base(const ls_study *study, const ls_point *point)
{
	return is_base(point) ? point : find_base(study, point, 0);
}

double ls_study_speedup(const ls_study *study, const ls_point *point)
{
	const ls_point *base = ls_study_base(study, point);
	return base && is_done(point) ? point->samples_per_s / base->samples_per_s : 0;
}

const char *ls_study_flag(const ls_study *study, const ls_point *point)
{
	const ls_point *base = ls_study_base(study, point), *other = find_base(study, point, 1);

	if (!base && other && is_done(point) && ls_point_figure(point) != ls_point_figure(other))
		return ls_page_text(study->page,
				    "no speedup: this row is %s, the row of one device %s; the same 'lockstep bench' "
				    "command measures what is missing.",
				    ls_figure_name(ls_point_figure(point)), ls_figure_name(ls_point_figure(other)));
	return ls_point_check(study->page, study->results, point, base);
}

int ls_model_related(const char *a, const char *b)
{
	size_t family = strcspn(a, "-");
	return !strcmp(a, b) || (a[family] && family == strcspn(b, "-") && b[family] && !strncmp(a, b, family));
}

/* A replay reads no text: its tokens per sample are those of a measured point. */
static const ls_point *reader_of(const ls_study *study, const ls_point *point)
{
	for (size_t i = 0; i < study->results->point_count && !(point->tokens_per_s > 0); i++) {
		const ls_point *other = &study->results->points[i];
		if (is_base(other) && other->tokens_per_s > 0 && same(other, point, BASE_PARTS))
			return other;
	}
	return point;
}

int ls_study_reads(const ls_study *study, const ls_point *point)
{
	return reader_of(study, point)->tokens_per_s > 0;
}

double ls_study_words(const ls_study *study, const ls_point *point)
{
	const ls_point *reader = reader_of(study, point);
	return reader->tokens_per_s > 0 ? point->samples_per_s * reader->tokens_per_s / reader->samples_per_s
					: point->samples_per_s;
}

/* ---- lines ------------------------------------------------------------------------------------------------------- */

static int has_own_baselines(const ls_results *results)
{
	for (size_t i = 0; i < results->point_count; i++)
		for (size_t k = 0; k < i; k++) {
			const ls_point *a = &results->points[i], *b = &results->points[k];
			if (is_base(a) && is_base(b) && same(a, b, BASE_PARTS | 1u << FIGURE) &&
			    !same(a, b, 1u << HOST))
				return 1;
		}
	return 0;
}

static unsigned varying_parts(const ls_results *results)
{
	const ls_point *first = NULL, *first_of_several = NULL;
	unsigned varies = 0;
	for (size_t i = 0; i < results->point_count; i++) {
		const ls_point *point = &results->points[i];
		int several = !is_one(point);
		if (!is_done(point))
			continue;
		first = first ? first : point;
		if (several && !first_of_several)
			first_of_several = point;
		for (int which = 0; which < PARTS; which++)
			if (!same(BETWEEN_NODES & 1u << which && several ? first_of_several : first, point,
				  1u << which) &&
			    (several || !(BETWEEN_NODES & 1u << which)))
				varies |= 1u << which;
	}
	return varies;
}

/* Whether points with the same `given` parts also have the same of this part, so that it can be left out. */
static int follows(const ls_results *results, part which, part given)
{
	for (size_t i = 0; i < results->point_count; i++)
		for (size_t k = 0; k < i && is_done(&results->points[i]); k++) {
			const ls_point *a = &results->points[k], *b = &results->points[i];
			if (!is_done(a) || !same(a, b, 1u << given))
				continue;
			if (!same(a, b, 1u << which))
				return 0;
			break; /* the others were compared with this one */
		}
	return 1;
}

/* Parts that names of lines must have. Figures that are not measured say so, even where all are alike. */
static unsigned telling_parts(const ls_results *results)
{
	unsigned varies = varying_parts(results) | 1u << FIGURE;
	if (varies & 1u << MODEL && follows(results, BATCH, MODEL))
		varies &= ~(1u << BATCH);
	if (follows(results, SERVERS, STRATEGY))
		varies &= ~(1u << SERVERS);
	return varies;
}

/* The text for a part; NULL: left out. */
static const char *part_words(const ls_study *study, const ls_point *point, part which, char out[KEY])
{
	char text[KEY];
	const char *value = part_text(point, which, text);
	switch (which) {
	case ARGUMENTS:
		value = ls_variant(study->page, study->results, point);
		return value[0] ? value : NULL;
	case BATCH:
		snprintf(out, KEY, "batch %.64s", value);
		return out;
	case SERVERS:
		snprintf(out, KEY, "%.64s servers", value);
		return strcmp(value, "0") ? out : NULL;
	case THREADS:
		snprintf(out, KEY, "%.64s threads", value);
		return out;
	case FIGURE:
		return ls_point_figure(point) != LS_FIGURE_MEASURED ? value : NULL;
	case HOST:
		snprintf(out, KEY, "%s%.64s", is_one(point) ? "" : "from ", value);
		return value[0] ? out : NULL;
	case STRATEGY:
		return is_one(point) ? NULL : ls_strategy_title(value);
	default:
		snprintf(out, KEY, "%s", value);
		return value[0] ? out : NULL;
	}
}

/* The parts in `varies` of the point as text, or else its model. */
static const char *name_of(const ls_study *study, const ls_point *point, unsigned varies)
{
	char name[LS_STUDY_LABEL] = "", text[KEY];
	size_t used = 0;
	for (int which = 0; which < PARTS; which++) {
		const char *words = varies & 1u << which ? part_words(study, point, (part)which, text) : NULL;
		if (words && used < sizeof(name))
			used += (size_t)snprintf(name + used, sizeof(name) - used, "%s%s", used ? ", " : "", words);
	}
	return used ? ls_page_text(study->page, "%s", name) : "";
}

static void name_line(const ls_study *study, ls_line *line, const ls_point *point, unsigned varies)
{
	const char *others = name_of(study, point, varies & ~(1u << BATCH | 1u << FIGURE));
	line->label = name_of(study, point, varies);
	line->brief = name_of(study, point, varies & ~(1u << MODEL));
	if (line->label[0] == '\0')
		line->label = point->job.model;
	if (line->brief[0] == '\0')
		line->brief = point->job.model;
	line->figure = ls_point_figure(point);
	line->heading =
		ls_page_text(study->page, "%s%sbatch size = %" PRId64, others, others[0] ? ", " : "", point->job.batch);
}

static int by_devices(const void *a, const void *b)
{
	const ls_point *left = *(const ls_point *const *)a, *right = *(const ls_point *const *)b;
	if (left->job.devices != right->job.devices)
		return left->job.devices < right->job.devices ? -1 : 1;
	if (left->job.nodes != right->job.nodes)
		return left->job.nodes < right->job.nodes ? -1 : 1;
	return (left > right) - (left < right);
}

static ls_line *line_of(ls_study *study, const char **keys, const char *key, const ls_point *point, unsigned varies)
{
	for (size_t i = 0; i < study->line_count; i++)
		if (!strcmp(keys[i], key))
			return &study->lines[i];
	ls_line *line = &study->lines[study->line_count];
	line->points = ls_page_alloc(study->page, (study->results->point_count + 1) * sizeof(*line->points));
	if (!line->points)
		return NULL;
	keys[study->line_count++] = key;
	name_line(study, line, point, varies);
	return line;
}

static int holds(const ls_line *line, const ls_point *point)
{
	for (size_t i = 0; i < line->count; i++)
		if (line->points[i] == point)
			return 1;
	return 0;
}

int ls_study_seen(const ls_study *study, size_t line, const ls_point *point)
{
	for (size_t l = 0; l < line; l++)
		if (holds(&study->lines[l], point))
			return 1;
	return 0;
}

static int is_alone(const ls_line *line)
{
	return is_one(line->points[line->count - 1]);
}

/* Points of one node with fewer devices also belong to the line of several nodes, whatever their links; with servers
 * only the baseline does. */
static void lead_in(ls_study *study, ls_line *line, const ls_line *alone, unsigned parts)
{
	int servers = ls_strategy_has_servers(line->points[0]->job.strategy);
	int64_t fewest = line->points[0]->job.devices;
	for (size_t i = 0; i < alone->count && line->count < study->results->point_count; i++) {
		const ls_point *point = alone->points[i];
		if (same(point, line->points[0], parts) && !holds(line, point) && point->job.devices < fewest &&
		    (!servers || point == line->base))
			line->points[line->count++] = point;
	}
}

static void add_baselines(ls_study *study, unsigned parts)
{
	for (size_t l = 0; l < study->line_count; l++) {
		ls_line *line = &study->lines[l];
		qsort(line->points, line->count, sizeof(*line->points), by_devices);
		line->base = ls_study_base(study, line->points[0]);
	}
	for (size_t l = 0; l < study->line_count; l++) {
		ls_line *line = &study->lines[l];
		for (size_t k = 0; !is_alone(line) && k < study->line_count; k++)
			if (is_alone(&study->lines[k]))
				lead_in(study, line, &study->lines[k], parts);
		qsort(line->points, line->count, sizeof(*line->points), by_devices);
	}
}

/* A line of one node is left out when all its points belong to other lines. */
static int is_spare(const ls_study *study, const ls_line *line)
{
	for (size_t i = 0; is_alone(line) && i < line->count; i++) {
		int led = 0;
		for (size_t l = 0; l < study->line_count; l++)
			led |= !is_alone(&study->lines[l]) && holds(&study->lines[l], line->points[i]);
		if (!led)
			return 0;
	}
	return is_alone(line);
}

static void drop_spare(ls_study *study)
{
	ls_line *lines = ls_page_alloc(study->page, (study->line_count + 1) * sizeof(*lines));
	size_t kept = 0;
	for (size_t i = 0; lines && i < study->line_count; i++)
		if (!is_spare(study, &study->lines[i]))
			lines[kept++] = study->lines[i];
	study->lines = lines;
	study->line_count = kept;
}

/* Whether another line has several nodes and figures of the same kind. */
static int is_outgrown(const ls_study *study, const ls_line *line)
{
	for (size_t i = 0; i < study->line_count; i++)
		if (!is_alone(&study->lines[i]) && study->lines[i].figure == line->figure)
			return 1;
	return 0;
}

/* A line of one node is labelled so where there are lines of several nodes. */
static void name_alone(ls_study *study)
{
	for (size_t i = 0; i < study->line_count; i++) {
		ls_line *line = &study->lines[i];
		if (!is_alone(line) || !is_outgrown(study, line))
			continue;
		line->label = ls_page_text(study->page, "%s, one node", line->label);
		line->brief = ls_page_text(study->page, "%s, one node", line->brief);
		line->heading = ls_page_text(study->page, "one node, %s", line->heading);
	}
}

ls_status ls_study_make(ls_study *study, ls_page *page, const ls_results *results)
{
	unsigned parts = LINE_PARTS, varies = telling_parts(results);

	*study = (ls_study){ .page = page, .results = results, .several_models = (varies & 1u << MODEL) != 0 };
	if (results->point_count > LS_STUDY_POINTS)
		return ls_fail(LS_EINVALID, "'%s' has %zu points; a report shows at most %d: sweep less at a time",
			       results->sweep, results->point_count, LS_STUDY_POINTS);
	study->by_host = has_own_baselines(results);
	if (study->by_host)
		parts |= 1u << HOST;
	varies &= parts;
	const char **keys = ls_page_alloc(page, (results->point_count + 1) * sizeof(*keys));
	study->lines = ls_page_alloc(page, (results->point_count + 1) * sizeof(*study->lines));
	for (size_t i = 0; keys && study->lines && i < results->point_count; i++) {
		const ls_point *point = &results->points[i];
		ls_line *line = is_done(point) ? line_of(study, keys, key_of(page, point, parts), point, varies) : NULL;
		if (line)
			line->points[line->count++] = point;
	}
	LS_TRY(ls_page_check(page));
	add_baselines(study, BASE_PARTS | 1u << FIGURE | (parts & 1u << HOST));
	drop_spare(study);
	name_alone(study);
	return ls_page_check(page);
}

void ls_study_missing(const ls_study *study)
{
	static const char *const words[] = { "not run yet", "done", "skipped", "failed" };
	const ls_results *results = study->results;
	int said = 0;
	for (size_t i = 0; i < results->point_count; i++) {
		const ls_point *point = &results->points[i];
		if (is_done(point))
			continue;
		if (!said++)
			ls_page_heading(study->page, 3, "Not measured");
		const char *word =
			point->end_step > 0 && point->state == LS_POINT_PENDING ? "ended" : words[point->state];
		ls_page_item(study->page, "%s: %s%s%s", point->key, word, point->reason[0] ? ", " : "", point->reason);
	}
}
