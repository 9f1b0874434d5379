/*
 * md5.h - MD5 (RFC 1321), because that is what is published for MNIST's files. It detects damage, not tampering.
 */
#ifndef LS_FETCH_MD5_H
#define LS_FETCH_MD5_H

#include <stddef.h>
#include <stdint.h>

typedef struct ls_md5 {
	uint32_t state[4];
	uint64_t bytes;
	uint8_t block[64]; /* the unfinished one */
} ls_md5;

void ls_md5_begin(ls_md5 *md5);
void ls_md5_add(ls_md5 *md5, const void *data, size_t bytes);
void ls_md5_end(ls_md5 *md5, char hex[33]);

#endif
