/*
 * A process that was forked (Python's multiprocessing does that) has none of the threads of its parent: a trainer
 * says so, a model starts its own and predicts the same bits, freeing is right, and nothing waits for what will never
 * come.
 */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit/run/custom_loop.h"
#include "unit/test_main.h"

enum { PATIENCE = 60, COUNT = 20, CLASSES = 10 };

typedef struct family {
	ls_dataset *set;
	ls_model *model;
	ls_trainer *trainer;
	samples *s;
	float logits[COUNT * CLASSES]; /* of the parent */
} family;

/* The exit status of a child that does `what`; -1: it was ended by a signal, which the alarm is. */
static int status_of_child(int (*what)(family *f), family *f)
{
	int status = 0;
	pid_t child = fork();

	assert_true(child >= 0);
	if (child == 0) {
		signal(SIGALRM, SIG_DFL);
		alarm(PATIENCE);
		_exit(what(f));
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* No assertions in the child: they would jump into a copy of the test program. */
static int is_refused(ls_status status)
{
	return status == LS_EINVALID && strstr(ls_last_error(), "this process was forked");
}

static int use_trainer(family *f)
{
	ls_batch batch = take(f->s, f->set, 0);
	ls_eval_result result;

	if (!is_refused(ls_trainer_step(f->trainer, &batch, NULL)))
		return 1;
	if (!is_refused(ls_trainer_backward(f->trainer, &batch, NULL)))
		return 2;
	if (!is_refused(ls_trainer_run(f->trainer, f->set, 1, NULL)))
		return 3;
	if (!is_refused(ls_trainer_evaluate_dataset(f->trainer, f->set, &result)))
		return 4;
	if (!is_refused(ls_trainer_evaluate(f->trainer, &batch, &result)))
		return 5;
	if (!is_refused(ls_trainer_update(f->trainer, NULL)))
		return 6;
	ls_trainer_free(f->trainer);
	return 0;
}

static int use_model(family *f)
{
	float logits[COUNT * CLASSES];

	if (ls_model_predict(f->model, f->s->images, COUNT, logits) != LS_OK)
		return 1;
	if (memcmp(logits, f->logits, sizeof(logits)) != 0)
		return 2;
	ls_model_free(f->model);
	return 0;
}

static void make_family(family *f)
{
	ls_trainer_options o = options_of("adam");
	ls_batch batch;

	*f = (family){ .set = open_set("glyphs"), .s = malloc(sizeof(*f->s)) };
	f->model = make_model("mlp", f->set);
	assert_ok(ls_model_set_devices(f->model, 2, 2));
	o.threads = 2;
	assert_ok(ls_trainer_new(&f->trainer, f->model, &o));
	batch = take(f->s, f->set, 0);
	assert_ok(ls_trainer_step(f->trainer, &batch, NULL));
	assert_ok(ls_model_predict(f->model, f->s->images, COUNT, f->logits));
}

static void release_family(family *f)
{
	ls_trainer_free(f->trainer);
	ls_model_free(f->model);
	ls_dataset_free(f->set);
	free(f->s);
}

static void test_a_trainer(void **state)
{
	family f;
	(void)state;
	make_family(&f);
	assert_int_equal(status_of_child(use_trainer, &f), 0);
	ls_batch batch = take(f.s, f.set, 1);
	assert_ok(ls_trainer_step(f.trainer, &batch, NULL)); /* the parent's is as it was */
	release_family(&f);
}

static void test_a_model(void **state)
{
	family f;
	(void)state;
#ifdef __SANITIZE_THREAD__
	skip(); /* ThreadSanitizer lets no child of several threads start some */
#endif
	make_family(&f);
	assert_int_equal(status_of_child(use_model, &f), 0);
	release_family(&f);
}

/* Without threads of its own there is nothing to lose. */
static int step_alone(family *f)
{
	ls_batch batch = take(f->s, f->set, 0);
	return ls_trainer_step(f->trainer, &batch, NULL) != LS_OK;
}

static void test_one_thread(void **state)
{
	ls_trainer_options o = options_of("adam");
	family f = { .set = open_set("glyphs"), .s = malloc(sizeof(*f.s)) };
	(void)state;
	f.model = make_model("mlp", f.set);
	o.devices = 1;
	assert_ok(ls_trainer_new(&f.trainer, f.model, &o));
	assert_int_equal(step_alone(&f), 0);
	assert_int_equal(status_of_child(step_alone, &f), 0);
	release_family(&f);
}

TEST_MAIN(test_a_trainer, test_a_model, test_one_thread)
