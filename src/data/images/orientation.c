#include "data/images/orientation.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"

enum { UPRIGHT = 1, ORIENTATION_TAG = 0x0112, SHORT_TYPE = 3, ENTRY_BYTES = 12 };

/* ---- Exif -------------------------------------------------------------------------------------------------------- */

/* A TIFF file inside an image file: numbers in the order that its first bytes say. */
typedef struct tiff {
	const uint8_t *bytes;
	size_t size;
	int is_little;
} tiff;

/* `bytes` (2 or 4) at a place; 0 where it is outside. */
static uint32_t number_at(const tiff *t, size_t at, size_t bytes)
{
	uint32_t value = 0;

	if (at > t->size || t->size - at < bytes)
		return 0;
	for (size_t i = 0; i < bytes; i++)
		value = value << 8 | t->bytes[at + (t->is_little ? bytes - 1 - i : i)];
	return value;
}

static int orientation_of(const uint8_t *bytes, size_t size)
{
	tiff t = { .bytes = bytes, .size = size, .is_little = size > 0 && bytes[0] == 'I' };

	if (size < 8 || (memcmp(bytes, "II*\0", 4) != 0 && memcmp(bytes, "MM\0*", 4) != 0))
		return UPRIGHT;
	size_t directory = number_at(&t, 4, 4), entries = number_at(&t, directory, 2);
	for (size_t i = 0; i < entries; i++) {
		size_t at = directory + 2 + i * ENTRY_BYTES;
		if (number_at(&t, at, 2) != ORIENTATION_TAG || number_at(&t, at + 2, 2) != SHORT_TYPE)
			continue;
		uint32_t found = number_at(&t, at + 8, 2);
		return found >= 1 && found <= 8 ? (int)found : UPRIGHT;
	}
	return UPRIGHT;
}

/* Segments are 0xff, a kind, and a length that counts itself; Exif is in the first APP1 with its name. */
int ls_jpeg_orientation(const uint8_t *bytes, size_t size)
{
	static const uint8_t name[] = { 'E', 'x', 'i', 'f', 0, 0 };

	for (size_t at = 2; at + 4 <= size && bytes[at] == 0xff;) {
		int kind = bytes[at + 1];
		size_t length = (size_t)bytes[at + 2] << 8 | bytes[at + 3];
		if (kind == 0xda || length < 2 || length > size - at - 2) /* pixels follow */
			break;
		const uint8_t *segment = bytes + at + 4;
		if (kind == 0xe1 && length >= 2 + sizeof(name) && memcmp(segment, name, sizeof(name)) == 0)
			return orientation_of(segment + sizeof(name), length - 2 - sizeof(name));
		at += 2 + length;
	}
	return UPRIGHT;
}

/* Chunks are a length, a kind, as many bytes and a checksum; Exif is the one called eXIf. */
int ls_png_orientation(const uint8_t *bytes, size_t size)
{
	enum { SIGNATURE = 8, AROUND = 12 };
	const tiff all = { .bytes = bytes, .size = size }; /* big-endian, as the lengths of chunks are */

	for (size_t at = SIGNATURE; at <= size && size - at >= AROUND;) {
		size_t length = number_at(&all, at, 4);
		if (length > size - at - AROUND)
			break;
		if (memcmp(bytes + at + 4, "eXIf", 4) == 0)
			return orientation_of(bytes + at + 8, length);
		at += AROUND + length;
	}
	return UPRIGHT;
}

/* ---- turning ----------------------------------------------------------------------------------------------------- */

/* Where pixel (y, x) of the upright image is in the other: of orientations 5 to 8 rows and columns are exchanged. */
static size_t source_of(const ls_image *from, int orientation, int y, int x)
{
	int row = orientation >= 5 ? x : y, column = orientation >= 5 ? y : x;
	int is_flipped_down = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
	int is_flipped_across = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;

	row = is_flipped_down ? from->height - 1 - row : row;
	column = is_flipped_across ? from->width - 1 - column : column;
	return (size_t)row * (size_t)from->width + (size_t)column;
}

ls_status ls_image_set_upright(ls_image *image, int orientation, const char *name)
{
	int is_turned = orientation >= 5;
	ls_image upright = { .channels = image->channels,
			     .height = is_turned ? image->width : image->height,
			     .width = is_turned ? image->height : image->width,
			     .deep = image->deep };
	size_t bytes = (size_t)image->channels * (image->deep ? 2 : 1);

	if (orientation == UPRIGHT)
		return LS_OK;
	LS_TRY(ls_image_alloc(&upright, name, UINT64_MAX));
	uint8_t *to = upright.pixels;
	for (int y = 0; y < upright.height; y++)
		for (int x = 0; x < upright.width; x++, to += bytes)
			memcpy(to, (const uint8_t *)image->pixels + source_of(image, orientation, y, x) * bytes, bytes);
	upright.reserved = image->reserved;
	image->reserved = 0;
	ls_image_release(image);
	*image = upright;
	return LS_OK;
}
