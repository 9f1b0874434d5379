/*
 * probe_print.h - the output of lockstep probe, as Markdown and as JSON.
 */
#ifndef LS_CLI_PROBE_PRINT_H
#define LS_CLI_PROBE_PRINT_H

#include <stdio.h>

#include <lockstep/probe.h>

/* Markdown tables. Both return 0, or -1 when memory ran out or writing failed. */
int ls_probe_print_text(const ls_probe_result *result, FILE *to);
int ls_probe_print_json(const ls_probe_result *result, FILE *to);

#endif
