/*
 * unsupported.h - data in formats that are known but not read, so that whoever names some is told what is.
 */
#ifndef LS_DATA_UNSUPPORTED_H
#define LS_DATA_UNSUPPORTED_H

#include <lockstep/data.h>

/* LS_EUNSUPPORTED for a file that is a table, a picture, an archive or the like, and for a directory that has more
 * pictures (or tables) in it than texts; the message says what was found and what is read. LS_OK: it is neither. */
ls_status ls_data_check_format(const char *path);

#endif
