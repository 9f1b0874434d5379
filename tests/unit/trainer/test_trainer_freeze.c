/* Training with frozen parameters: they keep their bits with every optimizer, and devices change nothing. */
#include <stdio.h>

#include "optim/optimizer.h"
#include "unit/test_main.h"
#include "unit/trainer/quadrants.h"

static const char frozen[] = "stem.*,n0.*,b.weight,n2.weight";

/* The values of every row, one behind the other. */
static float *values_of(const ls_node_trainer *t, size_t *count)
{
	const ls_param_table *table = &t->graph->params;
	float *values, *at;

	*count = 0;
	for (size_t i = 0; i < table->count; i++)
		*count += ls_param_elements(&table->rows[i]);
	values = at = calloc(*count, sizeof(float));
	assert_non_null(values);
	for (size_t i = 0; i < table->count; i++) {
		const ls_param *p = &table->rows[i];
		if (p->role != LS_ROLE_COUNTER)
			ls_param_export(p, LS_STORE_WHOLE, ls_param_is_trained(p) ? t->params : t->buffers, at);
		at += ls_param_elements(p);
	}
	return values;
}

/* n0 is frozen as a whole, and so are its running statistics; n2's weight alone, and its statistics go on. */
static int stays(const ls_param *p)
{
	return p->is_frozen || strncmp(p->name, "n0.", 3) == 0 || p->role == LS_ROLE_COUNTER;
}

static void compare(const ls_node_trainer *t, const float *before, const float *after, const char *optimizer)
{
	for (size_t i = 0; i < t->graph->params.count; i++) {
		const ls_param *p = &t->graph->params.rows[i];
		size_t count = ls_param_elements(p);
		int same = memcmp(before, after, count * sizeof(float)) == 0;
		if (same != stays(p))
			fail_msg("%s: %s %s", optimizer, p->name, same ? "has not changed" : "has changed");
		before += count;
		after += count;
	}
}

typedef struct layout {
	int devices, threads, microbatches;
	double clip_norm;
} layout;

static uint64_t train(const char *optimizer, layout l)
{
	ls_graph *g = make_graph(1);
	ls_node_trainer *t = NULL;
	size_t count;
	uint64_t fingerprint;

	assert_ok(ls_graph_freeze(g, frozen));
	ls_node_trainer_options o = base_options(g, 20 / l.microbatches, l.microbatches);
	o.optimizer = optimizer;
	o.hyper.weight_decay = 0.1;
	o.devices = l.devices;
	o.threads = l.threads;
	o.clip_norm = l.clip_norm;
	assert_ok(ls_node_trainer_new(&t, &o));
	assert_ok(ls_node_trainer_init(t));
	float *before = values_of(t, &count);
	for (int s = 0; s < 3; s++) {
		batch b = make_batch((uint64_t)s * 20, 20);
		step(t, &b, o.microbatch);
		free_batch(&b);
	}
	float *after = values_of(t, &count);
	compare(t, before, after, optimizer);
	assert_ok(ls_node_trainer_fingerprint(t, &fingerprint));
	free(before);
	free(after);
	ls_node_trainer_free(t);
	ls_graph_free(g);
	return fingerprint;
}

static void every_optimizer(void **state)
{
	const char *name;
	(void)state;
	for (size_t i = 0; (name = ls_optimizer_name_at(i)); i++) {
		train(name, (layout){ 1, 1, 1, 0 }); /* layers are updated while backward goes on */
		uint64_t one = train(name, (layout){ 1, 1, 4, 0 }), clipped = train(name, (layout){ 1, 2, 4, 0.01 });
		assert_int_equal(train(name, (layout){ 2, 1, 4, 0 }), one);
		assert_int_equal(train(name, (layout){ 3, 2, 4, 0 }), one);
		assert_int_equal(train(name, (layout){ 2, 1, 4, 0.01 }), clipped);
		assert_int_not_equal(one, clipped);
	}
}

/* The norm that clips is that of what is trained. */
static void clipping_counts_what_is_trained(void **state)
{
	double norm[2];
	(void)state;
	for (int i = 0; i < 2; i++) {
		ls_graph *g = make_graph(0);
		ls_node_trainer *t = NULL;
		ls_node_trainer_report report;
		batch b = make_batch(0, 20);
		assert_ok(ls_graph_freeze(g, i ? "stem.*" : NULL));
		ls_node_trainer_options o = base_options(g, 10, 2);
		o.clip_norm = 1e6;
		assert_ok(ls_node_trainer_new(&t, &o));
		assert_ok(ls_node_trainer_init(t));
		step(t, &b, 10);
		assert_ok(ls_node_trainer_report_of(t, 0, &report));
		norm[i] = report.gradient_norm;
		free_batch(&b);
		ls_node_trainer_free(t);
		ls_graph_free(g);
	}
	assert_true(norm[1] > 0 && norm[1] < 0.999 * norm[0]);
}

TEST_MAIN(every_optimizer, clipping_counts_what_is_trained)
