/*
 * Options of older and newer programs.
 */
#include <stddef.h>
#include <stdint.h>

#include "base/options.h"
#include "unit/assert_status.h"
#include "unit/test_main.h"

/* Three versions of a struct; the library has the second. */
typedef struct first_options {
	size_t size;
	int64_t kept;
} first_options;

typedef struct own_options {
	size_t size;
	int64_t kept;
	double added;
} own_options;
#define OWN_OPTIONS_INIT                                                                                               \
	{                                                                                                              \
		.size = sizeof(own_options), .kept = 3, .added = 0.5                                                   \
	}

typedef struct newer_options {
	size_t size;
	int64_t kept;
	double added;
	const char *unknown;
	int64_t unknown_too;
} newer_options;

static ls_status take(own_options *own, const void *given)
{
	return LS_OPTIONS_TAKE(own, (const own_options *)given, kept, "OWN_OPTIONS_INIT");
}

static void same_version_is_copied(void **state)
{
	(void)state;
	own_options own = OWN_OPTIONS_INIT, given = { .size = sizeof(given), .kept = 7, .added = -1 };
	assert_ok(take(&own, &given));
	assert_int_equal(own.kept, 7);
	assert_true(own.added == -1);
}

static void older_programs_get_defaults(void **state)
{
	(void)state;
	own_options own = OWN_OPTIONS_INIT;
	first_options given = { .size = sizeof(given), .kept = 7 };
	assert_ok(take(&own, &given));
	assert_int_equal(own.kept, 7);
	assert_true(own.added == 0.5);
	assert_int_equal(own.size, sizeof(own)); /* what is passed on has its own size */
}

static void newer_programs_may_set_what_is_known(void **state)
{
	(void)state;
	own_options own = OWN_OPTIONS_INIT;
	newer_options given = { .size = sizeof(given), .kept = 7, .added = 2 };
	assert_ok(take(&own, &given));
	assert_true(own.added == 2);
	assert_int_equal(own.size, sizeof(own));

	own = (own_options)OWN_OPTIONS_INIT;
	given.unknown_too = 1;
	assert_fails(take(&own, &given), LS_EUNSUPPORTED, "newer version of Lockstep than this library");
	assert_int_equal(own.kept, 3); /* nothing was taken */
	given.unknown_too = 0;
	given.unknown = "x";
	assert_fails(take(&own, &given), LS_EUNSUPPORTED, "newer version of Lockstep than this library");
}

static void structs_without_a_size_are_refused(void **state)
{
	(void)state;
	own_options own = OWN_OPTIONS_INIT, given = { .size = 0, .kept = 7 };
	assert_fails(take(&own, &given), LS_EINVALID, "options.size is 0: start from OWN_OPTIONS_INIT");
	given.size = offsetof(own_options, added) - 1;
	assert_fails(take(&own, &given), LS_EINVALID, "options.size is 15: start from OWN_OPTIONS_INIT");
	given.size = (size_t)1 << 40; /* must not be read */
	assert_fails(take(&own, &given), LS_EINVALID, "start from OWN_OPTIONS_INIT");
	assert_fails(take(&own, NULL), LS_EINVALID, "options is NULL: start from OWN_OPTIONS_INIT");
	assert_int_equal(own.kept, 3);
}

typedef struct filled_options {
	size_t size;
	int known;
	int unused;
} filled_options;

static void what_fills_a_struct_up_must_be_zero(void **state)
{
	(void)state;
	filled_options own = { .size = sizeof(own) }, given = { .size = sizeof(given), .known = 7 };
	assert_ok(LS_OPTIONS_TAKE_FILLED(&own, &given, unused, "FILLED_OPTIONS_INIT"));
	assert_int_equal(own.known, 7);
	given.unused = -3;
	assert_fails(LS_OPTIONS_TAKE_FILLED(&own, &given, unused, "FILLED_OPTIONS_INIT"), LS_EINVALID,
		     "options.unused is -3: it must be 0, as FILLED_OPTIONS_INIT sets it");
	given.size = 0;
	assert_fails(LS_OPTIONS_TAKE_FILLED(&own, &given, unused, "FILLED_OPTIONS_INIT"), LS_EINVALID,
		     "options.size is 0");
}

static void reserved_bytes_are_seen(void **state)
{
	(void)state;
	unsigned char bytes[24] = { 0 };
	assert_true(ls_options_are_zero(bytes, sizeof(bytes)));
	bytes[23] = 1;
	assert_false(ls_options_are_zero(bytes, sizeof(bytes)));
	assert_true(ls_options_are_zero(bytes, 23));
}

TEST_MAIN(same_version_is_copied, older_programs_get_defaults, newer_programs_may_set_what_is_known,
	  structs_without_a_size_are_refused, what_fills_a_struct_up_must_be_zero, reserved_bytes_are_seen)
