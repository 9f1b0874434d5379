/*
 * test_seed.h - a seed for random tests: LS_TEST_SEED, else the time. It is printed, so that a failure can be repeated.
 */
#ifndef LS_TESTS_TEST_SEED_H
#define LS_TESTS_TEST_SEED_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static inline uint64_t test_seed(void)
{
	const char *text = getenv("LS_TEST_SEED");
	uint64_t seed = text ? strtoull(text, NULL, 10) : (uint64_t)time(NULL);
	printf("# LS_TEST_SEED=%llu\n", (unsigned long long)seed);
	return seed;
}

#endif
