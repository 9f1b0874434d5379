/*
 * Tables to fit: hosts, what one-node rows say, predictions that can be computed by hand, and rows that are left out.
 */
#include <lockstep/plan.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/profile.h"
#include "tools/fit/calibration.h"
#include "tools/fit/shape.h"
#include "tools/results/published.h"
#include "unit/test_main.h"

static char scratch[] = "/tmp/lockstep-fit-XXXXXX";
static char file[64];
static ls_arena arena = LS_ARENA_INIT;

static int begin(void **state)
{
	(void)state;
	if (!mkdtemp(scratch))
		return 1;
	snprintf(file, sizeof(file), "%s/t.csv", scratch);
	return 0;
}

static int end(void **state)
{
	(void)state;
	ls_arena_release(&arena);
	unlink(file);
	rmdir(scratch);
	return 0;
}

static void write_table(const char *text)
{
	FILE *to = fopen(file, "w");
	assert_non_null(to);
	assert_true(fputs(text, to) >= 0 && fclose(to) == 0);
}

#define HEAD "title: T\n\nmodel,hosts,devices,batch_per_device,link,samples_per_s\n"

static ls_fit fit_text(const char *text)
{
	ls_fit_options o = LS_FIT_OPTIONS_INIT;
	ls_fit fit;

	write_table(text);
	o.table = file;
	if (ls_fit_make(&fit, &o) != LS_OK)
		fail_msg("%s", ls_last_error());
	return fit;
}

static ls_fit_table read_text(const char *text)
{
	ls_fit_table table;
	write_table(text);
	assert_int_equal(ls_fit_table_read(&table, &arena, file, NULL), LS_OK);
	return table;
}

static void near(const char *what, double got, double expected, double part)
{
	if (!(fabs(got - expected) <= part * fabs(expected)))
		fail_msg("%s is %g, not within %g %% of %g", what, got, 100 * part, expected);
}

/* ---- hosts ------------------------------------------------------------------------------------------------------- */

static void test_hosts(void **state)
{
	static const struct {
		const char *text, *names;
	} rows[] = { { "lm1", "lm1" },
		     { "lm1+lm6", "lm1 lm6" },
		     { "gn[01-03]", "gn01 gn02 gn03" },
		     { "gn[01-02,07-08]", "gn01 gn02 gn07 gn08" },
		     { "gn[9-10]", "gn9 gn10" },
		     { "", "" },
		     { "a++b", "" },
		     { "a+", "" },
		     { "gn[]", "" },
		     { "gn[03-07-09]", "" },
		     { "gn[3-1]", "" },
		     { "gn[1,", "" },
		     { "gn[1]x", "" },
		     { "gn[0-99999999]", "" },
		     { "gn[12345678901]", "" } };

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char **names;
		char got[256] = "";
		int64_t count = ls_fit_hosts(&arena, rows[i].text, &names);
		for (int64_t k = 0; k < count; k++)
			snprintf(got + strlen(got), sizeof(got) - strlen(got), "%s%s", k > 0 ? " " : "", names[k]);
		assert_string_equal(got, rows[i].names);
	}
}

/* ---- one-node rows ----------------------------------------------------------------------------------------------- */

static void test_calibration(void **state)
{
	ls_fit_table t = read_text(HEAD "cnn,a,1,100,1gbit,1000\n"
					"cnn,a,2,100,1gbit,1600\n"
					"cnn,a,4,100,1gbit,2909.0909\n"
					"cnn,b,1,100,1gbit,800\n"
					"cnn,c,3,100,100gbit,2700\n");
	const ls_fit_point *a = ls_fit_base(&t, &t.point[0], "a"), *c = ls_fit_base(&t, &t.point[0], "c");
	double degrees, scatter = ls_fit_scatter(&t, &degrees);

	(void)state;
	assert_int_equal(t.count, 5);
	assert_int_equal(t.omitted, 0);
	assert_ptr_equal(a, &t.point[0]);
	near("a device of a", ls_fit_device_rate(a), 1000, 1e-9);
	near("a device of c, where only three were measured", ls_fit_device_rate(c), 900, 1e-9);
	assert_null(ls_fit_base(&t, &t.point[0], "d"));
	/* a step of 100 samples takes 100 ms alone, 125 ms in twos, 137.5 ms in fours: 50 ms times (N - 1) / N */
	near("lost in twos", ls_fit_inside(&t, a, 2), 0.025, 1e-6);
	near("lost in fours", ls_fit_inside(&t, a, 4), 0.0375, 1e-6);
	near("lost in eights, which were not measured", ls_fit_inside(&t, a, 8), 0.05 * 7 / 8, 1e-6);
	assert_true(ls_fit_inside(&t, a, 1) == 0 && ls_fit_inside(&t, ls_fit_base(&t, a, "b"), 2) < 0);
	/* a and b have the same link; their mean is 900 */
	near("hosts differ", ls_fit_spread(&t), sqrt(2) * 100 / 900, 1e-9);
	near("rows that could be off their line", degrees, 1, 1e-9);
	assert_true(scatter < 1e-6);
}

/* Seconds per sample 1, 1.1, 1 against 0, 1/2, 2/3. */
static void test_scatter(void **state)
{
	ls_fit_table t = read_text(HEAD "cnn,a,1,100,1gbit,1000\n"
					"cnn,a,2,100,1gbit,1818.1818\n"
					"cnn,a,3,100,1gbit,3000\n");
	double degrees, x[] = { 0, 0.5, 2.0 / 3 }, y[] = { 1, 1.1, 1 }, mean = 7.0 / 18, sxx = 0, sxy = 0, squares = 0;

	(void)state;
	for (int i = 0; i < 3; i++)
		sxx += (x[i] - mean) * (x[i] - mean), sxy += (x[i] - mean) * (y[i] - 3.1 / 3);
	for (int i = 0; i < 3; i++) {
		double line = 3.1 / 3 + sxy / sxx * (x[i] - mean);
		squares += (y[i] / line - 1) * (y[i] / line - 1);
	}
	near("the scatter", ls_fit_scatter(&t, &degrees), sqrt(squares), 1e-5);
	near("of one row too many", degrees, 1, 1e-9);
}

/* ---- profiles ---------------------------------------------------------------------------------------------------- */

static void test_shape(void **state)
{
	ls_shape_options o = { .model = LS_MODEL_OPTIONS_INIT, .batch = 64, .threads = 1, .step_s = 0.3, .whole = 1 };
	ls_profile p;
	double weights = 0;

	(void)state;
	o.model.name = "resnet18";
	assert_int_equal(ls_shape_profile(&p, &o), LS_OK);
	near("seconds of all layers", ls_profile_compute(&p), 0.3, 1e-9);
	for (size_t i = 0; i < p.layers; i++) {
		near("backward", p.layer[i].backward_s, 2 * p.layer[i].forward_s, 1e-9);
		for (int k = 0; k < p.layer[i].ranges; k++)
			weights += (double)(p.layer[i].range[k].end - p.layer[i].range[k].begin);
	}
	near("weights, as published", weights, 11.18e6, 0.01);
	ls_profile_release(&p);
	o.whole = 0;
	assert_int_equal(ls_shape_profile(&p, &o), LS_OK);
	assert_true((double)p.reachable < 0.5 * weights); /* most taps of small images see only padding */
	o.bytes = 4.0 * (double)p.reachable;
	ls_profile_release(&p);
	assert_int_equal(ls_shape_profile(&p, &o), LS_OK);
	ls_profile_release(&p);
	o.bytes *= 1.1;
	assert_int_equal(ls_shape_profile(&p, &o), LS_EMISMATCH);
}

/* A vocabulary that nobody gave follows from the bytes of the gradient. */
static void test_vocabulary(void **state)
{
	ls_shape_options o = { .model = LS_MODEL_OPTIONS_INIT, .batch = 8, .threads = 1, .step_s = 0.3 };
	ls_profile known, found;

	(void)state;
	o.model.name = "transformer";
	o.model.text.vocabulary = 5000;
	assert_int_equal(ls_shape_profile(&known, &o), LS_OK);
	o.bytes = 4.0 * (double)known.reachable;
	o.model.text.vocabulary = 0;
	assert_int_equal(ls_shape_profile(&found, &o), LS_OK);
	near("floats of gradient", (double)found.reachable, (double)known.reachable, 1e-3);
	ls_profile_release(&known);
	ls_profile_release(&found);
}

/* ---- predictions ------------------------------------------------------------------------------------------------- */

/* Links without limits: as fast as the slowest host; and what devices of a node lose to each other stays. */
static void test_fast_links(void **state)
{
	ls_fit f = fit_text(HEAD "cnn,a,1,100,100tbit,1000\n"
				 "cnn,a,2,100,100tbit,1600\n"
				 "cnn,b,1,100,100tbit,800\n"
				 "cnn,b,2,100,100tbit,1500\n"
				 "cnn,a+b,1+1,100,100tbit,1500\n"
				 "cnn,a+b,2+2,100,100tbit,3100\n"
				 "cnn,a,1+1+1+1,100,100tbit,3700\n");

	(void)state;
	assert_int_equal(f.count, 7);
	assert_int_equal(f.compared, 3);
	for (int i = 0; i < 4; i++) {
		assert_true(f.row[i].fitted);
		near("a fitted row", f.row[i].predicted, f.row[i].measured, 1e-3);
	}
	near("one device of a and of b", f.row[4].predicted, 1600, 0.01);
	near("two of each", f.row[5].predicted, 3000, 0.01); /* b: 800/s alone, 750/s in twos; a: 800/s in twos */
	near("its error", f.row[5].error, f.row[5].predicted / 3100 - 1, 1e-9);
	near("the mean error", f.mean_error, (fabs(f.row[4].error) + fabs(f.row[5].error) + fabs(f.row[6].error)) / 3,
	     1e-9);
	assert_true(f.worst_error >= f.mean_error);
	/* nodes of one name differ as a and b do, and all wait for the slowest of four */
	double spread = sqrt(2) * 100 / 900;
	near("how hosts differ", f.spread, spread, 1e-9);
	near("four nodes like a", f.row[6].predicted, 4000 / (1 + spread * 1.03), 0.02);
	for (int i = 4; i < 7; i++)
		assert_true(f.row[i].low < f.row[i].predicted && f.row[i].predicted < f.row[i].high);
	assert_true(f.row[6].high / f.row[6].low > f.row[4].high / f.row[4].low);
	ls_fit_release(&f);
}

/* 2 G (N - 1) / N bytes each way are the whole step where links are slow. Other trainers send all weights: the CNN has
 * 421,642, ResNet-18 11.18 million, most of which see nothing but padding in such small images. */
static void test_slow_links(void **state)
{
	static const struct {
		double weights, nodes;
	} expected[] = { { 421642, 2 }, { 421642, 3 }, { 11.18e6, 2 } };
	ls_fit f = fit_text(HEAD "cnn,,1,100,1gbit,100000\n"
				 "resnet18,,1,100,1gbit,10000\n"
				 "cnn,,1+1,100,10mbit,500\n"
				 "cnn,,1+1+1,100,10mbit,500\n"
				 "resnet18,,1+1,100,10mbit,20\n");

	(void)state;
	assert_int_equal(f.count, 5);
	for (int i = 0; i < 3; i++) {
		const ls_fit_row *row = &f.row[2 + i];
		double nodes = expected[i].nodes, bytes = 2 * 4 * expected[i].weights * (nodes - 1) / nodes;
		assert_string_equal(row->bottleneck, "links");
		near("limited by its links", row->predicted, 100 * nodes / (bytes * 8 / (10e6 * 0.89)), 0.05);
	}
	ls_fit_release(&f);
}

static void test_other_nodes(void **state)
{
	ls_fit_options o = LS_FIT_OPTIONS_INIT;
	ls_fit f;

	(void)state;
	write_table(HEAD "cnn,a,1,100,1gbit,1000\ncnn,a,4,100,1gbit,4000\ncnn,b,1,100,1gbit,1000\n");
	o.table = file, o.nodes = "2,8", o.rate = "10gbit,100gbit", o.devices = 0;
	assert_int_equal(ls_fit_make(&f, &o), LS_OK);
	assert_int_equal(f.count, 3 + 2 * 2 * 2);
	assert_int_equal(f.compared, 0);
	assert_true(f.row[3].line == 0 && f.row[3].measured == 0 && !f.row[3].fitted);
	assert_int_equal(f.row[3].devices, 8); /* the most that were measured on a */
	assert_int_equal(f.row[9].devices, 8); /* one on each of b's */
	assert_string_equal(f.row[4].rate, "100gbit");
	assert_true(f.row[3].predicted > 0 && f.row[3].low > 0 && f.row[3].high > f.row[3].predicted);
	ls_fit_release(&f);
	o.nodes = "2,,8";
	assert_int_equal(ls_fit_make(&f, &o), LS_EINVALID);
}

/* A table is not the measure of its own interval: with another name, the same rows are. */
static void test_own_errors(void **state)
{
	ls_fit_options o = LS_FIT_OPTIONS_INIT;
	ls_fit own, other;

	(void)state;
	for (size_t i = 0; i < ls_published_built_in_count; i++)
		if (!strcmp(ls_published_built_in[i].name, "rcc-cnn"))
			write_table(ls_published_built_in[i].text);
	o.table = "rcc-cnn";
	assert_int_equal(ls_fit_make(&own, &o), LS_OK);
	o.table = file;
	assert_int_equal(ls_fit_make(&other, &o), LS_OK);
	assert_int_equal(own.count, other.count);
	assert_true(own.compared >= 5);
	for (size_t i = 0; i < own.count; i++) {
		near("the prediction", own.row[i].predicted, other.row[i].predicted, 1e-9);
		if (!own.row[i].fitted) /* rcc-cnn is the table with the largest errors */
			assert_true(own.row[i].high < other.row[i].high);
	}
	ls_fit_release(&own);
	ls_fit_release(&other);
}

/* ---- rows that are left out -------------------------------------------------------------------------------------- */

static void test_left_out(void **state)
{
	static const struct {
		int line;
		const char *reason;
	} expected[] = { { 5, "samples_per_s is 'nan', not a number" },
			 { 6, "samples_per_s is 0, not between" },
			 { 7, "samples_per_s is -3, not between" },
			 { 8, "unknown model 'resnet19'; did you mean 'resnet18'?" },
			 { 9, "3000 samples/s with 2 devices are 1.50 times what line 4 allows, 1000 with 1" },
			 { 11, "the rate of line 10, which has fewer devices: copied, not measured" },
			 { 12, "the same row as line 4" },
			 { 13, "no row of one node for cnn, batch 100 on z" },
			 { 14, "4000 samples/s are 2.00 times what 2 devices as fast as its slowest do, 1000 each" },
			 { 15, "hosts 'a+b' are 2, devices '1+1+1' are of 3 nodes" },
			 { 16, "an average of other rows" },
			 { 17, "no row of one node for cnn, batch 200 on a" },
			 { 18, "fewer cells than the 6 columns" },
			 { 20, "repeats line 19, where their mean is used" },
			 { 21, "the rate of its links is not in the table" } };
	ls_fit f = fit_text(HEAD "cnn,a,1,100,1gbit,1000\n"       /* 4 */
				 "cnn,a,2,100,1gbit,nan\n"        /* 5 */
				 "cnn,a,2,100,1gbit,0\n"          /* 6 */
				 "cnn,a,2,100,1gbit,-3\n"         /* 7 */
				 "resnet19,a,1,100,1gbit,5\n"     /* 8 */
				 "cnn,a,2,100,1gbit,3000\n"       /* 9 */
				 "cnn,a,3,100,1gbit,2500\n"       /* 10 */
				 "cnn,a,4,100,1gbit,2500\n"       /* 11 */
				 "cnn,a,1,100,1gbit,1000\n"       /* 12 */
				 "cnn,a+z,1+1,100,1gbit,1500\n"   /* 13 */
				 "cnn,a+b,1+1,100,1gbit,4000\n"   /* 14 */
				 "cnn,a+b,1+1+1,100,1gbit,1500\n" /* 15 */
				 "cnn,Avg,1+1,100,1gbit,1500\n"   /* 16 */
				 "cnn,a,1+1,200,1gbit,1500\n"     /* 17 */
				 "cnn,a,1+1\n"                    /* 18 */
				 "cnn,b,1,100,1gbit,900\n"        /* 19 */
				 "cnn,b,1,100,1gbit,1100\n"       /* 20 */
				 "cnn,a+b,1+1,100,,1500\n"        /* 21 */
				 "cnn,a+b,1+1,100,2gbit,1500\n"); /* 22 */

	(void)state;
	assert_int_equal(f.left_out_count, sizeof(expected) / sizeof(expected[0]));
	for (size_t i = 0; i < f.left_out_count; i++) {
		assert_int_equal(f.left_out[i].line, expected[i].line);
		if (!strstr(f.left_out[i].reason, expected[i].reason))
			fail_msg("line %d: '%s' is not in '%s'", expected[i].line, expected[i].reason,
				 f.left_out[i].reason);
	}
	/* the others are all there: lines 4, 10, 19 with the mean of 19 and 20, and 22 */
	assert_int_equal(f.count, 4);
	assert_true(f.row[0].line == 4 && f.row[1].line == 10 && f.row[2].line == 19 && f.row[3].line == 22);
	near("the mean of two", f.row[2].measured, 1000, 1e-9);
	assert_int_equal(f.compared, 1);
	ls_fit_release(&f);
}

static void test_refusals(void **state)
{
	static const struct {
		const char *text, *error;
	} cases[] = {
		{ HEAD "cnn,a,1+1,100,1gbit,1000\n", "no row of one node, from which" },
		{ HEAD "cnn,a,1,100,1gbit,-1\n", "no row of one node can be used; line 4: samples_per_s is -1" },
		{ "title: T\n\nmodel,hosts\n", "the table has no rows" },
		{ "titel: T\n", ":1: unknown key 'titel'" },
		{ "{ \"format\": \"lockstep forecast\", \"version\": 2 }", "format" },
	};
	ls_fit_options o = LS_FIT_OPTIONS_INIT;
	ls_fit f;

	(void)state;
	assert_int_equal(ls_fit_make(&f, &o), LS_EINVALID);
	o.table = file;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		write_table(cases[i].text);
		assert_int_not_equal(ls_fit_make(&f, &o), LS_OK);
		if (!strstr(ls_last_error(), cases[i].error))
			fail_msg("case %zu: '%s' is not in '%s'", i, cases[i].error, ls_last_error());
	}
	o.table = scratch;
	assert_int_equal(ls_fit_make(&f, &o), LS_EIO);
	o.table = "nosuch";
	assert_int_not_equal(ls_fit_make(&f, &o), LS_OK);
}

TEST_MAIN_GROUP(begin, end, test_hosts, test_calibration, test_scatter, test_shape, test_vocabulary, test_fast_links,
		test_slow_links, test_other_nodes, test_own_errors, test_left_out, test_refusals)
