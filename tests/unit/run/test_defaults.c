/*
 * The defaults of options structs for other languages are those of the INIT macros.
 */
#include <lockstep/bindings.h>
#include <lockstep/data.h>
#include <lockstep/train.h>
#include <string.h>

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
	assert_true(filled.lr == train.lr && filled.batch == train.batch && filled.seed == train.seed);
	assert_true(!filled.run && filled.given[0] == 0 && filled.given[1] == 0);
	assert_true(filled_set.seed == set.seed && !filled_set.name && filled_set.split == set.split);
}

static void refuses_what_it_does_not_know(void **state)
{
	ls_train_options filled;
	(void)state;
	assert_fails(ls_options_init("ls_none_options", &filled, 8), LS_ENOTFOUND, "no struct 'ls_none_options'");
	assert_fails(ls_options_init("ls_train_options", &filled, 8), LS_EMISMATCH,
		     "ls_train_options has 8 bytes in the binding");
}

static void lists_what_it_knows(void **state)
{
	size_t count = 0;
	char room[8192];
	(void)state;
	for (const char *type; (type = ls_options_type_at(count)); count++)
		assert_fails(ls_options_init(type, room, sizeof(room)), LS_EMISMATCH, type);
	assert_true(count >= 9);
}

TEST_MAIN(are_those_of_the_macros, refuses_what_it_does_not_know, lists_what_it_knows)
