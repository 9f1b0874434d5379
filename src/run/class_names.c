#include "run/class_names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/status.h"
#include "data/dataset.h"
#include "data/text_input.h"

#define FILE_NAME "labels.txt"

/* A name of several lines would be several names; names of folders may be anything, the file is UTF-8. */
static void put_name(FILE *to, const char *name)
{
	size_t bytes = strlen(name), invalid = ls_text_invalid(name, bytes);

	for (size_t i = 0; i < bytes; i++) {
		int is_bad = i == invalid, is_end = name[i] == '\n' || name[i] == '\r';
		if (is_bad)
			invalid = i + 1 + ls_text_invalid(name + i + 1, bytes - i - 1);
		putc(is_bad ? '?' : is_end ? ' ' : name[i], to);
	}
	putc('\n', to);
}

ls_status ls_class_names_keep(const char *run, const ls_dataset *dataset)
{
	char path[4096], *text = NULL;
	size_t bytes = 0;

	if (!dataset->class_names)
		return LS_OK;
	LS_TRY(ls_path_join(path, sizeof(path), run, FILE_NAME));
	FILE *to = open_memstream(&text, &bytes);
	for (int i = 0; to && i < dataset->info.classes; i++)
		put_name(to, dataset->class_names[i]);
	int is_written = to && fclose(to) == 0;
	ls_status status =
		is_written ? ls_file_put(path, text, bytes)
			   : ls_fail(LS_EMEMORY, "no memory for the names of %d classes", dataset->info.classes);
	free(text);
	return status;
}

void ls_class_names_find(char *out, size_t size, const char *run)
{
	if (run[0] == '\0' || ls_path_join(out, size, run, FILE_NAME) != LS_OK || !ls_path_exists(out))
		out[0] = '\0';
}
