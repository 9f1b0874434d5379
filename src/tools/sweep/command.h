/*
 * command.h - the command line that measures a point.
 */
#ifndef LS_TOOLS_SWEEP_COMMAND_H
#define LS_TOOLS_SWEEP_COMMAND_H

#include "base/memory.h"
#include "tools/sweep/lab.h"

/* Words of a command, ending with NULL; text that is not the caller's lives in the arena. */
typedef struct ls_argv {
	ls_arena *arena;
	char **word;
	size_t count, room;
	int failed;
} ls_argv;

void ls_argv_add(ls_argv *words, const char *word);
void ls_argv_addf(ls_argv *words, const char *option, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* Words of "--a 'b c' d", as a shell takes them apart. */
ls_status ls_argv_split(ls_argv *words, const char *text);
/* LS_OK, or that there was no memory. Empties `words`. */
ls_status ls_argv_end(ls_argv *words, char ***out);

/* Where a point runs, and with what. */
typedef struct ls_sweep_target {
	const char *program;
	const ls_lab *lab;   /* NULL: nodes are not emulated */
	const char *hosts;   /* "lm1,lm6": names of real nodes; NULL: none */
	const char *profile; /* replay it, or with `records` write it; may be NULL */
	int records;
	const char *run; /* directory of training */
	int64_t repeat;  /* of a bench */
} ls_sweep_target;

ls_status ls_sweep_bench_command(ls_arena *arena, const ls_sweep_point *point, const ls_sweep_target *target,
				 char ***out);
ls_status ls_sweep_train_command(ls_arena *arena, const ls_sweep_point *point, const ls_sweep_target *target,
				 char ***out);

/* A bench of one device of the point's that only records its profile. */
ls_status ls_sweep_record_command(ls_arena *arena, const ls_sweep_point *point, const ls_sweep_target *target,
				  char ***out);

/* A bench of one such device of a step: how long it takes. Training's own options and data are left out. */
ls_status ls_sweep_time_command(ls_arena *arena, const ls_sweep_point *point, const ls_sweep_target *target,
				char ***out);

#endif
