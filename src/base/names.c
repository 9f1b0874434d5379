/*
 * names.c - rows of tables by name, suggestions for mistyped names, and numbers parsed whole.
 */
#include "base/names.h"

#include <ctype.h>
#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { NAME_MAX_LENGTH = 63 };

static int min3(int a, int b, int c)
{
	int least = a < b ? a : b;
	return least < c ? least : c;
}

/*
 * Edits (insert, delete, replace, swap neighbours) that turn a into b, case ignored. Row i, column j is the distance
 * between the first i letters of a and the first j of b; three rows are kept, the swap looks two back.
 */
static int distance(const char *a, const char *b)
{
	int length_a = (int)strlen(a), length_b = (int)strlen(b);
	int rows[3][NAME_MAX_LENGTH + 1];
	for (int j = 0; j <= length_b; j++)
		rows[0][j] = j;
	for (int i = 1; i <= length_a; i++) {
		int *row = rows[i % 3], *above = rows[(i + 2) % 3], *two_above = rows[(i + 1) % 3];
		row[0] = i;
		for (int j = 1; j <= length_b; j++) {
			int x = tolower((unsigned char)a[i - 1]), y = tolower((unsigned char)b[j - 1]);
			row[j] = min3(above[j] + 1, row[j - 1] + 1, above[j - 1] + (x != y));
			if (i > 1 && j > 1 && x == tolower((unsigned char)b[j - 2]) &&
			    tolower((unsigned char)a[i - 2]) == y && two_above[j - 2] + 1 < row[j])
				row[j] = two_above[j - 2] + 1;
		}
	}
	return rows[length_a % 3][length_b];
}

/* Maximum number of edits that counts as a typing mistake; a prefix of a name counts as one edit. The dashes before an
 * option do not count as part of its name, or all short options would look alike. */
static int slip(const char *typed, const char *candidate)
{
	typed += strspn(typed, "-");
	candidate += strspn(candidate, "-");
	int length = (int)strlen(typed);
	if (length >= 3 && strncasecmp(typed, candidate, (size_t)length) == 0)
		return 1;
	int edits = distance(typed, candidate), is_most_right = 2 * edits < length || (edits == 1 && length == 2);
	return edits <= 1 + length / 4 && is_most_right ? edits : INT32_MAX;
}

const char *ls_name_nearest(const char *typed, const char *const *candidates, size_t count)
{
	const char *best = NULL;
	int fewest = INT32_MAX;
	if (strlen(typed) > NAME_MAX_LENGTH)
		return NULL;
	for (size_t i = 0; i < count; i++) {
		if (strlen(candidates[i]) > NAME_MAX_LENGTH)
			continue;
		int edits = slip(typed, candidates[i]);
		if (edits < fewest) {
			fewest = edits;
			best = candidates[i];
		}
	}
	return best;
}

const char *ls_plural(uint64_t count, const char *ending)
{
	return count == 1 ? "" : ending;
}

size_t ls_name_row(const char *typed, const char *(*at)(size_t i))
{
	for (size_t i = 0; typed && at(i); i++)
		if (strcmp(at(i), typed) == 0)
			return i;
	return LS_NO_ROW;
}

ls_status ls_name_find(const char *kind, const char *typed, const char *(*at)(size_t i), size_t *row)
{
	size_t found = ls_name_row(typed, at);
	if (found == LS_NO_ROW)
		return ls_name_unknown(kind, typed ? typed : "", at);
	*row = found;
	return LS_OK;
}

ls_status ls_name_unknown(const char *kind, const char *typed, const char *(*at)(size_t i))
{
	enum { MOST = 256 };
	const char *names[MOST];
	char known[1024] = "";
	size_t count = 0, used = 0;
	for (const char *name; count < MOST && (name = at(count)); count++) {
		names[count] = name;
		int length = snprintf(known + used, sizeof(known) - used, "%s%s", count ? ", " : "", name);
		used = length < 0 || used + (size_t)length >= sizeof(known) ? sizeof(known) - 1 : used + (size_t)length;
	}
	const char *nearest = ls_name_nearest(typed, names, count);
	if (nearest)
		return ls_fail(LS_EINVALID, "unknown %s '%s'; did you mean '%s'? Known: %s", kind, typed, nearest,
			       known);
	return ls_fail(LS_EINVALID, "unknown %s '%s'. Known: %s", kind, typed, known);
}

static const char *skip_digits(const char *text)
{
	return text + strspn(text, "0123456789");
}

/* strtoll and strtod also take blanks, a plus sign, hexadecimal, "inf" and the beginning of anything: whatever people
 * type must be a decimal number from end to end. */
static int is_whole(const char *text)
{
	const char *digits = text + (*text == '-');
	return *digits && !*skip_digits(digits);
}

size_t ls_decimal_span(const char *text)
{
	const char *whole = text + (*text == '-'), *end = skip_digits(whole);
	size_t digits = (size_t)(end - whole);
	if (*end == '.') {
		const char *fraction = end + 1;
		end = skip_digits(fraction);
		digits += (size_t)(end - fraction);
	}
	if (!digits)
		return 0;
	if (*end == 'e' || *end == 'E') {
		const char *exponent = end + 1 + (end[1] == '-' || end[1] == '+');
		end = skip_digits(exponent) > exponent ? skip_digits(exponent) : end;
	}
	return (size_t)(end - text);
}

ls_status ls_parse_int(const char *text, const char *what, int64_t *out)
{
	if (!is_whole(text))
		return ls_fail(LS_EINVALID, "%s: '%s' is not a whole number", what, text);
	errno = 0;
	long long value = strtoll(text, NULL, 10);
	if (errno == ERANGE)
		return ls_fail(LS_EINVALID, "%s: %s is too large", what, text);
	*out = value;
	return LS_OK;
}

/* Models compute with floats, so a number that is 0 in one is not what was typed. */
ls_status ls_parse_real(const char *text, const char *what, double *out)
{
	size_t span = ls_decimal_span(text);
	if (!span || text[span])
		return ls_fail(LS_EINVALID, "%s: '%s' is not a number", what, text);
	errno = 0;
	double value = strtod(text, NULL);
	if (isinf(value))
		return ls_fail(LS_EINVALID, "%s: %s is too large", what, text);
	if (errno == ERANGE || (value != 0 && fabs(value) < (double)FLT_MIN))
		return ls_fail(LS_EINVALID, "%s: %s is too small: below %.2g numbers become 0", what, text,
			       (double)FLT_MIN);
	*out = value;
	return LS_OK;
}

static uint64_t suffix_factor(char letter)
{
	switch (letter) {
	case '\0':
		return 1;
	case 'k':
	case 'K':
		return 1000;
	case 'M':
		return 1000000;
	case 'G':
		return 1000000000;
	case 'T':
		return 1000000000000;
	default:
		return 0;
	}
}

/* value += digit * unit, or report that it does not fit. */
static int add_digit(uint64_t *value, uint64_t digit, uint64_t unit)
{
	uint64_t part;
	return !__builtin_mul_overflow(digit, unit, &part) && !__builtin_add_overflow(*value, part, value);
}

/* Exact decimal arithmetic: 0.3k is 300 and 1.2345k is refused, whatever a double would make of them. */
ls_status ls_parse_count(const char *text, const char *what, uint64_t *out)
{
	size_t whole = strspn(text, "0123456789"), fraction = 0;
	if (text[whole] == '.')
		fraction = strspn(text + whole + 1, "0123456789");
	const char *suffix = text + whole + (fraction ? fraction + 1 : 0);
	uint64_t factor = suffix_factor(*suffix), value = 0, unit = factor;
	if (!whole || !factor || (*suffix && suffix[1]))
		return ls_fail(LS_EINVALID, "%s: '%s' is not a count such as 72000000, 64k, 72M or 1.5G", what, text);
	int fits = 1;
	for (size_t i = 0; i < whole; i++)
		fits &= !__builtin_mul_overflow(value, 10, &value) && add_digit(&value, (uint64_t)(text[i] - '0'), 1);
	fits &= !__builtin_mul_overflow(value, factor, &value);
	for (size_t i = whole + 1; i < whole + 1 + fraction; i++) {
		if (text[i] != '0' && unit % 10 != 0)
			return ls_fail(LS_EINVALID, "%s: %s is not a whole number", what, text);
		unit /= 10;
		fits &= add_digit(&value, (uint64_t)(text[i] - '0'), unit);
	}
	if (!fits)
		return ls_fail(LS_EINVALID, "%s: %s is too large", what, text);
	*out = value;
	return LS_OK;
}

const char *ls_text_printable(char *out, size_t size, const char *text)
{
	size_t i = 0;
	for (; text[i] && i + 1 < size; i++) {
		unsigned char c = (unsigned char)text[i];
		out[i] = c < 0x20 || c == 0x7f ? '?' : text[i];
	}
	out[i] = 0;
	if (text[i] && size > 4)
		memcpy(out + i - 3, "...", 3);
	return out;
}

int ls_text_ends_with(const char *text, const char *end)
{
	size_t length = strlen(text), tail = strlen(end);
	return length >= tail && strcmp(text + length - tail, end) == 0;
}
