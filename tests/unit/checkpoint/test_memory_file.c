/*
 * Snapshots in memory: whole or not found, whatever moment a process dies at; only those of the run, of this user and
 * of this host; no memory and a name that is taken are failures that leave nothing behind.
 */
#include "support.h"

#include <signal.h>
#include <sys/resource.h>

#include "checkpoint/memory_file.h"
#include "unit/test_main.h"

enum { MOST = 8, PARAMS = 3000, SHARD = 9000 };
static const uint64_t room[LS_MEMORY_PARTS] = { PARAMS, 40, SHARD, SHARD };

static ls_memory_owner owner_in(const scratch *s)
{
	return (ls_memory_owner){
		.directory = s->path, .host = "here", .path = "/runs/one", .run = 0xabc, .generation = 3, .node = 1
	};
}

static void fill(uint8_t out[SHARD], uint64_t step, int part)
{
	for (int i = 0; i < SHARD; i++)
		out[i] = (uint8_t)(step * 31 + (uint64_t)part * 7 + (uint64_t)i);
}

/* The first `parts` of a snapshot, which is not one before it is committed. */
static void put(ls_memory_file *f, uint64_t step, int parts)
{
	uint8_t bytes[SHARD];
	assert_ok(ls_memory_file_begin(f));
	for (int part = 0; part < parts; part++) {
		fill(bytes, step, part);
		assert_ok(ls_memory_file_put(f, part, bytes, room[part]));
	}
}

static void take(ls_memory_file *f, uint64_t generation, uint64_t step)
{
	ls_memory_facts facts = {
		.generation = generation, .nodes = 2, .node = 1, .owners = 2, .own = 1, .has_params = 1
	};
	facts.progress.step = step;
	put(f, step, LS_MEMORY_PARTS);
	assert_ok(ls_memory_file_commit(f, &facts));
}

static void assert_step(const ls_memory_found *found, uint64_t step)
{
	uint8_t expected[SHARD], got[SHARD];
	assert_int_equal(found->facts.progress.step, step);
	for (int part = 0; part < LS_MEMORY_PARTS; part++) {
		assert_int_equal(found->facts.bytes[part], room[part]);
		fill(expected, step, part);
		assert_ok(ls_memory_read(found, part, got));
		assert_memory_equal(got, expected, room[part]);
	}
}

/* Two are there, the newest first, and they outlive the descriptor; nobody else can open the file. */
static void keeps_two(void **state)
{
	const ls_memory_owner owner = owner_in(*state);
	ls_memory_file f;
	ls_memory_found found[MOST];
	struct stat facts;
	assert_ok(ls_memory_file_new(&f, &owner, room));
	assert_int_equal(ls_memory_find(&owner, found, MOST), 0);
	for (uint64_t step = 10; step <= 50; step += 10)
		take(&f, 3, step);
	ls_memory_file_close(&f);
	assert_int_equal(stat(f.path, &facts), 0);
	assert_int_equal(facts.st_mode & 07777, 0600);
	assert_int_equal(facts.st_size, ls_memory_file_bytes(room));
	assert_int_equal(ls_memory_find(&owner, found, MOST), 2);
	assert_step(&found[0], 50);
	assert_step(&found[1], 40);
	assert_int_equal(ls_memory_find(&owner, found, 1), 1);
	assert_step(&found[0], 50);
}

/* Whatever moment a process dies at, the snapshot before is whole. */
static void torn(void **state)
{
	const ls_memory_owner owner = owner_in(*state);
	ls_memory_found found[MOST];
	for (int parts = 0; parts <= LS_MEMORY_PARTS; parts++) {
		ls_memory_file f;
		assert_ok(ls_memory_file_new(&f, &owner, room)); /* takes the place of the one before */
		take(&f, 3, 10);
		take(&f, 3, 20);
		put(&f, 30, parts);
		ls_memory_file_close(&f);
		assert_int_equal(ls_memory_find(&owner, found, MOST), 1);
		assert_step(&found[0], 20);
	}
}

static void change_byte(const char *path, uint64_t at)
{
	struct stat facts;
	assert_int_equal(stat(path, &facts), 0);
	flip_bit(path, (long)((uint64_t)facts.st_size - at));
}

/* A part that is damaged is as good as none; parameters are needed, shards may be elsewhere. */
static void damaged(void **state)
{
	const ls_memory_owner owner = owner_in(*state);
	ls_memory_found found[MOST];
	ls_memory_file f;
	uint8_t bytes[SHARD];
	assert_ok(ls_memory_file_new(&f, &owner, room));
	take(&f, 3, 10);
	ls_memory_file_close(&f);
	assert_int_equal(ls_memory_find(&owner, found, MOST), 1);
	uint64_t params = found[0].at + 4096,
		 own = params + 4096 + 4096; /* a page each for parameters and statistics */
	assert_int_equal(found[0].facts.own, 1);
	change_byte(f.path, own + 5);
	assert_int_equal(ls_memory_read(&found[0], LS_MEMORY_OWN, bytes), LS_EFORMAT);
	assert_mentions("checksums differ");
	assert_int_equal(ls_memory_find(&owner, found, MOST), 1);
	assert_int_equal(found[0].facts.own, -1);
	change_byte(f.path, params);
	assert_int_equal(ls_memory_find(&owner, found, MOST), 0);
	change_byte(f.path, params); /* as it was */
	assert_int_equal(ls_memory_find(&owner, found, MOST), 1);
	change_byte(f.path, found[0].at + 20); /* the header of the slot */
	assert_int_equal(ls_memory_find(&owner, found, MOST), 0);
	change_byte(f.path, found[0].at + 20);
	change_byte(f.path, 9); /* the number of the run in the header of the file */
	assert_int_equal(ls_memory_find(&owner, found, MOST), 0);
	change_byte(f.path, 9);
	assert_int_equal(truncate(f.path, (off_t)own), 0);
	assert_int_equal(ls_memory_find(&owner, found, MOST), 1);
	assert_int_equal(found[0].facts.own, -1);
	assert_int_equal(truncate(f.path, 100), 0);
	assert_int_equal(ls_memory_find(&owner, found, MOST), 0);
}

/* Another run's and another host's are not found; of two starts, the step decides, then the start. */
static void whose(void **state)
{
	const ls_memory_owner owner = owner_in(*state);
	ls_memory_owner later = owner, other = owner, away = owner;
	ls_memory_found found[MOST];
	ls_memory_file f;
	later.generation = 4;
	other.run = 0xabd;
	away.host = "else/where";
	assert_ok(ls_memory_file_new(&f, &owner, room));
	take(&f, 3, 20);
	take(&f, 3, 30);
	ls_memory_file_close(&f);
	assert_int_equal(ls_memory_find(&other, found, MOST), 0);
	assert_int_equal(ls_memory_find(&away, found, MOST), 0);
	assert_ok(ls_memory_file_new(&f, &later, room));
	take(&f, 4, 20);
	ls_memory_file_close(&f);
	assert_int_equal(ls_memory_find(&owner, found, MOST), 3);
	assert_int_equal(found[0].facts.generation, 3);
	assert_step(&found[0], 30);
	assert_int_equal(found[1].facts.generation, 4);
	assert_step(&found[1], 20);
	assert_ok(ls_memory_file_new(&f, &away, room));
	take(&f, 3, 90);
	ls_memory_file_close(&f);
	assert_int_equal(ls_memory_find(&owner, found, MOST), 3);

	ls_memory_remove(&owner, 4); /* of earlier starts */
	assert_int_equal(ls_memory_find(&owner, found, MOST), 1);
	assert_int_equal(found[0].facts.generation, 4);
	assert_int_equal(ls_memory_find(&away, found, MOST), 1);
	away.host = NULL; /* everywhere */
	ls_memory_remove(&away, 5);
	assert_false(ls_path_exists(f.path));
}

/* Neither read nor written nor removed. */
static void others(void **state)
{
	const scratch *s = *state;
	const ls_memory_owner owner = owner_in(s);
	ls_memory_found found[MOST];
	ls_memory_file f;
	capture c;
	assert_ok(ls_memory_file_new(&f, &owner, room));
	take(&f, 3, 10);
	ls_memory_file_close(&f);
	assert_int_equal(chmod(f.path, 0644), 0); /* somebody may have looked at it, or worse */
	capture_begin(&c, s);
	assert_int_equal(ls_memory_find(&owner, found, MOST), 0);
	char *said = capture_end(&c);
	assert_mentions_in(said, "is not a private file of this user: not used as a snapshot");
	free(said);
	assert_int_equal(chmod(f.path, 0600), 0);
	if (geteuid() != 0)
		return;
	assert_int_equal(chown(f.path, 65534, 65534), 0);
	capture_begin(&c, s);
	assert_int_equal(ls_memory_find(&owner, found, MOST), 0);
	free(capture_end(&c));
	assert_int_equal(ls_memory_file_new(&f, &owner, room), LS_EIO);
	assert_mentions("belongs to another user");
	ls_memory_remove(&owner, 9);
	assert_true(ls_path_exists(f.path));
}

static void links(void **state)
{
	const scratch *s = *state;
	const ls_memory_owner owner = owner_in(s);
	char target[2048];
	size_t bytes;
	ls_memory_found found[MOST];
	ls_memory_file f;
	capture c;
	assert_ok(ls_memory_file_new(&f, &owner, room));
	ls_memory_file_remove(&f);
	assert_false(ls_path_exists(f.path));
	put_file(join(target, s->path, "target"), "mine", 4);
	assert_int_equal(symlink(target, f.path), 0);
	capture_begin(&c, s);
	assert_int_equal(ls_memory_find(&owner, found, MOST), 0);
	free(capture_end(&c));
	assert_int_equal(ls_memory_file_new(&f, &owner, room), LS_EIO);
	assert_mentions("is there already, and is no file");
	uint8_t *text = take_file(target, &bytes);
	assert_int_equal(bytes, 4);
	free(text);
}

/* A limit on the size of files stands for memory that is full. */
static void full(void **state)
{
	const ls_memory_owner owner = owner_in(*state);
	struct rlimit before, less;
	ls_memory_file f;
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	less = before;
	less.rlim_cur = 8192;
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &less), 0);
	ls_status status = ls_memory_file_new(&f, &owner, room);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_int_equal(status, LS_EMEMORY);
	assert_mentions("cannot take 0.1 MB for");
	assert_false(ls_path_exists(f.path));
	assert_int_equal(f.fd, -1);
}

/* The number of a run: as it was drawn, and not of a copy of its directory. */
static void numbers(void **state)
{
	const scratch *s = *state;
	char run[2048], moved[2048], path[2048], copy[2048];
	uint64_t one = 0, two = 0;
	size_t bytes;
	assert_int_equal(mkdir(join(run, s->path, "run"), 0777), 0);
	assert_int_equal(ls_memory_run(run), 0);
	assert_ok(ls_memory_run_new(run, &one));
	assert_int_not_equal(one, 0);
	assert_int_equal(ls_memory_run(run), one);
	uint8_t *text = take_file(join(path, run, ".snapshots"), &bytes);
	put_file(join(copy, s->path, ".snapshots"), text, bytes);
	assert_int_equal(ls_memory_run(s->path), 0);
	free(text);
	assert_int_equal(rename(run, join(moved, s->path, "moved")), 0);
	assert_int_equal(ls_memory_run(moved), one);
	assert_ok(ls_memory_run_new(moved, &two));
	assert_int_not_equal(one, two);
	assert_int_equal(ls_memory_run(moved), two);
	ls_memory_run_remove(moved);
	assert_int_equal(ls_memory_run(moved), 0);
	assert_int_equal(ls_memory_run_new("/nowhere/to/be/seen", &one), LS_EIO);
}

/* Only what belongs to a run that is over. */
static void sweeps(void **state)
{
	const scratch *s = *state;
	ls_memory_owner owner = owner_in(s);
	char run[2048];
	ls_memory_file f;
	assert_int_equal(mkdir(join(run, s->path, "run"), 0777), 0);
	assert_ok(ls_memory_run_new(run, &owner.run));
	owner.path = run;
	assert_ok(ls_memory_file_new(&f, &owner, room));
	ls_memory_file_close(&f);
	ls_memory_sweep(s->path, "here");
	assert_true(ls_path_exists(f.path));
	assert_true(ls_memory_held(&owner) >= ls_memory_file_bytes(room));
	owner.run++;
	assert_int_equal(ls_memory_held(&owner), 0);
	owner.run--;
	ls_memory_run_remove(run);
	ls_memory_sweep(s->path, "elsewhere");
	assert_true(ls_path_exists(f.path));
	ls_memory_sweep(s->path, "here");
	assert_false(ls_path_exists(f.path));
	assert_ok(ls_memory_run_new(run, &owner.run));
	assert_ok(ls_memory_file_new(&f, &owner, room));
	ls_memory_file_close(&f);
	assert_ok(ls_memory_run_new(run, &owner.run)); /* the directory is another run's by now */
	ls_memory_sweep(s->path, "here");
	assert_false(ls_path_exists(f.path));
}

TEST_MAIN_EACH(scratch_make, scratch_remove, keeps_two, torn, damaged, whose, others, links, full, numbers, sweeps)
