/*
 * image_list.h - the images of a folder or of tar shards, by class.
 *
 *     pets/cat/1.jpg, pets/dog/7.png ...              one image in ten, by a hash of its name, is a test image
 *     pets/train/cat/..., pets/test/cat/...           the test images have a folder: test, val, valid or validation
 *     pets/train-000000.tar, pets/test-000000.tar     shards, see shards.c
 *
 * A class of a folder is a folder in it, its label its place among the class folders of the training images in byte
 * order. Images of a class may lie in folders below it. What begins with a dot is left out, and so are files whose
 * names do not end in .png, .jpg or .jpeg; images of other kinds among them are counted. Symbolic links must lead to a
 * file inside the folder.
 */
#ifndef LS_DATA_READERS_IMAGE_LIST_H
#define LS_DATA_READERS_IMAGE_LIST_H

#include <lockstep/data.h>

#include <time.h>

#include "base/memory.h"

#define LS_NO_SHARD UINT32_MAX

/* Most bytes of an image file. */
#define LS_IMAGE_BYTES_MAX ((int64_t)256 << 20)

typedef struct ls_image_entry {
	const char *path;           /* below the root, "cat/1.jpg"; in a shard, "train-000000.tar/1.jpg" */
	uint64_t offset;            /* in its shard */
	int64_t bytes, modified_ns; /* as they were when it was listed; of a shard, its time */
	int32_t label;
	uint32_t shard; /* LS_NO_SHARD: a file of its own */
} ls_image_entry;

/* A folder or shard that the list was read from, as it was before reading. */
typedef struct ls_image_stamp {
	const char *path; /* below the folder; "" is the folder itself */
	uint64_t inode;
	int64_t bytes, modified_ns, changed_ns;
} ls_image_stamp;

typedef struct ls_image_list {
	ls_arena arena;
	void *loaded;       /* the index that names point into; NULL: they are of the arena */
	const char *folder; /* as it was given; of a single shard, the folder that it is in */
	const char *below;  /* the root below the folder: "", "train", "test" ... */
	const char *root;   /* the folder that paths of images are below */
	int is_split;       /* there are no test images: one in ten is */
	int64_t begun_ns;   /* when reading began */
	int is_volatile;    /* what it depends on is not all in the stamps: not to be kept */
	size_t classes, count;
	const char **class_name; /* (classes) in byte order; NULL: classes are numbers */
	ls_image_entry *entry;   /* (count) in byte order of their paths; of shards as they lie there */
	size_t shards, shard_room;
	const char **shard; /* (shards) below the folder */
	size_t stamps, stamp_room;
	ls_image_stamp *stamp; /* (stamps) */
	size_t bad, bad_room;
	const char **why;  /* (bad) what cannot be a sample, and why */
	uint64_t others;   /* files in class folders that are images of kinds which are not read */
	const char *other; /* one of them, below the root; "" where there is none */
} ls_image_list;

typedef struct ls_image_list_options {
	const char *path; /* a folder of class folders, a folder of shards, or a shard */
	ls_split split;
	const char *index; /* a folder to keep the list in, which is then read from there; NULL: none */
	uint64_t skip_bad; /* samples that are wrong and may be left out, with a warning each; 0: they are errors */
} ls_image_list_options;

/* Whether a folder has folders with images in it, at any depth, and more images than .txt files; captions, a .txt file
 * per image of its folder, do not count. */
int ls_image_folder_is(const char *folder);
/* A line about the images of a folder that is read as text, if there are any. */
void ls_image_folder_note(const char *folder);

/* Whether a path is a tar file, or a folder with such files in it. */
int ls_shards_is(const char *path);

/* LS_EFORMAT: there is nothing to learn from; says which folder or file and why. */
ls_status ls_image_list_read(ls_image_list *out, const ls_image_list_options *options);
void ls_image_list_release(ls_image_list *list); /* harmless when it is zero */

/* The bytes of an image file, malloc'd, if it is as it was listed, and its name, for messages. */
ls_status ls_image_list_fetch(const ls_image_list *list, uint64_t place, uint8_t **bytes, size_t *size, char *name,
			      size_t name_size);

/* ---- for those that make a list ---------------------------------------------------------------------------------- */

/* The two kinds: folder and shards. `list` has its folder. */
ls_status ls_folder_list(ls_image_list *list, ls_split split);
ls_status ls_shards_list(ls_image_list *list, const char *path, ls_split split);

ls_status ls_image_list_add(ls_image_list *list, size_t *room, const ls_image_entry *entry);
/* Of an open folder or shard, before it is read; `path` is below the folder. */
ls_status ls_image_list_stamp(ls_image_list *list, int fd, const char *path);
/* A sample that is wrong: the last error of this thread says why. */
ls_status ls_image_list_add_bad(ls_image_list *list);
/* Training or test images of a list of both, by a hash of their paths. */
ls_status ls_image_list_split(ls_image_list *list, ls_split split);
int ls_image_name_is(const char *name);             /* ends with .png, .jpg or .jpeg */
int ls_image_name_is_other(const char *name);       /* ends as images do that are not read, .webp */
int64_t ls_image_time(const struct timespec *time); /* in nanoseconds */

#endif
