/*
 * state_json.h - declarations shared by the writer and the parser of state.json.
 */
#ifndef LS_CHECKPOINT_STATE_JSON_H
#define LS_CHECKPOINT_STATE_JSON_H

#include <jansson.h>
#include <stdint.h>

#include "base/status.h"
#include "json/fields.h"

/* Of ls_ckpt_progress; counters are stored as 0 .. INT64_MAX. */
enum { LS_CKPT_PROGRESS_FIELDS = 14 };
extern const ls_field ls_ckpt_progress_fields[LS_CKPT_PROGRESS_FIELDS];

/* xxh64 of the canonical text of all keys but "xxh64". */
ls_status ls_ckpt_state_hash(json_t *root, uint64_t *out);

#endif
