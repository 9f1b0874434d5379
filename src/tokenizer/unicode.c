#include "tokenizer/unicode.h"

#include <utf8proc.h>

static int in_ranges(int32_t c, const int32_t (*ranges)[2], size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (c >= ranges[i][0] && c <= ranges[i][1])
			return 1;
	return 0;
}
#define IN_RANGES(c, ranges) in_ranges(c, ranges, sizeof(ranges) / sizeof(ranges[0]))

/* The blocks the reference counts as CJK; kana and Hangul, which have words, are not among them. */
static int is_ideograph(int32_t c)
{
	static const int32_t blocks[][2] = {
		{ 0x4E00, 0x9FFF },   { 0x3400, 0x4DBF },   { 0x20000, 0x2A6DF }, { 0x2A700, 0x2B73F },
		{ 0x2B740, 0x2B81F }, { 0x2B820, 0x2CEAF }, { 0xF900, 0xFAFF },   { 0x2F800, 0x2FA1F },
	};
	return c >= 0x3400 && IN_RANGES(c, blocks);
}

ls_char_class ls_char_classify(int32_t c)
{
	if (c == '\t' || c == '\n' || c == '\r')
		return LS_CHAR_SPACE;
	if (c == 0xFFFD)
		return LS_CHAR_DROP;
	switch (utf8proc_category(c)) {
	case UTF8PROC_CATEGORY_ZS:
	case UTF8PROC_CATEGORY_ZL: /* str.split() splits at these two */
	case UTF8PROC_CATEGORY_ZP:
		return LS_CHAR_SPACE;
	case UTF8PROC_CATEGORY_CC:
	case UTF8PROC_CATEGORY_CF:
	case UTF8PROC_CATEGORY_CO:
	case UTF8PROC_CATEGORY_CS:
		return LS_CHAR_DROP;
	default:
		return is_ideograph(c) ? LS_CHAR_ALONE : LS_CHAR_KEEP;
	}
}

int ls_char_is_punctuation(int32_t c)
{
	if (c < 0x80)
		return (c >= 33 && c <= 47) || (c >= 58 && c <= 64) || (c >= 91 && c <= 96) || (c >= 123 && c <= 126);
	utf8proc_category_t category = utf8proc_category(c);
	return category >= UTF8PROC_CATEGORY_PC && category <= UTF8PROC_CATEGORY_PO;
}

static ls_char_kind ascii_kind(int32_t c)
{
	if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'))
		return LS_KIND_LETTER;
	if (c >= '0' && c <= '9')
		return LS_KIND_NUMBER;
	return c == ' ' || (c >= '\t' && c <= '\r') ? LS_KIND_SPACE : LS_KIND_OTHER;
}

ls_char_kind ls_char_kind_of(int32_t c)
{
	if (c < 0x80)
		return ascii_kind(c);
	switch (utf8proc_category(c)) {
	case UTF8PROC_CATEGORY_LU:
	case UTF8PROC_CATEGORY_LL:
	case UTF8PROC_CATEGORY_LT:
	case UTF8PROC_CATEGORY_LM:
	case UTF8PROC_CATEGORY_LO:
		return LS_KIND_LETTER;
	case UTF8PROC_CATEGORY_ND:
	case UTF8PROC_CATEGORY_NL:
	case UTF8PROC_CATEGORY_NO:
		return LS_KIND_NUMBER;
	case UTF8PROC_CATEGORY_ZS:
	case UTF8PROC_CATEGORY_ZL:
	case UTF8PROC_CATEGORY_ZP:
		return LS_KIND_SPACE;
	default:
		return c == 0x85 ? LS_KIND_SPACE : LS_KIND_OTHER;
	}
}

int ls_char_is_mark(int32_t c)
{
	return c >= 0x300 && utf8proc_category(c) == UTF8PROC_CATEGORY_MN;
}

int ls_char_combining(int32_t c)
{
	return c < 0x300 ? 0 : utf8proc_get_property(c)->combining_class;
}

/* Unicode's Case_Ignorable: some categories, and the punctuation that occurs inside words. */
static int is_case_ignorable(int32_t c)
{
	static const int32_t inside_words[][2] = {
		{ '\'', '\'' },     { '.', '.' },       { ':', ':' },       { 0xB7, 0xB7 },
		{ 0x387, 0x387 },   { 0x55F, 0x55F },   { 0x5F4, 0x5F4 },   { 0x2018, 0x2019 },
		{ 0x2024, 0x2024 }, { 0x2027, 0x2027 }, { 0xFE13, 0xFE13 }, { 0xFE52, 0xFE52 },
		{ 0xFE55, 0xFE55 }, { 0xFF07, 0xFF07 }, { 0xFF0E, 0xFF0E }, { 0xFF1A, 0xFF1A },
	};
	switch (utf8proc_category(c)) {
	case UTF8PROC_CATEGORY_MN:
	case UTF8PROC_CATEGORY_ME:
	case UTF8PROC_CATEGORY_CF:
	case UTF8PROC_CATEGORY_LM:
	case UTF8PROC_CATEGORY_SK:
		return 1;
	default:
		return IN_RANGES(c, inside_words);
	}
}

/* Unicode's Cased, for what is not Case_Ignorable: letters with case, and a few signs made of them. */
static int is_cased(int32_t c)
{
	static const int32_t signs[][2] = {
		{ 0xAA, 0xAA },       { 0xBA, 0xBA },       { 0x2160, 0x217F },   { 0x24B6, 0x24E9 },
		{ 0x1F130, 0x1F149 }, { 0x1F150, 0x1F169 }, { 0x1F170, 0x1F189 },
	};
	utf8proc_category_t category = utf8proc_category(c);
	return category == UTF8PROC_CATEGORY_LU || category == UTF8PROC_CATEGORY_LL ||
	       category == UTF8PROC_CATEGORY_LT || IN_RANGES(c, signs);
}

/* A sigma is final when a cased letter stands before it and none behind it, case-ignorables aside. */
static int sigma_is_final(const int32_t *chars, size_t count, size_t at)
{
	size_t before = at, after = at + 1;
	while (before > 0 && is_case_ignorable(chars[before - 1]))
		before--;
	if (before == 0 || !is_cased(chars[before - 1]))
		return 0;
	while (after < count && is_case_ignorable(chars[after]))
		after++;
	return after == count || !is_cased(chars[after]);
}

int32_t ls_char_lower(const int32_t *chars, size_t count, size_t at)
{
	int32_t c = chars[at];
	if (c < 0x80)
		return c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c;
	if (c == 0x3A3)
		return sigma_is_final(chars, count, at) ? 0x3C2 : 0x3C3;
	return utf8proc_tolower(c);
}

size_t ls_char_decompose(int32_t c, int32_t parts[LS_CHAR_PARTS])
{
	int boundary = 0;
	utf8proc_ssize_t count =
		c < 0xC0 ? 0 : utf8proc_decompose_char(c, parts, LS_CHAR_PARTS, UTF8PROC_DECOMPOSE, &boundary);
	if (count >= 1 && count <= LS_CHAR_PARTS)
		return (size_t)count;
	parts[0] = c;
	return 1;
}

size_t ls_char_decode(const char *text, size_t bytes, int32_t *c)
{
	utf8proc_ssize_t used = utf8proc_iterate((const utf8proc_uint8_t *)text, (utf8proc_ssize_t)bytes, c);
	return used > 0 ? (size_t)used : 0;
}

size_t ls_char_encode(int32_t c, char out[4])
{
	return (size_t)utf8proc_encode_char(c, (utf8proc_uint8_t *)out);
}
