/*
 * unicode.h - character properties that the tokenizers of BERT and GPT-2 need, from utf8proc.
 *
 * The reference uses Python's unicodedata. Both follow the Unicode standard, so they agree on every character that both
 * know. A character that utf8proc does not know yet is treated as a letter: new ones do not vanish from a text.
 */
#ifndef LS_TOKENIZER_UNICODE_H
#define LS_TOKENIZER_UNICODE_H

#include <stddef.h>
#include <stdint.h>

/* What cleaning does with a character. */
typedef enum ls_char_class {
	LS_CHAR_KEEP,
	LS_CHAR_SPACE, /* tab, newline, return, Zs, Zl, Zp: ends a word */
	LS_CHAR_DROP,  /* U+0000, U+FFFD, Cc, Cf, Co, Cs */
	LS_CHAR_ALONE  /* CJK ideographs: each is a word */
} ls_char_class;

ls_char_class ls_char_classify(int32_t c);

/* ASCII that is neither letter, digit, space nor control; every category P*. */
int ls_char_is_punctuation(int32_t c);

/* The classes of GPT-2's regular expression: \p{L}, \p{N}, \s; all others, unknown characters among them. */
typedef enum ls_char_kind { LS_KIND_OTHER, LS_KIND_LETTER, LS_KIND_NUMBER, LS_KIND_SPACE } ls_char_kind;
ls_char_kind ls_char_kind_of(int32_t c);

/* Category Mn: the accents that are dropped. */
int ls_char_is_mark(int32_t c);

/* Canonical combining class: the order of a mark after its letter; 0: not reordered. */
int ls_char_combining(int32_t c);

/*
 * chars[at] in lower case, as str.lower() gives it: a capital sigma looks at its neighbours. U+0130 becomes 'i' without
 * its dot, a mark that the caller drops in any case.
 */
int32_t ls_char_lower(const int32_t *chars, size_t count, size_t at);

/* The canonical decomposition; returns the number of characters written. */
enum { LS_CHAR_PARTS = 8 };
size_t ls_char_decompose(int32_t c, int32_t parts[LS_CHAR_PARTS]);

/* Decode the first character of text; returns its length in bytes, 0 if it is not UTF-8. `bytes` must not be 0. */
size_t ls_char_decode(const char *text, size_t bytes, int32_t *c);
size_t ls_char_encode(int32_t c, char out[4]);

#endif
