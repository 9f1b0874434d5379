/*
 * request.h - what a client asks for: the body of POST /predict as samples that are not made yet.
 *
 *     {"inputs": [[0, 12, ...], ...], "values": "pixels", "top": 3}     numbers, flat or as nested lists
 *     {"text": ["a line", ...]}
 *     {"images": ["base64 of a PNG or JPEG file", ...]}
 *     {"rows": [{"area": 120.5, "city": "Oslo"}, ...]}               of a table
 *
 * or the bytes of one image. Knows the shape of the input and nothing else of the model, so any bytes can be tried on
 * it (tests/fuzz). Errors say which input is wrong, and what was expected.
 */
#ifndef LS_TOOLS_SERVE_REQUEST_H
#define LS_TOOLS_SERVE_REQUEST_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

enum { LS_REQUEST_INPUTS_MAX = 4096 };

typedef enum ls_request_input { LS_REQUEST_OF_IMAGES, LS_REQUEST_OF_TEXT, LS_REQUEST_OF_ROWS } ls_request_input;

typedef struct ls_request_shape {
	ls_request_input input;      /* what the model takes */
	int channels, height, width; /* of images */
	const char *columns;         /* of rows, "area, city", for messages */
} ls_request_shape;

typedef enum ls_request_kind {
	LS_REQUEST_NUMBERS,
	LS_REQUEST_TEXTS,
	LS_REQUEST_IMAGES,
	LS_REQUEST_ROWS
} ls_request_kind;

typedef struct ls_request_bytes {
	const void *bytes;
	size_t size;
	void *own; /* that they are in; NULL: of the body or its JSON */
} ls_request_bytes;

typedef struct ls_request {
	ls_request_kind kind;
	size_t count;
	float *numbers;         /* (count, channels, height, width), finite */
	int is_normalised;      /* numbers; else pixels */
	ls_request_bytes *part; /* (count) texts, or files of images */
	int64_t top;            /* classes per sample */
	const json_t *rows;     /* (count) objects of texts, numbers, true, false and null */
	json_t *root;           /* holds the texts and the rows */
} ls_request;

ls_status ls_request_from_json(ls_request *out, const ls_request_shape *shape, const void *body, size_t size);
/* One image; `body` must live as long as the request. */
ls_status ls_request_from_image(ls_request *out, const ls_request_shape *shape, const void *body, size_t size);
void ls_request_release(ls_request *request); /* harmless when it is zero */

/* Bytes of base64, with or without '=' at the end, white space left out; malloc'd. */
ls_status ls_base64_decode(uint8_t **out, size_t *bytes, const char *text, size_t length, const char *where);

#endif
