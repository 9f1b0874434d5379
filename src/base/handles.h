/*
 * handles.h - which objects that programs hold are alive: using one that was freed is an error, not a crash.
 *
 * A new object at the address of one that was freed is taken for it where both are of one kind.
 */
#ifndef LS_BASE_HANDLES_H
#define LS_BASE_HANDLES_H

#include "base/status.h"

#define LS_STOP_KIND "stop handle" /* of lockstep/hooks.h: runs, trainers and servers take them */

/* `kind` says in messages what it is: "model". Safe from any thread. */
ls_status ls_handle_add(const void *object, const char *kind);

/* Whether it was there: an object is freed once. */
int ls_handle_remove(const void *object, const char *kind);

/* LS_EINVALID: NULL, freed, or something else. */
ls_status ls_handle_check(const void *object, const char *kind);

/* LS_EINVALID: an argument of a program is NULL and must not be; `name` is what the header calls it. */
ls_status ls_argument_check(const void *argument, const char *name);

#endif
