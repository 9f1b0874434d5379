/*
 * Counts of a step are exact above 2^24, where a float is not: through the short way of one device, between devices,
 * and between nodes.
 */
#include "comm/collectives.h"
#include "trainer/counts.h"
#include "unit/test_main.h"
#include "unit/trainer/gang.h"
#include "unit/trainer/quadrants.h"

enum { TOKENS = (1 << 24) + 1, MASKED = (1 << 25) + 3, CORRECT = (1 << 24) + 5, TOKEN_CORRECT = INT32_MAX };

static void test_digits(void **state)
{
	static const int64_t counts[] = { 0, 1, 15, 16, (1 << 24) + 1, INT32_MAX, UINT32_MAX };
	(void)state;
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		float digits[LS_COUNT_DIGITS], sums[LS_COUNT_DIGITS] = { 0 };
		ls_count_put(digits, counts[i]);
		assert_int_equal(ls_count_get(digits), counts[i]);
		for (int k = 0; k < 70000; k++)
			for (int d = 0; d < LS_COUNT_DIGITS; d++)
				sums[d] += digits[d];
		assert_int_equal(ls_count_get(sums), 70000 * counts[i]);
	}
}

/* A backend without host threads that computes nothing, and says that it was right very often. */
typedef struct claimer {
	ls_executor executor;
	const ls_graph *graph;
} claimer;

static void claim(ls_executor *executor, ls_exec_microbatch *microbatch)
{
	const ls_graph *graph = ((claimer *)executor)->graph;
	const ls_member alone = { .rank = 0, .size = 1 };
	size_t reachable = graph->params.reachable;

	microbatch->loss = 1;
	microbatch->correct = CORRECT;
	microbatch->token_correct = TOKEN_CORRECT;
	if (microbatch->need)
		microbatch->need(microbatch->need_context, 0, reachable, alone);
	memset(microbatch->grads, 0, reachable * sizeof(float));
	microbatch->ready(microbatch->ready_context, 0, reachable, microbatch->grads, alone);
}

static ls_status load(ls_executor **out, void *devices, int device, const ls_graph *graph,
		      const ls_load_options *options);

static ls_status open_devices(void **devices, const ls_devices_options *options)
{
	static int some;
	(void)options;
	*devices = &some;
	return LS_OK;
}

static void close_devices(void *devices)
{
	(void)devices;
}

static void unload(ls_executor *executor)
{
	free(executor);
}

static void set_params(ls_executor *executor, const float *params, const float *buffers)
{
	(void)executor;
	assert_non_null(params);
	assert_non_null(buffers);
}

static size_t shared_grads(const ls_graph *graph, int64_t n)
{
	(void)graph, (void)n;
	return 0;
}

static const ls_backend claims = { .name = "claims",
				   .shared_grads = shared_grads,
				   .open = open_devices,
				   .close = close_devices,
				   .load = load,
				   .unload = unload,
				   .set_params = set_params,
				   .train = claim };

static ls_status load(ls_executor **out, void *devices, int device, const ls_graph *graph,
		      const ls_load_options *options)
{
	claimer *c = calloc(1, sizeof(*c));
	(void)devices, (void)device, (void)options;
	assert_non_null(c);
	*c = (claimer){ .executor = { &claims }, .graph = graph };
	*out = &c->executor;
	return LS_OK;
}

/* One sample of very many tokens. */
static ls_status next_long(void *context, int device, const ls_microbatch **microbatch)
{
	static const int32_t start[] = { 0, TOKENS }, masked_start[] = { 0, MASKED };
	static const ls_packed text = { .start = start, .masked_start = masked_start, .step_masked = 1 };
	static const ls_microbatch only = { .count = 1, .text = &text, .step_samples = 1 };
	(void)context, (void)device;
	*microbatch = &only;
	return LS_OK;
}

static ls_node_trainer_options claiming(ls_graph *graph, int64_t microbatches, int devices)
{
	ls_node_trainer_options o = base_options(graph, 1, microbatches);
	o.devices = devices;
	o.backend = &claims;
	o.next = next_long;
	return o;
}

static void check_report(const ls_node_trainer_report *r, int64_t microbatches)
{
	assert_int_equal(r->samples, microbatches);
	assert_int_equal(r->correct, microbatches * CORRECT);
	assert_int_equal(r->tokens, microbatches * TOKENS);
	assert_int_equal(r->masked, microbatches * MASKED);
	assert_int_equal(r->token_correct, microbatches * TOKEN_CORRECT);
	assert_true(r->loss == (double)microbatches);
}

static void test_one_node(void **state)
{
	(void)state;
	for (int64_t microbatches = 1; microbatches <= 7; microbatches++)
		for (int devices = 1; devices <= 3; devices++) {
			ls_graph *g = make_graph(0);
			ls_node_trainer_options o = claiming(g, microbatches, devices);
			ls_node_trainer_assignment assign = { .microbatches = microbatches, .samples = microbatches };
			ls_node_trainer_report r;
			ls_node_trainer *t = NULL;
			assert_ok(ls_node_trainer_new(&t, &o));
			assert_ok(ls_node_trainer_init(t));
			for (uint64_t s = 0; s < 2; s++) {
				assert_ok(ls_node_trainer_step(t, &assign));
				assert_ok(ls_node_trainer_report_of(t, s, &r));
				check_report(&r, microbatches);
			}
			ls_node_trainer_free(t);
			ls_graph_free(g);
		}
}

enum { NODE_MICROBATCHES = 5 };

typedef struct node {
	gang_node gang;
	ls_graph *graph;
	const ls_strategy *strategy;
	ls_node_trainer_report report;
} node;

static ls_status take_steps(node *n, ls_comm *comm, ls_node_trainer **out)
{
	static const int node_of[NODE_MICROBATCHES] = { 0, 0, 1, 1, 1 },
			 device_of[NODE_MICROBATCHES] = { 0, 0, 0, 0, 0 };
	ls_node_trainer_options o = claiming(n->graph, NODE_MICROBATCHES, 1);
	ls_node_trainer_assignment assign = {
		.microbatches = NODE_MICROBATCHES, .samples = NODE_MICROBATCHES, .node = node_of, .device = device_of
	};

	o.comm = comm;
	o.strategy = n->strategy;
	o.codec = &ls_codec_sparse_fp32;
	LS_TRY(ls_node_trainer_new(out, &o));
	LS_TRY(ls_node_trainer_init(*out));
	ls_node_trainer_start_at(*out, 0, 0);
	for (int s = 0; s < 2; s++)
		LS_TRY(ls_node_trainer_step(*out, &assign));
	LS_TRY(ls_node_trainer_drain(*out));
	LS_TRY(ls_node_trainer_report_of(*out, 1, &n->report));
	return ls_comm_barrier(comm, "the end");
}

static ls_status live(gang_node *self, ls_comm *comm)
{
	ls_node_trainer *t = NULL;
	ls_status status = take_steps((node *)self, comm, &t);
	ls_comm_free(comm, status != LS_OK ? ls_last_error() : NULL);
	ls_node_trainer_free(t);
	return status;
}

static void test_nodes(void **state)
{
	(void)state;
	const ls_strategy *const rows[] = { &ls_strategy_allreduce, &ls_strategy_mpi };
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		node nodes[2] = { { .graph = make_graph(0), .strategy = rows[i] },
				  { .graph = make_graph(0), .strategy = rows[i] } };
		gang_run(nodes, sizeof(nodes[0]), 2, live);
		for (int n = 0; n < 2; n++) {
			assert_string_equal(nodes[n].gang.message, "");
			check_report(&nodes[n].report, NODE_MICROBATCHES);
			ls_graph_free(nodes[n].graph);
		}
	}
}

TEST_MAIN(test_digits, test_one_node, test_nodes)
