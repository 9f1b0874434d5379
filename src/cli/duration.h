/*
 * duration.h - times as options have them: 30, 30s, 5m, 2h, 30d.
 */
#ifndef LS_CLI_DURATION_H
#define LS_CLI_DURATION_H

#include <lockstep/train.h>

/* Parse a number, or a duration such as 30s, 5m, 2h or 1d. `unit`: seconds that a number without a suffix counts; 0: it
 * is a plain number and takes no suffix. The row names the option in errors and has the limits of the number. */
ls_status ls_duration_set(const ls_setting *row, double unit, double *to, const char *text);

#endif
