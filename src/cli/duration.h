/*
 * duration.h - times as options have them: 30, 30s, 5m, 2h, 30d.
 */
#ifndef LS_CLI_DURATION_H
#define LS_CLI_DURATION_H

#include <lockstep/train.h>

/* A number, of a time with one of the letters s, m, h and d behind it or none, which is the unit given in seconds; 0:
 * no time, and no letters. The row names the option in errors, and its limits are those of the digits. */
ls_status ls_duration_set(const ls_setting *row, double unit, double *to, const char *text);

#endif
