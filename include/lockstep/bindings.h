/*
 * bindings.h - what programs in other languages need in place of macros.
 *
 * A binding knows the structs of these headers, but cannot expand LS_TRAIN_OPTIONS_INIT:
 *
 *     ls_train_options options;
 *     if (ls_options_init("ls_train_options", &options, sizeof(options))) { puts(ls_last_error()); return 1; }
 */
#ifndef LOCKSTEP_BINDINGS_H
#define LOCKSTEP_BINDINGS_H

#include <stddef.h>

#include <lockstep/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Fill the struct `type` with the values of its ..._INIT macro. `size` is its size in the headers that the binding was
 * made from, which may be older or newer than the library. LS_ENOTFOUND: there is no such struct with a macro. */
LS_API ls_status ls_options_init(const char *type, void *options, size_t size);

/* Name of row i of the structs that ls_options_init() knows; NULL past the end. */
LS_API const char *ls_options_type_at(size_t i);

#ifdef __cplusplus
}
#endif
#endif
