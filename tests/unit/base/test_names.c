/*
 * Suggestions and number parsing.
 */
#include <stddef.h>
#include <stdint.h>

#include <string.h>

#include "base/names.h"
#include "unit/test_main.h"

static const char *const models[] = { "mlp", "cnn", "resnet18", "resnet34", "resnet50", "resnet101", "resnet152" };

static const char *at(size_t i)
{
	return i < sizeof(models) / sizeof(models[0]) ? models[i] : NULL;
}

static const char *nearest(const char *typed)
{
	return ls_name_nearest(typed, models, 7);
}

static void slips_are_recognised(void **state)
{
	(void)state;
	assert_string_equal(nearest("resnet8"), "resnet18");
	assert_string_equal(nearest("ResNet50"), "resnet50");
	assert_string_equal(nearest("renset34"), "resnet34");
	assert_string_equal(nearest("resnet-101"), "resnet101");
	assert_string_equal(nearest("cnm"), "cnn");
	assert_string_equal(nearest("ncn"), "cnn");
	assert_string_equal(nearest("resnet"), "resnet18");
	assert_null(nearest("transformer"));
	assert_null(nearest("x"));
	assert_null(nearest(""));
	assert_null(nearest("a name that is a great assign longer than any name a table has ever had in it"));
	assert_null(ls_name_nearest("cnn", models, 0));
	static const char *const options[] = { "--ffn", "--lr", "--batch" };
	assert_null(ls_name_nearest("--run", options, 3)); /* common dashes do not count */
	assert_null(ls_name_nearest("--foo", options, 3));
	static const char *const fields[] = { "wire", "rate" };
	assert_null(ls_name_nearest("word", fields, 2)); /* half of the letters differ */
	assert_string_equal(ls_name_nearest("wier", fields, 2), "wire");
	assert_string_equal(ls_name_nearest("--fnf", options, 3), "--ffn");
	assert_string_equal(ls_name_nearest("-bat", options, 3), "--batch");
}

static void unknown_names_list_the_known(void **state)
{
	(void)state;
	assert_int_equal(ls_name_unknown("model", "resnet19", at), LS_EINVALID);
	assert_string_equal(ls_last_error(), "unknown model 'resnet19'; did you mean 'resnet18'? Known: mlp, cnn, "
					     "resnet18, resnet34, resnet50, resnet101, resnet152");
	assert_int_equal(ls_name_unknown("model", "vgg", at), LS_EINVALID);
	assert_null(strstr(ls_last_error(), "did you mean"));
}

static void rows_are_found_by_name(void **state)
{
	(void)state;
	size_t row = 99;
	assert_int_equal(ls_name_row("mlp", at), 0);
	assert_int_equal(ls_name_row("resnet152", at), 6);
	assert_true(ls_name_row("resnet", at) == LS_NO_ROW);
	assert_true(ls_name_row(NULL, at) == LS_NO_ROW);
	assert_null(at(LS_NO_ROW));
	assert_int_equal(ls_name_find("model", "cnn", at, &row), LS_OK);
	assert_int_equal(row, 1);
	assert_int_equal(ls_name_find("model", "cn", at, &row), LS_EINVALID);
	assert_string_equal(ls_last_error(), "unknown model 'cn'; did you mean 'cnn'? Known: mlp, cnn, resnet18, "
					     "resnet34, resnet50, resnet101, resnet152");
	assert_int_equal(ls_name_find("model", NULL, at, &row), LS_EINVALID);
	assert_ptr_equal(strstr(ls_last_error(), "unknown model ''. Known: mlp"), ls_last_error());
	assert_int_equal(row, 1); /* set only on success */
}

static void one_is_no_plural(void **state)
{
	(void)state;
	assert_string_equal(ls_plural(0, "s"), "s");
	assert_string_equal(ls_plural(1, "s"), "");
	assert_string_equal(ls_plural(2, "es"), "es");
}

static void whole_numbers(void **state)
{
	(void)state;
	int64_t value = 7;
	assert_int_equal(ls_parse_int("-12", "lr", &value), LS_OK);
	assert_int_equal(value, -12);
	assert_int_equal(ls_parse_int("9223372036854775807", "n", &value), LS_OK);
	assert_true(value == INT64_MAX);
	const char *bad[] = { "",    " 1", "1 ",   "1x", "1.5", "x",  "9223372036854775808", "-9223372036854775809",
			      "--1", "+1", "0x10", "-",  "1e3", "\t1" };
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(ls_parse_int(bad[i], "--batch", &value), LS_EINVALID);
		assert_non_null(strstr(ls_last_error(), "--batch"));
		assert_non_null(strstr(ls_last_error(), bad[i]));
	}
	assert_true(value == INT64_MAX);
}

static void real_numbers(void **state)
{
	(void)state;
	double value = 0;
	assert_int_equal(ls_parse_real("1e-3", "lr", &value), LS_OK);
	assert_true(value == 1e-3);
	assert_int_equal(ls_parse_real("-.5", "lr", &value), LS_OK);
	assert_true(value == -0.5);
	static const struct {
		const char *text;
		double value;
	} good[] = {
		{ "0", 0 }, { "5.", 5 }, { "1E+3", 1000 }, { "0e-999", 0 }, { "1.2e-38", 1.2e-38 }, { "-0.0", 0 }
	};
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_int_equal(ls_parse_real(good[i].text, "lr", &value), LS_OK);
		assert_true(value == good[i].value);
	}
	value = -0.5;
	const char *bad[] = { "",      " 1",   "1 ",  "1e",  "nan",    "NAN",   "inf",    "-inf",   "infinity",
			      "1e999", "0.1,", "lr",  "0x1", "0x1p3",  "-0x.8", "+1",     ".",      "-",
			      "e5",    "1e+",  "\t1", "1..", "nan(1)", "1e-39", "1e-400", "-1e-45", "4e-324" };
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		if (ls_parse_real(bad[i], "--lr", &value) != LS_EINVALID)
			fail_msg("'%s' was taken as %g", bad[i], value);
		assert_non_null(strstr(ls_last_error(), "--lr: "));
	}
	ls_parse_real("1e-400", "--lr", &value);
	assert_string_equal(ls_last_error(), "--lr: 1e-400 is too small: below 1.2e-38 numbers become 0");
	assert_true(value == -0.5);
}

static void counts(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		uint64_t value;
	} good[] = { { "0", 0 },
		     { "72000000", 72000000 },
		     { "64k", 64000 },
		     { "64K", 64000 },
		     { "72M", 72000000 },
		     { "1.5G", 1500000000 },
		     { "0.3k", 300 },
		     { "1.000", 1 },
		     { "18446744073709551615", UINT64_MAX },
		     { "2T", 2000000000000 } };
	uint64_t value = 0;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_int_equal(ls_parse_count(good[i].text, "samples", &value), LS_OK);
		assert_true(value == good[i].value);
	}
	const char *bad[] = { "",
			      "k",
			      "-1",
			      "1.5",
			      "1.2345k",
			      "1e6",
			      "1.k",
			      "64m",
			      "64kB",
			      " 64",
			      "18446744073709551616",
			      "18446744073709552k",
			      "99999999999T" };
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		if (ls_parse_count(bad[i], "samples", &value) != LS_EINVALID)
			fail_msg("'%s' was accepted", bad[i]);
		assert_non_null(strstr(ls_last_error(), "samples"));
	}
	assert_true(value == 2000000000000);
}

TEST_MAIN(slips_are_recognised, unknown_names_list_the_known, rows_are_found_by_name, one_is_no_plural, whole_numbers,
	  real_numbers, counts)
