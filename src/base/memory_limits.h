/*
 * memory_limits.h - ls_memory_available() with the file system's root as an argument, for tests.
 */
#ifndef LS_BASE_MEMORY_LIMITS_H
#define LS_BASE_MEMORY_LIMITS_H

#include <stdint.h>

uint64_t ls_memory_available_under(const char *root); /* "" is this machine */

#endif
