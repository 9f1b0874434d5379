/*
 * class_names.h - a run keeps the names of its classes: RUN/labels.txt, a name per line, where its data has names.
 */
#ifndef LS_RUN_CLASS_NAMES_H
#define LS_RUN_CLASS_NAMES_H

#include <stddef.h>

#include <lockstep/data.h>

/* Write the names of the dataset's classes to the run's directory; nothing where it has none. */
ls_status ls_class_names_keep(const char *run, const ls_dataset *dataset);

/* The run's file; "" when it has none. */
void ls_class_names_find(char *out, size_t size, const char *run);

#endif
