/*
 * The mean and deviation of images: measured, from a file, given; and the floats they make.
 */
#include "unit/data/fixture.h"

#include <math.h>

#include "data/dataset.h"
#include "data/normalise.h"
#include "unit/test_main.h"

enum { N = 40, C = 3, SIDE = 9, POSITIONS = SIDE * SIDE, VALUES = C * POSITIONS };

/* Channel 0 is any byte, channel 1 dark, channel 2 always 200. */
static uint8_t fill_colours(size_t i)
{
	size_t channel = i / POSITIONS % C;
	uint8_t byte = (uint8_t)ls_mix64(i);
	return channel == 0 ? byte : channel == 1 ? byte / 8 : 200;
}

static double digits4(double value)
{
	char text[32];
	snprintf(text, sizeof(text), "%.4g", value);
	return atof(text);
}

/* By the book, in two passes. */
static void by_the_book(int channel, double *mean, double *deviation)
{
	double sum = 0, squares = 0;
	for (size_t i = 0; i < (size_t)N * VALUES; i++)
		if ((int)(i / POSITIONS % C) == channel)
			sum += fill_colours(i) / 255.0;
	*mean = sum / (N * POSITIONS);
	for (size_t i = 0; i < (size_t)N * VALUES; i++)
		if ((int)(i / POSITIONS % C) == channel)
			squares += pow(fill_colours(i) / 255.0 - *mean, 2);
	*deviation = sqrt(squares / (N * POSITIONS));
}

static void put_colours(const char *dir)
{
	put_idx(in_dir(dir, "train-images-idx4-ubyte"), 4, (uint32_t[]){ N, C, SIDE, SIDE }, fill_colours, 0);
	put_idx(in_dir(dir, "train-labels-idx1-ubyte"), 1, (uint32_t[]){ N }, fill_digits, 0);
	put_idx(in_dir(dir, "t10k-images-idx4-ubyte"), 4, (uint32_t[]){ 3, C, SIDE, SIDE }, fill_pixels, 0);
	put_idx(in_dir(dir, "t10k-labels-idx1-ubyte"), 1, (uint32_t[]){ 3 }, fill_digits, 0);
}

static void each_channel_has_its_own(void **state)
{
	ls_dataset *set, *test;
	float image[VALUES];
	int32_t label;
	put_colours(*state);
	assert_ok(open_set(&set, *state, NULL, LS_SPLIT_TRAIN, 7)); /* all images count, not the first 7 alone */
	const ls_normalisation *n = ls_dataset_normalisation(set);
	assert_int_equal(n->channels, C);
	for (int c = 0; c < 2; c++) {
		double mean, deviation;
		by_the_book(c, &mean, &deviation);
		assert_true(n->mean[c] == digits4(mean) && n->deviation[c] == digits4(deviation));
	}
	assert_true(n->mean[2] == digits4(200 / 255.0) && n->deviation[2] == digits4(1 / 255.0)); /* constant */
	assert_ok(ls_dataset_read(set, 5, image, &label));
	for (size_t k = 0; k < VALUES; k++) {
		size_t c = k / POSITIONS;
		float byte = (float)fill_colours(5 * VALUES + k);
		float expected = (byte / 255.0f - (float)n->mean[c]) / (float)n->deviation[c];
		assert_memory_equal(&image[k], &expected, sizeof(float));
	}
	assert_ok(open_set(&test, *state, NULL, LS_SPLIT_TEST, 0));
	assert_true(ls_normalisation_equal(ls_dataset_normalisation(test), n)); /* the training images decide */
	ls_dataset_free(test);
	ls_dataset_free(set);
	unlink(in_dir(*state, "train-images-idx4-ubyte"));
	assert_ok(open_set(&test, *state, NULL, LS_SPLIT_TEST, 0)); /* alone it has its own */
	assert_true(ls_dataset_normalisation(test)->mean[2] < 0.7);
	ls_dataset_free(test);
}

static void names_have_mnists(void **state)
{
	static const char *const names[] = { "mnist", "glyphs", "bigmnist" };
	double mean[] = { 0.5 }, deviation[] = { 0.25 };
	const ls_normalisation given = { 1, mean, deviation };
	ls_dataset *set;
	put_mnist(*state, 20, 5);
	for (size_t i = 0; i < 3; i++) {
		uint8_t bytes[784];
		float image[784];
		int32_t label;
		ls_dataset_options options = {
			.size = sizeof(ls_dataset_options), .name = names[i], .dir = *state, .samples = 20, .seed = 1
		};
		assert_ok(ls_dataset_open(&set, &options));
		assert_true(ls_normalisation_equal(ls_dataset_normalisation(set), &ls_mnist_normalisation));
		ls_dataset_free(set);
		options.normalisation = &given;
		assert_ok(ls_dataset_open(&set, &options));
		assert_true(ls_normalisation_equal(ls_dataset_normalisation(set), &given));
		assert_ok(ls_dataset_read_bytes(set, 3, bytes, &label));
		assert_ok(ls_dataset_read(set, 3, image, &label));
		for (size_t k = 0; k < 784; k++)
			assert_true(image[k] == ((float)bytes[k] / 255.0f - 0.5f) / 0.25f);
		ls_dataset_free(set);
	}
	assert_ok(open_set(&set, "babble", NULL, LS_SPLIT_TRAIN, 10));
	assert_null(ls_dataset_normalisation(set));
	ls_dataset_free(set);
}

static void given_ones_win(void **state)
{
	double three[6] = { 0.1, 0.2, 0.3, 0.4, 0.5, 0.6 };
	const ls_normalisation own = { 3, three, three + 3 }, one = { 1, three, three + 3 },
			       two = { 2, three, three + 3 };
	ls_dataset_options options = { .size = sizeof(ls_dataset_options), .name = *state, .normalisation = &own };
	ls_dataset *set;
	put_colours(*state);
	assert_ok(ls_dataset_open(&set, &options));
	assert_true(ls_normalisation_equal(ls_dataset_normalisation(set), &own));
	ls_dataset_free(set);
	options.normalisation = &one;
	assert_ok(ls_dataset_open(&set, &options));
	assert_int_equal(ls_dataset_normalisation(set)->channels, 3);
	for (int c = 0; c < 3; c++)
		assert_true(ls_dataset_normalisation(set)->mean[c] == 0.1 &&
			    ls_dataset_normalisation(set)->deviation[c] == 0.4);
	ls_dataset_free(set);
	options.normalisation = &two;
	assert_fails(ls_dataset_open(&set, &options), LS_EMISMATCH, "has images of 3 channels");
	three[3] = 0;
	options.normalisation = &own;
	assert_fails(ls_dataset_open(&set, &options), LS_EFORMAT, "deviation 0 of channel 0");
}

static void a_file_decides(void **state)
{
	static const char good[] = "0.485 0.229\n0.456\t0.224\r\n0.406 0.225\n";
	static const char *const bad[] = { "",
					   "0.485 0.229\n0.456 0.224\n",
					   "0.5 0.2\n0.5 0.2\n0.5 0.2\n0.5 0.2\n",
					   "0.5 0.2\n0.5 0.2 0.1\n0.5 0.2\n",
					   "0.5 0.2\n0.5 x\n0.5 0.2\n",
					   "0.5 0.2\n0.5 0\n0.5 0.2\n",
					   "0.5 0.2\n0.5 -1\n0.5 0.2\n",
					   "nan 0.2\n0.5 0.2\n0.5 0.2\n",
					   "0.5 inf\n0.5 0.2\n0.5 0.2\n" };
	const char *path = in_dir(*state, LS_NORMALISATION_FILE);
	ls_normalisation again;
	ls_dataset *set;
	int found;
	put_colours(*state);
	put_file(path, good, sizeof(good) - 1);
	assert_ok(open_set(&set, *state, NULL, LS_SPLIT_TEST, 0));
	const ls_normalisation *n = ls_dataset_normalisation(set);
	assert_true(n->mean[0] == 0.485 && n->mean[1] == 0.456 && n->mean[2] == 0.406);
	assert_true(n->deviation[0] == 0.229 && n->deviation[1] == 0.224 && n->deviation[2] == 0.225);
	assert_ok(ls_normalisation_write(n, *state));
	assert_ok(ls_normalisation_read(&again, *state, 3, &found));
	assert_true(found && ls_normalisation_equal(n, &again));
	ls_normalisation_release(&again);
	ls_dataset_free(set);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		put_file(path, bad[i], strlen(bad[i]));
		assert_fails(open_set(&set, *state, NULL, LS_SPLIT_TRAIN, 0), LS_EFORMAT, path);
	}
}

static void texts(void **state)
{
	(void)state;
	double values[] = { 0.1307, 1.0 / 3, 1e-5, 0 };
	char *text = ls_normalisation_to_text(values, 3), shown[256];
	ls_normalisation n;
	assert_string_equal(text, "0.1307 0.33333333333333331 1e-05");
	assert_ok(ls_normalisation_from_text(&n, text, text, "x"));
	assert_int_equal(n.channels, 3);
	assert_memory_equal(n.mean, values, 3 * sizeof(double));
	assert_memory_equal(n.deviation, values, 3 * sizeof(double));
	assert_string_equal(ls_normalisation_show(&n, shown, sizeof(shown)),
			    "mean (0.1307 0.3333 1e-05), deviation (0.1307 0.3333 1e-05)");
	assert_string_equal(ls_normalisation_show(&ls_mnist_normalisation, shown, sizeof(shown)),
			    "mean 0.1307, deviation 0.3081");
	ls_normalisation_release(&n);
	free(text);
	assert_fails(ls_normalisation_from_text(&n, "1 2", "1", "x"), LS_EFORMAT, "x: 2 means and 1 deviations");
	assert_fails(ls_normalisation_from_text(&n, "", "", "x"), LS_EFORMAT, "x: 0 means");
	assert_fails(ls_normalisation_from_text(&n, "1", "two", "x"), LS_EFORMAT, "two");
	assert_fails(ls_normalisation_from_text(&n, "1", "0", "x"), LS_EFORMAT, "deviation 0");
}

TEST_MAIN_EACH(fixture_enter, temp_dir_remove, each_channel_has_its_own, names_have_mnists, given_ones_win,
	       a_file_decides, texts)
