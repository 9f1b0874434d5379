/*
 * version.h - the version that a program is compiled against; ls_version() is that of the library it runs with.
 *
 *     #if LS_VERSION_AT_LEAST(0, 2, 0)
 *
 * A program runs with the version of the library that it was compiled against and with every later one of the same
 * major version. The build takes the version from here.
 */
#ifndef LOCKSTEP_VERSION_H
#define LOCKSTEP_VERSION_H

#define LS_VERSION_MAJOR 0
#define LS_VERSION_MINOR 1
#define LS_VERSION_PATCH 0

#define LS_VERSION_STRING "0.1.0"

/* Whether the headers are of this version or a later one. */
#define LS_VERSION_AT_LEAST(major, minor, patch)                                                                       \
	(LS_VERSION_MAJOR > (major) || (LS_VERSION_MAJOR == (major) && LS_VERSION_MINOR > (minor)) ||                  \
	 (LS_VERSION_MAJOR == (major) && LS_VERSION_MINOR == (minor) && LS_VERSION_PATCH >= (patch)))

#endif
