/*
 * glyphs.h - digits drawn by the program.
 */
#ifndef LS_DATA_SYNTHETIC_GLYPHS_H
#define LS_DATA_SYNTHETIC_GLYPHS_H

#include <stdint.h>

#include <lockstep/data.h>

#define LS_GLYPH_SIZE 28
#define LS_GLYPH_TRAIN 60000
#define LS_GLYPH_TEST 10000

/* Draw sample `index`: (28, 28) bytes. A pure function of its arguments, the same bytes on every machine. */
void ls_glyph_draw(uint64_t seed, ls_split split, uint64_t index, uint8_t *image, int32_t *label);

#endif
