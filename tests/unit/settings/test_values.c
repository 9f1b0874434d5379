/*
 * Settings whose values have names: the values are those of the tables, all of them are accepted, and no
 * help text lists them by itself.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <lockstep/train.h>

#include "exchange/codec.h"
#include "trainer/layout.h"
#include "unit/test_main.h"

static size_t count_values(const ls_setting *row)
{
	ls_setting_value value;
	size_t count = 0;
	while (ls_setting_value_at(row, count, &value))
		count++;
	return count;
}

static int has_value(const ls_setting *row, const char *name)
{
	ls_setting_value value;
	for (size_t i = 0; ls_setting_value_at(row, i, &value); i++)
		if (!strcmp(value.name, name))
			return 1;
	return 0;
}

static void test_values_are_sound(void **state)
{
	(void)state;
	const ls_train_options defaults = LS_TRAIN_OPTIONS_INIT;
	const ls_setting *row;
	ls_setting_value value;
	size_t families = 0;
	for (size_t i = 0; (row = ls_train_setting_at(i)); i++) {
		char text[64];
		ls_setting_format(row, &defaults, text, sizeof(text));
		if (count_values(row) > 0 && *text && !has_value(row, text)) /* some have no default */
			fail_msg("the default of %s, %s, is not among its values", row->name, text);
		families += count_values(row) > 0;
		for (size_t k = 0; ls_setting_value_at(row, k, &value); k++)
			if (!value.summary || !*value.summary || strlen(value.name) > 19)
				fail_msg("%s %s cannot be shown in help", row->name, value.name);
	}
	assert_int_equal(families, 16);
	assert_int_equal(count_values(ls_train_setting_of("lr")), 0);
	assert_int_equal(count_values(ls_train_setting_of("run")), 0);
}

static void test_values_are_those_of_the_tables(void **state)
{
	(void)state;
	const ls_setting *strategy = ls_train_setting_of("strategy"), *wire = ls_train_setting_of("wire");
	ls_setting_value value;
	size_t wires = 0;
	for (size_t i = 0; ls_strategy_at(i); i++) {
		assert_true(ls_setting_value_at(strategy, i, &value));
		assert_string_equal(value.name, ls_strategy_at(i)->name);
		assert_string_equal(value.summary, ls_strategy_at(i)->summary);
	}
	for (size_t i = 0; ls_codec_at(i); i++) {
		const ls_codec *found = NULL;
		if (!ls_codec_at(i)->wire)
			continue;
		wires++;
		assert_true(has_value(wire, ls_codec_at(i)->wire));
		assert_int_equal(ls_wire_find(ls_codec_at(i)->wire, &found), LS_OK);
		assert_ptr_equal(found, ls_codec_at(i)); /* no name twice */
	}
	assert_int_equal(count_values(wire), wires);
	assert_true(has_value(wire, "fp32") && has_value(wire, "bf16"));
}

static void test_every_value_is_accepted(void **state)
{
	(void)state;
	static const char *const names[] = { "strategy", "wire", "pin", "share" };
	ls_setting_value value;
	for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++) {
		const ls_setting *row = ls_train_setting_of(names[k]);
		for (size_t i = 0; ls_setting_value_at(row, i, &value); i++) {
			ls_train_options options = LS_TRAIN_OPTIONS_INIT;
			assert_int_equal(ls_train_options_set(&options, row->name, value.name), LS_OK);
			if (ls_layout_check(&options) != LS_OK)
				fail_msg("%s %s: %s", row->name, value.name, ls_last_error());
		}
		ls_train_options options = LS_TRAIN_OPTIONS_INIT;
		assert_int_equal(ls_train_options_set(&options, row->name, "nonsense"), LS_OK);
		assert_int_equal(ls_layout_check(&options), LS_EINVALID);
	}
	ls_train_options options = LS_TRAIN_OPTIONS_INIT;
	options.wire = "bf61";
	assert_int_equal(ls_layout_check(&options), LS_EINVALID);
	assert_string_equal(ls_last_error(), "unknown wire 'bf61'; did you mean 'bf16'? Known: fp32, bf16");
}

static void test_help_lists_no_values_by_itself(void **state)
{
	(void)state;
	const ls_setting *row;
	ls_setting_value value;
	for (size_t i = 0; (row = ls_train_setting_at(i)); i++)
		for (size_t k = 0; ls_setting_value_at(row, k, &value); k++)
			if (strstr(row->help, value.name))
				fail_msg("the help of %s has the value %s: write {values}", row->name, value.name);
}

TEST_MAIN(test_values_are_sound, test_values_are_those_of_the_tables, test_every_value_is_accepted,
	  test_help_lists_no_values_by_itself)
