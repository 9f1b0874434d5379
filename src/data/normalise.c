#include "data/normalise.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/names.h"
#include "base/status.h"

#define SHOWN_MAX 4

static double mnist_mean[] = { 0.1307 }, mnist_deviation[] = { 0.3081 };
const ls_normalisation ls_mnist_normalisation = { 1, mnist_mean, mnist_deviation };
static double fashion_mean[] = { 0.286 }, fashion_deviation[] = { 0.353 };
const ls_normalisation ls_fashion_mnist_normalisation = { 1, fashion_mean, fashion_deviation };

ls_status ls_normalisation_new(ls_normalisation *out, int channels)
{
	double *values = calloc(2 * (size_t)channels, sizeof(*values));
	if (!values)
		return ls_fail(LS_EMEMORY, "no memory for the means of %d channels", channels);
	*out = (ls_normalisation){ channels, values, values + channels };
	return LS_OK;
}

void ls_normalisation_release(ls_normalisation *n)
{
	free(n->mean);
	*n = (ls_normalisation){ 0 };
}

ls_status ls_normalisation_copy(ls_normalisation *out, const ls_normalisation *from)
{
	LS_TRY(ls_normalisation_new(out, from->channels));
	memcpy(out->mean, from->mean, (size_t)from->channels * sizeof(double));
	memcpy(out->deviation, from->deviation, (size_t)from->channels * sizeof(double));
	return LS_OK;
}

int ls_normalisation_equal(const ls_normalisation *a, const ls_normalisation *b)
{
	int same = a->channels == b->channels;
	for (int c = 0; same && c < a->channels; c++)
		same = a->mean[c] == b->mean[c] && a->deviation[c] == b->deviation[c];
	return same;
}

ls_status ls_normalisation_check(const ls_normalisation *n, const char *where)
{
	if (n->channels < 1 || !n->mean || !n->deviation)
		return ls_fail(LS_EFORMAT, "%s: means and deviations of %d channels; there must be at least one", where,
			       n->channels);
	for (int c = 0; c < n->channels; c++)
		if (!(fabs(n->mean[c]) <= 1e6) || !(n->deviation[c] >= 1e-6 && n->deviation[c] <= 1e6))
			return ls_fail(LS_EFORMAT,
				       "%s: mean %g and deviation %g of channel %d: expected a mean up to 1e6 and a "
				       "deviation of 1e-6 to 1e6, of pixels from 0 to 1",
				       where, n->mean[c], n->deviation[c], c);
	return LS_OK;
}

/* ---- texts ---- */

/* As few digits as read back to the same number. */
static int number_text(char *out, size_t size, double value)
{
	int length = snprintf(out, size, "%.9g", value);
	return strtod(out, NULL) == value ? length : snprintf(out, size, "%.17g", value);
}

char *ls_normalisation_to_text(const double *values, int channels)
{
	enum { LONGEST = 26 };
	char *text = malloc((size_t)channels * LONGEST + 1);
	size_t used = 0;
	for (int c = 0; text && c < channels; c++) {
		if (c > 0)
			text[used++] = ' ';
		used += (size_t)number_text(text + used, LONGEST, values[c]);
	}
	return text;
}

static int count_words(const char *text)
{
	int count = 0;
	for (text += strspn(text, " "); *text; text += strspn(text, " ")) {
		text += strcspn(text, " ");
		count++;
	}
	return count;
}

static ls_status parse_words(const char *text, int count, double *values, const char *where)
{
	char word[64];
	for (int i = 0; i < count; i++) {
		text += strspn(text, " ");
		size_t length = strcspn(text, " ");
		snprintf(word, sizeof(word), "%.*s", (int)(length < sizeof(word) ? length : sizeof(word) - 1), text);
		if (ls_parse_real(word, "a mean or deviation", &values[i]) != LS_OK)
			return ls_fail_context(LS_EFORMAT, "%s", where);
		text += length;
	}
	return LS_OK;
}

ls_status ls_normalisation_from_text(ls_normalisation *out, const char *mean, const char *deviation, const char *where)
{
	ls_normalisation n = { 0 };
	int channels = count_words(mean);
	if (channels < 1 || count_words(deviation) != channels)
		return ls_fail(LS_EFORMAT, "%s: %d means and %d deviations; there must be one of each per channel",
			       where, channels, count_words(deviation));
	LS_TRY(ls_normalisation_new(&n, channels));
	ls_status status = parse_words(mean, channels, n.mean, where);
	if (!status)
		status = parse_words(deviation, channels, n.deviation, where);
	if (!status)
		status = ls_normalisation_check(&n, where);
	if (status) {
		ls_normalisation_release(&n);
		return status;
	}
	*out = n;
	return LS_OK;
}

/* ---- the file ---- */

/* A line per channel; `text` is changed. */
static ls_status parse_lines(ls_normalisation *n, char *text, const char *path)
{
	int lines = 0, good = 1;
	char *rest = NULL;
	for (char *line = strtok_r(text, "\r\n", &rest); line; line = strtok_r(NULL, "\r\n", &rest)) {
		double pair[2];
		for (char *at = line; *at; at++)
			*at = *at == '\t' ? ' ' : *at;
		good = lines < n->channels && count_words(line) == 2;
		if (!good)
			break;
		LS_TRY(parse_words(line, 2, pair, path));
		n->mean[lines] = pair[0];
		n->deviation[lines++] = pair[1];
	}
	if (!good || lines != n->channels)
		return ls_fail(LS_EFORMAT,
			       "%s must have a line with mean and deviation for each channel of the images, which have "
			       "%d; line %d is not as expected",
			       path, n->channels, lines + 1);
	return ls_normalisation_check(n, path);
}

#define TEXT_MAX ((size_t)1 << 27)

static ls_status read_file(char **out, const char *path)
{
	ls_file_map map;
	LS_TRY(ls_file_map_open(&map, path));
	int too_large = map.bytes > TEXT_MAX;
	char *text = too_large ? NULL : calloc(map.bytes + 1, 1);
	if (text && map.bytes)
		memcpy(text, map.data, map.bytes);
	ls_file_map_close(&map);
	if (too_large)
		return ls_fail(LS_EFORMAT, "%s is too large to be a list of means and deviations", path);
	if (!text)
		return ls_fail(LS_EMEMORY, "%s: no memory to read it", path);
	*out = text;
	return LS_OK;
}

ls_status ls_normalisation_read(ls_normalisation *out, const char *dir, int channels, int *found)
{
	char path[4096], *text = NULL;
	ls_normalisation n = { 0 };
	LS_TRY(ls_path_join(path, sizeof(path), dir, LS_NORMALISATION_FILE));
	*found = ls_path_exists(path);
	if (!*found)
		return LS_OK;
	LS_TRY(read_file(&text, path));
	ls_status status = ls_normalisation_new(&n, channels);
	if (!status) {
		status = parse_lines(&n, text, path);
		if (status)
			ls_normalisation_release(&n);
	}
	free(text);
	if (!status)
		*out = n;
	return status;
}

ls_status ls_normalisation_write(const ls_normalisation *n, const char *dir)
{
	char path[4096], *text = NULL;
	size_t bytes = 0;
	LS_TRY(ls_path_join(path, sizeof(path), dir, LS_NORMALISATION_FILE));
	FILE *to = open_memstream(&text, &bytes);
	for (int c = 0; to && c < n->channels; c++) {
		char mean[32], deviation[32];
		number_text(mean, sizeof(mean), n->mean[c]);
		number_text(deviation, sizeof(deviation), n->deviation[c]);
		fprintf(to, "%s%s %s", c > 0 ? "\n" : "", mean, deviation);
	}
	int written = to && fclose(to) == 0;
	ls_status status = written ? ls_file_put_text(path, text) : ls_fail(LS_EMEMORY, "no memory for %s", path);
	free(text);
	return status;
}

/* ---- for people ---- */

static void show_list(const double *values, int channels, char *out, size_t size)
{
	size_t used = 0;
	for (int c = 0; c < channels && c < SHOWN_MAX && used < size; c++)
		used += (size_t)snprintf(out + used, size - used, "%s%.4g", c > 0 ? " " : "", values[c]);
	if (channels > SHOWN_MAX && used < size)
		snprintf(out + used, size - used, " ...");
}

const char *ls_normalisation_show(const ls_normalisation *n, char *out, size_t size)
{
	const char *open = n->channels > 1 ? "(" : "", *close = n->channels > 1 ? ")" : "";
	char mean[128], deviation[128];
	show_list(n->mean, n->channels, mean, sizeof(mean));
	show_list(n->deviation, n->channels, deviation, sizeof(deviation));
	snprintf(out, size, "mean %s%s%s, deviation %s%s%s", open, mean, close, open, deviation, close);
	return out;
}
