/*
 * document.h - a JSON file that becomes a struct: whole, or not at all.
 *
 *     static const ls_json_document document = { sizeof(thing), 1 << 20, read_thing, release_thing };
 *     LS_TRY(ls_json_document_read(&document, &out, "thing.json"));
 */
#ifndef LS_JSON_DOCUMENT_H
#define LS_JSON_DOCUMENT_H

#include "json/fields.h"

typedef struct ls_json_document {
	size_t bytes; /* of the struct */
	size_t most;  /* bytes of the file */
	/* Fills in a struct of zeros; an error may leave it half filled. `label` names the file. */
	ls_status (*read)(void *out, json_t *root, const char *label);
	void (*release)(void *out);
} ls_json_document;

/* On failure `out` is as it was. */
ls_status ls_json_document_parse(const ls_json_document *document, void *out, const void *text, size_t bytes,
				 const char *label);
ls_status ls_json_document_read(const ls_json_document *document, void *out, const char *path);

#endif
