/*
 * measured.h - the mean and deviation of a folder's images, kept beside the cache of decoded images: measured once.
 */
#ifndef LS_DATA_READERS_MEASURED_H
#define LS_DATA_READERS_MEASURED_H

#include <stddef.h>
#include <stdint.h>

#include "data/normalise.h"

/* From and to a file. The key is a hash of the images that were measured. *found = 0: there is none of that key and
 * number of channels. Failures to write are ignored. */
ls_status ls_measured_load(ls_normalisation *out, const char *path, uint64_t key, int channels, int *found);
void ls_measured_save(const ls_normalisation *normalisation, const char *path, uint64_t key);

/* One process measures; the others, also of other hosts that share the directory, wait here until the one before has
 * saved. Close it then; -1: no lock. */
int ls_measured_lock(const char *path);

/* The text of such a file. */
ls_status ls_measured_parse(ls_normalisation *out, const char *text, size_t bytes, uint64_t key, int channels,
			    int *found);

#endif
