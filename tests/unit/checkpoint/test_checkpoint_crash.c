/*
 * Whole or absent: crashes at any moment, damage, a full disk, and directories that cannot be written.
 */
#include "support.h"

#include <dirent.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

#include "base/log.h"
#include "base/rng.h"
#include "unit/test_main.h"

static int has(const scratch *s, const char *name)
{
	char path[2048], ckpt[2048];
	return ls_path_exists(join(path, join(ckpt, s->path, "ckpt"), name));
}

static void save(const scratch *s, uint64_t step, int64_t keep)
{
	model m;
	model_init(&m, 4, 1, 3);
	ls_status status = model_save(&m, s->path, step, keep);
	model_release(&m);
	if (status != LS_OK)
		fail_msg("%s", ls_last_error());
}

static void prune(void **state)
{
	const scratch *s = *state;
	for (uint64_t step = 1; step <= 5; step++)
		save(s, step * 999999999, 3);
	assert_false(has(s, "step-999999999"));
	assert_false(has(s, "step-1999999998"));
	assert_true(has(s, "step-2999999997"));
	assert_true(has(s, "step-3999999996"));
	assert_true(has(s, "step-4999999995"));
	save(s, 5000000000, 0); /* never fewer than the one just written */
	assert_false(has(s, "step-4999999995"));
	assert_newest(s->path, 5000000000);
}

/* After a step back, later checkpoints are of another history and must not win a resume. */
static void going_back(void **state)
{
	const scratch *s = *state;
	capture c;
	save(s, 100, 3);
	save(s, 200, 3);
	save(s, 300, 3);
	capture_begin(&c, s);
	save(s, 150, 3);
	char *text = capture_end(&c);
	assert_mentions_in(text, "step 300");
	free(text);
	assert_false(has(s, "step-000000200"));
	assert_true(has(s, "step-000000100"));
	assert_newest(s->path, 150);
}

static void others_files_are_left_alone(void **state)
{
	static const char *const names[] = { "notes.txt",      "step-1",      "step-00000000x",
					     "best-000000001", ".step-5.tmp", "step-" };
	const scratch *s = *state;
	char path[2048], ckpt[2048];
	save(s, 1, 1);
	join(ckpt, s->path, "ckpt");
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		put_file(join(path, ckpt, names[i]), "mine", 4);
	save(s, 2, 1);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_true(has(s, names[i]));
	assert_newest(s->path, 2);
}

static void same_step_again(void **state)
{
	const scratch *s = *state;
	char path[2048];
	model m;
	model_init(&m, 4, 1, 3);
	save(s, 10, 2);
	model_fill(&m, 77);
	m.content.progress.step = 10;
	assert_int_equal(ls_ckpt_save(s->path, &m.content, 2), LS_OK);
	assert_false(has(s, ".step-000000010.old"));
	assert_int_equal(ls_ckpt_newest(s->path, path, sizeof(path)), LS_OK);
	model_fill(&m, 1);
	assert_int_equal(ls_ckpt_load(path, &m.content), LS_OK);
	assert_int_equal(model_differences(&m, 77), 0);
	model_release(&m);
}

static void leftovers(void **state)
{
	const scratch *s = *state;
	char path[2048];
	save(s, 10, 2);
	assert_int_equal(mkdir(join(path, s->path, "ckpt/.step-000000020.tmp"), 0777), 0);
	put_file(join(path, s->path, "ckpt/.step-000000020.tmp/model.safetensors.draft"), "half", 4);
	assert_newest(s->path, 10);
	assert_true(has(s, ".step-000000020.tmp"));
	save(s, 30, 2);
	assert_false(has(s, ".step-000000020.tmp"));
	assert_true(has(s, "step-000000010"));
	assert_newest(s->path, 30);
}

/* Killed between the two renames that replace a checkpoint of the same step. */
static void stepped_aside(void **state)
{
	const scratch *s = *state;
	char from[2048], to[2048];
	save(s, 10, 1);
	assert_int_equal(
		rename(join(from, s->path, "ckpt/step-000000010"), join(to, s->path, "ckpt/.step-000000010.old")), 0);
	assert_newest(s->path, 10);
	save(s, 20, 2);
	assert_true(has(s, "step-000000010"));
	assert_false(has(s, ".step-000000010.old"));
	assert_newest(s->path, 20);
	/* killed after them: the old one is superseded */
	assert_int_equal(
		rename(join(from, s->path, "ckpt/step-000000010"), join(to, s->path, "ckpt/.step-000000020.old")), 0);
	assert_newest(s->path, 20);
	save(s, 30, 5);
	assert_false(has(s, ".step-000000020.old"));
	assert_newest(s->path, 30);
}

static void damage_truncate(const char *directory)
{
	char path[2048];
	assert_int_equal(truncate(join(path, directory, "model.safetensors"), 1000), 0);
}

static void damage_empty(const char *directory)
{
	char path[2048];
	assert_int_equal(truncate(join(path, directory, "optimizer.safetensors"), 0), 0);
}

static void damage_model_bit(const char *directory)
{
	char path[2048];
	flip_bit(join(path, directory, "model.safetensors"), 5);
}

static void damage_optimizer_bit(const char *directory)
{
	char path[2048];
	flip_bit(join(path, directory, "optimizer.safetensors"), 1);
}

static void damage_state_digit(const char *directory)
{
	char path[2048];
	size_t bytes;
	join(path, directory, "state.json");
	char *text = (char *)take_file(path, &bytes), *at = strstr(text, "\"loss_samples\": ");
	assert_non_null(at);
	at[strlen("\"loss_samples\": ")] ^= 1;
	put_file(path, text, bytes);
	free(text);
}

static void damage_state_missing(const char *directory)
{
	char path[2048];
	assert_int_equal(unlink(join(path, directory, "state.json")), 0);
}

static void damage_model_missing(const char *directory)
{
	char path[2048];
	assert_int_equal(unlink(join(path, directory, "model.safetensors")), 0);
}

/* Each damage to the newest: a warning that names it, and the one before is used; loading it directly is an error. */
static void falls_back(void **state)
{
	static const struct {
		void (*damage)(const char *directory);
		const char *expect;
	} cases[] = {
		{ damage_truncate, "model.safetensors has 1000 bytes" },
		{ damage_empty, "optimizer.safetensors has 0 bytes" },
		{ damage_model_bit, "model.safetensors has xxh64" },
		{ damage_optimizer_bit, "optimizer.safetensors has xxh64" },
		{ damage_state_digit, "damaged or edited" },
		{ damage_state_missing, "state.json" },
		{ damage_model_missing, "model.safetensors" },
	};
	const scratch *s = *state;
	char path[2048];
	join(path, s->path, "ckpt/step-000000020");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		capture c;
		model m;
		model_init(&m, 4, 1, 3);
		save(s, 10, 2);
		save(s, 20, 2);
		cases[i].damage(path);
		assert_int_not_equal(ls_ckpt_load(path, &m.content), LS_OK);
		assert_mentions(cases[i].expect);
		model_release(&m);
		capture_begin(&c, s);
		assert_newest(s->path, 10);
		char *text = capture_end(&c);
		assert_mentions_in(text, "step-000000020");
		assert_mentions_in(text, cases[i].expect);
		free(text);
		assert_int_equal(ls_path_remove_tree(join(path, s->path, "ckpt")), LS_OK);
		join(path, s->path, "ckpt/step-000000020");
	}
}

static void later_format(const char *directory)
{
	char path[2048];
	size_t bytes;
	char *text = (char *)take_file(join(path, directory, "state.json"), &bytes),
	     *at = strstr(text, "\"format\": 1");
	assert_non_null(at);
	at[strlen("\"format\": ")] = '2';
	put_file(path, text, bytes);
	free(text);
}

/* A link to itself cannot be opened by anybody, root included: reading it fails like a bad disk or a lack of rights. */
static void unreadable_model(const char *directory)
{
	char path[2048];
	join(path, directory, "model.safetensors");
	assert_int_equal(unlink(path), 0);
	assert_int_equal(symlink("model.safetensors", path), 0);
}

static void unreadable_state(const char *directory)
{
	char path[2048];
	join(path, directory, "state.json");
	assert_int_equal(unlink(path), 0);
	assert_int_equal(symlink("state.json", path), 0);
}

static const struct {
	void (*make)(const char *directory);
	ls_status status;
	const char *expect;
} riddles[] = {
	{ later_format, LS_EUNSUPPORTED, "format 2 is of a later version" },
	{ unreadable_model, LS_EIO, "model.safetensors" },
	{ unreadable_state, LS_EIO, "state.json" },
};
enum { RIDDLES = sizeof(riddles) / sizeof(riddles[0]) };

/* A checkpoint that cannot be read may be whole: an earlier one is not used instead. */
static void does_not_go_back_behind(void **state)
{
	const scratch *s = *state;
	char path[2048];
	for (size_t i = 0; i < RIDDLES; i++) {
		capture c;
		save(s, 10, 2);
		save(s, 20, 2);
		riddles[i].make(join(path, s->path, "ckpt/step-000000020"));
		assert_int_equal(ls_ckpt_newest(s->path, path, sizeof(path)), riddles[i].status);
		assert_mentions("step-000000020");
		assert_mentions(riddles[i].expect);
		assert_mentions("nothing was changed");
		capture_begin(&c, s);
		damage_model_bit(join(path, s->path, "ckpt/step-000000010")); /* nor an earlier one of two */
		free(capture_end(&c));
		assert_int_equal(ls_ckpt_newest(s->path, path, sizeof(path)), riddles[i].status);
		assert_int_equal(ls_path_remove_tree(join(path, s->path, "ckpt")), LS_OK);
	}
}

static void assert_set_aside(const scratch *s, const char *name, const char *text)
{
	char aside[64], path[2048];
	struct stat facts;
	snprintf(aside, sizeof(aside), "%s.aside", name);
	assert_true(has(s, aside));
	snprintf(path, sizeof(path), "%s/ckpt/%s/optimizer.safetensors", s->path, aside);
	assert_int_equal(stat(path, &facts), 0); /* with its files */
	assert_true(facts.st_size > 0);
	assert_mentions_in(text, aside);
}

/* Whatever is saved after it: an earlier step, the same, or enough later ones to prune it. */
static void not_understood_is_not_deleted(void **state)
{
	static const uint64_t later[] = { 15, 20, 30 };
	const scratch *s = *state;
	char path[2048];
	for (size_t i = 0; i < RIDDLES * 3; i++) {
		uint64_t step = later[i / RIDDLES];
		if (step == 30 && riddles[i % RIDDLES].make == unreadable_model)
			continue; /* it is recognised as ours and pruned */
		capture c;
		save(s, 10, 2);
		save(s, 20, 2);
		riddles[i % RIDDLES].make(join(path, s->path, "ckpt/step-000000020"));
		capture_begin(&c, s);
		save(s, step, 1);
		char *text = capture_end(&c);
		assert_set_aside(s, "step-000000020", text);
		free(text);
		assert_newest(s->path, step);
		save(s, step + 1, 1); /* and not touched again */
		assert_true(has(s, "step-000000020.aside"));
		assert_int_equal(ls_path_remove_tree(join(path, s->path, "ckpt")), LS_OK);
	}
}

/* A damaged checkpoint is skipped but kept: somebody may want to repair it. Another one does not overwrite the first.
 */
static void damage_is_kept(void **state)
{
	const scratch *s = *state;
	char path[2048];
	for (int round = 0; round < 2; round++) {
		save(s, 10, 2);
		save(s, 20, 2);
		damage_model_bit(join(path, s->path, "ckpt/step-000000020"));
		ls_log_set_level(LS_LOG_ERROR);
		save(s, 15, 2);
		ls_log_set_level(LS_LOG_INFO);
		assert_newest(s->path, 15);
	}
	assert_true(has(s, "step-000000020.aside"));
	assert_true(has(s, "step-000000020.aside-2"));
}

static void none_left(void **state)
{
	const scratch *s = *state;
	char path[2048];
	assert_int_equal(ls_ckpt_newest(s->path, path, sizeof(path)), LS_ENOTFOUND);
	assert_mentions("there is no checkpoint in");
	save(s, 1, 2);
	damage_model_bit(join(path, s->path, "ckpt/step-000000001"));
	ls_log_set_level(LS_LOG_ERROR);
	assert_int_equal(ls_ckpt_newest(s->path, path, sizeof(path)),
			 LS_EFORMAT); /* not "none": that would start over */
	ls_log_set_level(LS_LOG_INFO);
	assert_mentions("(1 found)");
	assert_mentions("nothing was changed");
	save(s, 2, 2);
	char small[8];
	assert_int_equal(ls_ckpt_newest(s->path, small, sizeof(small)), LS_EINVALID);
}

static void unwritable(void **state)
{
	const scratch *s = *state;
	char path[2048];
	model m;
	model_init(&m, 4, 1, 3);
	put_file(join(path, s->path, "file"), "x", 1);
	assert_int_equal(model_save(&m, path, 5, 2), LS_EIO);
	assert_mentions("step 5");
	assert_mentions("file");
	if (geteuid() != 0) {
		save(s, 1, 2);
		assert_int_equal(chmod(join(path, s->path, "ckpt"), 0555), 0);
		assert_int_equal(model_save(&m, s->path, 5, 2), LS_EIO);
		assert_mentions("Permission denied");
		assert_int_equal(chmod(path, 0755), 0);
		assert_newest(s->path, 1);
	}
	model_release(&m);
}

/* No file may grow past `limit`: each write of each file is made to fail in turn. */
static void no_room(void **state)
{
	const scratch *s = *state;
	struct rlimit old, limit;
	model m;
	model_init(&m, 4, 1, 3);
	save(s, 10, 2);
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	int failures = 0;
	for (rlim_t bytes = 0; bytes < 6000; bytes += 250) {
		limit = (struct rlimit){ bytes, old.rlim_max };
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
		ls_status status = model_save(&m, s->path, 20, 2);
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
		if (status == LS_OK)
			break;
		failures++;
		assert_int_equal(status, LS_EIO);
		assert_mentions("File too large");
		assert_mentions("step 20");
		assert_false(has(s, ".step-000000020.tmp"));
		assert_false(has(s, "step-000000020"));
		assert_newest(s->path, 10);
	}
	signal(SIGXFSZ, SIG_DFL);
	model_release(&m);
	assert_true(failures > 5);
	assert_newest(s->path, 20);
}

enum { CANNOT_MOUNT = 77 };

static int mount_small(const char *path)
{
	return mount("tmpfs", path, "tmpfs", 0, "size=48k") == 0;
}

/* Run `check` in a child with a mount namespace of its own; it returns 0 for success. Skipped where that is forbidden.
 */
static void with_mounts(int (*check)(const scratch *s), const scratch *s)
{
	int status;
	fflush(NULL);
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		int alone = unshare(CLONE_NEWNS) == 0 || unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0;
		_exit(alone && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 ? check(s) : CANNOT_MOUNT);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	if (WIFEXITED(status) && WEXITSTATUS(status) == CANNOT_MOUNT)
		skip();
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* A file system of 48 KiB, on which checkpoints are kept until it is full. */
static int fill_small_disk(const scratch *s)
{
	model m;
	char path[2048];
	uint64_t step = 0;
	if (!mount_small(s->path))
		return CANNOT_MOUNT;
	model_init(&m, 4, 1, 3);
	while (model_save(&m, s->path, ++step, 100) == LS_OK && step < 50)
		continue;
	int full = strstr(ls_last_error(), "No space left on device") != NULL;
	int whole = ls_ckpt_newest(s->path, path, sizeof(path)) == LS_OK && ls_ckpt_load(path, &m.content) == LS_OK;
	int right = whole && m.content.progress.step == step - 1 && model_differences(&m, (unsigned)step - 1) == 0;
	model_release(&m);
	return full && right && step > 1 && step < 50 ? 0 : 1;
}

static void full_disk(void **state)
{
	with_mounts(fill_small_disk, *state);
}

/* A mount inside an old checkpoint stops its removal half way: it must have lost its name by then. */
static int stop_a_removal(const scratch *s)
{
	char path[2048];
	model m;
	model_init(&m, 4, 1, 3);
	if (model_save(&m, s->path, 10, 1) != LS_OK ||
	    mkdir(join(path, s->path, "ckpt/step-000000010/stuck"), 0777) != 0)
		return 1;
	if (!mount_small(path))
		return CANNOT_MOUNT;
	ls_log_set_level(LS_LOG_ERROR);
	int saved = model_save(&m, s->path, 20, 1) == LS_OK;
	int renamed = has(s, "step-000000020") && !has(s, "step-000000010") && has(s, ".step-000000010.tmp");
	int again = model_save(&m, s->path, 30, 1) == LS_OK; /* what is stuck does not stop the run */
	model_release(&m);
	return saved && renamed && again && has(s, "step-000000030") && !has(s, "step-000000020") ? 0 : 1;
}

static void half_removed(void **state)
{
	with_mounts(stop_a_removal, *state);
}

/* Save for ever, every step twice, reporting to the parent after each step. */
static void save_until_killed(const scratch *s, uint64_t step, int told)
{
	model m;
	model_init(&m, 4, 1, 3);
	for (;; step++) {
		if (model_save(&m, s->path, step, 1) != LS_OK || model_save(&m, s->path, step, 1) != LS_OK)
			_exit(1);
		if (write(told, &step, sizeof(step)) != sizeof(step))
			_exit(1);
	}
}

/* Every directory with the name of a checkpoint must be whole, the newest of step `done` or the one after. */
static void check_after_kill(const scratch *s, uint64_t done)
{
	char root[2048], path[2048];
	model m;
	join(root, s->path, "ckpt");
	model_init(&m, 4, 1, 3);
	DIR *directory = opendir(root);
	assert_non_null(directory);
	for (const struct dirent *entry; (entry = readdir(directory));) {
		if (strncmp(entry->d_name, "step-", 5) != 0)
			continue;
		if (ls_ckpt_load(join(path, root, entry->d_name), &m.content) != LS_OK)
			fail_msg("%s", ls_last_error());
		assert_int_equal(model_differences(&m, (unsigned)m.content.progress.step), 0);
	}
	closedir(directory);
	assert_int_equal(ls_ckpt_newest(s->path, path, sizeof(path)), LS_OK);
	assert_int_equal(ls_ckpt_load(path, &m.content), LS_OK);
	assert_in_range(m.content.progress.step, done, done + 1);
	assert_int_equal(model_differences(&m, (unsigned)m.content.progress.step), 0);
	model_release(&m);
}

/* Start, wait for the first save and then up to 20 ms, kill. Returns the last step that was reported as saved. */
static uint64_t save_and_kill(const scratch *s, uint64_t first, uint32_t word)
{
	int ends[2], status;
	uint64_t done = 0, told;
	fflush(NULL);
	assert_int_equal(pipe(ends), 0);
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0)
		save_until_killed(s, first, ends[1]);
	close(ends[1]);
	ssize_t got = read(ends[0], &done, sizeof(done));
	usleep(ls_rng_below(word, 20000));
	kill(child, SIGKILL);
	waitpid(child, &status, 0);
	while (read(ends[0], &told, sizeof(told)) == sizeof(told))
		done = told;
	close(ends[0]);
	assert_int_equal(got, sizeof(done));
	assert_true(WIFSIGNALED(status));
	return done;
}

static void killed_any_time(void **state)
{
	const scratch *s = *state;
	uint64_t seed = (uint64_t)time(NULL), done = 0;
	print_message("# seed %" PRIu64 "\n", seed);
	ls_rng rng = ls_rng_make(seed, LS_RNG_TEST, 1);
	for (uint64_t round = 0; round < 12; round++) {
		uint32_t words[4];
		ls_rng_words(rng, 0, round, words);
		done = save_and_kill(s, done + 1, words[0]);
		check_after_kill(s, done);
	}
}

TEST_MAIN_EACH(scratch_make, scratch_remove, prune, going_back, others_files_are_left_alone, same_step_again, leftovers,
	       stepped_aside, falls_back, none_left, unwritable, no_room, full_disk, half_removed, killed_any_time,
	       does_not_go_back_behind, not_understood_is_not_deleted, damage_is_kept)
