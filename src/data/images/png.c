/*
 * png.c - PNG by libpng. Its errors arrive by longjmp, so everything that must be freed lives in a struct of the
 * caller.
 */
#include "base/status.h"
#include "data/images/image.h"
#include "data/images/orientation.h"

#ifdef LS_HAVE_PNG
#include <png.h>
#include <stdlib.h>
#include <string.h>

/* Chunks that are not pixels: comments, profiles. */
#define CHUNK_BYTES_MAX ((png_alloc_size_t)8 << 20)
#define CHUNKS_MAX 1000
/* Deflate cannot shrink data to less than 1/1032 of its size: a small file that declares a huge image is refused before
 * memory is taken. */
#define DEFLATE_RATIO_MAX 1032

typedef struct reading {
	const uint8_t *bytes;
	size_t size, at;
	const char *name;
	uint64_t pixels_max;
	png_structp png;
	png_infop info;
	png_bytep *rows;
	size_t packed_row; /* bytes of a row in the file, inflated */
	ls_image image;
	ls_status status;
	int has_failed; /* in libpng */
	char why[128];
} reading;

static void take_error(png_structp png, png_const_charp message)
{
	reading *r = png_get_error_ptr(png);
	snprintf(r->why, sizeof(r->why), "%s", message);
	longjmp(png_jmpbuf(png), 1);
}

static void ignore_warning(png_structp png, png_const_charp message)
{
	(void)png;
	(void)message;
}

static void take_bytes(png_structp png, png_bytep out, png_size_t count)
{
	reading *r = png_get_io_ptr(png);
	if (count > r->size - r->at)
		png_error(png, "the file is cut short");
	memcpy(out, r->bytes + r->at, count);
	r->at += count;
}

/* Texts and profiles are passed over unread: compressed ones would be inflated, megabytes for each kilobyte. */
static void skip_other_chunks(png_structp png)
{
	static const png_byte names[] = "zTXt\0iTXt\0tEXt\0iCCP\0sPLT\0eXIf\0hIST\0tIME";
	png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, names, sizeof(names) / 5);
}

/* Whatever the file has: grey or RGB of 8 or 16 bits in the processor's byte order, without alpha. */
static void choose_form(reading *r)
{
	png_byte colour = png_get_color_type(r->png, r->info);

	if (colour == PNG_COLOR_TYPE_PALETTE)
		png_set_palette_to_rgb(r->png);
	else if (!(colour & PNG_COLOR_MASK_COLOR))
		png_set_expand_gray_1_2_4_to_8(r->png);
	png_set_strip_alpha(r->png);
	if (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)
		png_set_swap(r->png);
	png_set_interlace_handling(r->png);
	png_read_update_info(r->png, r->info);
}

static ls_status make_rows(reading *r)
{
	ls_image *image = &r->image;
	size_t bytes = png_get_rowbytes(r->png, r->info);

	*image = (ls_image){ .channels = png_get_channels(r->png, r->info),
			     .height = (int)png_get_image_height(r->png, r->info),
			     .width = (int)png_get_image_width(r->png, r->info),
			     .deep = png_get_bit_depth(r->png, r->info) == 16 };
	if ((image->channels != 1 && image->channels != 3) ||
	    bytes != (size_t)image->width * (size_t)image->channels * (image->deep ? 2 : 1))
		return ls_fail(LS_EFORMAT, "%s: a PNG of %d channels, expected grey or RGB", r->name, image->channels);
	LS_TRY(ls_image_check(image, r->name, r->pixels_max));
	if ((uint64_t)image->height * r->packed_row / DEFLATE_RATIO_MAX > r->size)
		return ls_fail(LS_EFORMAT, "%s: %zu bytes cannot hold the %dx%d pixels that it declares", r->name,
			       r->size, image->width, image->height);
	int copies = ls_png_orientation(r->bytes, r->size) > 1 ? 2 : 1; /* it is set upright */
	ls_image_reserve(image, (size_t)copies * (size_t)image->height * bytes);
	LS_TRY(ls_image_alloc(image, r->name, r->pixels_max));
	r->rows = calloc((size_t)image->height, sizeof(*r->rows));
	if (!r->rows)
		return ls_fail(LS_EMEMORY, "%s: no memory for %d rows", r->name, image->height);
	for (int y = 0; y < image->height; y++)
		r->rows[y] = (png_bytep)image->pixels + (size_t)y * bytes;
	return LS_OK;
}

/* No variable of this function is used after a longjmp into it. */
static void read_png(reading *r)
{
	if (setjmp(png_jmpbuf(r->png))) {
		r->has_failed = 1;
		return;
	}
	png_set_read_fn(r->png, r, take_bytes);
	png_set_chunk_malloc_max(r->png, CHUNK_BYTES_MAX);
	png_set_chunk_cache_max(r->png, CHUNKS_MAX);
	skip_other_chunks(r->png);
	png_read_info(r->png, r->info);
	r->packed_row = png_get_rowbytes(r->png, r->info);
	choose_form(r);
	r->status = make_rows(r);
	if (r->status != LS_OK)
		return;
	png_read_image(r->png, r->rows);
	png_read_end(r->png, NULL);
}

ls_status ls_png_decode(ls_image *out, const uint8_t *bytes, size_t size, const char *name, uint64_t pixels_max)
{
	reading r = { .bytes = bytes, .size = size, .name = name, .pixels_max = pixels_max };

	r.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &r, take_error, ignore_warning);
	r.info = r.png ? png_create_info_struct(r.png) : NULL;
	if (r.info)
		read_png(&r);
	else
		r.status = ls_fail(LS_EMEMORY, "%s: no memory to read it", name);
	png_destroy_read_struct(&r.png, &r.info, NULL);
	free(r.rows);
	if (r.has_failed)
		r.status = ls_fail(LS_EFORMAT, "%s: not a PNG image that can be read: %s", name, r.why);
	if (r.status == LS_OK)
		r.status = ls_image_set_upright(&r.image, ls_png_orientation(bytes, size), name);
	if (r.status == LS_OK)
		*out = r.image;
	else
		ls_image_release(&r.image);
	return r.status;
}

#else

ls_status ls_png_decode(ls_image *out, const uint8_t *bytes, size_t size, const char *name, uint64_t pixels_max)
{
	(void)out;
	(void)bytes;
	(void)size;
	(void)pixels_max;
	return ls_fail(LS_EUNSUPPORTED, "%s is a PNG image, and this build of Lockstep was made without libpng", name);
}

#endif
