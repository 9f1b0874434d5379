/*
 * info_text.h - print a summary of a text dataset.
 */
#ifndef LS_DATA_INFO_TEXT_H
#define LS_DATA_INFO_TEXT_H

#include <lockstep/data.h>

/* Print a split called `title`; for a corpus, the first split comes with a summary of the whole corpus. */
ls_status ls_info_text(const ls_dataset *set, const char *title, FILE *to);

#endif
