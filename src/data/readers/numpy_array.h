/*
 * numpy_array.h - one NumPy array by its name: a member of an .npz archive, or a .npy file of a directory.
 *
 * Files are mapped, as are members that numpy.savez() wrote; those of savez_compressed() are inflated into memory.
 */
#ifndef LS_DATA_READERS_NUMPY_ARRAY_H
#define LS_DATA_READERS_NUMPY_ARRAY_H

#include "base/files.h"
#include "data/readers/npy.h"

typedef struct ls_numpy_array {
	ls_npy npy;
	ls_file_map map;
	void *inflated; /* NULL: in the map */
	size_t inflated_bytes;
	char name[4096]; /* for errors: "x_train.npy", "digits.npz: x_train.npy" */
} ls_numpy_array;

/* By the end of its name. */
int ls_numpy_is_archive(const char *path);

/* The array that has one of these names, which end with NULL; *found = 0: there is none, and *out is closed. */
ls_status ls_numpy_array_open(ls_numpy_array *out, const char *path, const char *const *names, int *found);
/* The images of an archive that are to be predicted: x_test, images, x ..., or the only array that there is. */
ls_status ls_numpy_array_open_inputs(ls_numpy_array *out, const char *path);
void ls_numpy_array_close(ls_numpy_array *array); /* harmless when it is zero */

#endif
