/*
 * state_json.h - what the writer and the parser of state.json share.
 */
#ifndef LS_CKPT_STATE_JSON_H
#define LS_CKPT_STATE_JSON_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* The counters of ls_ckpt_progress: 64-bit integers, stored as 0 .. INT64_MAX. Ends with a NULL name. */
typedef struct ls_ckpt_progress_field {
	const char *name;
	size_t offset;
} ls_ckpt_progress_field;
extern const ls_ckpt_progress_field ls_ckpt_progress_fields[];

/* xxh64 of the canonical text of all keys but "xxh64". */
ls_status ls_ckpt_state_hash(json_t *root, uint64_t *out);

#endif
