/*
 * cifar.h - what the files of CIFAR-10 and CIFAR-100 are, for the reader and for the download.
 */
#ifndef LS_DATA_READERS_CIFAR_H
#define LS_DATA_READERS_CIFAR_H

#include <stddef.h>
#include <stdint.h>

#include <lockstep/data.h>

enum { LS_CIFAR_FILES = 5 };

typedef struct ls_cifar {
	const char *name;
	const char *folder;                              /* of the files in the archive */
	const char *train[LS_CIFAR_FILES + 1], *test[2]; /* names of files, NULL at the end */
	int labels;                                      /* bytes before an image, of which the last counts */
	int classes;
	uint64_t records[2]; /* of a published file: train, test */
	ls_normalisation normalisation;
} ls_cifar;

extern const ls_cifar ls_cifar10, ls_cifar100;

size_t ls_cifar_record(const ls_cifar *kind); /* bytes */

/* Whether a file consists of whole records with labels that there are. */
ls_status ls_cifar_check_file(const ls_cifar *kind, const uint8_t *data, size_t bytes, const char *path);

#endif
