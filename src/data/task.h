/*
 * task.h - names of tasks.
 */
#ifndef LS_DATA_TASK_H
#define LS_DATA_TASK_H

#include <lockstep/data.h>

/* In options and files: "classification", "multi-label", "regression". */
const char *ls_task_name(ls_task task);

/* In messages: "multi-label classification". */
const char *ls_task_title(ls_task task);

/* 1 and the task, or 0: no task has this name. */
int ls_task_find(const char *name, ls_task *out);

#endif
