/*
 * names.h - helpers for messages: what somebody meant who mistyped a name, and words in the plural.
 */
#ifndef LOCKSTEP_NAMES_H
#define LOCKSTEP_NAMES_H

#include <stddef.h>
#include <stdint.h>

#include <lockstep/export.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The candidate nearest to `typed` by edit distance, when it is near enough to be meant; else NULL. */
LS_API const char *ls_name_nearest(const char *typed, const char *const *candidates, size_t count);

/* `ending` behind a word that `count` things are called, "" where there is one: "1 sample", "2 samples". */
LS_API const char *ls_plural(uint64_t count, const char *ending);

#ifdef __cplusplus
}
#endif

#endif
