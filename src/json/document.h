/*
 * document.h - a JSON file that becomes a struct: whole, or not at all.
 *
 *     static ls_status read_thing(void *out, json_t *root, const char *label);
 *     LS_JSON_DOCUMENT(thing, BYTES_MAX, read_thing)
 *
 * defines thing_parse(thing *out, text, bytes, label) and thing_read(thing *out, path), and needs thing_release(thing
 * *).
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

#define LS_JSON_DOCUMENT_PARSE(type, most_bytes, read_root)                                                            \
	static void release_document(void *out)                                                                        \
	{                                                                                                              \
		type##_release(out);                                                                                   \
	}                                                                                                              \
	static const ls_json_document document = { sizeof(type), most_bytes, read_root, release_document };            \
	ls_status type##_parse(type *out, const void *text, size_t bytes, const char *label)                           \
	{                                                                                                              \
		return ls_json_document_parse(&document, out, text, bytes, label);                                     \
	}

#define LS_JSON_DOCUMENT(type, most_bytes, read_root)                                                                  \
	LS_JSON_DOCUMENT_PARSE(type, most_bytes, read_root)                                                            \
	ls_status type##_read(type *out, const char *path)                                                             \
	{                                                                                                              \
		return ls_json_document_read(&document, out, path);                                                    \
	}

#endif
