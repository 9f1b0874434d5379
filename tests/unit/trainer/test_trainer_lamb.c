/* A step of LAMB, whose update depends on norms of whole parameters, against its formula. */
#include <math.h>

#include "unit/test_main.h"
#include "unit/trainer/quadrants.h"

/* A trainer's parameter, as PyTorch has it; to be freed. */
static float *exported(const ls_node_trainer *t, const ls_param *p)
{
	float *values = calloc(ls_param_elements(p), sizeof(float));
	ls_param_export(p, LS_STORE_WHOLE, t->params, values);
	return values;
}

/* The first step of LAMB on one parameter: m and v, corrected, are the gradient and its square. */
static void check_lamb(const ls_param *p, const float *before, const float *grads, const float *after, double lr,
		       const ls_hyper *h)
{
	size_t count = ls_param_elements(p), still = 0;
	double params = 0, direction = 0, *u = calloc(count, sizeof(*u));
	int weight = p->role == LS_ROLE_WEIGHT;
	for (size_t i = 0; i < count; i++) {
		u[i] = grads[i] / (fabs(grads[i]) + h->epsilon) + (weight ? h->weight_decay * before[i] : 0);
		params += (double)before[i] * before[i];
		direction += u[i] * u[i];
		still += grads[i] == 0;
	}
	double ratio = weight && params > 0 && direction > 0 ? sqrt(params / direction) : 1;
	for (size_t i = 0; i < count; i++)
		if (!(fabs(after[i] - (before[i] - lr * ratio * u[i])) < 2e-5 * lr * ratio + 1e-7))
			fail_msg("%s, element %zu: %.9g, expected %.9g", p->name, i, after[i],
				 before[i] - lr * ratio * u[i]);
	if (strcmp(p->name, "b.weight") == 0 && p->rank == 4)
		assert_true(still >= count * 16 / 25); /* unreachable taps count in the norms, and shrink */
	free(u);
}

/* Weights of several blocks, which begin and end inside of them. */
static ls_graph *make_wide_graph(void)
{
	ls_graph *g = NULL;
	assert_ok(ls_graph_new(&g));
	ls_value x =
		ls_linear(g, ls_input(g, 1, SIDE, SIDE), "a", (ls_linear_options){ .out_features = 250, .no_bias = 1 });
	x = ls_linear(g, ls_relu(g, x), "b", (ls_linear_options){ .out_features = 300, .no_bias = 1 });
	assert_ok(
		ls_graph_finish(g, ls_linear(g, x, "c", (ls_linear_options){ .out_features = CLASSES, .no_bias = 1 })));
	return g;
}

/* One step of LAMB against the formula, with gradients taken from a step of SGD. */
static void test_lamb(void **state)
{
	(void)state;
	for (int round = 0; round < 4; round++) {
		int wide = round / 2, devices = 1 + round % 2;
		ls_graph *graph[2];
		for (int i = 0; i < 2; i++)
			graph[i] = wide ? make_wide_graph() : make_graph(1);
		ls_node_trainer *t[2];
		batch b = make_batch(3, 40);
		float *before[64], *grads[64];
		const ls_param_table *table = &graph[1]->params;
		ls_hyper h = { .beta1 = 0.9, .beta2 = 0.999, .epsilon = 0.02, .weight_decay = 0.3 };
		assert_true(table->count <= 64);
		assert_true(!wide || table->reachable > 4 * LS_NORM_BLOCK);
		for (int i = 0; i < 2; i++) {
			ls_node_trainer_options o = base_options(graph[i], 20, 2);
			o.optimizer = i == 0 ? "sgd" : "lamb";
			o.hyper = i == 0 ? (ls_hyper){ 0 } : h;
			o.schedule.lr = i == 0 ? 1 : 0.05;
			o.devices = devices;
			assert_ok(ls_node_trainer_new(&t[i], &o));
			assert_ok(ls_node_trainer_init(t[i]));
			for (size_t r = 0; i == 0 && r < table->count; r++)
				if (ls_param_is_trained(&table->rows[r]))
					before[r] = exported(t[0], &graph[0]->params.rows[r]);
			step(t[i], &b, 20);
		}
		for (size_t r = 0; r < table->count; r++) {
			const ls_param *p = &table->rows[r];
			if (!ls_param_is_trained(p))
				continue;
			grads[r] = exported(t[0], &graph[0]->params.rows[r]);
			for (size_t i = 0; i < ls_param_elements(p); i++)
				grads[r][i] = before[r][i] - grads[r][i];
			float *after = exported(t[1], p);
			check_lamb(p, before[r], grads[r], after, 0.05, &h);
			free(after);
			free(grads[r]);
			free(before[r]);
		}
		free_batch(&b);
		for (int i = 0; i < 2; i++) {
			ls_node_trainer_free(t[i]);
			ls_graph_free(graph[i]);
		}
	}
}

TEST_MAIN(test_lamb)
