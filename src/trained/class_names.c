#include "trained/class_names.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "base/status.h"
#include "data/dataset.h"
#include "data/text_input.h"

#define FILE_NAME "labels.txt"

/* A name of several lines would be several names; names of folders may be anything, the file is UTF-8 and nothing
 * in it is for a terminal. */
static void put_name(FILE *to, const char *name)
{
	size_t bytes = strlen(name), invalid = ls_text_invalid(name, bytes);

	for (size_t i = 0; i < bytes; i++) {
		int is_bad = i == invalid, is_end = name[i] == '\n' || name[i] == '\r';
		is_bad |= !is_end && name[i] != '\t' && iscntrl((unsigned char)name[i]);
		if (i == invalid)
			invalid = i + 1 + ls_text_invalid(name + i + 1, bytes - i - 1);
		putc(is_bad ? '?' : is_end ? ' ' : name[i], to);
	}
	putc('\n', to);
}

const char *const *ls_class_names_of(const ls_dataset *dataset, const char *data, int64_t outputs)
{
	const ls_dataset_row *row = data ? ls_dataset_row_of(data) : NULL;
	int64_t count = 0;

	if (dataset && dataset->class_names)
		return dataset->info.classes == outputs ? dataset->class_names : NULL;
	while (row && row->class_names && row->class_names[count])
		count++;
	return count > 0 && count == outputs ? row->class_names : NULL;
}

ls_status ls_class_names_text(const ls_dataset *dataset, char **text, size_t *bytes)
{
	FILE *to = open_memstream(text, bytes);

	for (int i = 0; to && i < dataset->info.classes; i++)
		put_name(to, dataset->class_names[i]);
	return to && fclose(to) == 0
		       ? LS_OK
		       : ls_fail(LS_EMEMORY, "no memory for the names of %d classes", dataset->info.classes);
}

ls_status ls_class_names_keep(const char *run, const ls_dataset *dataset, int64_t outputs)
{
	char path[4096], *text = NULL;
	size_t bytes = 0;

	LS_TRY(ls_path_join(path, sizeof(path), run, FILE_NAME));
	if (!dataset->class_names || dataset->info.classes != outputs) {
		unlink(path);
		return LS_OK;
	}
	ls_status status = ls_class_names_text(dataset, &text, &bytes);
	if (status == LS_OK)
		status = ls_file_put(path, text, bytes);
	free(text);
	return status;
}

void ls_class_names_find(char *out, size_t size, const char *run)
{
	if (run[0] == '\0' || ls_path_join(out, size, run, FILE_NAME) != LS_OK || !ls_path_exists(out))
		out[0] = '\0';
}

/* The line at `at`, without its end. */
static size_t line_length(const char *text, size_t bytes, size_t at)
{
	const char *end = at < bytes ? memchr(text + at, '\n', bytes - at) : NULL;
	return end ? (size_t)(end - text) - at : bytes - at;
}

/* Name by name, for the message. */
static ls_status compare(const char *path, const ls_file_map *kept, const ls_dataset *dataset, const char *text,
			 size_t bytes)
{
	const char *was = (const char *)kept->data;

	if (kept->bytes == bytes && (bytes == 0 || memcmp(was, text, bytes) == 0))
		return LS_OK;
	for (size_t a = 0, b = 0, label = 0; a < kept->bytes && b < bytes; label++) {
		size_t before = line_length(was, kept->bytes, a), now = line_length(text, bytes, b);
		if (before != now || memcmp(was + a, text + b, now) != 0)
			return ls_fail(LS_EMISMATCH,
				       "class %zu of dataset '%s' is '%.*s', and the weights were trained with '%.*s' "
				       "there (%s): "
				       "the folder must have the same class folders",
				       label, dataset->info.name, (int)now, text + b, (int)before, was + a, path);
		a += before + 1;
		b += now + 1;
	}
	return ls_fail(LS_EMISMATCH, "dataset '%s' has other classes than the weights were trained with (%s)",
		       dataset->info.name, path);
}

ls_status ls_class_names_check(const char *run, const ls_dataset *dataset)
{
	char path[4096], *text = NULL;
	size_t bytes = 0;
	ls_file_map kept;

	ls_class_names_find(path, sizeof(path), run);
	if (path[0] == '\0' || !dataset->class_names)
		return LS_OK;
	ls_status status = ls_class_names_text(dataset, &text, &bytes);
	if (status == LS_OK)
		status = ls_file_map_open(&kept, path);
	if (status == LS_OK)
		status = ls_file_map_end(&kept, compare(path, &kept, dataset, text, bytes));
	free(text);
	return status;
}
