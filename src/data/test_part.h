/*
 * test_part.h - which samples are for tests where a dataset has no test part of its own: one in ten, by a
 * hash of what names the sample (an image's path, an array's index, a row's fields). So they are the same on
 * every machine and in any order.
 */
#ifndef LS_DATA_TEST_PART_H
#define LS_DATA_TEST_PART_H

#include <lockstep/data.h>

enum { LS_TEST_PART = 10 };

static inline int ls_hash_is_in(uint64_t hash, ls_split split)
{
	return (hash % LS_TEST_PART == 0) == (split == LS_SPLIT_TEST);
}

#endif
