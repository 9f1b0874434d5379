/*
 * Buffers, arenas, and what the machine can still give.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/files.h"
#include "base/memory.h"
#include "base/memory_limits.h"
#include "base/thread.h"
#include "unit/base/fake_root.h"

static int all_zero(const uint8_t *data, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		if (data[i])
			return 0;
	return 1;
}

static void buffers_are_zeroed_aligned_and_writable(void **state)
{
	(void)state;
	const size_t sizes[] = { 0, 1, 63, 64, 4096, 4194303, 4194304, 4194305, 9999999 };
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		for (int again = 0; again < 3; again++) {
			void *buffer = NULL;
			assert_int_equal(ls_buffer_new(&buffer, sizes[i], "test"), LS_OK);
			assert_int_equal((uintptr_t)buffer % 64, 0);
			assert_true(all_zero(buffer, sizes[i]));
			memset(buffer, 0xAB, sizes[i]);
			ls_buffer_free(buffer, sizes[i]);
		}
	ls_buffer_free(NULL, 12345678);
}

static void an_impossible_buffer_is_an_error_that_names_it(void **state)
{
	(void)state;
	void *buffer = (void *)0x1234;
	assert_int_equal(ls_buffer_new(&buffer, SIZE_MAX - 10, "gradient store"), LS_EMEMORY);
	assert_non_null(strstr(ls_last_error(), "gradient store"));
	assert_ptr_equal(buffer, (void *)0x1234);
}

static void arena_memory_is_zeroed_aligned_and_apart(void **state)
{
	(void)state;
	ls_arena arena = LS_ARENA_INIT;
	enum { COUNT = 3000 };
	static uint8_t *pieces[COUNT];
	static size_t sizes[COUNT];
	for (int i = 0; i < COUNT; i++) {
		sizes[i] = i % 500 == 499 ? 100000 : (size_t)(i * 37 % 200);
		pieces[i] = ls_arena_alloc(&arena, sizes[i]);
		assert_non_null(pieces[i]);
		assert_int_equal((uintptr_t)pieces[i] % 16, 0);
		assert_true(all_zero(pieces[i], sizes[i]));
		memset(pieces[i], i % 251, sizes[i]);
	}
	for (int i = 0; i < COUNT; i++)
		for (size_t k = 0; k < sizes[i]; k++)
			assert_int_equal(pieces[i][k], i % 251);
	ls_arena_release(&arena);
	assert_non_null(ls_arena_alloc(&arena, 10));
	ls_arena_release(&arena);
	ls_arena_release(&arena);
}

static void arena_text(void **state)
{
	(void)state;
	ls_arena arena = LS_ARENA_INIT;
	assert_string_equal(ls_arena_format(&arena, "layer%d.%s", 3, "conv1"), "layer3.conv1");
	assert_string_equal(ls_arena_format(&arena, "%s", ""), "");
	char text[] = "abc", *copy = ls_arena_copy(&arena, text);
	text[0] = 'x';
	assert_string_equal(copy, "abc");
	assert_null(ls_arena_alloc(&arena, SIZE_MAX - 3));
	assert_non_null(strstr(ls_last_error(), "memory"));
	ls_arena_release(&arena);
}

static void meminfo_alone(void **state)
{
	(void)state;
	put("/proc", "meminfo", "MemTotal:  99 kB\nMemFree: 5 kB\nMemAvailable:    3000000 kB\n");
	assert_int_equal(ls_memory_physical_under(root).left, 3000000ull * 1024);
	assert_int_equal(ls_memory_physical_under(root).bytes, 99 * 1024);
	assert_int_equal(ls_memory_physical_under(root).bound, LS_MEMORY_MACHINE);
}

static void what_cannot_be_read_does_not_limit(void **state)
{
	(void)state;
	assert_true(ls_memory_physical_under(root).left == UINT64_MAX);
	put("/proc", "meminfo", "MemTotal:  99 kB\nMemFree: 5 kB\n");
	assert_true(ls_memory_physical_under(root).left == UINT64_MAX);
}

static void limits_are_named(void **state)
{
	const struct {
		ls_memory_limit limit;
		const char *name;
	} cases[] = {
		{ { LS_MEMORY_MACHINE, 24680000000ull, 1 }, "this machine has 24.68 GB" },
		{ { LS_MEMORY_CGROUP, 500000000, 1 }, "the control group is limited to 0.50 GB" },
		{ { LS_MEMORY_ADDRESSES, 200000 * 1024, 1 }, "ulimit -v 200000" },
		{ { LS_MEMORY_DATA, 200000 * 1024, 1 }, "ulimit -d 200000" },
	};
	char text[64];
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		assert_string_equal(ls_memory_limit_name(&cases[i].limit, text, sizeof(text)), cases[i].name);
}

static void cgroup2_limits_on_any_level(void **state)
{
	(void)state;
	put("/proc", "meminfo", "MemAvailable: 3000000 kB\n");
	put("/proc/self", "cgroup", "0::/job/step\n");
	put("/sys/fs/cgroup/job/step", "memory.max", "max\n");
	put("/sys/fs/cgroup/job/step", "memory.current", "7000\n");
	assert_int_equal(ls_memory_physical_under(root).left, 3000000ull * 1024);
	put("/sys/fs/cgroup/job", "memory.max", "1000000\n");
	put("/sys/fs/cgroup/job", "memory.current", "700000\n");
	assert_int_equal(ls_memory_physical_under(root).left, 300000);
	put("/sys/fs/cgroup/job", "memory.stat", "anon 1\nfile 2\ninactive_file 600000\n");
	assert_int_equal(ls_memory_physical_under(root).left, 900000);
	assert_int_equal(ls_memory_physical_under(root).bound, LS_MEMORY_CGROUP);
	assert_int_equal(ls_memory_physical_under(root).bytes, 1000000);
	put("/sys/fs/cgroup/job/step", "memory.max", "5000\n");
	assert_int_equal(ls_memory_physical_under(root).left, 0);
}

static void cgroup1_limits(void **state)
{
	(void)state;
	put("/proc", "meminfo", "MemAvailable: 3000000 kB\n");
	put("/proc/self", "cgroup", "12:cpu,cpuacct:/x\n9:memory:/box\n0::/\n");
	put("/sys/fs/cgroup/memory/box", "memory.limit_in_bytes", "2000000\n");
	put("/sys/fs/cgroup/memory/box", "memory.usage_in_bytes", "500000\n");
	put("/sys/fs/cgroup/memory/box", "memory.stat", "inactive_file 3\ntotal_inactive_file 100000\n");
	assert_int_equal(ls_memory_physical_under(root).left, 1600000);
}

static void this_machine_has_some(void **state)
{
	(void)state;
	assert_true(ls_memory_available() > 1 << 20);
	assert_true(ls_memory_peak() > 1 << 18);
}

/* In a child, for limits cannot be taken back. */
static void assert_in_child(int (*check)(void))
{
	const char *sanitizer = getenv("SANITIZER");
	if (sanitizer && (strcmp(sanitizer, "address") == 0 || strcmp(sanitizer, "thread") == 0)) {
		print_message("sanitizers reserve terabytes of address space\n");
		skip();
	}
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0)
		_exit(check());
	int status = -1;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static int limit_to_a_gigabyte(int resource)
{
	struct rlimit limit = { 1ull << 30, 1ull << 30 };
	return setrlimit(resource, &limit);
}

static int check_limit(int resource, ls_memory_bound bound)
{
	if (ls_memory_addresses().left != UINT64_MAX || limit_to_a_gigabyte(resource) != 0)
		return 1;
	ls_memory_limit limit = ls_memory_addresses();
	uint64_t available = ls_memory_available();
	return limit.bound == bound && limit.bytes == 1ull << 30 && available <= limit.left && available > 1ull << 28 &&
			       available < 1ull << 30
		       ? 0
		       : 2;
}

static int check_addresses(void)
{
	return check_limit(RLIMIT_AS, LS_MEMORY_ADDRESSES);
}

static int check_data(void)
{
	return check_limit(RLIMIT_DATA, LS_MEMORY_DATA);
}

static void limits_of_the_process_count(void **state)
{
	(void)state;
	assert_in_child(check_addresses);
	assert_in_child(check_data);
}

enum { THREADS = 8 };
static pthread_barrier_t all_have;

static void *allocate(void *kept)
{
	*(void **)kept = malloc(1000);
	pthread_barrier_wait(&all_have);
	return NULL;
}

/* As many stacks, and not 64 MB of heap for each. */
static int check_threads(void)
{
	pthread_t threads[THREADS];
	void *kept[THREADS];
	if (limit_to_a_gigabyte(RLIMIT_AS) != 0 || pthread_barrier_init(&all_have, NULL, THREADS + 1) != 0)
		return 1;
	uint64_t before = ls_memory_addresses().left, stacks = THREADS * ls_thread_addresses();
	for (int i = 0; i < THREADS; i++)
		if (ls_thread_start(&threads[i], allocate, &kept[i]) != 0)
			return 2;
	pthread_barrier_wait(&all_have);
	uint64_t taken = before - ls_memory_addresses().left;
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		free(kept[i]);
	}
	return taken >= stacks && taken < stacks + (1 << 20) ? 0 : 3;
}

static void threads_share_a_heap_where_addresses_are_limited(void **state)
{
	(void)state;
	assert_in_child(check_threads);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(buffers_are_zeroed_aligned_and_writable),
		cmocka_unit_test(an_impossible_buffer_is_an_error_that_names_it),
		cmocka_unit_test(arena_memory_is_zeroed_aligned_and_apart),
		cmocka_unit_test(arena_text),
		cmocka_unit_test_setup_teardown(meminfo_alone, make_root, remove_root),
		cmocka_unit_test_setup_teardown(what_cannot_be_read_does_not_limit, make_root, remove_root),
		cmocka_unit_test_setup_teardown(cgroup2_limits_on_any_level, make_root, remove_root),
		cmocka_unit_test_setup_teardown(cgroup1_limits, make_root, remove_root),
		cmocka_unit_test(this_machine_has_some),
		cmocka_unit_test(limits_are_named),
		cmocka_unit_test(limits_of_the_process_count),
		cmocka_unit_test(threads_share_a_heap_where_addresses_are_limited),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
