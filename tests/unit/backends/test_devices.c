/*
 * The table of backends, and the devices of a node: each has a driver of its own, and host threads that share work.
 */
#include <stddef.h>
#include <stdint.h>

#include <float.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "backends/devices.h"
#include "base/float_rules.h"
#include "unit/test_main.h"

static void test_table(void **state)
{
	const ls_backend *found = NULL;
	size_t count = 0;

	(void)state;
	for (; ls_backend_at(count); count++) {
		const ls_backend *b = ls_backend_at(count);
		assert_true(b->name[0] != '\0' && b->help[0] != '\0');
		assert_int_equal(ls_backend_choose(b->name, &found), LS_OK);
		assert_ptr_equal(found, b);
		assert_true(b->plan && b->shared_grads && b->open && b->close && b->load && b->unload &&
			    b->set_params && b->train);
	}
	assert_true(count >= 2);
	assert_int_equal(ls_backend_choose(NULL, &found), LS_OK);
	assert_ptr_equal(found, &ls_backend_cpu);
	found = NULL;
	assert_int_not_equal(ls_backend_choose("cqu", &found), LS_OK);
	assert_null(found);
	assert_non_null(strstr(ls_last_error(), "did you mean 'cpu'?"));
}

enum { DEVICES = 3, THREADS = 2 };

typedef struct visits {
	ls_devices *devices;
	atomic_int drivers[DEVICES], members[DEVICES][THREADS];
	pthread_t thread[DEVICES];
} visits;

typedef struct visit {
	visits *all;
	int device;
} visit;

static void help(void *context, ls_member member)
{
	const visit *v = context;
	assert_int_equal(member.size, THREADS);
	atomic_fetch_add(&v->all->members[v->device][member.rank], 1);
	if (member.rank == 0)
		assert_true(pthread_equal(pthread_self(), v->all->thread[v->device]));
}

static void drive(void *context, int device)
{
	visits *all = context;
	visit own = { all, device };
	atomic_fetch_add(&all->drivers[device], 1);
	all->thread[device] = pthread_self();
	ls_devices_host_run(all->devices, device, help, &own);
}

static void test_drivers(void **state)
{
	ls_devices_options options = { .count = DEVICES, .threads = THREADS, .pin = LS_PIN_OFF };

	(void)state;
	for (int used = 1; used <= DEVICES; used++) {
		visits v = { 0 };
		assert_int_equal(ls_devices_open(&v.devices, &ls_backend_cpu, &options), LS_OK);
		ls_devices_run(v.devices, used, drive, &v);
		ls_devices_leave(v.devices);
		assert_true(pthread_equal(v.thread[0], pthread_self()));
		for (int i = 0; i < DEVICES; i++) {
			assert_int_equal(v.drivers[i], i < used);
			for (int k = 0; k < THREADS; k++)
				assert_int_equal(v.members[i][k], i < used);
			for (int k = 0; k < i && i < used; k++)
				assert_false(pthread_equal(v.thread[i], v.thread[k]));
		}
		ls_devices_close(v.devices);
	}
}

static void halve(void *context, int device)
{
	volatile float *x = context;
	x[device] *= 0.5f;
}

/* A caller whose thread flushes subnormal numbers gets the bits of any other, and its rules back. */
static void test_rounding(void **state)
{
	(void)state;
#if !defined(__x86_64__)
	skip();
#else
	ls_devices_options options = { .count = DEVICES, .threads = 1, .pin = LS_PIN_OFF };
	ls_devices *devices = NULL;
	const unsigned before = _mm_getcsr(), flush = before | 0x8040;
	for (int used = 1; used <= DEVICES; used += DEVICES - 1) {
		volatile float x[DEVICES] = { FLT_MIN, FLT_MIN, FLT_MIN };
		_mm_setcsr(flush);
		ls_status status = ls_devices_open(&devices, &ls_backend_cpu, &options);
		if (status == LS_OK)
			ls_devices_run(devices, used, halve, (void *)x);
		const unsigned after = _mm_getcsr();
		_mm_setcsr(before);
		assert_int_equal(status, LS_OK);
		assert_int_equal(after & 0xffc0, flush & 0xffc0);
		for (int i = 0; i < used; i++)
			assert_true(x[i] == FLT_MIN / 2);
		ls_devices_leave(devices);
		ls_devices_close(devices);
	}
#endif
}

TEST_MAIN(test_table, test_drivers, test_rounding)
