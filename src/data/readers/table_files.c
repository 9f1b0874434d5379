#include "data/readers/table_files.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/files.h"
#include "base/log.h"
#include "base/names.h"
#include "data/test_part.h"

/* "train.csv" or another ending; 0: there is none. */
static int find_file(char *out, size_t size, const char *directory, const char *const *stems)
{
	static const char *const endings[] = { "csv", "tsv", "jsonl", "csv.gz", "tsv.gz", "jsonl.gz" };
	char name[64];

	for (; *stems; stems++)
		for (size_t i = 0; i < LS_COUNT(endings); i++) {
			snprintf(name, sizeof(name), "%s.%s", *stems, endings[i]);
			if (ls_path_join(out, size, directory, name) == LS_OK && ls_path_exists(out) &&
			    !ls_path_is_directory(out))
				return 1;
		}
	return 0;
}

static const char *const of_train[] = { "train", NULL }, *const of_test[] = { "test", "val", "valid", NULL };

int ls_table_is(const char *path)
{
	char train[4096];

	if (ls_path_is_directory(path))
		return find_file(train, sizeof(train), path, of_train);
	return ls_table_rows_named(path) && ls_path_exists(path);
}

/* A table is read several times, and opening a pipe waits for whoever writes into it. */
static ls_status check_regular(const char *path)
{
	struct stat facts;

	if (stat(path, &facts) != 0)
		return ls_fail_errno(errno == ENOENT ? LS_ENOTFOUND : LS_EIO, "cannot open %s", path);
	return S_ISREG(facts.st_mode) ? LS_OK
				      : ls_fail(LS_EFORMAT,
						"%s is a pipe or a device; a table is read several times: copy it to "
						"a file",
						path);
}

static ls_status find_files(ls_table_files *out, const char *path)
{
	char *train = out->path[LS_SPLIT_TRAIN], *test = out->path[LS_SPLIT_TEST];

	out->is_split = 0;
	if (!ls_path_is_directory(path)) {
		if (snprintf(train, sizeof(out->path[0]), "%s", path) >= (int)sizeof(out->path[0]))
			return ls_fail(LS_EINVALID, "the path %s is too long", path);
	} else if (!find_file(train, sizeof(out->path[0]), path, of_train)) {
		return ls_fail(LS_ENOTFOUND, "%s has no train.csv, train.tsv or train.jsonl", path);
	} else if (find_file(test, sizeof(out->path[0]), path, of_test)) {
		return LS_OK;
	}
	memcpy(test, train, sizeof(out->path[0]));
	out->is_split = 1;
	return LS_OK;
}

ls_status ls_table_files_find(ls_table_files *out, const char *path)
{
	LS_TRY(find_files(out, path));
	LS_TRY(check_regular(out->path[LS_SPLIT_TRAIN]));
	return check_regular(out->path[LS_SPLIT_TEST]);
}

/* ---- walking ----------------------------------------------------------------------------------------------------- */

ls_status ls_table_walk_begin(ls_table_walk *w, const ls_table_files *files, ls_split split, uint64_t skip_bad)
{
	*w = (ls_table_walk){
		.path = files->path[split], .is_split = files->is_split, .split = split, .skip_bad = skip_bad
	};
	return ls_table_rows_open(&w->rows, w->path);
}

void ls_table_walk_end(ls_table_walk *w)
{
	ls_table_rows_close(w->rows);
	w->rows = NULL;
}

/* Rows that are named; of a file that is no table at all there would be no end. */
enum { NAMED_MAX = 100 };

static ls_status skip(ls_table_walk *w, const ls_table_row *row, ls_status status, int is_of_part)
{
	if (status != LS_EFORMAT)
		return status;
	if (w->skip_bad == 0)
		return ls_fail(status, "%s; options.skip_bad N leaves out up to N rows that cannot be read",
			       ls_last_error());
	if (row->line == w->bad_line) /* of a damaged file nothing more can be read */
		return status;
	w->bad_line = row->line;
	w->bad_lines += row->lines > 1 ? row->lines : 0;
	if (++w->bad > w->skip_bad)
		return ls_fail_context(LS_EFORMAT,
				       "more than %" PRIu64 " row%s of %s cannot be read (options.skip_bad)",
				       w->skip_bad, ls_plural(w->skip_bad, "s"), w->path);
	if (is_of_part && w->bad_here++ < NAMED_MAX && w->names_bad)
		ls_log_warning("left out: %s", ls_last_error());
	return LS_OK;
}

ls_status ls_table_walk_skip(ls_table_walk *w, const ls_table_row *row, ls_status status)
{
	return skip(w, row, status, 1);
}

static int is_wanted(const ls_table_walk *w, const ls_table_row *row)
{
	return !w->is_split || ls_hash_is_in(row->hash, w->split);
}

ls_status ls_table_walk_next(ls_table_walk *w, ls_table_row *row, int *found)
{
	for (;;) {
		ls_status status = ls_table_rows_next(w->rows, row, found);
		if (status == LS_OK && (!*found || is_wanted(w, row)))
			return LS_OK;
		if (status != LS_OK)
			LS_TRY(skip(w, row, status, !w->is_split || w->split == LS_SPLIT_TRAIN));
	}
}
