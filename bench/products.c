/*
 * products.c - the rate of a convolution's bare products: the small matrix products of libxsmm in the sizes, numbers
 * and memory that layers have, and nothing else. bench/large-images compares whole training steps with it.
 *
 * Standard input has a line per layer, "IN OUT KERNEL STRIDE SIZE SAMPLES TIMES": channels, kernel side, stride, side
 * of its input, samples, how often the model has it. Standard output has "FORWARD DX DW" in GFLOP/s per layer, then
 * "all" with the rate of all layers together.
 */
#include <libxsmm.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { BLOCK = 64, ROWS = 256, REPEATS = 3, GROUP = 4 };

typedef struct layer {
	int in, out, kernel, stride, size, samples, times;
	int to;                   /* side of the output */
	long in_panel, out_panel; /* rows of a block of channels, a row being a sample at a position */
	int in_blocks, out_blocks, depth;
	int run; /* positions per product */
	float *x, *y, *w, *dw;
} layer;

typedef libxsmm_smmfunction product;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static float *floats(size_t count)
{
	float *x = aligned_alloc(64, (count * sizeof(*x) + 63) / 64 * 64);

	if (!x)
		exit(3);
	for (size_t i = 0; i < count; i++)
		x[i] = (float)(i % 7) * 0.125f;
	return x;
}

/* y (rows, BLOCK) += x (rows, depth) w; of weight gradients dw (depth, BLOCK) += x^T y. */
static product make(int rows, int depth, int is_gradient)
{
	const float one = 1;
	const int ldw = BLOCK, ldx = depth, flags = is_gradient ? LIBXSMM_GEMM_FLAG_TRANS_B : LIBXSMM_GEMM_FLAG_NONE;
	product made = is_gradient
			       ? libxsmm_smmdispatch(BLOCK, depth, rows, &ldw, &ldx, &ldw, &one, &one, &flags, NULL)
			       : libxsmm_smmdispatch(BLOCK, rows, depth, &ldw, &ldx, &ldw, &one, &one, &flags, NULL);

	if (!made)
		exit(4);
	return made;
}

/* The row of the input that a tap of output position (row, column) begins at, moved into the image. */
static long source(const layer *l, int row, int column, int tap)
{
	int y = row * l->stride + tap / l->kernel - l->kernel / 2,
	    x = column * l->stride + tap % l->kernel - l->kernel / 2;
	int last = l->size - ((l->stride == 1 ? l->run : 1) < l->size ? (l->stride == 1 ? l->run : 1) : l->size);

	y = y < 0 ? 0 : y >= l->size ? l->size - 1 : y;
	x = x < 0 ? 0 : x > last ? last : x;
	return ((long)y * l->size + x) * l->samples;
}

/* Forward: from x to y; otherwise the gradient of the input, from y to x. */
static void walk(const layer *l, product multiply, int is_forward)
{
	const int taps = l->depth == BLOCK ? l->kernel * l->kernel : 1;
	const int to_blocks = is_forward ? l->out_blocks : l->in_blocks,
		  from_blocks = is_forward ? l->in_blocks : l->out_blocks;

	for (int to = 0; to < to_blocks; to++)
		for (int row = 0; row < l->to; row++)
			for (int column = 0; column + l->run <= l->to; column += l->run)
				for (int tap = 0; tap < taps; tap++)
					for (int from = 0; from < from_blocks; from++) {
						long in = source(l, row, column, tap),
						     out = ((long)row * l->to + column) * l->samples;
						float *x =
							l->x + ((is_forward ? from : to) * l->in_panel + in) * l->depth;
						float *y =
							l->y + ((is_forward ? to : from) * l->out_panel + out) * BLOCK;
						const float *w = l->w + (((long)to * from_blocks + from) * taps + tap) *
										l->depth * BLOCK;
						multiply(w, is_forward ? x : y, is_forward ? y : x);
					}
}

/* The gradient of the weights: positions stay in the second-level cache for the taps and a group of blocks of
 * channels. */
static void walk_weights(const layer *l, product multiply)
{
	const int taps = l->depth == BLOCK ? l->kernel * l->kernel : 1;

	for (int out = 0; out < l->out_blocks; out++)
		for (int first = 0; first < l->in_blocks; first += GROUP)
			for (int row = 0; row < l->to; row++)
				for (int column = 0; column + l->run <= l->to; column += l->run)
					for (int in = first; in < first + GROUP && in < l->in_blocks; in++)
						for (int tap = 0; tap < taps; tap++)
							multiply(
								l->y + (out * l->out_panel +
									((long)row * l->to + column) * l->samples) *
										BLOCK,
								l->x + (in * l->in_panel +
									source(l, row, column, tap)) *
										l->depth,
								l->dw + (((long)out * l->in_blocks + in) * taps + tap) *
										l->depth * BLOCK);
}

/* A first layer gathers its patches: rows of KERNEL x KERNEL x IN numbers, here one chunk of them again and again. */
static void prepare(layer *l)
{
	l->to = (l->size + l->stride - 1) / l->stride;
	l->depth = l->in < BLOCK ? l->in * l->kernel * l->kernel : BLOCK;
	l->in_blocks = l->in < BLOCK ? 1 : l->in / BLOCK;
	l->out_blocks = l->out / BLOCK;
	l->out_panel = (long)l->to * l->to * l->samples;
	l->in_panel = (long)l->size * l->size * l->samples;
	l->run = 1;
	if (l->stride == 1 || l->kernel == 1 || l->depth != BLOCK) /* 1x1: what a stride skips is left out before */
		for (int run = 1; run <= l->to && run * l->samples <= ROWS; run++)
			l->run = l->to % run ? l->run : run;
	if (l->kernel == 1 || l->depth != BLOCK) {
		l->stride = 1;
		l->size = l->to;
		l->in_panel = l->out_panel;
	}
	l->x = floats((size_t)l->in_blocks * (size_t)l->in_panel * (size_t)l->depth);
	l->y = floats((size_t)l->out_blocks * (size_t)l->out_panel * BLOCK);
	size_t weights = (size_t)l->in_blocks * (size_t)l->out_blocks * (size_t)(l->kernel * l->kernel) *
			 (size_t)l->depth * BLOCK;
	l->w = floats(weights);
	l->dw = floats(weights);
}

/* The shortest time of one direction: 0 forward, 1 the gradient of the input, 2 that of the weights. */
static double seconds_of(const layer *l, int direction)
{
	product multiply = make(l->run * l->samples, l->depth, direction == 2);
	double least = 1e30;

	for (int repeat = 0; repeat < REPEATS; repeat++) {
		double begin = now();
		if (direction == 2)
			walk_weights(l, multiply);
		else
			walk(l, multiply, direction == 0);
		double seconds = now() - begin;
		least = seconds < least ? seconds : least;
	}
	return least;
}

int main(void)
{
	double all_work = 0, all_seconds = 0;
	layer l;

	libxsmm_init();
	while (scanf("%d %d %d %d %d %d %d", &l.in, &l.out, &l.kernel, &l.stride, &l.size, &l.samples, &l.times) == 7) {
		prepare(&l);
		double work = 2.0 * (double)l.out_panel * l.out_blocks * BLOCK * l.in * l.kernel * l.kernel;
		for (int direction = 0; direction < 3; direction++) {
			if (direction == 1 && l.in < BLOCK) { /* a first layer has none */
				printf(" -");
				continue;
			}
			double seconds = seconds_of(&l, direction);
			printf(" %.1f", work / seconds / 1e9);
			all_work += work * l.times;
			all_seconds += seconds * l.times;
		}
		printf("\n");
		free(l.x), free(l.y), free(l.w), free(l.dw);
	}
	printf("all %.2f\n", all_work / all_seconds / 1e9);
	return 0;
}
