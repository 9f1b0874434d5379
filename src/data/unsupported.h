/*
 * unsupported.h - recognise data in formats that Lockstep cannot read, to name them and the supported ones in an error.
 */
#ifndef LS_DATA_UNSUPPORTED_H
#define LS_DATA_UNSUPPORTED_H

#include <lockstep/data.h>

/* LS_EUNSUPPORTED for a file that is a table, a picture, an archive or the like, and for a directory with more pictures
 * (or tables) than texts; the message says what was found and what is supported. LS_OK: none of these. */
ls_status ls_data_check_format(const char *path);

#endif
