/*
 * files.h - paths and files that are whole or absent.
 */
#ifndef LS_BASE_FILES_H
#define LS_BASE_FILES_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/status.h"

/* Join with one '/'; fails when it does not fit `size`. */
ls_status ls_path_join(char *out, size_t size, const char *directory, const char *name);
ls_status ls_path_make(const char *directory);                        /* mkdir -p */
ls_status ls_path_absolute(char *out, size_t size, const char *path); /* of the working directory, links not followed */
/* `given`, or where that is NULL the program that runs. */
ls_status ls_path_program(char *out, size_t size, const char *given);
int ls_path_exists(const char *path);
/* Find the directory that holds a file `name`: `path` itself or one of the three above it, nearest first. 0: none. */
int ls_path_find_above(char *out, size_t size, const char *path, const char *name);
int ls_path_is_directory(const char *path);
ls_status ls_path_sync(const char *directory); /* fsync a directory, so that a rename in it lasts */
/* Rename what must be neither used nor deleted to "<path>.aside", "<path>.aside-2" ..., overwriting nothing. `out`
 * receives the new name. */
ls_status ls_path_set_aside(const char *path, char *out, size_t size);
ls_status ls_path_remove_tree(const char *path); /* rm -r, for directories we made; absent is fine */

/*
 * A file written beside its name and renamed into place: until ls_file_publish() returns LS_OK nobody sees it, and what
 * was there before stays. Every write error is reported, at the latest by publish (full disk included).
 *
 * Only a regular file is replaced. A symbolic link is followed: its target is replaced and the link stays; a link to
 * nothing is refused. Character devices and pipes are written to directly (`direct`), from the first byte on. Anything
 * else is refused, as are links and pipes that another user put into a directory like /tmp.
 */
typedef struct ls_file_draft {
	FILE *stream;
	int direct, slot; /* slot: in the list of drafts under way; -1: none */
	int fresh;        /* nothing is replaced */
	char path[4096], draft[4096];
} ls_file_draft;

ls_status ls_file_begin(ls_file_draft *draft, const char *path);
/* The same for a file that must not be there, neither now nor when the draft is published: else LS_EINVALID. */
ls_status ls_file_begin_new(ls_file_draft *draft, const char *path);
ls_status ls_file_write(ls_file_draft *draft, const void *data, size_t bytes);
ls_status
ls_file_publish(ls_file_draft *draft);      /* flush, fsync, rename, fsync directory; on failure removes the draft */
void ls_file_abandon(ls_file_draft *draft); /* remove the draft; harmless after publish */
/* Publish when all went well, else abandon it and pass the status on. */
ls_status ls_file_finish(ls_file_draft *draft, ls_status status);

/* Before long work: check that this file can be written afterwards. Changes nothing. */
ls_status ls_file_check(const char *path);

/* rename(), but only over a regular file or nothing. */
ls_status ls_file_rename(const char *from, const char *to);

/* A file that stays ours and is written in place (a lock, a part of a download, lines that are appended): open()
 * with `flags`, made when absent. Links, pipes and devices are refused. On failure errno distinguishes EEXIST. */
ls_status ls_file_open_own(int *fd, const char *path, int flags);

/* All bytes at their place in an open file. Reading returns how many there were: fewer at the end of the file, or after
 * an error, which errno has (else it is 0). Writing returns 0, or -1 and errno. */
size_t ls_file_read_at(int fd, void *out, size_t bytes, uint64_t offset);
int ls_file_write_at(int fd, const void *data, size_t bytes, uint64_t offset);

/* Write a whole file at once; the second writes text and ends its last line. */
ls_status ls_file_put(const char *path, const void *data, size_t bytes);
ls_status ls_file_put_text(const char *path, const char *text);

/*
 * The bytes of a file, read-only. Small files are copied, large ones mapped; an empty one has bytes = 0.
 *
 * A mapped file that somebody cuts short reads as zeros from there on (file_map.c keeps SIGBUS from ending the
 * process). So call ls_file_map_check() after reading and before using the data: its error names the file. No index
 * that was read from a map may be trusted to be in range, even if it was when the file was opened.
 */
typedef struct ls_file_map {
	const uint8_t *data;
	size_t bytes;
	struct ls_file_guard *guard; /* NULL: copied */
} ls_file_map;
ls_status ls_file_map_open(ls_file_map *map, const char *path);
void ls_file_map_close(ls_file_map *map);
ls_status ls_file_map_check(const ls_file_map *map); /* LS_EIO when it is not what was opened; one system call */
int ls_file_map_lost(const ls_file_map *map);        /* some bytes were replaced by zeros; costs nothing */
/* Close the map and return `status`, or the error of ls_file_map_check() if it failed. */
ls_status ls_file_map_end(ls_file_map *map, ls_status status);

#endif
