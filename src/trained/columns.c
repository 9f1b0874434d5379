#include "trained/columns.h"

#include <stdlib.h>
#include <string.h>

#include "checkpoint/checkpoint.h"
#include "comm/agree.h"
#include "comm/collectives.h"
#include "data/readers/table_files.h"
#include "data/task.h"
#include "trained/weights.h"

ls_status ls_columns_of_weights(const char *file, char **columns, ls_task *task)
{
	ls_st_reader *reader = NULL;

	LS_TRY(ls_st_open(&reader, file));
	const char *text = ls_st_metadata(reader, LS_WEIGHTS_COLUMNS);
	char *copy = text ? strdup(text) : NULL;
	const char *name = ls_st_metadata(reader, LS_WEIGHTS_TASK);
	if (!name || !ls_task_find(name, task))
		*task = LS_TASK_CLASSIFICATION;
	ls_st_close(reader);
	if (text && !copy)
		return ls_fail(LS_EMEMORY, "%s: no memory for the columns of its table", file);
	*columns = copy;
	return LS_OK;
}

static ls_status look(char **out, const ls_train_options *o)
{
	const char *source = o->resume ? o->run : o->init;
	ls_weights weights;
	ls_task ignored;

	if (!source || o->train_set || !o->data || !ls_table_is(o->data) ||
	    ls_weights_find(&weights, source, 0) != LS_OK)
		return LS_OK;
	return ls_columns_of_weights(weights.file, out, &ignored);
}

ls_status ls_columns_find(char **out, const ls_train_options *options, ls_comm *comm, int is_first)
{
	uint64_t bytes;
	char *found = NULL;

	LS_TRY(ls_comm_agree(comm, is_first ? look(&found, options) : LS_OK));
	bytes = found ? strlen(found) + 1 : 0;
	ls_status status = ls_comm_broadcast(comm, 0, &bytes, sizeof(bytes), "columns of a table");
	if (status == LS_OK && bytes > 0 && !found) {
		found = calloc(bytes, 1);
		status = found ? LS_OK : ls_fail(LS_EMEMORY, "no memory for the columns of a table");
	}
	if (status == LS_OK && bytes > 0)
		status = ls_comm_broadcast(comm, 0, found, bytes, "columns of a table");
	if (status != LS_OK) {
		free(found);
		return status;
	}
	*out = found;
	return LS_OK;
}
