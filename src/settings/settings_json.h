/*
 * settings_json.h - inside of settings.h: stored settings as JSON values, which settings_json.c writes and reads and
 * settings_compare.c compares.
 */
#ifndef LS_SETTINGS_SETTINGS_JSON_H
#define LS_SETTINGS_SETTINGS_JSON_H

#include <jansson.h>

#include "settings/settings.h"

/* Keys of what goes along with the settings (ls_settings_context). */
#define LS_KEY_VOCABULARY "vocabulary"
#define LS_KEY_TEXT "text"
#define LS_KEY_MEAN "mean"
#define LS_KEY_DEVIATION "deviation"
#define LS_KEY_TRAIN_HASH "train-hash"
#define LS_KEY_TEST_HASH "test-hash"

/* The value of a setting, owned by the caller; NULL: JSON cannot hold it. */
json_t *ls_settings_field_json(const ls_setting *row, const ls_train_options *options);

/* A program's own graph and datasets win over names: what the names say then means nothing. */
ls_train_options ls_settings_without_names(const ls_train_options *options);

/* Settings of a text on top of those in `options`, whose strings are then `owner`'s. */
ls_status ls_settings_read_stored(const char *text, const char *where, ls_train_options *options, json_t **owner);

/* 0: there is none. */
uint64_t ls_settings_stored_hash(const json_t *stored, const char *key);

/* Zero when the settings do not say. */
ls_status ls_settings_read_normalisation(const json_t *stored, const char *where, ls_normalisation *out);

#endif
