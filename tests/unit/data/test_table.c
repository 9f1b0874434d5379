/*
 * Tables: rows of CSV, TSV and JSONL, the schema that follows from them, and the samples they become.
 */
#include <math.h>

#include "data/dataset.h"
#include "data/readers/table_survey.h"
#include "unit/data/fixture.h"
#include "unit/test_main.h"

/* Names of files stay short: a directory of the test's own is the current one. */
static int enter(void **state)
{
	return fixture_enter(state) || chdir(*state);
}

static int leave(void **state)
{
	return chdir("/") || temp_dir_remove(state);
}

static void put(const char *path, const char *text)
{
	assert_ok(ls_file_put(path, text, strlen(text)));
}

/* A file that has the rows of `text` behind a header, as often as it takes for both parts to have some. */
static void put_many(const char *path, const char *header, const char *const *rows, size_t count, int times)
{
	FILE *to = fopen(path, "w");
	assert_non_null(to);
	fprintf(to, "%s\n", header);
	for (int i = 0; i < times; i++)
		fprintf(to, "%s,%d\n", rows[(size_t)i % count], i);
	assert_int_equal(fclose(to), 0);
}

static ls_status open_table(ls_dataset **out, const char *name, const char *target, ls_split split)
{
	ls_dataset_options o = LS_DATASET_OPTIONS_INIT;
	o.name = name;
	o.target = target;
	o.split = split;
	return ls_dataset_open(out, &o);
}

static void make_pair(const char *train, const char *test)
{
	mkdir("pair", 0777);
	put("pair/train.csv", train);
	put("pair/test.csv", test);
}

/* ---- what samples are -------------------------------------------------------------------------------------------- */

static void numbers_and_categories(void **state)
{
	ls_dataset *set = NULL;
	float features[4], target;
	int32_t label;

	(void)state;
	make_pair("\xef\xbb\xbf"
		  "area,city,price\r\n1,Oslo,10.5\r\n5,\"Ly\"\"on\",20\r\n,Oslo,30\r\n",
		  "city,price,area,more\nParis,20,2,x\nOslo,25.25,nan,y\n");
	assert_ok(open_table(&set, "pair", "price", LS_SPLIT_TRAIN));
	assert_int_equal(set->info.samples, 3);
	assert_int_equal(set->info.channels, 3);
	assert_int_equal(set->info.task, LS_TASK_REGRESSION);
	assert_int_equal(set->info.targets, 1);
	assert_string_equal(set->class_names[0], "price");
	assert_ok(ls_dataset_read(set, 0, features, &label));
	assert_true(features[0] == -1 && features[1] == 0 && features[2] == 1); /* mean 3, deviation 2; Ly"on, Oslo */
	assert_ok(ls_dataset_read(set, 2, features, &label));
	assert_true(features[0] == 0 && features[1] == 0 && features[2] == 1); /* a missing number is the mean */
	assert_ok(ls_dataset_read_targets(set, 1, &target));
	double mean = (10.5 + 20 + 30) / 3,
	       deviation = sqrt((pow(10.5 - mean, 2) + pow(20 - mean, 2) + pow(30 - mean, 2)) / 3);
	assert_true(fabs((double)target - (20 - mean) / deviation) < 1e-6);
	ls_dataset_free(set);

	assert_ok(
		open_table(&set, "pair", "price", LS_SPLIT_TEST)); /* columns in another order, constants of training */
	assert_int_equal(set->info.samples, 2);
	assert_ok(ls_dataset_read(set, 0, features, &label));
	assert_true(features[0] == -0.5f && features[1] == 0 && features[2] == 0); /* an unknown city */
	assert_ok(ls_dataset_read_targets(set, 1, &target));
	assert_true(fabs((double)target - (25.25 - mean) / deviation) < 1e-6);
	ls_dataset_free(set);
}

/* The schema of one dataset reads another, whatever is in it. */
static void columns_are_kept(void **state)
{
	ls_dataset *first = NULL, *second = NULL;
	ls_dataset_options o = LS_DATASET_OPTIONS_INIT;
	float features[4];
	int32_t label;

	(void)state;
	make_pair("x,colour,kind\n0,red,b\n10,\"blue, dark\",a\n", "x,colour,kind\n5,red,a\n");
	assert_ok(open_table(&first, "pair", "kind", LS_SPLIT_TRAIN));
	assert_int_equal(first->info.task, LS_TASK_CLASSIFICATION);
	char *columns = strdup(ls_dataset_columns(first));
	ls_dataset_free(first);
	mkdir("other", 0777);
	put("other/train.csv", "kind,colour,x\na,red,10\na,green,20\n");
	o.name = "other";
	o.columns = columns;
	assert_ok(ls_dataset_open(&second, &o));
	assert_string_equal(ls_dataset_columns(second), columns);
	assert_int_equal(second->info.classes, 2);
	assert_true(second->info.samples >= 1);
	assert_ok(ls_dataset_read(second, 0, features, &label));
	assert_int_equal(label, 0);
	ls_dataset_free(second);
	o.columns = "lockstep table,1,sorting\n";
	assert_fails(ls_dataset_open(&second, &o), LS_EFORMAT, "no task that is known");
	free(columns);
}

static void tasks_follow_from_values(void **state)
{
	static const struct {
		const char *text, *target, *task;
		ls_task expected;
		int outputs;
	} cases[] = {
		{ "x,y\n1,2\n2,3\n3,2\n", "y", NULL, LS_TASK_CLASSIFICATION, 2 },
		{ "x,y\n1,2\n2,3\n3,2\n", "y", "regression", LS_TASK_REGRESSION, 1 },
		{ "x,y\n1,2.5\n2,3\n3,2\n", "y", NULL, LS_TASK_REGRESSION, 1 },
		{ "x,y\n1,2.5\n2,3\n3,2\n", "y", "classification", LS_TASK_CLASSIFICATION, 3 },
		{ "x,y\n1,yes\n2,no\n3,no\n", "y", NULL, LS_TASK_CLASSIFICATION, 2 },
		{ "x,y,z\n1,0,1\n2,1,1\n3,0,0\n", "y,z", NULL, LS_TASK_MULTI_LABEL, 2 },
		{ "x,y,z\n1,0,1\n2,1,7\n3,0,0\n", "y,z", NULL, LS_TASK_REGRESSION, 2 },
		{ "x,target\n1,yes\n2,no\n3,no\n", NULL, NULL, LS_TASK_CLASSIFICATION, 2 },
		{ "x,label\n1,10\n2,9\n3,2\n", NULL, NULL, LS_TASK_CLASSIFICATION, 3 },
		{ "x,\"a,b\"\n1,10\n2,9\n3,2\n", "a,b", NULL, LS_TASK_CLASSIFICATION, 3 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		ls_dataset_options o = LS_DATASET_OPTIONS_INIT;
		ls_dataset *set = NULL;
		make_pair(cases[i].text, cases[i].text);
		o.name = "pair";
		o.target = cases[i].target;
		o.task = cases[i].task;
		assert_ok(ls_dataset_open(&set, &o));
		assert_int_equal(set->info.task, cases[i].expected);
		assert_int_equal(set->info.classes, cases[i].outputs);
		if (i == 8) /* by their size */
			assert_string_equal(set->class_names[2], "10");
		ls_dataset_free(set);
	}
}

static void jsonl_tsv_and_semicolons(void **state)
{
	static const char *const files[][2] = {
		{ "pair/train.jsonl",
		  "{\"x\": 1.5, \"c\": \"a\", \"y\": \"n\"}\n\n{\"y\": \"p\", \"x\": null, \"c\": true}\n" },
		{ "pair/train.tsv", "x\tc\ty\n1.5\ta\tn\n\ttr\"ue\tp\n" },
		{ "pair/train.csv", "\"x\";c;y\n1.5;a;n\n;true;p\n" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		ls_dataset *set = NULL;
		mkdir("pair", 0777);
		put(files[i][0], files[i][1]);
		put("pair/test.csv", "x,c,y\n1,a,n\n");
		assert_ok(open_table(&set, "pair", "y", LS_SPLIT_TRAIN));
		assert_int_equal(set->info.samples, 2);
		assert_int_equal(set->info.channels, 3);
		ls_dataset_free(set);
		unlink(files[i][0]);
		unlink("pair/test.csv");
	}
}

/* 0, 0.0 and ` 0` are one class where all values are numbers; beside a text they are texts. */
static void numbers_are_classes_by_their_size(void **state)
{
	ls_dataset *set = NULL;
	ls_dataset_options o = LS_DATASET_OPTIONS_INIT;
	float features[2];
	int32_t label;
	static const int32_t expected[] = { 0, 0, 1, 0, 1, 1 };

	(void)state;
	make_pair("x,y\n1,0.0\n2,0\n3, 1\n4,-0\n5,1.0\n6,1e0\n", "x,y\n1,00\n1,+1.00\n");
	assert_ok(open_table(&set, "pair", "y", LS_SPLIT_TRAIN));
	assert_int_equal(set->info.classes, 2);
	assert_string_equal(set->class_names[0], "0");
	assert_string_equal(set->class_names[1], "1");
	for (uint64_t i = 0; i < 6; i++) {
		assert_ok(ls_dataset_read(set, i, features, &label));
		assert_int_equal(label, expected[i]);
	}
	char *columns = strdup(ls_dataset_columns(set));
	ls_dataset_free(set);
	o.name = "pair";
	o.columns = columns;
	o.split = LS_SPLIT_TEST;
	assert_ok(ls_dataset_open(&set, &o)); /* spellings that training did not have */
	for (uint64_t i = 0; i < 2; i++) {
		assert_ok(ls_dataset_read(set, i, features, &label));
		assert_int_equal(label, i);
	}
	ls_dataset_free(set);
	free(columns);
	make_pair("x,y\n1,0.0\n2,0\n3,no\n", "x,y\n1,0\n");
	assert_ok(open_table(&set, "pair", "y", LS_SPLIT_TRAIN));
	assert_int_equal(set->info.classes, 3);
	ls_dataset_free(set);
	make_pair("x,y\n1,0.0\n2,0\n", "x,y\n1,0\n");
	assert_fails(open_table(&set, "pair", "y", LS_SPLIT_TRAIN), LS_EFORMAT, "has the same value, '0', in all 2");
}

/* 1,5 is a number between semicolons, and between commas a text. */
static void decimal_commas(void **state)
{
	static const struct {
		const char *text;
		int features;
	} cases[] = {
		{ "x;y\n1,5;a\n2;b\n-0,25;a\n", 1 }, { "\"x, in m\";y\n1,5;a\n2;b\n", 1 },
		{ "x,y\n\"1,5\",a\n2,b\n", 2 },      { "x;y\n1,5;a\n2.5;b\n", 2 }, /* which is the decimal point? */
		{ "x;y\n1,5;a\n1,234,5;b\n", 2 },    { "x;y\n1,5;a\nwide;b\n", 2 },
	};
	ls_dataset *set = NULL;
	float target;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		make_pair(cases[i].text, cases[i].text);
		assert_ok(open_table(&set, "pair", "y", LS_SPLIT_TRAIN));
		assert_int_equal(set->info.channels, cases[i].features);
		ls_dataset_free(set);
	}
	make_pair("x;y\n1;0,5\n2;2,5\n", "x;y\n1;1,5\n");
	assert_ok(open_table(&set, "pair", "y", LS_SPLIT_TEST));
	assert_int_equal(set->info.task, LS_TASK_REGRESSION);
	assert_ok(ls_dataset_read_targets(set, 0, &target));
	assert_true(target == 0); /* the mean */
	ls_dataset_free(set);
	make_pair("x;y\n1,5;a\n1,5e999;b\n", "x;y\n1;a\n");
	assert_fails(open_table(&set, "pair", "y", LS_SPLIT_TRAIN), LS_EFORMAT,
		     "train.csv:3: column 'x' is not a finite number");
}

/* ---- one file ---------------------------------------------------------------------------------------------------- */

static void a_file_is_split_by_rows(void **state)
{
	static const char *const rows[] = { "1,a", "2,b", "3,c" };
	ls_dataset *train = NULL, *test = NULL;

	(void)state;
	put_many("one.csv", "x,y,n", rows, 3, 300);
	assert_ok(open_table(&train, "one.csv", "y", LS_SPLIT_TRAIN));
	assert_ok(open_table(&test, "one.csv", "y", LS_SPLIT_TEST));
	assert_int_equal(train->info.samples + test->info.samples, 300);
	assert_in_range(test->info.samples, 10, 60);
	ls_dataset_free(train);
	ls_dataset_free(test);
}

/* ---- bad input --------------------------------------------------------------------------------------------------- */

static void bad_tables_are_refused(void **state)
{
	static const struct {
		const char *text, *target, *message;
	} cases[] = {
		{ "", "y", "bad.csv:1: nothing is in it" },
		{ "x,y\n", "y", "no rows behind the names" },
		{ "x,y,x\n1,2,3\n", "y", "bad.csv:1: two columns are named 'x'" },
		{ "x,y\n1,2\n1,2,3\n", "y", "bad.csv:3: 3 fields; the table has 2 columns" },
		{ "x,y\n1,2\n1\n", "y", "bad.csv:3: 1 field; the table has 2 columns" },
		{ "x,y\n1,\"2\n", "y", "bad.csv:2: the quote that a field begins with is never closed" },
		{ "x,y\n1,2\"3\n", "y", "bad.csv:2: a quote inside a field" },
		{ "x,y\n1,a\n1e999,b\n", "y", "bad.csv:3: column 'x' is not a finite number" },
		{ "x,y\n1,a\n-Inf,b\n", "y", "bad.csv:3: column 'x' is not a finite number" },
		{ "x,y\n1,a\n2,\n", "y", "bad.csv:3: column 'y' is missing" },
		{ "x,y\n1,a\n2,a\n", "y", "column 'y' has the same value, 'a', in all 2 training rows" },
		{ "x,y\n1,a\n2,b\n", "z", "no column 'z' (options.target); its columns are x, y" },
		{ "x,y\n1,a\n2,b\n", NULL, "name the column of" },
		{ "x,y\n1,a\n2,b\n", "y,y", "twice" },
		{ "y\na\nb\n", "y", "no column is left to predict 'y' from" },
		{ "x,y\n1,a\n\xff,b\n", "y", "bad.csv:3: column 'x' is not UTF-8" },
		{ "x,\xff\n1,a\n", "y", "bad.csv:1: the name of column 2" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		ls_table_files files = { .path = { "bad.csv", "bad.csv" } };
		ls_dataset_options o = LS_DATASET_OPTIONS_INIT;
		ls_table_schema schema = { 0 };
		o.target = cases[i].target;
		put("bad.csv", cases[i].text);
		ls_status status = ls_table_survey(&schema, &files, &o);
		if (status == LS_OK || !strstr(ls_last_error(), cases[i].message))
			fail_msg("case %zu: '%s', expected '%s'", i, status ? ls_last_error() : "", cases[i].message);
		assert_null(schema.target);
	}
}

static void many_columns_are_refused(void **state)
{
	FILE *to = fopen("wide.csv", "w");
	ls_table_rows *rows = NULL;

	(void)state;
	assert_non_null(to);
	for (int i = 0; i < 1000000; i++)
		fprintf(to, "%sc%d", i > 0 ? "," : "", i);
	fputc('\n', to);
	assert_int_equal(fclose(to), 0);
	assert_fails(ls_table_rows_open(&rows, "wide.csv"), LS_EFORMAT, "wide.csv:1: more than 100000 columns");
}

static void bad_rows_are_skipped(void **state)
{
	ls_dataset_options o = LS_DATASET_OPTIONS_INIT;
	ls_dataset *set = NULL;

	(void)state;
	make_pair("x,y\n1,a\n2\n3,b\ninf,b\n4,\n5,a\n", "x,y\n1,a\n2,zebra\n");
	o.name = "pair";
	o.target = "y";
	o.skip_bad = 3;
	assert_ok(ls_dataset_open(&set, &o));
	assert_int_equal(set->info.samples, 3);
	ls_dataset_free(set);
	o.skip_bad = 2;
	assert_fails(ls_dataset_open(&set, &o), LS_EFORMAT, "more than 2 rows of pair/train.csv");
	o.skip_bad = 0;
	assert_fails(ls_dataset_open(&set, &o), LS_EFORMAT, "pair/train.csv:3: 1 field");
	o.split = LS_SPLIT_TEST;
	o.skip_bad = 3;
	assert_ok(ls_dataset_open(&set, &o));
	assert_int_equal(set->info.samples, 1);
	ls_dataset_free(set);
}

/* One bad row, not the rest of the file. */
static void a_stray_quote_costs_a_row(void **state)
{
	ls_dataset_options o = LS_DATASET_OPTIONS_INIT;
	ls_dataset *set = NULL;

	(void)state;
	make_pair("x,y\n1,a\n2,\"b\n3,b\n4,a\n5,b\n", "x,y\n1,a\n");
	o.name = "pair";
	o.target = "y";
	assert_fails(ls_dataset_open(&set, &o), LS_EFORMAT,
		     "pair/train.csv:3: the quote that a field begins with is never closed; 3 more lines");
	o.skip_bad = 1;
	assert_ok(ls_dataset_open(&set, &o));
	assert_int_equal(set->info.samples, 4);
	ls_dataset_free(set);
	make_pair("x,y\n1,a\n\"2,b\n3,b\n4\",a,b\n5,b\n", "x,y\n1,a\n");
	o.skip_bad = 0;
	assert_fails(ls_dataset_open(&set, &o), LS_EFORMAT,
		     "pair/train.csv:3: 3 fields in the 3 lines that a quote makes one row; the table has 2 columns");
}

static void columns_of_many_values_are_left_out(void **state)
{
	FILE *to = fopen("names.csv", "w");
	ls_dataset *set = NULL;

	(void)state;
	assert_non_null(to);
	fprintf(to, "name,x,empty,y\n");
	for (int i = 0; i < 400; i++)
		fprintf(to, "person %d,%d,,%c\n", i, i % 7, 'a' + i % 2);
	assert_int_equal(fclose(to), 0);
	assert_ok(open_table(&set, "names.csv", "y", LS_SPLIT_TRAIN));
	assert_int_equal(set->info.channels, 1);
	ls_dataset_free(set);
}

TEST_MAIN_EACH(enter, leave, numbers_and_categories, columns_are_kept, tasks_follow_from_values,
	       jsonl_tsv_and_semicolons, numbers_are_classes_by_their_size, decimal_commas, a_file_is_split_by_rows,
	       bad_tables_are_refused, many_columns_are_refused, bad_rows_are_skipped, a_stray_quote_costs_a_row,
	       columns_of_many_values_are_left_out)
