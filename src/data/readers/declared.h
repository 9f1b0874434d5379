/*
 * declared.h - files whose header declares how long they are.
 */
#ifndef LS_DATA_READERS_DECLARED_H
#define LS_DATA_READERS_DECLARED_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* LS_EFORMAT where the file `name` does not have exactly the bytes that its header declares. */
ls_status ls_declared_check(const char *name, size_t bytes, uint64_t declared);

#endif
