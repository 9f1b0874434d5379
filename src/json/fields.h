/*
 * fields.h - JSON files of our own: a table of fields serves writer and reader, and errors name file, field and reason.
 *
 *     static const ls_field fields[] = {
 *             LS_FIELD_TEXT_OF(thing, name),
 *             LS_FIELD_WHOLE_OF(thing, steps, 1, 1e9),
 *     };
 *     ls_json_place top = { .label = "thing.json" };
 *     LS_TRY(ls_fields_read(&top, fields, LS_COUNT(fields), object, &out));
 */
#ifndef LS_JSON_FIELDS_H
#define LS_JSON_FIELDS_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "base/array.h"
#include "base/status.h"

typedef enum ls_field_kind {
	LS_FIELD_TEXT,     /* char[], never empty */
	LS_FIELD_MAYBE,    /* char[], "" when it is missing */
	LS_FIELD_WHOLE,    /* int64_t */
	LS_FIELD_REAL,     /* double */
	LS_FIELD_GAP,      /* double, NaN when it is missing or null */
	LS_FIELD_WHOLE_IF, /* int64_t, left as it is when it is missing */
	LS_FIELD_REAL_IF   /* double, the same */
} ls_field_kind;

typedef struct ls_field {
	const char *name;
	ls_field_kind kind;
	size_t offset, bytes; /* of the member */
	double min, max;
} ls_field;

#define LS_FIELD_AT(type, member) offsetof(type, member), sizeof(((type *)0)->member)
#define LS_FIELD_TEXT_OF(type, member)                                                                                 \
	{                                                                                                              \
#member, LS_FIELD_TEXT, LS_FIELD_AT(type, member), 0, 0                                                \
	}
#define LS_FIELD_MAYBE_OF(type, member)                                                                                \
	{                                                                                                              \
#member, LS_FIELD_MAYBE, LS_FIELD_AT(type, member), 0, 0                                               \
	}
#define LS_FIELD_WHOLE_OF(type, member, min, max)                                                                      \
	{                                                                                                              \
#member, LS_FIELD_WHOLE, LS_FIELD_AT(type, member), min, max                                           \
	}
#define LS_FIELD_REAL_OF(type, member, min, max)                                                                       \
	{                                                                                                              \
#member, LS_FIELD_REAL, LS_FIELD_AT(type, member), min, max                                            \
	}
#define LS_FIELD_GAP_OF(type, member, min, max)                                                                        \
	{                                                                                                              \
#member, LS_FIELD_GAP, LS_FIELD_AT(type, member), min, max                                             \
	}
#define LS_FIELD_WHOLE_IF_OF(type, member, min, max)                                                                   \
	{                                                                                                              \
#member, LS_FIELD_WHOLE_IF, LS_FIELD_AT(type, member), min, max                                        \
	}
#define LS_FIELD_REAL_IF_OF(type, member, min, max)                                                                    \
	{                                                                                                              \
#member, LS_FIELD_REAL_IF, LS_FIELD_AT(type, member), min, max                                         \
	}

/* What is being read: "FILE: layers[3]." stands before a field's name in errors. */
typedef struct ls_json_place {
	const char *label;
	char prefix[96];
} ls_json_place;

ls_status ls_fields_read(const ls_json_place *place, const ls_field *fields, size_t count, const json_t *object,
			 void *out);

/* Refuses a field that is neither in the table nor among `others` (NULL-terminated; may be NULL): for files that people
 * write, where a misspelt field would be a default. */
ls_status ls_fields_only(const ls_json_place *place, const json_t *object, const ls_field *fields, size_t count,
			 const char *const *others);

/* Into `object`; non-zero: a text is no UTF-8, or there is no memory. */
int ls_fields_write(const ls_field *fields, size_t count, const void *from, json_t *object);

/* The place of element i of `list` below `place`. */
ls_json_place ls_json_element(const ls_json_place *place, const char *list, size_t i);

/* Text into a tree that the caller drops; errors say the line. */
ls_status ls_json_parse(json_t **out, const void *text, size_t bytes, size_t most, const char *label);

/* {"format": FORMAT, "version": N}: a new object that begins with these. */
json_t *ls_json_begin(const char *format, int version);

/* The format must be this one and the version 1 to `newest`; *version is the file's. */
ls_status ls_json_check(const json_t *root, const char *format, int newest, const char *label, int *version);

/* A field that older versions of a file have under another name. */
typedef struct ls_field_rename {
	const char *from, *to;
} ls_field_rename;

/* Moves old fields to their new names, before an object of an old version is read. Other objects are left alone. */
void ls_fields_rename(json_t *object, const ls_field_rename *renames, size_t count);

/* Whole or absent. */
ls_status ls_json_publish(const json_t *root, const char *path);

#endif
