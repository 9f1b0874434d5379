/*
 * status.h - how every call reports success or failure.
 *
 * A function that can fail returns an ls_status; LS_OK is zero. Whoever first knows the cause writes a message
 * (value, file, what to do), readable with ls_last_error() on the same thread until the next failure there.
 * An output argument is set only on success. A `**out` first argument is owned by the caller; a returned pointer
 * is borrowed.
 */
#ifndef LOCKSTEP_STATUS_H
#define LOCKSTEP_STATUS_H

#include <stddef.h>

#include <lockstep/export.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One row per error: enumerator, short name, what it means. */
#define LS_STATUS_TABLE(X)                                                                                             \
	X(LS_OK, "ok", "no error")                                                                                     \
	X(LS_EINVALID, "invalid", "an argument or option is not acceptable")                                           \
	X(LS_ENOTFOUND, "not-found", "a file, name or dataset does not exist")                                         \
	X(LS_EIO, "io", "reading or writing failed")                                                                   \
	X(LS_EFORMAT, "format", "a file from outside is malformed")                                                    \
	X(LS_EMEMORY, "memory", "not enough memory")                                                                   \
	X(LS_EMISMATCH, "mismatch", "two things that must agree do not")                                               \
	X(LS_ENUMERIC, "numeric", "a value is infinite or not a number")                                               \
	X(LS_EINTERRUPTED, "interrupted", "stopped on request")                                                        \
	X(LS_EUNSUPPORTED, "unsupported", "this build or machine cannot do that")                                      \
	X(LS_EPEER, "peer", "another node failed")

typedef enum ls_status {
#define LS_STATUS_ENUM(id, name, text) id,
	LS_STATUS_TABLE(LS_STATUS_ENUM)
#undef LS_STATUS_ENUM
} ls_status;

/* Short name of a status, "format"; never NULL. */
LS_API const char *ls_status_name(ls_status status);

/* The message of this thread's last failure; "" when there was none. Valid until the next failure on this thread. */
LS_API const char *ls_last_error(void);

/* Messages name options by their fields, "options.lr_min". A program whose users know other names gives a function that
 * rewrites a message in place, making it no longer; warnings and notes go through it before they are printed, and what
 * ls_last_error() returns is the program's own to print. NULL: none. */
typedef void (*ls_message_rewrite)(char *message);
LS_API void ls_set_message_rewrite(ls_message_rewrite rewrite);

/* Library version, "0.1.0". */
LS_API const char *ls_version(void);

/* Write a whole file under a temporary name and rename it into place: readers see the old file or the new one, never a
 * part. Only a regular file is replaced; a symbolic link is followed, a device or pipe is written to directly. */
LS_API ls_status ls_write_file(const char *path, const void *data, size_t bytes);
/* The same, but never replace a file: LS_EINVALID if the name exists, also if another process created it a moment
 * before. */
LS_API ls_status ls_create_file(const char *path, const void *data, size_t bytes);
/* Before long work: whether ls_write_file() could write it. Changes nothing. */
LS_API ls_status ls_check_file(const char *path);

/* Remove the temporary files of writes that this process has not finished. Async-signal-safe: for a signal handler that
 * ends the process. */
LS_API void ls_discard_drafts(void);

#ifdef __cplusplus
}
#endif
#endif
