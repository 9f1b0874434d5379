/*
 * Paths, drafts that are whole or absent, and maps.
 */
#include <stddef.h>
#include <stdint.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/files.h"
#include "unit/base/scratch.h"
#include "unit/test_main.h"

static void check_content(const char *expected)
{
	ls_file_map map;
	assert_int_equal(ls_file_map_open(&map, path), LS_OK);
	assert_int_equal(map.bytes, strlen(expected));
	if (map.bytes)
		assert_memory_equal(map.data, expected, map.bytes);
	ls_file_map_close(&map);
}

static ls_status write_file(const char *text)
{
	ls_file_draft draft;
	LS_TRY(ls_file_begin(&draft, path));
	if (ls_file_write(&draft, text, strlen(text)) != LS_OK) {
		ls_file_abandon(&draft);
		return LS_EIO;
	}
	return ls_file_publish(&draft);
}

/* Names in the directory that begin as the file's. */
static int count_names(void)
{
	DIR *entries = opendir(dir);
	int count = 0;
	assert_non_null(entries);
	for (const struct dirent *entry; (entry = readdir(entries));)
		count += strncmp(entry->d_name, "file", 4) == 0;
	closedir(entries);
	return count;
}

static void joins(void **state)
{
	(void)state;
	char out[10];
	assert_int_equal(ls_path_join(out, sizeof(out), "a", "b"), LS_OK);
	assert_string_equal(out, "a/b");
	assert_int_equal(ls_path_join(out, sizeof(out), "a/", "b"), LS_OK);
	assert_string_equal(out, "a/b");
	assert_int_equal(ls_path_join(out, sizeof(out), "/", "b"), LS_OK);
	assert_string_equal(out, "/b");
	assert_int_equal(ls_path_join(out, sizeof(out), "", "b"), LS_OK);
	assert_string_equal(out, "b");
	assert_int_equal(ls_path_join(out, sizeof(out), "1234", "5678"), LS_OK);
	assert_int_equal(ls_path_join(out, sizeof(out), "12345", "6789"), LS_EINVALID);
}

static void check_above(const char *start, const char *found)
{
	char out[512];
	int is_found = ls_path_find_above(out, sizeof(out), start, "here");
	assert_int_equal(is_found, found != NULL);
	if (found)
		assert_string_equal(out, found);
}

/* Above, never below: "x/.." is above x, and what is before it is not. */
static void looks_above(void **state)
{
	(void)state;
	char before[4096];
	assert_non_null(getcwd(before, sizeof(before)));
	assert_int_equal(chdir(dir), 0);
	assert_int_equal(ls_path_make("a/b/c/d"), LS_OK);
	assert_int_equal(ls_path_make("n/o"), LS_OK);
	assert_int_equal(ls_file_put("a/here", "", 0), LS_OK);
	check_above("a/b/c/d", "a");
	check_above("a/b/c/d//", "a");
	check_above("a//b//c//d", "a");
	check_above("a/", "a");
	check_above("n/o", NULL);
	check_above("a/b/../../n", NULL);
	assert_int_equal(chdir("a"), 0);
	check_above("here", ".");
	check_above("..", NULL);
	check_above("../", NULL);
	check_above("../n/..", NULL);
	check_above("b/..", "b/..");
	assert_int_equal(chdir(before), 0);
}

static void makes_and_removes_trees(void **state)
{
	(void)state;
	char deep[512], file[1024];
	assert_int_equal(ls_path_join(deep, sizeof(deep), dir, "a/b//c/"), LS_OK);
	assert_int_equal(ls_path_make(deep), LS_OK);
	assert_int_equal(ls_path_make(deep), LS_OK);
	assert_true(ls_path_is_directory(deep));
	assert_int_equal(ls_path_join(file, sizeof(file), deep, "f"), LS_OK);
	fclose(fopen(file, "w"));
	assert_true(ls_path_exists(file));
	assert_false(ls_path_is_directory(file));
	assert_int_equal(ls_path_make(file), LS_EIO); /* a file is in the way */
	assert_non_null(strstr(ls_last_error(), file));
	assert_int_equal(ls_path_join(deep, sizeof(deep), dir, "a"), LS_OK);
	assert_int_equal(symlink(dir, path), 0); /* removed as a link, not followed */
	assert_int_equal(ls_path_remove_tree(deep), LS_OK);
	assert_false(ls_path_exists(deep));
	assert_int_equal(ls_path_remove_tree(path), LS_OK);
	assert_true(ls_path_is_directory(dir));
	assert_int_equal(ls_path_remove_tree(deep), LS_OK);
	assert_int_equal(ls_path_sync(dir), LS_OK);
	assert_int_equal(ls_path_make(""), LS_EINVALID);
}

static void a_draft_is_seen_when_published(void **state)
{
	(void)state;
	ls_file_draft draft;
	assert_int_equal(ls_file_check(path), LS_OK);
	assert_int_equal(count_names(), 0);
	assert_int_equal(ls_file_begin(&draft, path), LS_OK);
	assert_int_equal(ls_file_write(&draft, "new", 3), LS_OK);
	assert_int_equal(ls_file_write(&draft, NULL, 0), LS_OK);
	assert_false(ls_path_exists(path));
	assert_int_equal(ls_file_publish(&draft), LS_OK);
	ls_file_abandon(&draft);
	check_content("new");
	assert_false(ls_path_exists(draft.draft));
	assert_int_equal(write_file("newer and longer"), LS_OK);
	check_content("newer and longer");
	assert_int_equal(write_file(""), LS_OK);
	check_content("");
}

static void an_abandoned_draft_changes_nothing(void **state)
{
	(void)state;
	assert_int_equal(write_file("old"), LS_OK);
	ls_file_draft draft;
	assert_int_equal(ls_file_begin(&draft, path), LS_OK);
	assert_int_equal(ls_file_write(&draft, "half", 4), LS_OK);
	ls_file_abandon(&draft);
	ls_file_abandon(&draft);
	assert_false(ls_path_exists(draft.draft));
	check_content("old");
}

static void make_file(const char *name, const char *text)
{
	FILE *file = fopen(name, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

/* The function for a signal handler that ends the process: other files stay as they are. */
static void drafts_are_discarded(void **state)
{
	(void)state;
	ls_file_draft drafts[3];
	char other[1024];
	assert_int_equal(write_file("old"), LS_OK);
	for (int i = 0; i < 3; i++) {
		snprintf(other, sizeof(other), "%s-%d", path, i);
		assert_int_equal(ls_file_begin(&drafts[i], other), LS_OK);
	}
	ls_file_abandon(&drafts[0]);
	assert_int_equal(ls_file_publish(&drafts[1]), LS_OK);
	assert_int_equal(count_names(), 3); /* the old one, the published one and a draft */
	ls_discard_drafts();
	assert_int_equal(count_names(), 2);
	assert_false(ls_path_exists(drafts[2].draft));
	check_content("old");
	ls_file_abandon(&drafts[2]);
}

/* A killed writer leaves its draft; the next one starts from nothing and removes what it finds. */
static void leftovers_are_removed(void **state)
{
	(void)state;
	for (int i = 0; i < 5; i++) {
		pid_t child = fork();
		assert_true(child >= 0);
		if (child == 0) {
			ls_file_draft draft;
			if (ls_file_begin(&draft, path) != LS_OK || ls_file_write(&draft, "half", 4) != LS_OK)
				_exit(1);
			fflush(draft.stream);
			raise(SIGKILL);
		}
		int how;
		assert_int_equal(waitpid(child, &how, 0), child);
		assert_true(WIFSIGNALED(how));
		assert_int_equal(count_names(),
				 1 + (i > 0)); /* the newest leftover, and from the second time on a link */
		if (i == 0) {
			char planted[1024];
			snprintf(planted, sizeof(planted), "%s.0123456789abcdef.draft", path);
			assert_int_equal(symlink("/dev/null", planted), 0); /* not a draft of ours: stays */
		}
	}
	assert_int_equal(write_file("ok"), LS_OK);
	check_content("ok");
	assert_int_equal(count_names(), 2);
}

static void two_writers_do_not_mix(void **state)
{
	(void)state;
	ls_file_draft first, second;
	assert_int_equal(ls_file_begin(&first, path), LS_OK);
	assert_int_equal(ls_file_begin(&second, path), LS_EIO);
	assert_non_null(strstr(ls_last_error(), "another"));
	ls_file_abandon(&second);
	assert_int_equal(ls_file_write(&first, "1", 1), LS_OK);
	assert_int_equal(ls_file_publish(&first), LS_OK);
	check_content("1");
}

/* What two processes share that publish the same file at the same time, ROUNDS times. */
enum { ROUNDS = 300, LENGTH = 20000 };
typedef struct race {
	atomic_int arrived, writing, mixed, published[2];
} race;

static void *share_memory(size_t bytes)
{
	void *shared = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(shared != MAP_FAILED);
	return shared;
}

static void publish_letters(race *r, int number)
{
	char text[LENGTH];
	memset(text, 'A' + number, sizeof(text));
	for (int i = 1; i <= ROUNDS; i++) {
		ls_file_draft draft;
		for (atomic_fetch_add(&r->arrived, 1); atomic_load(&r->arrived) < 2 * i;)
			sched_yield();
		if (ls_file_begin(&draft, path) != LS_OK)
			continue; /* the other was first */
		atomic_fetch_add(&r->mixed, atomic_fetch_add(&r->writing, 1));
		ls_file_write(&draft, text, sizeof(text));
		usleep(1000);
		atomic_fetch_sub(&r->writing, 1);
		if (ls_file_publish(&draft) == LS_OK)
			atomic_fetch_add(&r->published[number], 1);
	}
	_exit(0);
}

static int is_whole(void)
{
	ls_file_map map;
	if (ls_file_map_open(&map, path) != LS_OK)
		return 0;
	int whole = map.bytes == LENGTH;
	for (size_t i = 1; whole && i < map.bytes; i++)
		whole = map.data[i] == map.data[0];
	ls_file_map_close(&map);
	return whole;
}

/* A child ends before the last round only when something is wrong; the other would wait for it. */
static int has_ended(void)
{
	siginfo_t info = { .si_pid = 0 };
	return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0;
}

/* They never write at the same time, every published file is whole, and no draft is left. */
static void two_processes_publish_at_once(void **state)
{
	(void)state;
	race *r = share_memory(sizeof(*r));
	pid_t children[2];
	for (int i = 0; i < 2; i++) {
		assert_true((children[i] = fork()) >= 0);
		if (children[i] == 0)
			publish_letters(r, i);
	}
	int partial = 0, code;
	while (atomic_load(&r->arrived) < 2 * ROUNDS && !has_ended())
		if (ls_path_exists(path))
			partial += !is_whole();
	int rounds = atomic_load(&r->arrived) / 2;
	for (int i = 0; i < 2 && rounds < ROUNDS; i++)
		kill(children[i], SIGKILL);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(waitpid(children[i], &code, 0), children[i]);
		assert_int_equal(code, 0);
	}
	assert_int_equal(partial, 0);
	assert_int_equal(atomic_load(&r->mixed), 0);
	assert_true(atomic_load(&r->published[0]) + atomic_load(&r->published[1]) >= ROUNDS);
	assert_true(is_whole());
	assert_int_equal(count_names(), 1);
	munmap(r, sizeof(*r));
}

/* Whoever is faster: what came while the draft was written stays. */
static void a_new_file_replaces_nothing(void **state)
{
	(void)state;
	ls_file_draft draft;
	assert_int_equal(ls_create_file(path, "new", 3), LS_OK);
	check_content("new");
	assert_int_equal(ls_create_file(path, "other", 5), LS_EINVALID);
	assert_non_null(strstr(ls_last_error(), "exists already"));
	assert_int_equal(unlink(path), 0);
	assert_int_equal(ls_file_begin_new(&draft, path), LS_OK);
	assert_int_equal(ls_file_write(&draft, "late", 4), LS_OK);
	FILE *faster = fopen(path, "w");
	assert_non_null(faster);
	assert_true(fputs("faster", faster) >= 0 && fclose(faster) == 0);
	assert_int_equal(ls_file_publish(&draft), LS_EINVALID);
	assert_non_null(strstr(ls_last_error(), "exists already"));
	check_content("faster");
	assert_int_equal(count_names(), 1);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(symlink("nowhere", path), 0);
	assert_int_equal(ls_create_file(path, "new", 3), LS_EINVALID);
	assert_int_equal(count_names(), 1);
}

static atomic_int ended;

/* Drafts of a thread that comes to its end with each: where their names were is then another file's. */
static void *write_and_forget(void *other)
{
	for (int i = 0; i < 3000; i++) {
		ls_file_draft *draft = malloc(sizeof(*draft));
		if (ls_file_begin(draft, path) == LS_OK)
			ls_file_abandon(draft);
		snprintf(draft->draft, sizeof(draft->draft), "%s", (const char *)other);
		free(draft);
	}
	atomic_store(&ended, 1);
	return NULL;
}

/* The handler removes what was begun, whatever the writer's memory holds by then. */
static void a_draft_is_discarded_by_the_name_it_was_made_with(void **state)
{
	(void)state;
	char other[1024];
	ls_file_draft draft;
	snprintf(other, sizeof(other), "%s-other", path);
	make_file(other, "stays");
	assert_int_equal(ls_file_begin(&draft, path), LS_OK);
	assert_int_equal(count_names(), 2);
	snprintf(draft.draft, sizeof(draft.draft), "%s", other);
	ls_discard_drafts();
	assert_true(ls_path_exists(other));
	assert_int_equal(count_names(), 1);
	draft.draft[0] = '\0';
	ls_file_abandon(&draft);
}

static void discarding_does_not_read_what_a_writer_has_freed(void **state)
{
	(void)state;
	char other[1024];
	pthread_t writer;
	snprintf(other, sizeof(other), "%s-other", path);
	make_file(other, "stays");
	atomic_store(&ended, 0);
	assert_int_equal(pthread_create(&writer, NULL, write_and_forget, other), 0);
	while (!atomic_load(&ended))
		ls_discard_drafts();
	pthread_join(writer, NULL);
	assert_true(ls_path_exists(other));
	assert_int_equal(count_names(), 1);

	ls_file_draft drafts[64]; /* all slots are free again */
	for (int i = 0; i < 64; i++) {
		snprintf(other, sizeof(other), "%s-%d", path, i);
		assert_int_equal(ls_file_begin(&drafts[i], other), LS_OK);
		assert_true(drafts[i].slot >= 0);
	}
	ls_discard_drafts();
	assert_int_equal(count_names(), 1);
	for (int i = 0; i < 64; i++)
		ls_file_abandon(&drafts[i]);
}

static void errors_name_the_file(void **state)
{
	(void)state;
	ls_file_draft draft;
	char absent[512];
	assert_int_equal(ls_path_join(absent, sizeof(absent), dir, "no/such"), LS_OK);
	assert_int_equal(ls_file_begin(&draft, absent), LS_EIO);
	assert_non_null(strstr(ls_last_error(), "no/such"));
	ls_file_abandon(&draft);
	ls_file_map map = { .data = (const uint8_t *)"x", .bytes = 1 };
	assert_int_equal(ls_file_map_open(&map, absent), LS_ENOTFOUND);
	assert_non_null(strstr(ls_last_error(), "no/such"));
	assert_int_equal(ls_file_map_open(&map, dir), LS_EIO);
	assert_int_equal(map.bytes, 1); /* untouched on failure */
}

static void refused(const char *why)
{
	ls_file_draft draft;
	ls_status status = ls_file_begin(&draft, path);
	assert_true(status == LS_EINVALID || status == LS_EIO);
	assert_non_null(strstr(ls_last_error(), path));
	assert_non_null(strstr(ls_last_error(), why));
	assert_int_not_equal(ls_file_check(path), LS_OK);
}

/* A limit on the size of files stands for a full disk. */
static void a_full_disk_is_reported_and_the_old_file_stays(void **state)
{
	(void)state;
	struct rlimit before, limit;
	assert_int_equal(write_file("old"), LS_OK);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	limit = before;
	limit.rlim_cur = 2;
	void (*on_limit)(int) = signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	ls_status status = write_file("text");
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	signal(SIGXFSZ, on_limit);
	assert_int_equal(status, LS_EIO);
	check_content("old");
	assert_int_equal(count_names(), 1);
}

/* What is guessed as the draft's name and planted there is neither opened nor followed. */
static void a_planted_draft_is_not_followed(void **state)
{
	(void)state;
	char victim[1024], planted[1024];
	snprintf(victim, sizeof(victim), "%s/victim", dir);
	snprintf(planted, sizeof(planted), "%s.draft", path);
	make_file(victim, "precious");
	assert_int_equal(symlink(victim, planted), 0);
	assert_int_equal(write_file("new"), LS_OK);
	check_content("new");
	struct stat facts;
	assert_int_equal(stat(victim, &facts), 0);
	assert_int_equal(facts.st_size, strlen("precious"));
	assert_int_equal(unlink(planted), 0);
	assert_int_equal(mkfifo(planted, 0666), 0); /* opening it would wait for a reader */
	assert_int_equal(write_file("newer"), LS_OK);
	check_content("newer");
	ls_file_draft one, other;
	char absent[1024];
	assert_int_equal(ls_file_begin(&one, path), LS_OK);
	memcpy(absent, one.draft, sizeof(absent));
	ls_file_abandon(&one);
	assert_int_equal(ls_file_begin(&other, path), LS_OK);
	assert_string_not_equal(absent, other.draft);
	ls_file_abandon(&other);
}

/* A device in our directory, where a failure costs nothing; without the right to make one, a link to the machine's. */
static void put_device(unsigned number, const char *whole)
{
	unlink(path);
	if (mknod(path, S_IFCHR | 0666, makedev(1, number)) != 0)
		assert_int_equal(symlink(whole, path), 0);
}

static void a_device_is_written_to_and_stays(void **state)
{
	(void)state;
	struct stat facts;
	put_device(7, "/dev/full");
	assert_int_equal(ls_file_check(path), LS_OK);
	assert_int_equal(write_file("text"), LS_EIO);
	assert_non_null(strstr(ls_last_error(), "No space left"));
	ls_file_draft draft; /* a failure that only the stream knows of */
	assert_int_equal(ls_file_begin(&draft, path), LS_OK);
	for (int i = 0; i < 3 * BUFSIZ; i++)
		putc('x', draft.stream);
	assert_int_equal(ls_file_publish(&draft), LS_EIO);
	assert_non_null(strstr(ls_last_error(), "No space left"));
	put_device(3, "/dev/null");
	assert_int_equal(write_file("text"), LS_OK);
	assert_int_equal(stat(path, &facts), 0);
	assert_true(S_ISCHR(facts.st_mode));
	assert_int_equal(count_names(), 1);
}

static void a_pipe_is_written_to_and_stays(void **state)
{
	(void)state;
	struct stat facts;
	char got[16] = "";
	assert_int_equal(mkfifo(path, 0666), 0);
	assert_int_equal(write_file("text"), LS_EIO); /* and does not wait */
	assert_non_null(strstr(ls_last_error(), "no process reads"));
	int fd = open(path, O_RDONLY | O_NONBLOCK);
	assert_true(fd >= 0);
	assert_int_equal(ls_file_check(path), LS_OK);
	assert_int_equal(write_file("text"), LS_OK);
	assert_int_equal(read(fd, got, sizeof(got)), 4);
	assert_string_equal(got, "text");
	close(fd);
	assert_int_equal(lstat(path, &facts), 0);
	assert_true(S_ISFIFO(facts.st_mode));
	assert_int_equal(count_names(), 1);
}

/* A link is followed: its target is replaced as a whole, the link stays. One that leads nowhere useful is refused. */
static void a_link_is_followed_and_stays(void **state)
{
	(void)state;
	struct stat facts, old;
	char target[1024];
	snprintf(target, sizeof(target), "%s/target", dir);
	make_file(target, "old");
	assert_int_equal(stat(target, &old), 0);
	int fd = open(target, O_RDONLY); /* so that its inode is not used again */
	assert_int_equal(symlink("target", path), 0);
	assert_int_equal(write_file("new"), LS_OK);
	close(fd);
	check_content("new");
	assert_int_equal(lstat(path, &facts), 0);
	assert_true(S_ISLNK(facts.st_mode));
	assert_int_equal(lstat(target, &facts), 0);
	assert_true(S_ISREG(facts.st_mode));
	assert_int_not_equal(facts.st_ino, old.st_ino);
	assert_int_equal(unlink(target), 0);
	refused("a symbolic link to nothing");
	assert_int_equal(mkdir(target, 0777), 0);
	refused("a directory");
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkdir(path, 0777), 0);
	refused("a directory");
}

/* The rule of fs.protected_symlinks: in a directory like /tmp another user's link or pipe is not used. */
static void what_others_plant_is_refused(void **state)
{
	(void)state;
	char victim[1024];
	snprintf(victim, sizeof(victim), "%s/victim", dir);
	make_file(victim, "precious");
	if (geteuid() != 0) {
		print_message("needs root to act as another user\n");
		skip();
	}
	assert_int_equal(chmod(dir, 01777), 0);
	assert_int_equal(symlink(victim, path), 0);
	assert_int_equal(lchown(path, 12345, 12345), 0);
	ls_file_draft draft;
	assert_int_not_equal(ls_file_begin(&draft, path), LS_OK);
	assert_int_equal(chmod(dir, 0755), 0);
	assert_int_equal(write_file("fine"), LS_OK);
	assert_int_equal(chmod(dir, 01777), 0);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkfifo(path, 0666), 0);
	assert_int_equal(chown(path, 12345, 12345), 0);
	refused("another user");
}

/* Also when it comes there while the draft is written. */
static void only_a_regular_file_is_replaced(void **state)
{
	(void)state;
	struct stat facts;
	ls_file_draft draft;
	assert_int_equal(ls_file_begin(&draft, path), LS_OK);
	assert_int_equal(mkfifo(path, 0666), 0);
	assert_int_equal(ls_file_publish(&draft), LS_EINVALID);
	assert_non_null(strstr(ls_last_error(), "a pipe"));
	assert_int_equal(lstat(path, &facts), 0);
	assert_true(S_ISFIFO(facts.st_mode));
	assert_int_equal(count_names(), 1);
}

/* Standard output stays what it is, though /dev/stdout leads to a regular file. */
static void standard_output_is_not_replaced(void **state)
{
	(void)state;
	fflush(stdout);
	int out = dup(STDOUT_FILENO), file = open(path, O_WRONLY | O_CREAT | O_APPEND, 0666);
	assert_true(out >= 0 && file >= 0);
	assert_int_equal(write(file, "first ", 6), 6);
	dup2(file, STDOUT_FILENO);
	ls_status status = ls_file_put("/dev/stdout", "second", 6);
	dup2(out, STDOUT_FILENO);
	close(out);
	close(file);
	assert_int_equal(status, LS_OK);
	check_content("first second");
}

static void files_of_our_own_are_regular(void **state)
{
	(void)state;
	int fd = -1;
	assert_int_equal(ls_file_open_own(&fd, path, O_RDWR), LS_OK);
	close(fd);
	assert_int_equal(ls_file_open_own(&fd, path, O_RDWR | O_EXCL), LS_EIO);
	assert_int_equal(errno, EEXIST);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(symlink("/dev/null", path), 0);
	assert_int_equal(ls_file_open_own(&fd, path, O_RDWR), LS_EINVALID);
	assert_non_null(strstr(ls_last_error(), "a symbolic link"));
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkfifo(path, 0666), 0);
	assert_int_equal(ls_file_open_own(&fd, path, O_RDWR), LS_EINVALID);
	assert_non_null(strstr(ls_last_error(), "a pipe"));
	assert_int_equal(ls_file_open_own(&fd, path, O_WRONLY), LS_EINVALID);
	assert_non_null(strstr(ls_last_error(), "a pipe"));
}

static void bytes_at_their_place(void **state)
{
	char got[8] = "";
	(void)state;
	int fd = open(path, O_RDWR | O_CREAT, 0666);
	assert_true(fd >= 0);
	assert_int_equal(ls_file_write_at(fd, "world", 5, 6), 0);
	assert_int_equal(ls_file_write_at(fd, "hello ", 6, 0), 0);
	check_content("hello world");
	assert_int_equal(ls_file_read_at(fd, got, 5, 6), 5);
	assert_string_equal(got, "world");
	errno = ENOENT;
	assert_int_equal(ls_file_read_at(fd, got, 6, 6), 5); /* the end */
	assert_int_equal(errno, 0);
	close(fd);
	assert_int_equal(ls_file_read_at(fd, got, 5, 6), 0);
	assert_int_equal(errno, EBADF);
	assert_int_equal(ls_file_write_at(fd, "x", 1, 0), -1);
	assert_int_equal(errno, EBADF);
	assert_int_equal(ls_file_write_at(open("/dev/full", O_WRONLY), "x", 1, 0), -1);
	assert_int_equal(errno, ENOSPC);
}

static void this_program_is_found(void **state)
{
	char own[4096], found[4096], few[8];
	(void)state;
	assert_non_null(realpath("/proc/self/exe", own));
	assert_int_equal(ls_path_program(found, sizeof(found), NULL), LS_OK);
	assert_string_equal(found, own);
	assert_int_equal(ls_path_program(found, sizeof(found), "other/program"), LS_OK);
	assert_string_equal(found, "other/program");
	assert_int_equal(ls_path_program(few, sizeof(few), NULL), LS_EIO); /* never cut short */
	assert_int_equal(ls_path_program(few, sizeof(few), "program2"), LS_EINVALID);
	assert_int_equal(ls_path_program(found, strlen(own), NULL), LS_EIO);
	assert_int_equal(ls_path_program(found, strlen(own) + 1, NULL), LS_OK);
}

TEST_MAIN_EACH(make_dir, remove_dir, joins, looks_above, makes_and_removes_trees, a_draft_is_seen_when_published,
	       an_abandoned_draft_changes_nothing, drafts_are_discarded, leftovers_are_removed, two_writers_do_not_mix,
	       two_processes_publish_at_once, a_new_file_replaces_nothing,
	       a_draft_is_discarded_by_the_name_it_was_made_with, discarding_does_not_read_what_a_writer_has_freed,
	       errors_name_the_file, a_full_disk_is_reported_and_the_old_file_stays, a_planted_draft_is_not_followed,
	       a_device_is_written_to_and_stays, a_pipe_is_written_to_and_stays, a_link_is_followed_and_stays,
	       what_others_plant_is_refused, only_a_regular_file_is_replaced, standard_output_is_not_replaced,
	       files_of_our_own_are_regular, bytes_at_their_place, this_program_is_found)
