#include "data/task.h"

#include <string.h>

#include "base/array.h"

static const struct {
	const char *name, *title;
} tasks[] = {
	[LS_TASK_CLASSIFICATION] = { "classification", "classification" },
	[LS_TASK_MULTI_LABEL] = { "multi-label", "multi-label classification" },
	[LS_TASK_REGRESSION] = { "regression", "regression" },
};

const char *ls_task_name(ls_task task)
{
	return tasks[task].name;
}

const char *ls_task_title(ls_task task)
{
	return tasks[task].title;
}

int ls_task_find(const char *name, ls_task *out)
{
	for (size_t i = 0; i < LS_COUNT(tasks); i++)
		if (strcmp(name, tasks[i].name) == 0) {
			*out = (ls_task)i;
			return 1;
		}
	return 0;
}
