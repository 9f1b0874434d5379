/*
 * export.h - which functions a program may call: those marked LS_API, all in these headers. Everything else in the
 * library is hidden, so that no name of its own or of the libraries inside it meets one of the program's.
 */
#ifndef LOCKSTEP_EXPORT_H
#define LOCKSTEP_EXPORT_H

#if defined(__GNUC__) || defined(__clang__)
#define LS_API __attribute__((visibility("default")))
#else
#define LS_API
#endif

#endif
