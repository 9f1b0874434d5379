/*
 * image_index.h - the list of a folder's images, or of those in shards, kept in a file of the data cache.
 *
 * Listing a million files takes as many system calls as names are read and sorted. The second time the list comes from
 * its file, if it is still true:
 *
 *   1. Every folder that was read, and every shard, has the inode, size and times of modification and change that it
 *      had: so no file was added, removed, renamed or replaced by another.
 *   2. Every image file of a folder has its size and time of modification: so none was written in place. All cores ask
 *      for them.
 *
 * What is not noticed: a file that was written in place with the same size and whose time was then set back. A list is
 * not kept while a folder's time is less than a second old: what happens next to it may have the same time.
 */
#ifndef LS_DATA_READERS_IMAGE_INDEX_H
#define LS_DATA_READERS_IMAGE_INDEX_H

#include "data/readers/image_list.h"

/* *is_known = 1: the list is in *list, which has its folder, all but the root. 0: there is none that is true. */
ls_status ls_image_index_load(ls_image_list *list, const char *where, const char *path, ls_split split, int *is_known);
/* Failures are ignored: the list is read again. */
void ls_image_index_save(const ls_image_list *list, const char *where, const char *path, ls_split split);

/* An index in memory, which is changed, and belongs to the list on success. LS_EFORMAT: it is damaged. */
ls_status ls_image_index_parse(ls_image_list *list, uint8_t *data, size_t bytes);
/* The reverse, malloc'd. */
ls_status ls_image_index_format(const ls_image_list *list, uint8_t **data, size_t *bytes);

#endif
