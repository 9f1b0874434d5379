/* Cross-entropy against PyTorch's (tests/golden/losses.txt, made by make_losses.py): labels and float targets, with
 * label smoothing, with weights of classes, and with both. */
#include <math.h>

#include "unit/graph/net.h"
#include "unit/test_main.h"

enum { ROWS = 9, CLASSES = 5, CASES = 12 };
#define TOLERANCE 2e-6

typedef struct golden {
	FILE *stream;
	float logits[ROWS * CLASSES], labels[ROWS], targets[ROWS * CLASSES], weights[CLASSES];
} golden;

static void read_floats(FILE *stream, const char *expected, float *out, int count)
{
	char word[32];
	assert_int_equal(fscanf(stream, "%31s", word), 1);
	assert_string_equal(word, expected);
	for (int i = 0; i < count; i++)
		assert_int_equal(fscanf(stream, "%f", &out[i]), 1);
}

static void read_inputs(golden *g)
{
	char comment[256];
	g->stream = fopen(LS_GOLDEN_DIR "/losses.txt", "r");
	assert_non_null(g->stream);
	assert_non_null(fgets(comment, sizeof(comment), g->stream));
	read_floats(g->stream, "logits", g->logits, ROWS * CLASSES);
	read_floats(g->stream, "labels", g->labels, ROWS);
	read_floats(g->stream, "targets", g->targets, ROWS * CLASSES);
	read_floats(g->stream, "weights", g->weights, CLASSES);
}

static double loss_of(const golden *g, float smoothing, int is_weighted, int is_soft)
{
	const ls_cross_entropy_options options = { .label_smoothing = smoothing,
						   .class_weights = is_weighted ? g->weights : NULL };
	ls_graph *graph = net_graph();
	ls_value x = ls_input(graph, CLASSES, 1, 1), packed = ls_graph_add(graph, &ls_op_pack, NULL, &x, NULL);
	net t;

	ls_graph_add(graph, &ls_op_cross_entropy, NULL, &packed, &options);
	assert_ok(ls_graph_finish(graph, packed));
	net_init(&t, graph, ROWS, 0, 2, 1);
	if (is_soft)
		net_use_targets(&t);
	memcpy(t.images, g->logits, sizeof(g->logits));
	for (int i = 0; i < ROWS; i++)
		t.labels[i] = (int32_t)g->labels[i];
	if (is_soft)
		memcpy(t.targets, g->targets, sizeof(g->targets));
	ls_exec_microbatch microbatch = net_microbatch(&t, ROWS);
	ls_exec_infer(t.exec, &microbatch, NULL);
	net_release(&t);
	return microbatch.loss;
}

static void test_cross_entropy(void **state)
{
	golden g;

	(void)state;
	read_inputs(&g);
	for (int i = 0; i < CASES; i++) {
		float smoothing;
		int is_weighted, is_soft;
		double expected;
		assert_int_equal(fscanf(g.stream, " case %f %d %d %lf", &smoothing, &is_weighted, &is_soft, &expected),
				 4);
		double found = loss_of(&g, smoothing, is_weighted, is_soft);
		if (!(fabs(found - expected) <= TOLERANCE * expected))
			fail_msg("label smoothing %g, weights %d, float targets %d: %.9g, PyTorch's %.9g",
				 (double)smoothing, is_weighted, is_soft, found, expected);
	}
	fclose(g.stream);
}

TEST_MAIN(test_cross_entropy)
