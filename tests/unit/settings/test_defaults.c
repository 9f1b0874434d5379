/*
 * The defaults of options structs for other languages are those of the INIT macros.
 */
#include <lockstep/bindings.h>
#include <lockstep/data.h>
#include <lockstep/train.h>
#include <string.h>

#include "unit/assert_status.h"
#include "unit/test_main.h"

static void are_those_of_the_macros(void **state)
{
	const ls_train_options train = LS_TRAIN_OPTIONS_INIT;
	const ls_dataset_options set = LS_DATASET_OPTIONS_INIT;
	ls_train_options filled;
	ls_dataset_options filled_set;
	(void)state;
	memset(&filled, 0xff, sizeof(filled));
	memset(&filled_set, 0xff, sizeof(filled_set));
	assert_ok(ls_options_init("ls_train_options", &filled, sizeof(filled)));
	assert_ok(ls_options_init("ls_dataset_options", &filled_set, sizeof(filled_set)));
	assert_string_equal(filled.optimizer, train.optimizer);
	assert_true(filled.size == sizeof(filled) && filled.lr == train.lr && filled.batch == train.batch &&
		    filled.seed == train.seed);
	assert_true(!filled.run && filled.given[0] == 0 && filled.given[1] == 0);
	assert_true(filled_set.seed == set.seed && !filled_set.name && filled_set.split == set.split);
}

/* A binding may be older than the library, or newer. */
static void serves_other_versions(void **state)
{
	struct {
		ls_train_options options;
		uint64_t later[2];
	} newer;
	const ls_train_options train = LS_TRAIN_OPTIONS_INIT;
	size_t older = offsetof(ls_train_options, given);
	(void)state;
	memset(&newer, 0xff, sizeof(newer));
	assert_ok(ls_options_init("ls_train_options", &newer, sizeof(newer)));
	assert_true(newer.options.size == sizeof(newer) && newer.later[0] == 0 && newer.later[1] == 0);
	assert_true(newer.options.lr == train.lr);
	memset(&newer, 0xff, sizeof(newer));
	assert_ok(ls_options_init("ls_train_options", &newer, older));
	assert_true(newer.options.size == older && newer.options.given[0] == UINT64_MAX);
}

static void refuses_what_it_does_not_know(void **state)
{
	ls_train_options filled;
	(void)state;
	assert_fails(ls_options_init("ls_none_options", &filled, 8), LS_ENOTFOUND, "no struct 'ls_none_options'");
	assert_fails(ls_options_init("ls_train_options", &filled, 4), LS_EINVALID, "more than 4 bytes");
}

/* All begin with their size. */
static void lists_what_it_knows(void **state)
{
	size_t count = 0, room[1024];
	(void)state;
	for (const char *type; (type = ls_options_type_at(count)); count++) {
		assert_ok(ls_options_init(type, room, sizeof(room)));
		assert_true(room[0] == sizeof(room));
	}
	assert_true(count >= 9);
}

TEST_MAIN(are_those_of_the_macros, serves_other_versions, refuses_what_it_does_not_know, lists_what_it_knows)
