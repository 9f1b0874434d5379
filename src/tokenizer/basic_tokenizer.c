/*
 * basic_tokenizer.c - split a text into words.
 *
 * The text is walked in runs between separators. A run of printable ASCII, the usual case, is split in place. Any other
 * run is decoded, and goes through the steps of basic_tokenizer.h as an array of characters: the lower case of a sigma
 * and the order of marks depend on neighbours, but never on those beyond a separator.
 */
#include "tokenizer/basic_tokenizer.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "tokenizer/unicode.h"

typedef struct chars {
	int32_t *at;
	size_t count, capacity;
} chars;

typedef struct split {
	const ls_basic *basic;
	const char *text;
	size_t bytes;
	chars run;  /* characters of a run, cleaned */
	chars flat; /* the same in lower case and decomposed */
	char word[4 * LS_WORD_MAX_LIMIT];
} split;

const char *ls_special_text(size_t i)
{
	static const char *const texts[] = { "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]" };
	return i < sizeof(texts) / sizeof(texts[0]) ? texts[i] : NULL;
}

static ls_status chars_reserve(chars *list, size_t capacity)
{
	return ls_array_grow(&list->at, &list->capacity, capacity, sizeof(*list->at));
}

static ls_status emit(const split *s, const char *word, size_t bytes, ls_word_kind kind)
{
	return s->basic->word(s->basic->context, word, bytes, kind);
}

static int is_special(const char *run, size_t bytes)
{
	const char *text;
	if (bytes < 5 || run[0] != '[')
		return 0;
	for (size_t i = 0; (text = ls_special_text(i)); i++)
		if (strlen(text) == bytes && memcmp(text, run, bytes) == 0)
			return 1;
	return 0;
}

/* --- runs of printable ASCII --- */

enum { PRINTABLE = 1, LETTER = 2, SPACE = 4 }; /* LETTER: or digit */

/* Printable are '!' .. '~'. */
static const uint8_t ascii[256] = {
	['\t'] = SPACE,    ['\n'] = SPACE,
	['\r'] = SPACE,    [' '] = SPACE,
	['!' ... '/'] = 1, ['0' ... '9'] = 1 | LETTER,
	[':' ... '@'] = 1, ['A' ... 'Z'] = 1 | LETTER,
	['[' ... '`'] = 1, ['a' ... 'z'] = 1 | LETTER,
	['{' ... '~'] = 1,
};

static ls_status emit_ascii(split *s, const char *word, size_t bytes)
{
	if (bytes > (size_t)s->basic->word_max)
		return emit(s, NULL, 0, LS_WORD_LONG);
	if (s->basic->cased)
		return emit(s, word, bytes, LS_WORD_PLAIN);
	for (size_t i = 0; i < bytes; i++) {
		unsigned char c = (unsigned char)word[i];
		s->word[i] = (char)(c + ((unsigned char)(c - 'A') < 26 ? 'a' - 'A' : 0));
	}
	return emit(s, s->word, bytes, LS_WORD_PLAIN);
}

static ls_status split_ascii(split *s, const char *run, size_t bytes)
{
	if (is_special(run, bytes))
		return emit(s, run, bytes, LS_WORD_SPECIAL);
	for (size_t i = 0, begin; i < bytes;) {
		if (!(ascii[(uint8_t)run[i]] & LETTER)) {
			LS_TRY(emit(s, run + i++, 1, LS_WORD_PLAIN));
			continue;
		}
		for (begin = i; i < bytes && ascii[(uint8_t)run[i]] & LETTER;)
			i++;
		LS_TRY(emit_ascii(s, run + begin, i - begin));
	}
	return LS_OK;
}

/* --- any other run --- */

static ls_status refuse_byte(const split *s, size_t at)
{
	size_t line = 1;
	for (size_t i = 0; i < at; i++)
		line += s->text[i] == '\n';
	return ls_fail(LS_EFORMAT, "byte %zu (line %zu) is not UTF-8: 0x%02x", at, line, (uint8_t)s->text[at]);
}

/* Collect a run from *at on, cleaned; *at moves behind it. An ideograph is a run. */
static ls_status read_run(split *s, size_t *at)
{
	s->run.count = 0;
	while (*at < s->bytes) {
		int32_t c;
		size_t used = ls_char_decode(s->text + *at, s->bytes - *at, &c);
		if (!used && !s->basic->replace_invalid)
			return refuse_byte(s, *at);
		ls_char_class class = used ? ls_char_classify(c) : LS_CHAR_DROP;
		if (class == LS_CHAR_ALONE && s->run.count > 0)
			return LS_OK; /* it begins the next run */
		*at += used ? used : 1;
		if (class == LS_CHAR_SPACE)
			return LS_OK;
		if (class == LS_CHAR_DROP)
			continue;
		LS_TRY(chars_reserve(&s->run, s->run.count + 1));
		s->run.at[s->run.count++] = c;
		if (class == LS_CHAR_ALONE)
			return LS_OK;
	}
	return LS_OK;
}

/* Dropped characters may have hidden a special token: returns the length of its text in s->word, or 0. */
static size_t special_in_run(split *s)
{
	const chars *run = &s->run;
	if (run->count > 8 || run->at[0] != '[')
		return 0;
	for (size_t i = 0; i < run->count; i++)
		s->word[i] = run->at[i] < 0x80 ? (char)run->at[i] : ' ';
	return is_special(s->word, run->count) ? run->count : 0;
}

static ls_status lower_and_decompose(split *s)
{
	s->flat.count = 0;
	for (size_t i = 0; i < s->run.count; i++) {
		LS_TRY(chars_reserve(&s->flat, s->flat.count + LS_CHAR_PARTS));
		int32_t c = ls_char_lower(s->run.at, s->run.count, i);
		s->flat.count += ls_char_decompose(c, s->flat.at + s->flat.count);
	}
	return LS_OK;
}

/* Put marks with a class into its order, equal ones left as they are (a counting sort: no text takes long). */
static void sort_marks(int32_t *marks, size_t count, int32_t *scratch)
{
	size_t begin[257] = { 0 };
	for (size_t i = 0; i < count; i++)
		begin[ls_char_combining(marks[i]) + 1]++;
	for (int i = 1; i < 257; i++)
		begin[i] += begin[i - 1];
	for (size_t i = 0; i < count; i++)
		scratch[begin[ls_char_combining(marks[i])]++] = marks[i];
	memcpy(marks, scratch, count * sizeof(*marks));
}

/* NFD's last step. Marks vanish right after it, but a few characters that stay (Mc) are moved, too. */
static ls_status order_marks(split *s)
{
	chars *flat = &s->flat;
	LS_TRY(chars_reserve(&s->run, flat->count)); /* the run is not needed any more */
	for (size_t i = 0; i < flat->count;) {
		size_t begin = i;
		int last = 0, class, sorted = 1;
		for (; i < flat->count && (class = ls_char_combining(flat->at[i])) != 0; i++) {
			sorted &= last <= class;
			last = class;
		}
		if (!sorted)
			sort_marks(flat->at + begin, i - begin, s->run.at);
		i += i == begin;
	}
	return LS_OK;
}

static void drop_marks(chars *list)
{
	size_t kept = 0;
	for (size_t i = 0; i < list->count; i++)
		if (!ls_char_is_mark(list->at[i]))
			list->at[kept++] = list->at[i];
	list->count = kept;
}

static ls_status emit_chars(split *s, const int32_t *word, size_t count)
{
	size_t bytes = 0;
	if (count > (size_t)s->basic->word_max)
		return emit(s, NULL, 0, LS_WORD_LONG);
	for (size_t i = 0; i < count; i++)
		bytes += ls_char_encode(word[i], s->word + bytes);
	return emit(s, s->word, bytes, LS_WORD_PLAIN);
}

static ls_status split_at_punctuation(split *s, const chars *run)
{
	for (size_t i = 0, begin; i < run->count;) {
		for (begin = i; i < run->count && !ls_char_is_punctuation(run->at[i]);)
			i++;
		i += i == begin; /* punctuation stands alone */
		LS_TRY(emit_chars(s, run->at + begin, i - begin));
	}
	return LS_OK;
}

static ls_status split_chars(split *s)
{
	if (s->run.count == 0)
		return LS_OK;
	size_t special = special_in_run(s);
	if (special)
		return emit(s, s->word, special, LS_WORD_SPECIAL);
	if (s->basic->cased)
		return split_at_punctuation(s, &s->run);
	LS_TRY(lower_and_decompose(s));
	LS_TRY(order_marks(s));
	drop_marks(&s->flat);
	return split_at_punctuation(s, &s->flat);
}

static ls_status split_all(split *s)
{
	const uint8_t *text = (const uint8_t *)s->text;
	for (size_t at = 0, end; at < s->bytes; at = end) {
		for (end = at; end < s->bytes && ascii[text[end]] & PRINTABLE;)
			end++;
		if (end == s->bytes || ascii[text[end]] & SPACE) {
			if (end > at)
				LS_TRY(split_ascii(s, s->text + at, end - at));
			end += end < s->bytes;
			continue;
		}
		end = at;
		LS_TRY(read_run(s, &end));
		LS_TRY(split_chars(s));
	}
	return LS_OK;
}

ls_status ls_basic_split(const ls_basic *basic, const char *text, size_t bytes)
{
	split s;
	s.basic = basic;
	s.text = text;
	s.bytes = bytes;
	s.run = s.flat = (chars){ 0 };
	ls_status status = split_all(&s);
	free(s.run.at);
	free(s.flat.at);
	return status;
}
