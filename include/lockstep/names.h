/*
 * names.h - helpers for messages: suggestions for mistyped names, and plurals.
 */
#ifndef LOCKSTEP_NAMES_H
#define LOCKSTEP_NAMES_H

#include <stddef.h>
#include <stdint.h>

#include <lockstep/export.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The candidate nearest to `typed` by edit distance, if it is near enough to be a typing mistake; else NULL. */
LS_API const char *ls_name_nearest(const char *typed, const char *const *candidates, size_t count);

/* The plural `ending` of a noun after `count`: "" for 1, else `ending`: "1 sample", "2 samples". */
LS_API const char *ls_plural(uint64_t count, const char *ending);

#ifdef __cplusplus
}
#endif

#endif
