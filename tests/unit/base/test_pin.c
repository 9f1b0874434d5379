/*
 * Pinning: how many cores there are to use, which threads get which, and that they are really bound.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pin.h"
#include "unit/base/fake_root.h"

static ls_processors before; /* what this process may use */

static int setup(void **state)
{
	ls_cores_allowed(&before);
	return make_root(state);
}

static void allow(const ls_processors *set)
{
	assert_int_equal(sched_setaffinity(0, sizeof(set->words), (const cpu_set_t *)set->words), 0);
}

static int teardown(void **state)
{
	unsetenv("HWLOC_SYNTHETIC");
	allow(&before);
	return remove_root(state);
}

/* The set of the processors listed, up to -1. */
static ls_processors set_of(const int *processors)
{
	ls_processors set = { { 0 } };
	for (; *processors >= 0; processors++)
		ls_processors_add(&set, *processors);
	return set;
}

#define SET(...) set_of((const int[]){ __VA_ARGS__, -1 })
#define ONLY(...) ((const ls_processors[]){ SET(__VA_ARGS__) })

static void sets_are_walked_in_order(void **state)
{
	(void)state;
	ls_processors set = SET(3, 63, 64, 130, LS_PROCESSORS - 1);
	const int expected[] = { 3, 63, 64, 130, LS_PROCESSORS - 1 };
	int at = -1;
	for (int i = 0; i < 5; i++) {
		at = ls_processors_next(&set, at + 1);
		assert_int_equal(at, expected[i]);
	}
	assert_int_equal(ls_processors_next(&set, at + 1), -1);
	assert_int_equal(ls_processors_next(&(ls_processors){ { 0 } }, 0), -1);
}

static void put_siblings(int processor, const char *list)
{
	char directory[128];
	snprintf(directory, sizeof(directory), "/sys/devices/system/cpu/cpu%d/topology", processor);
	put(directory, "thread_siblings_list", list);
}

static void hyperthreads_are_one_core(void **state)
{
	(void)state;
	put_siblings(0, "0,2\n");
	put_siblings(1, "1,3\n");
	put_siblings(2, "0,2\n");
	put_siblings(3, "1,3\n");
	put_siblings(4, "4-7\n");
	put_siblings(5, "4-7\n");
	assert_int_equal(ls_cores_count(root, ONLY(0, 1, 2, 3)), 2);
	assert_int_equal(ls_cores_count(root, ONLY(0, 2)), 1);
	assert_int_equal(ls_cores_count(root, ONLY(2, 3)), 2); /* the second processor of each */
	assert_int_equal(ls_cores_count(root, ONLY(3)), 1);
	assert_int_equal(ls_cores_count(root, ONLY(0, 4, 5)), 2);
	assert_int_equal(ls_cores_count(root, ONLY(900, 901)), 2); /* /sys says nothing of them */
}

static void quotas_of_control_groups(void **state)
{
	(void)state;
	assert_int_equal(ls_cores_quota(root), INT_MAX);
	put("/proc/self", "cgroup", "0::/a/b\n");
	assert_int_equal(ls_cores_quota(root), INT_MAX);
	put("/sys/fs/cgroup/a/b", "cpu.max", "max 100000\n");
	assert_int_equal(ls_cores_quota(root), INT_MAX);
	put("/sys/fs/cgroup/a/b", "cpu.max", "350000 100000\n");
	assert_int_equal(ls_cores_quota(root), 4); /* rounded up */
	put("/sys/fs/cgroup/a", "cpu.max", "200000 100000\n");
	assert_int_equal(ls_cores_quota(root), 2); /* the group above */
	put("/sys/fs/cgroup/a", "cpu.max", "10000 100000\n");
	assert_int_equal(ls_cores_quota(root), 1);

	put("/proc/self", "cgroup", "5:cpuset:/c\n4:cpuacct,cpu:/d\n");
	put("/sys/fs/cgroup/cpu/c", "cpu.cfs_quota_us", "100000\n");
	put("/sys/fs/cgroup/cpu/c", "cpu.cfs_period_us", "100000\n");
	put("/sys/fs/cgroup/cpu/d", "cpu.cfs_quota_us", "-1\n");
	put("/sys/fs/cgroup/cpu/d", "cpu.cfs_period_us", "100000\n");
	assert_int_equal(ls_cores_quota(root), INT_MAX); /* cpuset is not cpu */
	put("/sys/fs/cgroup/cpu/d", "cpu.cfs_quota_us", "250000\n");
	assert_int_equal(ls_cores_quota(root), 3);
}

static void check_list(const ls_processors *allowed, const ls_processors *expected, int count)
{
	ls_cores cores;
	assert_int_equal(ls_cores_list(&cores, allowed), LS_OK);
	assert_int_equal(cores.count, count);
	assert_memory_equal(cores.core, expected, (size_t)count * sizeof(*cores.core));
	ls_cores_release(&cores);
}

/* Two packages of two cores of two threads, numbered as many machines do: packages alternate, threads come last. */
static void neighbours_share_a_package(void **state)
{
	(void)state;
	setenv("HWLOC_SYNTHETIC", "pack:2 core:2 pu:2(indexes=0,4,2,6,1,5,3,7)", 1);
	check_list(ONLY(0, 1, 2, 3, 4, 5, 6, 7), (const ls_processors[]){ SET(0, 4), SET(2, 6), SET(1, 5), SET(3, 7) },
		   4);
	check_list(ONLY(1, 2, 6), (const ls_processors[]){ SET(2, 6), SET(1) }, 2);
	ls_cores cores = { 0 };
	assert_int_equal(ls_cores_list(&cores, ONLY(100)), LS_EUNSUPPORTED);
	assert_null(cores.core);
}

static void threads_of_a_device_are_neighbours(void **state)
{
	(void)state;
	ls_processors place[8];
	for (int i = 0; i < 8; i++)
		place[i] = SET(10 + i);
	static const struct {
		int devices, threads, core[8];
		const char *text;
	} cases[] = {
		{ 2, 4, { 10, 11, 12, 13, 14, 15, 16, 17 }, "devices 0-1 on cores 10-17, 4 each" },
		{ 2, 3, { 10, 11, 12, 14, 15, 16 }, "devices 0-1 on cores 10-12,14-16, 3 each" },
		{ 2, 1, { 10, 14 }, "devices 0-1 on cores 10,14" },
		{ 3, 1, { 10, 12, 15 }, "devices 0-2 on cores 10,12,15" },
		{ 1, 1, { 10 }, "device 0 on core 10" },
		{ 1, 2, { 10, 11 }, "device 0 on cores 10-11" },
		{ 3, 3, { 10, 11, 12, 13, 14, 15, 16, 17 }, "devices 0-2 on cores 10-17, shared" },
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		ls_pin_plan plan = { .devices = cases[i].devices, .threads = cases[i].threads, .cores = 8 };
		char text[100];
		plan.places = (ls_cores){ .count = 8, .core = place, .domains = 1, .first = (int[]){ 0, 8 } };
		for (int k = 0; k < plan.devices * plan.threads && k < 8; k++)
			assert_int_equal(ls_pin_core(&plan, k / plan.threads, k % plan.threads), cases[i].core[k]);
		ls_pin_describe(&plan, text, sizeof(text));
		assert_string_equal(text, cases[i].text);
		ls_pin_describe(&plan, text, 12);
		assert_int_equal(strlen(text), 11);
	}
}

/* All processors of a machine. */
static const ls_processors *all_of(int processors)
{
	static ls_processors set;
	set = (ls_processors){ { 0 } };
	for (int i = 0; i < processors; i++)
		ls_processors_add(&set, i);
	return &set;
}

/* The list of hwloc's synthetic machines: 64 cores in four NUMA domains, numbered in order,
 * alternating, with threads. */
static void domains_are_found(void **state)
{
	static const struct {
		const char *machine;
		int processors, cores, domains, first[5];
	} cases[] = {
		{ "numa:4 core:16 pu:1", 64, 64, 4, { 0, 16, 32, 48, 64 } },
		{ "pack:2 numa:2 core:16 pu:2", 128, 64, 4, { 0, 16, 32, 48, 64 } },
		{ "pack:2 [numa] l3:4 core:8 pu:1", 64, 64, 2, { 0, 32, 64 } },
		{ "numa:2 core:4 pu:1", 6, 6, 2, { 0, 4, 6 } },
		{ "pack:1 core:8 pu:1", 8, 8, 1, { 0, 8 } },
	};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		ls_cores cores;
		setenv("HWLOC_SYNTHETIC", cases[i].machine, 1);
		assert_int_equal(ls_cores_list(&cores, all_of(cases[i].processors)), LS_OK);
		assert_int_equal(cores.count, cases[i].cores);
		assert_int_equal(cores.domains, cases[i].domains);
		assert_memory_equal(cores.first, cases[i].first, sizeof(int) * (size_t)(cores.domains + 1));
		ls_cores_release(&cores);
	}
}

/* Threads of a device whose cores lie in more than one domain. */
static int devices_cut_in_two(const ls_pin_plan *plan)
{
	int cut = 0;
	for (int d = 0; d < plan->devices; d++) {
		int a = ls_pin_core(plan, d, 0) / 16, b = ls_pin_core(plan, d, plan->threads - 1) / 16;
		cut += a != b;
	}
	return cut;
}

/* On 64 cores in four domains no device is cut in two where that can be; none shares a core. */
static void devices_stay_in_a_domain(void **state)
{
	static const struct {
		int devices, threads, cut, first[5]; /* cores of the first devices */
	} cases[] = {
		{ 4, 16, 0, { 0, 16, 32, 48 } },   { 64, 1, 0, { 0, 1, 2, 3, 4 } },   { 3, 16, 0, { 0, 16, 32 } },
		{ 8, 8, 0, { 0, 8, 16, 24, 32 } }, { 6, 8, 0, { 0, 8, 16, 32, 40 } }, { 5, 6, 0, { 0, 8, 16, 32, 48 } },
		{ 2, 32, 2, { 0, 32 } },           { 3, 21, 3, { 0, 21, 42 } },
	};
	(void)state;
	setenv("HWLOC_SYNTHETIC", "numa:4 core:16 pu:1", 1);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		ls_pin_plan plan = { .devices = cases[i].devices, .threads = cases[i].threads, .cores = 64 };
		ls_processors used = { { 0 } };
		assert_int_equal(ls_cores_list(&plan.places, all_of(64)), LS_OK);
		for (int k = 0; k < plan.devices * plan.threads; k++) {
			int core = ls_pin_core(&plan, k / plan.threads, k % plan.threads);
			assert_false(ls_processors_has(&used, core));
			ls_processors_add(&used, core);
		}
		for (int d = 0; d < plan.devices && d < 5; d++)
			assert_int_equal(ls_pin_core(&plan, d, 0), cases[i].first[d]);
		assert_int_equal(devices_cut_in_two(&plan), cases[i].cut);
		ls_cores_release(&plan.places);
	}
}

/* What a run chooses by itself, for shares of micro-batches: devices, threads. On four domains of 16 cores no device is
 * cut from four micro-batches on, and there are never fewer than four. */
static void devices_by_default(void **state)
{
	static const struct {
		const char *machine;
		int processors, threads, microbatches, expected[2];
	} cases[] = {
		{ "numa:4 core:16 pu:1", 64, 0, 1, { 1, 64 } },    { "numa:4 core:16 pu:1", 64, 0, 2, { 2, 32 } },
		{ "numa:4 core:16 pu:1", 64, 0, 3, { 3, 21 } },    { "numa:4 core:16 pu:1", 64, 0, 4, { 4, 16 } },
		{ "numa:4 core:16 pu:1", 64, 0, 5, { 5, 8 } },     { "numa:4 core:16 pu:1", 64, 0, 6, { 6, 8 } },
		{ "numa:4 core:16 pu:1", 64, 0, 8, { 8, 8 } },     { "numa:4 core:16 pu:1", 64, 0, 10, { 10, 5 } },
		{ "numa:4 core:16 pu:1", 64, 0, 40, { 20, 3 } },   { "numa:4 core:16 pu:1", 64, 0, 64, { 64, 1 } },
		{ "numa:4 core:16 pu:1", 64, 0, 1000, { 64, 1 } }, { "numa:4 core:16 pu:1", 64, 12, 8, { 4, 12 } },
		{ "numa:4 core:16 pu:1", 64, 70, 8, { 1, 70 } },   { "numa:2 core:1 pu:1", 2, 0, 3, { 2, 1 } },
		{ "pack:1 core:12 pu:1", 12, 0, 5, { 5, 2 } },     { "pack:1 core:12 pu:1", 12, 0, 8, { 8, 1 } },
		{ "numa:2 core:4 pu:1", 6, 0, 4, { 4, 1 } },
	};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		int devices = 0, threads = cases[i].threads;
		ls_cores cores;
		setenv("HWLOC_SYNTHETIC", cases[i].machine, 1);
		assert_int_equal(ls_cores_list(&cores, all_of(cases[i].processors)), LS_OK);
		ls_pin_default(&cores, cases[i].microbatches, &devices, &threads);
		assert_int_equal(devices, cases[i].expected[0]);
		assert_int_equal(threads, cases[i].expected[1]);
		ls_cores_release(&cores);
	}
	setenv("HWLOC_SYNTHETIC", "numa:4 core:16 pu:1", 1);
	for (int microbatches = 4; microbatches <= 300; microbatches++) {
		ls_pin_plan plan = { .cores = 64 };
		assert_int_equal(ls_cores_list(&plan.places, all_of(64)), LS_OK);
		ls_pin_default(&plan.places, microbatches, &plan.devices, &plan.threads);
		assert_in_range(plan.devices, 4, microbatches);
		assert_in_range(plan.devices * plan.threads, 40, 64);
		assert_int_equal(devices_cut_in_two(&plan), 0);
		ls_cores_release(&plan.places);
	}
}

static ls_processors mine(void)
{
	ls_processors now;
	ls_cores_allowed(&now);
	return now;
}

static void expect_same_set(ls_processors a, ls_processors b)
{
	assert_memory_equal(&a, &b, sizeof(a));
}

/* A mask of one processor is one core: auto takes it for one thread, and shares it among no more. */
static void one_core(void **state)
{
	(void)state;
	for (int at = -1; (at = ls_processors_next(&before, at + 1)) >= 0;) {
		ls_pin_plan plan;
		char text[64], expected[64];
		allow(ONLY(at));
		assert_int_equal(ls_pin_cores(), 1);
		assert_int_equal(ls_pin_plan_init(&plan, 1, 1, LS_PIN_AUTO), LS_OK);
		assert_int_equal(ls_pin_core(&plan, 0, 0), at);
		ls_pin_describe(&plan, text, sizeof(text));
		snprintf(expected, sizeof(expected), "device 0 on core %d", at);
		assert_string_equal(text, expected);
		ls_pin_plan_release(&plan);
		assert_int_equal(ls_pin_plan_init(&plan, 2, 1, LS_PIN_AUTO), LS_OK);
		assert_int_equal(plan.places.count, 0);
		ls_pin_plan_release(&plan);
	}
	allow(&before);
}

static void auto_pins_only_who_takes_all_cores(void **state)
{
	(void)state;
	int cores = ls_pin_cores(), all = ls_cores_count("", &before);
	for (int devices = 1; devices <= cores + 1; devices++) {
		ls_pin_plan plan;
		char text[64];
		assert_int_equal(ls_pin_plan_init(&plan, devices, 1, LS_PIN_AUTO), LS_OK);
		assert_int_equal(plan.cores, cores);
		assert_int_equal(plan.places.count, devices == all && all == cores ? all : 0);
		ls_pin_describe(&plan, text, sizeof(text));
		assert_int_equal(strcmp(text, "not pinned") == 0, plan.places.count == 0);
		if (plan.places.count == 0) {
			ls_pin_self(&plan, 0, 0);
			expect_same_set(mine(), before);
			assert_int_equal(ls_pin_core(&plan, 0, 0), -1);
		}
		ls_pin_plan_release(&plan);
		assert_int_equal(ls_pin_plan_init(&plan, devices, 1, LS_PIN_OFF), LS_OK);
		assert_int_equal(plan.places.count, 0);
		ls_pin_plan_release(&plan);
	}
}

static ls_processors seen_free;

static void *look_free(void *plan)
{
	ls_pin_self(plan, -1, 0);
	ls_cores_allowed(&seen_free);
	return NULL;
}

/* More threads than cores, bound one after the other by one thread: each to its own core, and none forgets the rest. */
static void bound_and_free_again(void **state)
{
	(void)state;
	int cores = ls_pin_cores(), all = ls_cores_count("", &before), seen_twice = 0;
	ls_processors seen = { { 0 } };
	ls_pin_plan plan, inner;
	assert_int_equal(ls_pin_plan_init(&plan, all, 2, LS_PIN_ON), LS_OK);
	assert_int_equal(plan.places.count, all);
	for (int k = 0; k < 2 * all; k++) {
		ls_pin_self(&plan, k / 2, k % 2);
		ls_processors now = mine();
		int core = ls_pin_core(&plan, k / 2, k % 2);
		assert_true(ls_processors_has(&now, core));
		assert_int_equal(ls_cores_count("", &now), 1);
		seen_twice += ls_processors_has(&seen, core);
		ls_processors_add(&seen, core);
		assert_int_equal(ls_pin_cores(), cores);
	}
	assert_int_equal(seen_twice, all);
	assert_int_equal(ls_pin_plan_init(&inner, 1, 1, LS_PIN_ON), LS_OK); /* made by a bound thread */
	assert_int_equal(inner.places.count, all);
	ls_pin_plan_release(&inner);
	expect_same_set(mine(), before);
	ls_pin_self(&plan, 0, 0);
	pthread_t thread;
	assert_int_equal(pthread_create(&thread, NULL, look_free, &plan), 0);
	pthread_join(thread, NULL);
	expect_same_set(seen_free, before);
	ls_pin_plan_release(&plan);
	expect_same_set(mine(), before);
	ls_pin_plan_release(&plan); /* nothing left to do */
}

static void impossible_plans_are_refused(void **state)
{
	(void)state;
	ls_pin_plan plan;
	assert_int_equal(ls_pin_plan_init(&plan, 0, 1, LS_PIN_ON), LS_EINVALID);
	assert_int_equal(ls_pin_plan_init(&plan, 1, -2, LS_PIN_OFF), LS_EINVALID);
	assert_non_null(strstr(ls_last_error(), "-2 threads"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sets_are_walked_in_order),
		cmocka_unit_test_setup_teardown(hyperthreads_are_one_core, setup, teardown),
		cmocka_unit_test_setup_teardown(quotas_of_control_groups, setup, teardown),
		cmocka_unit_test_setup_teardown(neighbours_share_a_package, setup, teardown),
		cmocka_unit_test(threads_of_a_device_are_neighbours),
		cmocka_unit_test_setup_teardown(domains_are_found, setup, teardown),
		cmocka_unit_test_setup_teardown(devices_stay_in_a_domain, setup, teardown),
		cmocka_unit_test_setup_teardown(devices_by_default, setup, teardown),
		cmocka_unit_test_setup_teardown(one_core, setup, teardown),
		cmocka_unit_test_setup_teardown(auto_pins_only_who_takes_all_cores, setup, teardown),
		cmocka_unit_test_setup_teardown(bound_and_free_again, setup, teardown),
		cmocka_unit_test(impossible_plans_are_refused),
	};
	return cmocka_run_group_tests_name("pin", tests, NULL, NULL);
}
