/*
 * info_text.h - what a dataset of text holds, for people.
 */
#ifndef LS_DATA_INFO_TEXT_H
#define LS_DATA_INFO_TEXT_H

#include <lockstep/data.h>

/* A split called `title`; of a corpus, with the first split, what the whole of it is. */
ls_status ls_info_text(const ls_dataset *set, const char *title, FILE *to);

#endif
