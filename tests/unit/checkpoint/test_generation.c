/*
 * Every start of a run has a number; what belongs to an older one publishes nothing and removes nothing.
 */
#include "support.h"

#include <inttypes.h>

#include "checkpoint/generation.h"
#include "unit/test_main.h"

static void put_generation(const scratch *s, const char *text)
{
	char path[2048];
	put_file(join(path, s->path, ".generation"), text, strlen(text));
}

static void counts(void **state)
{
	const scratch *s = *state;
	uint64_t number = 0;
	assert_int_equal(ls_generation_newest(s->path), 0);
	for (uint64_t start = 1; start <= 3; start++) {
		assert_int_equal(ls_generation_begin(s->path, &number), LS_OK);
		assert_int_equal(number, start);
		assert_int_equal(ls_generation_newest(s->path), start);
	}
	assert_int_equal(ls_generation_check(s->path, 3), LS_OK);
	assert_int_equal(ls_generation_check(s->path, 0), LS_OK); /* of no start */
	assert_int_equal(ls_generation_check(s->path, 2), LS_EIO);
	assert_mentions("start 3, this process belongs to start 2");
	ls_generation_withdraw(s->path);
	assert_int_equal(ls_generation_check(s->path, 2), LS_OK); /* nobody is newer, as far as is known */
}

/* Whatever the file says: a new start is newer than all before, and a process that runs is not ended by rubbish. */
static void rubbish(void **state)
{
	static const char *const texts[] = { "",
					     "\n",
					     "0\n",
					     "-3\n",
					     "7",
					     "7x\n",
					     "7\n\n",
					     "007\n",
					     "99999999999999999999\n",
					     "a long text that is no number at all\n" };
	const scratch *s = *state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		uint64_t number = 0;
		capture c;
		put_generation(s, texts[i]);
		assert_int_equal(ls_generation_newest(s->path), 0);
		assert_int_equal(ls_generation_check(s->path, 1), LS_OK);
		capture_begin(&c, s);
		assert_int_equal(ls_generation_begin(s->path, &number), LS_OK);
		char *said = capture_end(&c);
		assert_mentions_in(said, ".generation is damaged");
		free(said);
		assert_true(number > 1700000000);
		assert_int_equal(ls_generation_newest(s->path), number);
	}
}

/* Another user's link in its place is neither followed nor read. */
static void a_link(void **state)
{
	const scratch *s = *state;
	char path[2048], target[2048];
	put_file(join(target, s->path, "target"), "5\n", 2);
	assert_int_equal(symlink(target, join(path, s->path, ".generation")), 0);
	assert_int_equal(ls_generation_newest(s->path), 0);
}

static void old_starts_publish_nothing(void **state)
{
	const scratch *s = *state;
	char path[2048];
	uint64_t old = 0, newer = 0;
	model m;
	model_init(&m, 4, 1, 3);
	assert_int_equal(ls_generation_begin(s->path, &old), LS_OK);
	m.content.generation = old;
	assert_int_equal(model_save(&m, s->path, 10, 1), LS_OK);
	assert_int_equal(ls_generation_begin(s->path, &newer), LS_OK);
	/* the newer start is writing a checkpoint of the same step */
	assert_int_equal(mkdir(join(path, s->path, "ckpt/.step-000000020.tmp"), 0777), 0);
	assert_int_equal(model_save(&m, s->path, 20, 1), LS_EIO);
	assert_mentions("the checkpoint of step 20 was not saved");
	assert_mentions("was started again meanwhile");
	assert_true(ls_path_exists(path)); /* what is not its own is left */
	assert_newest(s->path, 10);
	m.content.generation = newer;
	assert_int_equal(model_save(&m, s->path, 20, 1), LS_OK);
	assert_newest(s->path, 20);
	model_release(&m);
}

TEST_MAIN_EACH(scratch_make, scratch_remove, counts, rubbish, a_link, old_starts_publish_nothing)
