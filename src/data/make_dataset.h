/*
 * make_dataset.h - the private part of ls_data_make(): the state of a directory that is being filled.
 *
 * Invariants
 *  1. Files are called NAME.partial until all four are whole and on disk; then they get their names.
 *  2. lockstep-make.partial says with which settings the files are being made and how many samples of each split are on
 *     disk, and a sum over hashes of them. It is replaced (whole or not at all) only after those samples were synced.
 *  3. lockstep-data.txt, the same settings, is written last: a directory that has it is complete.
 *  4. What an earlier process made is read again and compared with that sum before it is continued: if the disk lost or
 *     changed some, that work is repeated; wrong data is never kept.
 *  5. A file this program did not make is never overwritten.
 */
#ifndef LS_DATA_MAKE_DATASET_H
#define LS_DATA_MAKE_DATASET_H

#include <lockstep/data.h>

#define LS_MAKE_ROUND 65536 /* samples between two syncs: 51 MB of MNIST's size */

/* ls_data_make() with `round` samples between two syncs: the most that an interruption can lose. */
ls_status ls_make_run(const ls_data_make_options *options, uint64_t round);

enum { LS_MAKE_IMAGES, LS_MAKE_LABELS, LS_MAKE_KINDS };

typedef struct ls_make_state {
	const char *out;     /* the directory */
	char settings[512];  /* text of all settings that decide the bytes */
	uint64_t samples[2]; /* of the training and test sets */
	uint64_t done[2];    /* number of samples on disk, from the start */
	uint64_t sum[2];     /* sum of the hashes of those samples, independent of the order of chunks */
} ls_make_state;

/* Path of a split's file while it is made. */
ls_status ls_make_partial(const ls_make_state *state, int split, int kind, char *path, size_t size);

/* Read the state of the directory: *complete, or partly written (sets done), or nothing written by us; other settings
 * are an error. */
ls_status ls_make_look(ls_make_state *state, int *complete);
ls_status ls_make_save(const ls_make_state *state);
ls_status ls_make_publish(const ls_make_state *state); /* all files get their final names */

#endif
