/*
 * tar_inputs.h - the images in a tar file, one after another, as samples for a model: shards are predicted where they
 * lie.
 *
 * Members that end with .png, .jpg or .jpeg are images; others, such as labels, are left alone. Nothing is unpacked.
 */
#ifndef LS_PREDICT_TAR_INPUTS_H
#define LS_PREDICT_TAR_INPUTS_H

#include "base/files.h"
#include "data/readers/tar_members.h"

typedef struct ls_tar_inputs {
	ls_file_map map;
	ls_tar_walk walk;
	uint64_t images; /* met so far */
	int is_open;
} ls_tar_inputs;

/* `path` is borrowed. Of a pipe and of a compressed file it is refused: members are read where they lie. */
ls_status ls_tar_inputs_open(ls_tar_inputs *out, const char *path);
void ls_tar_inputs_close(ls_tar_inputs *inputs); /* harmless when it is zero */

typedef struct ls_tar_image {
	char name[4096 + 1024]; /* for errors: "shard.tar/00001.png" */
	const uint8_t *bytes;   /* (size) in the map: ls_file_map_check() before they are used */
	size_t size;
} ls_tar_image;

/* The next image; *found = 0 behind the last. LS_EFORMAT: the file is damaged, and the next call finds nothing more. */
ls_status ls_tar_inputs_next(ls_tar_inputs *inputs, ls_tar_image *out, int *found);

#endif
