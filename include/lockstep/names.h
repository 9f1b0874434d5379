/*
 * names.h - what somebody meant who mistyped a name.
 */
#ifndef LOCKSTEP_NAMES_H
#define LOCKSTEP_NAMES_H

#include <stddef.h>

#include <lockstep/export.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The candidate nearest to `typed` by edit distance, when it is near enough to be meant; else NULL. */
LS_API const char *ls_name_nearest(const char *typed, const char *const *candidates, size_t count);

#ifdef __cplusplus
}
#endif

#endif
