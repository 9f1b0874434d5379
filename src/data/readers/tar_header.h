/*
 * tar_header.h - the header of a member of a tar file: a block of 512 bytes, its fields as text.
 */
#ifndef LS_DATA_READERS_TAR_HEADER_H
#define LS_DATA_READERS_TAR_HEADER_H

#include <stddef.h>
#include <stdint.h>

enum { LS_TAR_BLOCK = 512, LS_TAR_TYPE = 156 };

/* Longest name that a header holds, with its zero. */
enum { LS_TAR_NAME_MAX = 155 + 1 + 100 + 1 };

/* Whether the checksum is that of the header. */
int ls_tar_header_is_whole(const uint8_t *header);

/* The size of the member: octal digits, or GNU's base 256 for what does not fit. 0: it is neither. */
int ls_tar_header_size(const uint8_t *header, uint64_t *bytes);

/* The member's name; what is longer than `size` is cut. */
void ls_tar_header_name(const uint8_t *header, char *out, size_t size);

/* A regular file: no folder, link or device. */
int ls_tar_header_is_file(const uint8_t *header);

#endif
