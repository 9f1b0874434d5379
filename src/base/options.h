/*
 * options.h - options of programs that were compiled against an older or a newer version of the headers.
 *
 * A struct of options begins with its size, set by its LS_..._OPTIONS_INIT; later versions add fields at its end
 * (docs/decisions/0021). A public function has the defaults in a struct of its own and puts what it was given over
 * them:
 *
 *     ls_train_options own = LS_TRAIN_OPTIONS_INIT;
 *     LS_TRY(LS_OPTIONS_TAKE(&own, options, given, "LS_TRAIN_OPTIONS_INIT"));
 *
 *   1. A program that is older gives a shorter struct: fields that it does not know keep their defaults.
 *   2. A newer one gives a longer struct: what this version does not know must be zero, else it is an error.
 *      So must `unused` be, which fills a struct up: LS_OPTIONS_TAKE_FILLED().
 *   3. A size below that of the first release, or far beyond any, is that of a struct that was never initialised.
 */
#ifndef LS_BASE_OPTIONS_H
#define LS_BASE_OPTIONS_H

#include "base/status.h"

/* `last` is the last field that the struct had in its first release. */
#define LS_OPTIONS_TAKE(own, given_options, last, init)                                                                \
	ls_options_take((own), sizeof(*(own)), (given_options), LS_OPTIONS_UP_TO(own, last), (init))
/* The same of a struct that `unused` fills up: the field is to have a meaning one day, as those that come after it. */
#define LS_OPTIONS_TAKE_FILLED(own, given_options, last, init)                                                         \
	ls_options_check_unused(LS_OPTIONS_TAKE(own, given_options, last, init), &(own)->unused, (init))
#define LS_OPTIONS_UP_TO(own, last) ((size_t)((const char *)(&(own)->last + 1) - (const char *)(own)))

/* `first` is the size in the first release. own's size field is own_size afterwards. */
ls_status ls_options_take(void *own, size_t own_size, const void *given, size_t first, const char *init);

/* `taken`, or LS_EINVALID where that is LS_OK and *unused is not 0. */
ls_status ls_options_check_unused(ls_status taken, const int *unused, const char *init);

/* Copy what both know; what is longer than `own` must be zero. For structs whose size comes from elsewhere. */
ls_status ls_options_copy(void *own, size_t own_size, const void *given, size_t size);

/* Whether `count` bytes are zero: room that is reserved for later versions. */
int ls_options_are_zero(const void *bytes, size_t count);

/* The size of a given struct, checked. */
ls_status ls_options_size(const void *given, size_t own_size, size_t first, const char *init, size_t *size);

#endif
