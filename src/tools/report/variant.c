#include "tools/report/variant.h"

#include <string.h>

/* One option as typed, "--layers 8" or "--nesterov": the length of its name and of all of it. */
typedef struct option {
	const char *text;
	size_t name, length;
} option;

/* The next option at or after `at`; 0: there is none. */
static int next_option(const char *at, option *out)
{
	const char *begin = strstr(at, "--"), *end;

	if (!begin)
		return 0;
	end = strstr(begin, " --");
	*out = (option){ .text = begin, .length = end ? (size_t)(end - begin) : strlen(begin) };
	while (out->length > 0 && begin[out->length - 1] == ' ')
		out->length--;
	out->name = strcspn(begin, " =");
	return 1;
}

static int is_same_text(const char *a, size_t a_length, const char *b, size_t b_length)
{
	return a_length == b_length && !strncmp(a, b, a_length);
}

static int find_option(const char *arguments, const option *like, option *out)
{
	for (const char *at = arguments; next_option(at, out); at = out->text + out->length)
		if (is_same_text(out->text, out->name, like->text, like->name))
			return 1;
	return 0;
}

static int is_rival(const ls_point *a, const ls_point *b)
{
	return !strcmp(a->job.model, b->job.model) && !strcmp(a->job.kind, b->job.kind) &&
	       strcmp(a->job.arguments, b->job.arguments) != 0;
}

/* Whether a rival lacks the option or has another value. */
static int differs(const ls_results *results, const ls_point *point, const option *o)
{
	for (size_t i = 0; i < results->point_count; i++) {
		option other;
		if (is_rival(&results->points[i], point) &&
		    (!find_option(results->points[i].job.arguments, o, &other) ||
		     !is_same_text(o->text, o->length, other.text, other.length)))
			return 1;
	}
	return 0;
}

/* Options of a rival that the point lacks, behind `words`. */
static const char *add_missing(ls_page *page, const char *words, const ls_point *point, const ls_point *rival)
{
	option o, found;

	for (const char *at = rival->job.arguments; next_option(at, &o); at = o.text + o.length) {
		const char *missing = ls_page_text(page, "no %.*s", (int)o.name, o.text);
		if (!find_option(point->job.arguments, &o, &found) && !strstr(words, missing))
			words = ls_page_text(page, "%s%s%s", words, words[0] ? " " : "", missing);
	}
	return words;
}

const char *ls_variant(ls_page *page, const ls_results *results, const ls_point *point)
{
	const char *words = "";
	option o;

	for (const char *at = point->job.arguments; next_option(at, &o); at = o.text + o.length)
		if (differs(results, point, &o))
			words = ls_page_text(page, "%s%s%.*s", words, words[0] ? " " : "", (int)o.length, o.text);
	for (size_t i = 0; i < results->point_count; i++)
		if (is_rival(&results->points[i], point))
			words = add_missing(page, words, point, &results->points[i]);
	return words;
}

int ls_variant_same(const ls_point *a, const ls_point *b)
{
	return !strcmp(a->job.optimizer, b->job.optimizer) && !strcmp(a->job.arguments, b->job.arguments);
}

const char *ls_variant_model(ls_page *page, const ls_results *results, const ls_point *point)
{
	const char *words = ls_variant(page, results, point);
	return words[0] ? ls_page_text(page, "%s %s", point->job.model, words) : point->job.model;
}
