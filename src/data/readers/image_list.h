/*
 * image_list.h - the image files of a folder, by class.
 *
 *     pets/cat/1.jpg, pets/dog/7.png ...              one image in ten, by a hash of its name, is a test image
 *     pets/train/cat/..., pets/test/cat/...           the test images have a folder: test, val, valid or validation
 *
 * A class is a folder, its label its place among the class folders of the training images in byte order. Images of a
 * class may lie in folders below it. What begins with a dot is left out, and so are files whose names do not end in
 * .png, .jpg or .jpeg. Symbolic links must lead to a file inside the folder.
 */
#ifndef LS_DATA_READERS_IMAGE_LIST_H
#define LS_DATA_READERS_IMAGE_LIST_H

#include <lockstep/data.h>

#include "base/memory.h"

typedef struct ls_image_entry {
	const char *path; /* below the root, "cat/1.jpg" */
	int32_t label;
	int64_t bytes, modified_ns; /* as they were when it was listed */
} ls_image_entry;

typedef struct ls_image_list {
	ls_arena arena;
	const char *root; /* the folder that the class folders are in */
	int is_split;     /* the folder has no test images of its own: one in ten is */
	size_t classes, count;
	const char **class_name; /* (classes) in byte order */
	ls_image_entry *entry;   /* (count) in byte order of their paths */
} ls_image_list;

/* Whether a folder has folders with images in it, at any depth, and more images than .txt files. */
int ls_image_folder_is(const char *folder);

/* LS_EFORMAT: there is nothing to learn from; says which folder or file and why. */
ls_status ls_image_list_read(ls_image_list *out, const char *folder, ls_split split);
void ls_image_list_release(ls_image_list *list); /* harmless when it is zero */

#endif
