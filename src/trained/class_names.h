/*
 * class_names.h - names of classes: those of a dataset, and the copy that a run keeps, RUN/labels.txt, a name per line.
 */
#ifndef LS_TRAINED_CLASS_NAMES_H
#define LS_TRAINED_CLASS_NAMES_H

#include <stddef.h>
#include <stdint.h>

#include <lockstep/data.h>

/* Names of the dataset's classes, or of the named dataset `data` (may be NULL), if there is one for each of
 * `outputs`. */
const char *const *ls_class_names_of(const ls_dataset *dataset, const char *data, int64_t outputs);

/* A name per line, as the run's file has them, malloc'd; the dataset has names. */
ls_status ls_class_names_text(const ls_dataset *dataset, char **text, size_t *bytes);

/* Write the names to the run's directory, or remove an older file where the data has none for each of `outputs`. */
ls_status ls_class_names_keep(const char *run, const ls_dataset *dataset, int64_t outputs);

/* The run's file; "" when it has none. */
void ls_class_names_find(char *out, size_t size, const char *run);

/* LS_EMISMATCH: the classes of the dataset are not those that the run was trained with, label by label. */
ls_status ls_class_names_check(const char *run, const ls_dataset *dataset);

#endif
