/*
 * orientation.h - how a camera was held: files say so in their Exif data, and their pixels are as the sensor lay.
 */
#ifndef LS_DATA_IMAGES_ORIENTATION_H
#define LS_DATA_IMAGES_ORIENTATION_H

#include "data/images/image.h"

/* Exif's tag 0x0112, 1 to 8; 1, upright, where a file does not say, or says something else. Never fails: a file with
 * nonsense there has pixels all the same. */
int ls_jpeg_orientation(const uint8_t *bytes, size_t size);
int ls_png_orientation(const uint8_t *bytes, size_t size);

/* Turn and mirror an image so that it is upright. */
ls_status ls_image_set_upright(ls_image *image, int orientation, const char *name);

#endif
