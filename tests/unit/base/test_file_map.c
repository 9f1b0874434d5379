/*
 * Files that are cut short while they are in use: the process survives, and the error names the file.
 */
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/files.h"
#include "unit/base/scratch.h"
#include "unit/test_main.h"

enum { LARGE = 8 << 20, SMALL = 10000 };

static void open_filled(ls_file_map *map, size_t bytes)
{
	uint8_t *data = malloc(bytes);
	assert_non_null(data);
	memset(data, 7, bytes);
	assert_int_equal(ls_file_put(path, data, bytes), LS_OK);
	free(data);
	assert_int_equal(ls_file_map_open(map, path), LS_OK);
	assert_int_equal(map->bytes, bytes);
}

static uint64_t sum(const ls_file_map *map)
{
	uint64_t total = 0;
	for (size_t i = 0; i < map->bytes; i++)
		total += map->data[i];
	return total;
}

static void check_names_the_file(const ls_file_map *map)
{
	assert_int_equal(ls_file_map_check(map), LS_EIO);
	assert_non_null(strstr(ls_last_error(), path));
	assert_non_null(strstr(ls_last_error(), "cut short"));
}

static void a_cut_map_reads_zeros_and_is_known(void **state)
{
	(void)state;
	ls_file_map map, other;
	open_filled(&map, LARGE);
	assert_int_equal(ls_file_map_open(&other, path), LS_OK);
	assert_int_equal(sum(&map), 7 * (uint64_t)LARGE);
	assert_int_equal(ls_file_map_check(&map), LS_OK);
	assert_int_equal(truncate(path, LARGE / 2), 0);
	assert_int_equal(sum(&map), 7 * (uint64_t)LARGE / 2); /* without the handler the test ends here */
	assert_true(ls_file_map_lost(&map));
	check_names_the_file(&map);
	assert_false(ls_file_map_lost(&other)); /* nobody has read what it lost */
	check_names_the_file(&other);
	assert_int_equal(truncate(path, LARGE), 0);
	assert_int_equal(ls_file_map_check(&map), LS_EIO); /* what was read stays wrong */
	assert_non_null(strstr(ls_last_error(), path));
	assert_int_equal(ls_file_map_end(&map, LS_EFORMAT), LS_EIO);
	assert_int_equal(ls_file_map_end(&other, LS_EFORMAT), LS_EFORMAT);
}

/* A cut inside the last page raises no signal. */
static void a_cut_inside_the_last_page_is_known(void **state)
{
	(void)state;
	ls_file_map map;
	open_filled(&map, LARGE + 100);
	assert_int_equal(truncate(path, LARGE + 50), 0);
	sum(&map);
	assert_false(ls_file_map_lost(&map));
	check_names_the_file(&map);
	assert_int_equal(ls_file_map_end(&map, LS_OK), LS_EIO);
}

static void small_files_are_copied(void **state)
{
	(void)state;
	ls_file_map map;
	open_filled(&map, SMALL);
	assert_int_equal(truncate(path, 0), 0);
	assert_int_equal(sum(&map), 7 * SMALL);
	assert_int_equal(ls_file_map_end(&map, LS_OK), LS_OK);
}

static void *sum_in_thread(void *argument)
{
	return (void *)(uintptr_t)sum(argument);
}

/* Slots of the list are used again, from all threads. */
static void many_maps_and_threads(void **state)
{
	(void)state;
	ls_file_map maps[8];
	pthread_t threads[8];
	void *result;
	for (int round = 0; round < 3; round++) {
		open_filled(&maps[0], LARGE);
		for (int i = 1; i < 8; i++)
			assert_int_equal(ls_file_map_open(&maps[i], path), LS_OK);
		assert_int_equal(truncate(path, LARGE / 4), 0);
		for (int i = 0; i < 8; i++)
			assert_int_equal(pthread_create(&threads[i], NULL, sum_in_thread, &maps[i % 4]), 0);
		for (int i = 0; i < 8; i++) {
			assert_int_equal(pthread_join(threads[i], &result), 0);
			assert_int_equal((uintptr_t)result, 7 * LARGE / 4);
		}
		for (int i = 0; i < 8; i++) {
			assert_int_equal(ls_file_map_lost(&maps[i]), i < 4);
			assert_int_equal(ls_file_map_end(&maps[i], LS_OK), LS_EIO);
		}
	}
}

/* ---- faults that are not ours ------------------------------------------------------------------------------------ */

static volatile sig_atomic_t others;
static sigjmp_buf back;

static void on_other(int number)
{
	(void)number;
	others++;
	siglongjmp(back, 1);
}

/* A map of the program's own, whose file is cut. */
static volatile uint8_t *foreign_map(const char *name)
{
	int fd = open(name, O_RDWR | O_CREAT, 0666);
	if (fd < 0 || ftruncate(fd, 8192) != 0)
		_exit(90);
	volatile uint8_t *data = mmap(NULL, 8192, PROT_READ, MAP_SHARED, fd, 0);
	if (data == MAP_FAILED || ftruncate(fd, 0) != 0)
		_exit(91);
	close(fd);
	return data;
}

/* In a process of its own, for one may end it. */
static int in_child(void (*work)(const char *foreign), const char *foreign)
{
	int how = 0;
	uint8_t *data = calloc(1, LARGE);
	assert_non_null(data);
	assert_int_equal(ls_file_put(path, data, LARGE), LS_OK);
	free(data);
	fflush(NULL);
	pid_t child = fork();
	if (child == 0) {
		work(foreign);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &how, 0), child);
	return how;
}

static void read_foreign(const char *foreign)
{
	static ls_file_map map; /* a local that changes before siglongjmp() would have any value behind it */
	if (sigsetjmp(back, 1) == 0) {
		if (ls_file_map_open(&map, path) != LS_OK)
			_exit(92);
		(void)foreign_map(foreign)[0];
		_exit(93);
	}
	if (others != 1 || truncate(path, 0) != 0 || sum(&map) != 0 || others != 1 || ls_file_map_check(&map) != LS_EIO)
		_exit(94);
}

static void read_foreign_handled(const char *foreign)
{
	signal(SIGBUS, on_other);
	read_foreign(foreign);
}

static void read_foreign_plain(const char *foreign)
{
	signal(SIGBUS, SIG_DFL);
	read_foreign(foreign);
}

/* A handler that comes later: it is asked from the next map on. */
static void read_foreign_late(const char *foreign)
{
	ls_file_map early;
	if (ls_file_map_open(&early, path) != LS_OK)
		_exit(97);
	signal(SIGBUS, on_other);
	read_foreign(foreign);
}

static void send_signal(const char *foreign)
{
	ls_file_map map;
	(void)foreign;
	signal(SIGBUS, SIG_DFL);
	if (ls_file_map_open(&map, path) != LS_OK)
		_exit(95);
	kill(getpid(), SIGBUS);
	_exit(96);
}

static void faults_elsewhere_go_where_they_went(void **state)
{
	(void)state;
	char foreign[1024];
	snprintf(foreign, sizeof(foreign), "%s/foreign", dir);
	int how = in_child(read_foreign_handled, foreign);
	assert_true(WIFEXITED(how));
	assert_int_equal(WEXITSTATUS(how), 0);
	how = in_child(read_foreign_late, foreign);
	assert_true(WIFEXITED(how));
	assert_int_equal(WEXITSTATUS(how), 0);
	how = in_child(read_foreign_plain, foreign);
	assert_true(WIFSIGNALED(how));
	assert_int_equal(WTERMSIG(how), SIGBUS);
	how = in_child(send_signal, foreign);
	assert_true(WIFSIGNALED(how));
	assert_int_equal(WTERMSIG(how), SIGBUS);
}

/* More than there are addresses: no limit of the process is the cause, and ulimit -d could not be. */
static void a_limit_on_data_is_not_blamed_for_a_map(void **state)
{
	(void)state;
	struct rlimit before, limit;
	ls_file_map map;
	char name[64];
	int fd = memfd_create("endless", MFD_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)1 << 60), 0);
	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	assert_int_equal(getrlimit(RLIMIT_DATA, &before), 0);
	limit = before;
	limit.rlim_cur = (rlim_t)1 << 46;
	assert_int_equal(setrlimit(RLIMIT_DATA, &limit), 0);
	ls_status status = ls_file_map_open(&map, name);
	assert_int_equal(setrlimit(RLIMIT_DATA, &before), 0);
	close(fd);
	assert_int_equal(status, LS_EMEMORY);
	assert_non_null(strstr(ls_last_error(), strerror(ENOMEM)));
	assert_null(strstr(ls_last_error(), "ulimit -d"));
}

TEST_MAIN_EACH(make_dir, remove_dir, faults_elsewhere_go_where_they_went, a_cut_map_reads_zeros_and_is_known,
	       a_cut_inside_the_last_page_is_known, small_files_are_copied, many_maps_and_threads,
	       a_limit_on_data_is_not_blamed_for_a_map)
