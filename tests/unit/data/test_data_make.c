/*
 * Datasets written to disk: the same bytes as the virtual ones, whatever happened on the way.
 */
#include "unit/data/fixture.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

#include "base/log.h"
#include "data/dataset.h"
#include "data/make_dataset.h"
#include "unit/test_main.h"

#define SAMPLES 5000
#define ROUND 1024

static const char *const names[] = { "train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte",
				     "t10k-labels-idx1-ubyte" };

static ls_data_make_options glyph_options(const char *out)
{
	ls_data_make_options options = LS_DATA_MAKE_OPTIONS_INIT;
	options.name = "glyphs";
	options.out = out;
	options.samples = SAMPLES;
	options.threads = 2;
	options.quiet = 1;
	return options;
}

static void assert_same_directories(const char *a, const char *b)
{
	for (int i = 0; i < 4; i++) {
		assert_same_files(in_dir(a, names[i]), in_dir(b, names[i]));
		char partial[64];
		snprintf(partial, sizeof(partial), "%s.partial", names[i]);
		assert_false(ls_path_exists(in_dir(b, partial)));
	}
	assert_false(ls_path_exists(in_dir(b, "lockstep-make.partial")));
}

static void assert_same_datasets(const char *name, const char *dir, uint64_t samples, const char *made, ls_split split)
{
	ls_dataset *virtual_set, *disk_set;
	ls_dataset_options options = LS_DATASET_OPTIONS_INIT;
	float a[784], b[784];
	int32_t label_a, label_b;
	options.split = split;
	options.name = name;
	options.dir = dir;
	options.samples = samples;
	assert_ok(ls_dataset_open(&virtual_set, &options));
	options.name = made;
	options.samples = 0;
	assert_ok(ls_dataset_open(&disk_set, &options));
	uint64_t n = ls_dataset_describe(virtual_set)->samples;
	assert_int_equal(ls_dataset_describe(disk_set)->samples, n);
	for (uint64_t i = 0; i < n; i++) {
		assert_ok(ls_dataset_read(virtual_set, i, a, &label_a));
		assert_ok(ls_dataset_read(disk_set, i, b, &label_b));
		assert_int_equal(label_a, label_b);
		assert_memory_equal(a, b, sizeof(a));
	}
	ls_dataset_free(disk_set);
	ls_dataset_free(virtual_set);
}

static void glyphs_on_disk_are_the_virtual_ones(void **state)
{
	ls_data_make_options options = glyph_options(in_dir(*state, "out"));
	options.samples = 1500;
	assert_ok(ls_data_make(&options));
	assert_same_datasets("glyphs", NULL, 1500, options.out, LS_SPLIT_TRAIN);
	assert_same_datasets("glyphs", NULL, 0, options.out, LS_SPLIT_TEST);
}

static void bigmnist_on_disk_is_the_virtual_one(void **state)
{
	char source[4096], out[4096];
	snprintf(source, sizeof(source), "%s", in_dir(*state, "mnist"));
	snprintf(out, sizeof(out), "%s", in_dir(*state, "big"));
	mkdir(source, 0777);
	put_mnist(source, 100, 10);
	ls_data_make_options options = LS_DATA_MAKE_OPTIONS_INIT;
	options.name = "bigmnist";
	options.out = out;
	options.dir = source;
	options.samples = 2500;
	options.quiet = 1;
	assert_ok(ls_data_make(&options));
	assert_same_datasets("bigmnist", source, 2500, out, LS_SPLIT_TRAIN);
	assert_same_datasets("bigmnist", source, 0, out, LS_SPLIT_TEST);
}

static void threads_do_not_matter_and_twice_is_once(void **state)
{
	char a[4096], b[4096];
	snprintf(a, sizeof(a), "%s", in_dir(*state, "a"));
	snprintf(b, sizeof(b), "%s", in_dir(*state, "b"));
	ls_data_make_options one = glyph_options(a), three = glyph_options(b);
	one.threads = 1;
	three.threads = 3;
	assert_ok(ls_make_run(&one, ROUND));
	assert_ok(ls_make_run(&three, 3000)); /* rounds that are no multiple of the chunk */
	assert_same_directories(a, b);
	struct stat before, after;
	stat(in_dir(a, names[0]), &before);
	assert_ok(ls_make_run(&one, ROUND));
	stat(in_dir(a, names[0]), &after);
	assert_memory_equal(&before.st_mtim, &after.st_mtim, sizeof(before.st_mtim));
	assert_int_equal(before.st_ino, after.st_ino);
}

/* How many training samples the state file says are safe; 0 when it is not there. */
static unsigned long long safe_samples(const char *dir)
{
	unsigned long long done = 0;
	char line[256];
	FILE *file = fopen(in_dir(dir, "lockstep-make.partial"), "r");
	while (file && fgets(line, sizeof(line), file))
		sscanf(line, "train %llu", &done);
	if (file)
		fclose(file);
	return done;
}

static void killed_and_continued_is_the_same(void **state)
{
	char whole[4096], killed[4096];
	snprintf(whole, sizeof(whole), "%s", in_dir(*state, "whole"));
	snprintf(killed, sizeof(killed), "%s", in_dir(*state, "killed"));
	ls_data_make_options options = glyph_options(whole);
	options.samples = 40000;
	assert_ok(ls_make_run(&options, LS_MAKE_ROUND));
	options.out = killed;
	for (int times = 1; times <= 3; times++) {
		pid_t child = fork();
		if (child == 0)
			_exit(ls_make_run(&options, ROUND) != LS_OK);
		unsigned long long target = 3000ull * (unsigned)times;
		for (int wait = 0; wait < 60000 && safe_samples(killed) < target; wait++)
			nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
		assert_true(safe_samples(killed) >= target);
		assert_false(ls_path_exists(in_dir(killed, names[0])));
	}
	assert_ok(ls_make_run(&options, LS_MAKE_ROUND));
	assert_same_directories(whole, killed);
}

/* A limit on file size is the nearest thing to a full disk a test can have. */
static void a_full_disk_can_be_continued(void **state)
{
	char whole[4096], full[4096];
	snprintf(whole, sizeof(whole), "%s", in_dir(*state, "whole"));
	snprintf(full, sizeof(full), "%s", in_dir(*state, "full"));
	ls_data_make_options options = glyph_options(whole);
	assert_ok(ls_make_run(&options, ROUND));
	options.out = full;
	pid_t child = fork();
	if (child == 0) {
		const struct rlimit limit = { 2500 * 784, 2500 * 784 };
		signal(SIGXFSZ, SIG_IGN);
		setrlimit(RLIMIT_FSIZE, &limit);
		ls_status status = ls_make_run(&options, ROUND);
		_exit(status == LS_EIO && strstr(ls_last_error(), "2048 of 5000 samples of the train set are safe")
			      ? 7
			      : 1);
	}
	int result;
	waitpid(child, &result, 0);
	assert_true(WIFEXITED(result));
	assert_int_equal(WEXITSTATUS(result), 7);
	assert_int_equal(safe_samples(full), 2048);
	assert_false(ls_path_exists(in_dir(full, names[0])));
	assert_ok(ls_make_run(&options, ROUND));
	assert_same_directories(whole, full);
}

/* What the state says is there, but is not, is made again. */
static void a_shortened_file_is_made_again(void **state)
{
	char whole[4096], cut[4096];
	snprintf(whole, sizeof(whole), "%s", in_dir(*state, "whole"));
	snprintf(cut, sizeof(cut), "%s", in_dir(*state, "cut"));
	ls_data_make_options options = glyph_options(whole);
	assert_ok(ls_make_run(&options, ROUND));
	mkdir(cut, 0777);
	size_t bytes;
	uint8_t *settings = take_file(in_dir(whole, "lockstep-data.txt"), &bytes);
	char text[1024];
	snprintf(text, sizeof(text), "%.*strain 3072 0\ntest 0 0\n", (int)bytes, (const char *)settings);
	put_file(in_dir(cut, "lockstep-make.partial"), text, strlen(text));
	put_file(in_dir(cut, "train-images-idx3-ubyte.partial"), "short", 5);
	options.out = cut;
	assert_ok(ls_make_run(&options, ROUND));
	assert_same_directories(whole, cut);
	free(settings);
}

/* A byte that changed between two runs is found, in the split in work and in one that was done. */
static void damage_is_made_again(void **state)
{
	char whole[4096], full[4096], partial[64];
	snprintf(whole, sizeof(whole), "%s", in_dir(*state, "whole"));
	ls_data_make_options options = glyph_options(whole);
	assert_ok(ls_make_run(&options, ROUND));
	for (int kind = 0; kind < 2; kind++) {
		snprintf(full, sizeof(full), "%s", in_dir(*state, kind ? "b" : "a"));
		options.out = full;
		pid_t child = fork();
		if (child == 0) {
			const struct rlimit limit = { 5500 * 784,
						      5500 * 784 }; /* the train set fits, the test set not */
			signal(SIGXFSZ, SIG_IGN);
			setrlimit(RLIMIT_FSIZE, &limit);
			_exit(ls_make_run(&options, ROUND) == LS_EIO ? 7 : 1);
		}
		int result;
		waitpid(child, &result, 0);
		assert_true(WIFEXITED(result) && WEXITSTATUS(result) == 7);
		assert_int_equal(safe_samples(full), SAMPLES);
		snprintf(partial, sizeof(partial), "%s.partial", names[2 * kind]);
		FILE *file = fopen(in_dir(full, partial), "r+b");
		assert_non_null(file);
		fseek(file, 16 + 784 * 300 + 5, SEEK_SET);
		int byte = fgetc(file);
		fseek(file, -1, SEEK_CUR);
		fputc(byte ^ 1, file);
		fclose(file);
		ls_log_set_level(LS_LOG_ERROR);
		ls_status status = ls_make_run(&options, ROUND);
		ls_log_set_level(LS_LOG_INFO);
		assert_ok(status);
		assert_same_directories(whole, full);
	}
}

static void other_settings_and_strangers_are_refused(void **state)
{
	char out[4096], other[4096];
	snprintf(out, sizeof(out), "%s", in_dir(*state, "out"));
	snprintf(other, sizeof(other), "%s", in_dir(*state, "other"));
	ls_data_make_options options = glyph_options(out);
	options.samples = 50;
	assert_ok(ls_data_make(&options));
	options.seed = 2;
	assert_fails(ls_data_make(&options), LS_EMISMATCH,
		     "made with other settings (dataset glyphs samples 50 seed 1");
	mkdir(other, 0777);
	put_file(in_dir(other, names[1]), "mine", 4);
	options.out = other;
	assert_fails(ls_data_make(&options), LS_EINVALID, "exists already; choose another directory");
	size_t bytes;
	uint8_t *mine = take_file(in_dir(other, names[1]), &bytes);
	assert_int_equal(bytes, 4);
	assert_memory_equal(mine, "mine", 4);
	free(mine);
	options.name = "glyps";
	assert_fails(ls_data_make(&options), LS_EINVALID, "did you mean 'glyphs'?");
	options = glyph_options(out);
	options.samples = 5000000000;
	assert_fails(ls_data_make(&options), LS_EINVALID, "do not fit an IDX file");
}

static void info_tells_what_is_there(void **state)
{
	char text[8192] = { 0 };
	put_mnist(*state, 20, 10);
	FILE *to = fmemopen(text, sizeof(text), "w");
	assert_ok(ls_data_info("mnist", *state, to));
	fclose(to);
	assert_non_null(strstr(text, "train: 20 samples of 1 x 28 x 28, 10 classes\n"));
	assert_non_null(strstr(text, "test: 10 samples of 1 x 28 x 28, 10 classes\n"));
	assert_non_null(strstr(text, "labels 0: 2 1: 2 2: 2"));
	assert_non_null(strstr(text, "mean 0.49"));
	assert_non_null(strstr(text, "xxh64 images "));
	unlink(in_dir(*state, names[2]));
	to = fmemopen(text, sizeof(text), "w");
	assert_ok(ls_data_info(*state, NULL, to));
	fflush(to);
	assert_non_null(strstr(text, "test: none"));
	assert_fails(ls_data_info("mnist", *state, to), LS_ENOTFOUND, "t10k-images");
	assert_fails(ls_data_info("mnits", NULL, to), LS_EINVALID, "did you mean 'mnist'?");
	fclose(to);
}

TEST_MAIN_EACH(fixture_enter, temp_dir_remove, glyphs_on_disk_are_the_virtual_ones, bigmnist_on_disk_is_the_virtual_one,
	       threads_do_not_matter_and_twice_is_once, killed_and_continued_is_the_same, a_full_disk_can_be_continued,
	       a_shortened_file_is_made_again, damage_is_made_again, other_settings_and_strangers_are_refused,
	       info_tells_what_is_there)
