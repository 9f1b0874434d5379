#include "data/readers/sentences.h"

#include <string.h>

#define LOOK_LINES 1000
#define LOOK_BYTES ((size_t)1 << 20)
#define RUN_BYTES 64 /* of full stops and closing quotes; a longer run ends no sentence */

static int is_space(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

static int is_mark(char c)
{
	return c == '.' || c == '!' || c == '?';
}

static int is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Bytes of what may stand between the full stop and the space: a quote or bracket that closes; 0: something else. */
static size_t closer(const char *text, size_t bytes)
{
	static const char *const closers[] = {
		"\"", "'", ")", "]", "}", "*", "\xe2\x80\x9d", "\xe2\x80\x99", "\xc2\xbb"
	};
	for (size_t i = 0; i < sizeof(closers) / sizeof(closers[0]); i++) {
		size_t length = strlen(closers[i]);
		if (length <= bytes && memcmp(text, closers[i], length) == 0)
			return length;
	}
	return 0;
}

/* Bytes of an ideographic full stop, exclamation or question mark. */
static size_t wide_stop(const char *text, size_t bytes)
{
	static const char *const stops[] = { "\xe3\x80\x82", "\xef\xbc\x81", "\xef\xbc\x9f" };
	for (size_t i = 0; i < 3 && bytes >= 3; i++)
		if (memcmp(text, stops[i], 3) == 0)
			return 3;
	return 0;
}

/* Whether the letters before the full stop at `at` are an initial ("J.", "U.S.") or a word that is not written out. */
static int is_abbreviation(const char *text, size_t begin, size_t at)
{
	static const char *const known[] = { "Mr",   "Mrs", "Ms",  "Dr",     "Prof", "St",  "Jr",  "Sr",  "Gen", "Col",
					     "Capt", "Lt",  "Maj", "Sgt",    "Gov",  "Sen", "Rep", "Hon", "Rev", "Pres",
					     "No",   "Nos", "vs",  "Messrs", "Mt",   "Ft",  "Art", "Sec", "Vol", "pp",
					     "Fig",  "Jan", "Feb", "Aug",    "Sept", "Oct", "Nov", "Dec" };
	size_t from = at;
	while (from > begin && is_letter(text[from - 1]))
		from--;
	size_t length = at - from;
	if (length == 1)
		return 1;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (strlen(known[i]) == length && memcmp(known[i], text + from, length) == 0)
			return 1;
	return 0;
}

/* Where a sentence that began at `begin` ends when its last mark is at `at`; 0: it goes on. `limit` ends the text. */
static size_t sentence_end(const char *text, size_t begin, size_t at, size_t limit)
{
	size_t wide = wide_stop(text + at, limit - at), end = at + (wide ? wide : 1), more;
	char mark = text[at];
	if (!wide && (!is_mark(mark) || (at > begin && is_mark(text[at - 1])))) /* a run of marks counts at its first */
		return 0;
	while (end < limit && end - at < RUN_BYTES && is_mark(text[end]))
		end++;
	while (end < limit && end - at < RUN_BYTES && (more = closer(text + end, limit - end)) != 0)
		end += more;
	if (wide || end == limit)
		return end;
	size_t next = end;
	while (next < limit && is_space(text[next]))
		next++;
	if (next == end || (next < limit && text[next] >= 'a' && text[next] <= 'z'))
		return 0;
	return mark == '.' && end == at + 1 && next < limit && is_abbreviation(text, begin, at) ? 0 : end;
}

/* The end of the line that `at` lies in: where its '\n' is, or the end of the text. */
static size_t line_end(const char *text, size_t bytes, size_t at)
{
	const char *end = memchr(text + at, '\n', bytes - at);
	return end ? (size_t)(end - text) : bytes;
}

static size_t trim(const char *text, size_t begin, size_t end)
{
	while (end > begin && is_space(text[end - 1]))
		end--;
	return end;
}

static int has_inner_end(const char *text, size_t begin, size_t end)
{
	for (size_t at = begin; at < end; at++) {
		size_t found = sentence_end(text, begin, at, end);
		if (found && found < end)
			return 1;
	}
	return 0;
}

static int one_sentence_a_line(const char *text, size_t bytes)
{
	size_t lines = 0, inner = 0, at = 0;
	bytes = bytes < LOOK_BYTES ? bytes : LOOK_BYTES;
	while (at < bytes && lines < LOOK_LINES) {
		size_t end = line_end(text, bytes, at), last = trim(text, at, end);
		lines += last > at;
		inner += has_inner_end(text, at, last);
		at = end + 1;
	}
	return inner * 8 <= lines;
}

void ls_sentence_reader_begin(ls_sentence_reader *prose, const char *text, size_t bytes, int alone)
{
	int lines = one_sentence_a_line(text, bytes);
	*prose = (ls_sentence_reader){
		.text = text, .bytes = bytes, .lines = lines, .blank_ends = lines || alone, .starts = 1
	};
}

/* Past white space; 1 when an empty line was among it. */
static int skip_spaces(ls_sentence_reader *p)
{
	int newlines = 0;
	while (p->at < p->bytes && is_space(p->text[p->at]))
		newlines += p->text[p->at++] == '\n';
	return newlines > 1;
}

/* 1 when an empty line begins with the '\n' at `at`. */
static int blank_follows(const ls_sentence_reader *p, size_t at)
{
	for (at++; at < p->bytes && is_space(p->text[at]); at++)
		if (p->text[at] == '\n')
			return 1;
	return 0;
}

static size_t prose_end(const ls_sentence_reader *p, size_t limit)
{
	for (size_t at = p->at; at < limit; at++) {
		unsigned char c = (unsigned char)p->text[at];
		if (c == '\n' && blank_follows(p, at))
			return at;
		if (c < 0x80 && !is_mark((char)c))
			continue;
		size_t end = sentence_end(p->text, p->at, at, p->bytes);
		if (end)
			return end;
	}
	return limit;
}

/* Not inside a word, nor, where there is no space, inside a character. */
static size_t cut(const char *text, size_t begin, size_t end)
{
	size_t at = end;
	while (at > begin + 1 && !is_space(text[at]))
		at--;
	if (at > begin + 1)
		return at;
	for (at = end; at > begin + 1 && end - at < 4 && ((unsigned char)text[at] & 0xc0) == 0x80;)
		at--;
	return at;
}

int ls_sentence_reader_next(ls_sentence_reader *p, ls_sentence *out)
{
	int blank = skip_spaces(p);
	if (p->at == p->bytes)
		return 0;
	size_t begin = p->at, limit = p->bytes, end;
	if (p->bytes - begin > LS_SENTENCE_BYTES_MAX)
		limit = begin + LS_SENTENCE_BYTES_MAX;
	end = p->lines ? line_end(p->text, limit, begin) : prose_end(p, limit);
	if (end >= limit && limit < p->bytes)
		end = cut(p->text, begin, limit);
	*out = (ls_sentence){ begin, trim(p->text, begin, end) - begin, p->starts || (blank && p->blank_ends) };
	p->starts = 0;
	p->at = end;
	return 1;
}
