/*
 * test_main.h - the main() of a unit test program.
 *
 *     TEST_MAIN(test_a, test_b)                        runs functions of type void (void **state)
 *     TEST_MAIN_EACH(setup, teardown, test_a, ...)     each of them between a setup and a teardown
 *     TEST_MAIN_GROUP(setup, teardown, test_a, ...)    all of them between one setup and one teardown
 */
#ifndef LS_TESTS_TEST_MAIN_H
#define LS_TESTS_TEST_MAIN_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* What tests run between; NULL: nothing. */
typedef struct test_fixture {
	CMFixtureFunction each_setup, each_teardown, group_setup, group_teardown;
} test_fixture;

/* `names` is "test_a, test_b", which is cut up. cmocka skips entries without a name. */
static inline int test_main_run(const CMUnitTestFunction *functions, size_t count, char *names, test_fixture with)
{
	enum { MOST = 64 };
	struct CMUnitTest tests[MOST] = { 0 };
	char *name = strtok(names, ", \t\n");

	for (size_t i = 0; i < count && i < MOST; i++, name = strtok(NULL, ", \t\n"))
		tests[i] = (struct CMUnitTest){ .name = name,
						.test_func = functions[i],
						.setup_func = with.each_setup,
						.teardown_func = with.each_teardown };
	if (count > MOST || name)
		return 99;
	return cmocka_run_group_tests(tests, with.group_setup, with.group_teardown);
}

#define TEST_MAIN_FIXTURE(fixture, ...)                                                                                \
	int main(void)                                                                                                 \
	{                                                                                                              \
		static const CMUnitTestFunction main_tests[] = { __VA_ARGS__ };                                        \
		static char main_names[] = #__VA_ARGS__;                                                               \
		return test_main_run(main_tests, sizeof(main_tests) / sizeof(main_tests[0]), main_names, fixture);     \
	}
#define TEST_MAIN(...) TEST_MAIN_FIXTURE((test_fixture){ 0 }, __VA_ARGS__)
#define TEST_MAIN_EACH(setup, teardown, ...)                                                                           \
	TEST_MAIN_FIXTURE(((test_fixture){ .each_setup = setup, .each_teardown = teardown }), __VA_ARGS__)
#define TEST_MAIN_GROUP(setup, teardown, ...)                                                                          \
	TEST_MAIN_FIXTURE(((test_fixture){ .group_setup = setup, .group_teardown = teardown }), __VA_ARGS__)

#endif
