/*
 * command.h - the command line that measures a point.
 */
#ifndef LS_TOOLS_SWEEP_COMMAND_H
#define LS_TOOLS_SWEEP_COMMAND_H

#include "base/memory.h"
#include "tools/sweep/lab.h"

/* Words of a command, NULL-terminated; copies are in the arena. */
typedef struct ls_argv {
	ls_arena *arena;
	char **word;
	size_t count, room;
	int failed;
} ls_argv;

void ls_argv_add(ls_argv *words, const char *word);
void ls_argv_addf(ls_argv *words, const char *option, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* Append the words of "--a 'b c' d", split as by a shell. */
ls_status ls_argv_split(ls_argv *words, const char *text);
/* LS_OK or LS_EMEMORY. Empties `words`. */
ls_status ls_argv_end(ls_argv *words, char ***out);

/* Where and how a point runs. */
typedef struct ls_sweep_target {
	const char *program;
	const ls_lab *lab;   /* NULL: nodes are not emulated */
	const char *hosts;   /* "lm1,lm6": names of real nodes; NULL: none */
	const char *profile; /* replay it, or with `records` write it; may be NULL */
	int records;
	const char *run; /* directory of training */
	int64_t repeat;  /* of a bench */
	int64_t seed;    /* of training to a target */
} ls_sweep_target;

ls_status ls_sweep_bench_command(ls_arena *arena, const ls_sweep_point *point, const ls_sweep_target *target,
				 char ***out);
ls_status ls_sweep_train_command(ls_arena *arena, const ls_sweep_point *point, const ls_sweep_target *target,
				 char ***out);

/* A bench of one device of the point that only records its profile. */
ls_status ls_sweep_record_command(ls_arena *arena, const ls_sweep_point *point, const ls_sweep_target *target,
				  char ***out);

/* A bench of one step on one device of the point, to time it. Options and data of training are left out. */
ls_status ls_sweep_time_command(ls_arena *arena, const ls_sweep_point *point, const ls_sweep_target *target,
				char ***out);

#endif
