/*
 * crc32c.h - the checksum of TFRecord framing.
 */
#ifndef LS_METRICS_CRC32C_H
#define LS_METRICS_CRC32C_H

#include <stddef.h>
#include <stdint.h>

uint32_t ls_crc32c(const void *data, size_t bytes);

/* Rotated and offset, so that a checksum of data that holds checksums stays strong. */
uint32_t ls_crc32c_masked(const void *data, size_t bytes);

#endif
