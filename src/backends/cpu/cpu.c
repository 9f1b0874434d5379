#include "backends/backend.h"

static void train_exec(void *self, ls_exec_microbatch *microbatch)
{
	ls_exec_train(self, microbatch);
}

static void free_exec(void *self)
{
	ls_exec_free(self);
}

ls_work ls_work_of_exec(ls_exec *exec)
{
	static const ls_work_kind kind = { "executor", train_exec, free_exec };
	return (ls_work){ .kind = &kind, .self = exec };
}
