/*
 * hex.h - lines of hexadecimal digits, in which any bytes may come from Python.
 */
#ifndef LS_GOLDEN_HEX_H
#define LS_GOLDEN_HEX_H

#include <stdio.h>

/* In place; returns the number of bytes. */
static inline size_t hex_decode(char *text)
{
	size_t bytes = 0;
	unsigned value;
	for (const char *p = text; sscanf(p, "%2x", &value) == 1; p += 2)
		text[bytes++] = (char)value;
	return bytes;
}

#endif
