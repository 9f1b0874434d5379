/*
 * memory_limits.h - ls_memory_physical() with the file system's root as an argument, for tests.
 */
#ifndef LS_BASE_MEMORY_LIMITS_H
#define LS_BASE_MEMORY_LIMITS_H

#include "base/memory.h"

ls_memory_limit ls_memory_physical_under(const char *root); /* "" is this machine */

#endif
