/*
 * custom_dataset.c - a custom dataset: stripes that lean one way or the other, drawn when they are asked for.
 *
 * A dataset is a function from an index to a sample. It must depend on the index alone (any thread may ask, in any
 * order, more than once); then shuffling, reading ahead, resuming and spreading over machines are the library's
 * business.
 *
 *     cc custom_dataset.c $(pkg-config --cflags --libs lockstep) -lm && ./a.out
 */
#include <lockstep/lockstep.h>
#include <math.h>
#include <stdio.h>

enum { SIDE = 16 };

/* What the dataset needs to know: where its samples start, so that training and test do not overlap. */
typedef struct stripes {
	uint64_t first;
} stripes;

/* A number in [0, 1) that depends on (index, k) alone: splitmix64's finaliser. */
static double unit(uint64_t index, uint64_t k)
{
	uint64_t z = (index * 1024 + k + 1) * 0x9e3779b97f4a7c15u;
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return (double)((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

/* cos(2 pi (x cos a + y sin a) / period + phase) in noise; the sign of the angle a is the label. */
static ls_status read_stripes(void *self, uint64_t index, float *image, int32_t *label)
{
	uint64_t i = ((const stripes *)self)->first + index;
	int right = unit(i, 0) < 0.5;
	double angle = (0.15 + 1.2 * unit(i, 1)) * (right ? 1 : -1), phase = 6.2832 * unit(i, 2);
	double turns = 6.2832 / (4 + 4 * unit(i, 3)); /* periods of 4 to 8 pixels */

	for (int y = 0; y < SIDE; y++)
		for (int x = 0; x < SIDE; x++) {
			double wave = cos(turns * (x * cos(angle) + y * sin(angle)) + phase);
			image[y * SIDE + x] = (float)(wave + 2 * (unit(i, 4 + (uint64_t)(y * SIDE + x)) - 0.5));
		}
	*label = right;
	return LS_OK;
}

static ls_status open_stripes(ls_dataset **out, stripes *self, uint64_t samples)
{
	static const ls_dataset_ops ops = { .read = read_stripes };
	const ls_dataset_info info = {
		.name = "stripes", .samples = samples, .channels = 1, .height = SIDE, .width = SIDE, .classes = 2
	};
	return ls_dataset_new(out, &info, &ops, self);
}

static ls_status build(ls_graph *g)
{
	ls_value x = ls_input(g, 1, SIDE, SIDE);
	x = ls_relu(g, ls_conv2d(g, x, "conv1", (ls_conv_options){ .out_channels = 16, .kernel = 5, .padding = 2 }));
	x = ls_max_pool2d(g, x, (ls_pool_options){ .kernel = 2 });
	x = ls_relu(g, ls_conv2d(g, x, "conv2", (ls_conv_options){ .out_channels = 32, .kernel = 3, .padding = 1 }));
	x = ls_global_avg_pool(g, x);
	return ls_graph_finish(g, ls_linear(g, x, "fc", (ls_linear_options){ .out_features = 2 }));
}

static ls_status train(ls_graph *graph, const ls_dataset *train_set, const ls_dataset *test_set,
		       ls_train_result *result)
{
	ls_train_options options = LS_TRAIN_OPTIONS_INIT;
	options.graph = graph;
	options.train_set = train_set;
	options.test_set = test_set;
	options.batch = 64;
	options.epochs = 3;
	options.lr = 0.005;
	return ls_train(&options, result);
}

int main(void)
{
	stripes learn = { 0 }, ask = { 1000000 };
	ls_graph *graph = NULL;
	ls_dataset *train_set = NULL, *test_set = NULL;
	ls_train_result result;
	ls_status status = ls_graph_new(&graph);

	if (status == LS_OK)
		status = build(graph);
	if (status == LS_OK)
		status = open_stripes(&train_set, &learn, 8000);
	if (status == LS_OK)
		status = open_stripes(&test_set, &ask, 1000);
	if (status == LS_OK)
		status = train(graph, train_set, test_set, &result);
	ls_dataset_free(test_set);
	ls_dataset_free(train_set);
	ls_graph_free(graph);
	if (status != LS_OK) {
		fprintf(stderr, "custom_dataset: %s\n", ls_last_error());
		return 1;
	}
	printf("accuracy %.4f on stripes it has not seen\n", result.test_accuracy);
	return result.test_accuracy >= 0.95 ? 0 : 1;
}
