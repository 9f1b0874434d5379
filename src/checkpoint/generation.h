/*
 * generation.h - every start of a run has a number, and only the newest start may publish.
 *
 * A run directory is locked by the process that trains there. A lock does not hold everywhere: a file server forgets
 * that of a host that was cut off, some file systems have none. So each start writes the next number into
 * RUN/.generation, and whoever finds a larger one there than its own belongs to an older start: it must publish
 * nothing, and ends.
 */
#ifndef LS_CHECKPOINT_GENERATION_H
#define LS_CHECKPOINT_GENERATION_H

#include <stdint.h>

#include "base/status.h"

/* Called under the run's lock: the next number becomes that of this start. */
ls_status ls_generation_begin(const char *run, uint64_t *out);

/* The directory was removed and made anew: write our own again. */
ls_status ls_generation_restore(const char *run, uint64_t mine);

/* There is no run after all: the number goes. */
void ls_generation_withdraw(const char *run);

/* The number of the newest start; 0: not known. Costs three system calls. */
uint64_t ls_generation_newest(const char *run);

/* LS_EIO where there is a newer start than `mine`; 0 has none. */
ls_status ls_generation_check(const char *run, uint64_t mine);

#endif
