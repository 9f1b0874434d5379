/*
 * ls_serve() ends at a request of its options.stop, made before or by another thread, and takes no handle that was
 * freed.
 */
#include <lockstep/models.h>
#include <lockstep/serve.h>
#include <pthread.h>
#include <time.h>

#include "unit/assert_status.h"
#include "unit/test_main.h"

static ls_model *make_model(void)
{
	ls_model_options o = LS_MODEL_OPTIONS_INIT;
	ls_model *model = NULL;

	o.name = "mlp";
	assert_ok(ls_model_new_named(&model, &o, 1));
	return model;
}

static ls_serve_options options_with(const ls_stop *stop)
{
	ls_serve_options o = LS_SERVE_OPTIONS_INIT;

	o.listen = "127.0.0.1:0";
	o.quiet = 1;
	o.stop = stop;
	return o;
}

/* 0: this build has no HTTP. */
static int can_serve(ls_model *model, ls_stop *stop)
{
	const ls_serve_options o = options_with(stop);

	ls_stop_request(stop);
	ls_status status = ls_serve(model, &o, NULL);
	ls_stop_clear(stop);
	if (status == LS_EUNSUPPORTED)
		return 0;
	assert_ok(status);
	return 1;
}

static void *request_soon(void *stop)
{
	nanosleep(&(struct timespec){ .tv_nsec = 200000000 }, NULL);
	ls_stop_request(stop);
	return NULL;
}

static void test_a_request_ends_it(void **state)
{
	ls_model *model = make_model();
	ls_stop *stop = NULL, *other = NULL;
	(void)state;
	assert_ok(ls_stop_new(&stop));
	assert_ok(ls_stop_new(&other));
	if (can_serve(model, stop)) {
		const ls_serve_options o = options_with(stop);
		pthread_t thread;
		ls_serve_result result;

		ls_stop_request(other); /* is none of its business */
		assert_int_equal(pthread_create(&thread, NULL, request_soon, stop), 0);
		assert_ok(ls_serve(model, &o, &result));
		assert_true(ls_stop_is_requested(stop));
		assert_int_equal(result.requests, 0);
		pthread_join(thread, NULL);
	}
	ls_stop_free(other);
	ls_stop_free(stop);
	ls_model_free(model);
}

static void test_a_freed_handle_is_refused(void **state)
{
	ls_model *model = make_model();
	ls_stop *stop = NULL;
	(void)state;
	assert_ok(ls_stop_new(&stop));
	if (can_serve(model, stop)) {
		const ls_serve_options o = options_with(stop);

		ls_stop_free(stop);
		assert_fails(ls_serve(model, &o, NULL), LS_EINVALID, "the stop handle was freed");
	} else {
		ls_stop_free(stop);
	}
	ls_model_free(model);
}

TEST_MAIN(test_a_request_ends_it, test_a_freed_handle_is_refused)
