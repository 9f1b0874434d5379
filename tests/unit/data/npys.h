/*
 * npys.h - NumPy arrays made by hand for the tests.
 */
#ifndef LS_TEST_DATA_NPYS_H
#define LS_TEST_DATA_NPYS_H

#include "unit/data/fixture.h"

typedef struct npy_file {
	uint8_t *bytes; /* malloc'd */
	size_t size;
} npy_file;

/* An array with this dictionary, "{'descr': ...}", and these elements. */
__attribute__((unused)) static npy_file npy_make(const char *dictionary, const void *data, size_t bytes)
{
	size_t text = strlen(dictionary), padded = (10 + text + 1 + 63) / 64 * 64 - 10;
	npy_file file = { malloc(10 + padded + bytes), 10 + padded + bytes };

	memcpy(file.bytes, "\x93NUMPY\x01\x00", 8);
	file.bytes[8] = (uint8_t)padded;
	file.bytes[9] = (uint8_t)(padded >> 8);
	memset(file.bytes + 10, ' ', padded);
	memcpy(file.bytes + 10, dictionary, text);
	file.bytes[10 + padded - 1] = '\n';
	if (bytes)
		memcpy(file.bytes + 10 + padded, data, bytes);
	return file;
}

__attribute__((unused)) static npy_file npy_array(const char *type, const char *shape, const void *data, size_t bytes)
{
	char text[256];
	snprintf(text, sizeof(text), "{'descr': '%s', 'fortran_order': False, 'shape': %s, }", type, shape);
	return npy_make(text, data, bytes);
}

#endif
