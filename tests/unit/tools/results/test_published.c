/*
 * Published figures: the files are complete and as consistent as they were published, and errors name file and line.
 */
#include "tools/results/published.h"
#include "unit/test_main.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static ls_arena arena = LS_ARENA_INIT;

static int release(void **state)
{
	(void)state;
	ls_arena_release(&arena);
	return 0;
}

static const ls_published *read_set(const char *name)
{
	ls_published *sets;
	size_t count;
	assert_int_equal(ls_published_read(&sets, &count, &arena, name, 0), LS_OK);
	assert_int_equal(count, 1);
	return sets;
}

static void test_files(void **state)
{
	static const struct {
		const char *name;
		size_t rows;
	} expected[] = { { "distml-clusters", 18 },
			 { "distml-mnist-sst5", 36 },
			 { "distml-nvlink", 12 },
			 { "oneflow-bert", 16 },
			 { "rcc-cnn", 61 } };
	ls_published *sets;
	size_t count;
	(void)state;
	assert_int_equal(ls_published_read(&sets, &count, &arena, "published", 0), LS_OK);
	assert_int_equal(count, sizeof(expected) / sizeof(expected[0]));
	for (size_t i = 0; i < count; i++) {
		assert_string_equal(sets[i].name, expected[i].name);
		assert_int_equal(sets[i].row_count, expected[i].rows);
		assert_true(sets[i].title[0] && sets[i].setting[0] && sets[i].model_count > 0);
		for (size_t k = 0; k < sets[i].row_count; k++)
			assert_true(sets[i].rows[k].devices >= sets[i].rows[k].nodes && sets[i].rows[k].link[0]);
	}
}

static int by_number(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;
	return (left > right) - (left < right);
}

/* OneFlow took medians of seven and gave speedups over one device with the same batch. */
static void test_medians(void **state)
{
	const ls_published *set = read_set("oneflow-bert");
	size_t medians = 0;
	(void)state;
	for (size_t i = 0; i < set->row_count; i++) {
		const ls_published_row *row = &set->rows[i];
		double sorted[LS_PUBLISHED_REPEATS];
		if (!(row->repeats[0] > 0))
			continue;
		memcpy(sorted, row->repeats, sizeof(sorted));
		qsort(sorted, LS_PUBLISHED_REPEATS, sizeof(*sorted), by_number);
		assert_true(fabs(sorted[3] - row->samples_per_s) < 1e-9);
		medians++;
		for (size_t k = 0; k < set->row_count; k++)
			if (set->rows[k].devices == 1 && fabs(set->rows[k].batch - row->batch) < 0.5)
				assert_true(fabs(row->samples_per_s / set->rows[k].samples_per_s - row->speedup) <
					    0.0101);
	}
	assert_int_equal(medians, 15);
}

static void test_figures(void **state)
{
	const ls_published *set = read_set("distml-clusters");
	(void)state;
	assert_true(fabs(ls_published_gradient_bytes(set, "resnet18") - 44.7e6) < 1e5);
	assert_true(fabs(ls_published_gradient_bytes(set, "bert-base") - 440e6) < 5e6);
	assert_true(ls_published_gradient_bytes(set, "transformer") == 0);
	assert_true(fabs(ls_published_samples_per_s(set, &set->rows[2]) - 1798.73 / 128) < 1e-9);
	assert_false(set->has_averages);
	assert_true(read_set("rcc-cnn")->has_averages);
}

/* What rows of the cluster give for their printed averages, and a row whose batch was corrected. */
static void test_means(void **state)
{
	static const struct {
		const char *shape;
		size_t rows;
		double wall_s, speedup;
	} expected[] = { { "1", 9, 55209.8, 1 },          { "2", 8, 29224.9, 1.889 },   { "3", 8, 18008.5, 3.066 },
			 { "4", 9, 14704.9, 3.755 },      { "1+1", 4, 30958.5, 1.783 }, { "1+1+1", 5, 21286.4, 2.594 },
			 { "1+1+1+1", 4, 15586.5, 3.542 } };
	const ls_published *set = read_set("rcc-cnn");
	size_t at = 0;
	(void)state;
	for (size_t i = 0; i < set->row_count; i++) {
		const ls_published_row *row = &set->rows[i];
		ls_published_mean mean = ls_published_mean_of(set, row);
		if (!ls_published_is_average(row)) {
			assert_int_equal(mean.rows, 0);
			assert_false(mean.differs);
			continue;
		}
		assert_true(at < sizeof(expected) / sizeof(expected[0]));
		assert_string_equal(row->shape, expected[at].shape);
		assert_int_equal(mean.rows, expected[at].rows);
		assert_true(fabs(mean.wall_s - expected[at].wall_s) < 0.06);
		assert_true(fabs(mean.speedup - expected[at].speedup) < 0.001);
		assert_true(mean.differs && mean.least_s < mean.wall_s && mean.wall_s < mean.most_s);
		at++;
	}
	assert_int_equal(at, sizeof(expected) / sizeof(expected[0]));
	assert_true(fabs(set->rows[1].batch - 48) < 0.5 && fabs(set->rows[1].steps - 625) < 0.5);
	assert_non_null(strstr(set->rows[1].note, "batch 64"));
}

static void test_for(void **state)
{
	ls_published *sets;
	size_t count;
	(void)state;
	assert_int_equal(ls_published_read(&sets, &count, &arena, "published", 0), LS_OK);
	assert_string_equal(ls_published_for(sets, count, "distml-sst5", "epochs")->name, "distml-mnist-sst5");
	assert_string_equal(ls_published_for(sets, count, "rcc-bigmnist", "epochs")->name, "rcc-cnn");
	assert_string_equal(ls_published_for(sets, count, "sweep", "strategies")->name, "distml-clusters");
	assert_null(ls_published_for(sets, count, "sweep", ""));
	assert_null(ls_published_for(sets, count, "", "mine"));
	assert_null(ls_published_for(NULL, 0, "rcc-mnist", "walltime"));
}

#define HEAD "title: T\n\nmodel,hosts,devices,batch_per_device,link,samples_per_s\n"

static void test_parse(void **state)
{
	static const char text[] = "title: T\nparameters: cnn 0.42e6, m 1e6\n\n"
				   "model,hosts,devices,batch_per_device,link,samples_per_s\r\n"
				   "cnn,\"gn[01,02]\",3+2,64,1gbit,12.5\r\n";
	ls_published set;
	(void)state;
	assert_int_equal(ls_published_parse(&set, &arena, text, sizeof(text) - 1, "n", "n.csv", 0), LS_OK);
	assert_string_equal(set.title, "T");
	assert_int_equal(set.row_count, 1);
	assert_string_equal(set.rows[0].hosts, "gn[01,02]");
	assert_int_equal(set.rows[0].nodes, 2);
	assert_int_equal(set.rows[0].devices, 5);
	assert_true(fabs(set.rows[0].samples_per_s - 12.5) < 1e-12);
	assert_true(fabs(ls_published_gradient_bytes(&set, "m") - 4e6) < 1e-3);
}

static void test_errors(void **state)
{
	static const struct {
		const char *text, *error;
	} cases[] = {
		{ "", "f.csv:0: the key 'title' is missing" },
		{ "titel: T\n", "f.csv:1: unknown key 'titel'; did you mean 'title'?" },
		{ "title: T\nwhatever\n", "f.csv:2: 'whatever' is not 'key: value'" },
		{ "title: T\n\n", "f.csv:2: the table is missing" },
		{ "title: T\n\nmodel,device\n", "f.csv:3: unknown column 'device'; did you mean 'devices'?" },
		{ "title: T\n\nmodel,model\n", "f.csv:3: column 'model' occurs twice" },
		{ HEAD, "f.csv:3: the table has no rows" },
		{ HEAD "cnn,a,1,64,1gbit,5\ncnn,a,1,64,1gbit\n", "f.csv:5: fewer cells than the 6 columns" },
		{ HEAD "cnn,a,1,64,1gbit,5,6\n", "f.csv:4: more cells than the 6 columns" },
		{ HEAD "cnn,a,1,64,1gbit,fast\n", "f.csv:4: samples_per_s is 'fast', not a number" },
		{ HEAD "cnn,a,1,0,1gbit,5\n", "f.csv:4: batch_per_device is 0, not between 1 and" },
		{ HEAD "cnn,a,1,64,1gbit,\n", "f.csv:4: a row needs one of samples_per_s, words_per_s and wall_s" },
		{ HEAD "cnn,a,8+,64,1gbit,5\n", "f.csv:4: devices is '8+'" },
		{ HEAD "cnn,a,1,64,wire,5\n", "f.csv:4: link is 'wire'" },
		{ HEAD "cnn,\"a,1,64,1gbit,5\n", "f.csv:4: a quoted cell does not end" },
		{ "title: T\n\nmodel,devices,batch_per_device,words_per_s\nbert-base,1,8,5\n",
		  "f.csv:4: words_per_s needs the key 'words_per_sample'" },
	};
	ls_published set;
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(
			ls_published_parse(&set, &arena, cases[i].text, strlen(cases[i].text), "f", "f.csv", 0),
			LS_EFORMAT);
		if (!strstr(ls_last_error(), cases[i].error))
			fail_msg("'%s' is not in '%s'", cases[i].error, ls_last_error());
	}
}

/* Rows that cannot be read are left out on request; keys and the header cannot be. */
static void test_skip(void **state)
{
	static const char text[] =
		HEAD "cnn,a,1,64,1gbit,5\ncnn,a,1,64,1gbit,fast\ncnn,a,2,64,1gbit\ncnn,b,1,64,1gbit,6\n";
	static const char bad[] = HEAD "cnn,a,1,64,1gbit,-1\n";
	ls_published set;

	(void)state;
	assert_int_equal(ls_published_parse(&set, &arena, text, sizeof(text) - 1, "n", "a: b.csv", 1), LS_OK);
	assert_int_equal(set.row_count, 2);
	assert_int_equal(set.rows[0].line, 4);
	assert_int_equal(set.rows[1].line, 7);
	assert_int_equal(set.fault_count, 2);
	assert_int_equal(set.faults[0].line, 5);
	assert_string_equal(set.faults[0].reason, "samples_per_s is 'fast', not a number");
	assert_int_equal(set.faults[1].line, 6);
	assert_int_equal(ls_published_parse(&set, &arena, bad, sizeof(bad) - 1, "n", "n.csv", 1), LS_OK);
	assert_true(set.row_count == 0 && set.fault_count == 1);
	assert_int_equal(ls_published_parse(&set, &arena, HEAD, strlen(HEAD), "n", "n.csv", 1), LS_EFORMAT);
	assert_int_equal(ls_published_parse(&set, &arena, "titel: T\n", 9, "n", "n.csv", 1), LS_EFORMAT);
}

static void test_samples(void **state)
{
	static const char text[] = "title: T\nimage: 3x224x192\nclasses: 1000\ntokens: 64\nvocabulary: 8000\n\n"
				   "model,devices,batch_per_device,samples_per_s\ncnn,1,1,1\n";
	static const char *const wrong[] = { "3x224", "3x224x", "0x2x2", "3x224x224x3", "3x5000x5000", "x" };
	ls_published set;
	char line[64];

	(void)state;
	assert_int_equal(ls_published_parse(&set, &arena, text, sizeof(text) - 1, "n", "n.csv", 0), LS_OK);
	assert_true(set.channels == 3 && set.height == 224 && set.width == 192);
	assert_true(set.classes == 1000 && set.tokens == 64 && set.vocabulary == 8000);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		snprintf(line, sizeof(line), "title: T\nimage: %s\n", wrong[i]);
		assert_int_equal(ls_published_parse(&set, &arena, line, strlen(line), "n", "n.csv", 0), LS_EFORMAT);
		assert_non_null(strstr(ls_last_error(), "n.csv:2: image is '"));
	}
}

TEST_MAIN_EACH(NULL, release, test_files, test_medians, test_figures, test_for, test_parse, test_errors, test_skip,
	       test_samples, test_means)
