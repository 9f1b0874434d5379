/*
 * Convolution in bf16, element by element: the bits that every processor and kernel must find, from the formula.
 */
#include "unit/kernels/conv_kit.h"

#include "unit/test_main.h"

static float rounded(float x)
{
	uint32_t bits;
	memcpy(&bits, &x, sizeof(bits));
	bits = (bits + 0x7fffu + (bits >> 16 & 1u)) & 0xffff0000u;
	memcpy(&x, &bits, sizeof(x));
	return x;
}

/* One element of the formula: pairs in order, of bf16 the second one first; of bf16-amx in steps of 16 pairs of a part,
 * each with a sum of the first and one of the second elements. */
typedef struct chain {
	float sum, of[2]; /* `of`: of a step */
	int pairs;        /* of a step, so far */
} chain;

static void end_part(chain *c)
{
	c->sum += c->of[0] + c->of[1];
	c->of[0] = c->of[1] = 0;
	c->pairs = 0;
}

static void add_pair(chain *c, const ls_bf16_kernels *bf16, const float x[2], const float w[2])
{
	if (bf16->turned && c->pairs == 16)
		end_part(c);
	for (int i = 1; i >= 0; i--) {
		float *to = bf16->turned ? &c->of[i] : &c->sum;
		*to = fmaf(rounded(x[i]), rounded(w[i]), *to);
	}
	c->pairs++;
}

static float output_in_bf16(const conv_kit *k, int64_t i, int o, int py, int px)
{
	const ls_conv_geometry *g = &k->geometry;
	chain sum = { 0 };
	for (int tap = 0; tap < g->kernel_h * g->kernel_w; tap++) {
		int y = py * g->stride - g->padding + tap / g->kernel_w,
		    x = px * g->stride - g->padding + tap % g->kernel_w;
		if (y < 0 || y >= g->in_h || x < 0 || x >= g->in_w)
			continue;
		for (int c = 0; c < g->in_c; c += 2) {
			float a[2] = { 0 }, b[2] = { 0 };
			for (int s = 0; s < 2 && c + s < g->in_c; s++) {
				a[s] = k->x[((i * g->in_c + c + s) * g->in_h + y) * g->in_w + x];
				b[s] = k->w[(o * g->in_c + c + s) * g->kernel_h * g->kernel_w + tap];
			}
			add_pair(&sum, k->bf16, a, b);
		}
		end_part(&sum);
	}
	return sum.sum;
}

static float input_in_bf16(const conv_kit *k, int64_t i, int c, int y, int x)
{
	const ls_conv_geometry *g = &k->geometry;
	chain sum = { 0 };
	for (int tap = 0; tap < g->kernel_h * g->kernel_w; tap++) {
		int py = y + g->padding - tap / g->kernel_w, px = x + g->padding - tap % g->kernel_w;
		if (py < 0 || py % g->stride || py / g->stride >= g->out_h || px < 0 || px % g->stride ||
		    px / g->stride >= g->out_w)
			continue;
		int p = py / g->stride * g->out_w + px / g->stride;
		for (int o = 0; o < g->out_c; o += 2) {
			float a[2] = { 0 }, b[2] = { 0 };
			for (int s = 0; s < 2 && o + s < g->out_c; s++) {
				a[s] = k->dy[(i * g->out_c + o + s) * g->out_h * g->out_w + p];
				b[s] = k->w[((o + s) * g->in_c + c) * g->kernel_h * g->kernel_w + tap];
			}
			add_pair(&sum, k->bf16, a, b);
		}
		end_part(&sum);
	}
	return sum.sum;
}

/* A part of a weight gradient is what a tap reaches of 256 pairs of samples, at most 64 positions of a row of the map;
 * a 1x1 layer's map is one row, and with a stride each position is a part. */
static int ends_part(const conv_kit *k, int p)
{
	const ls_conv_geometry *g = &k->geometry;
	const int64_t half = (k->out.n + 1) / 2, most = half > 256 ? 1 : 256 / half > 64 ? 64 : 256 / half;
	const int is_pointwise = g->kernel_h * g->kernel_w == 1 && g->padding == 0;
	const int width = is_pointwise ? g->out_h * g->out_w : g->out_w, at = p % width;
	return g->stride > 1 || (at + 1) % (most < width ? most : width) == 0 || at + 1 == width;
}

static float weight_in_bf16(const conv_kit *k, int o, int c, int tap)
{
	const ls_conv_geometry *g = &k->geometry;
	chain sum = { 0 };
	for (int p = 0; p < g->out_h * g->out_w; p++) {
		int y = p / g->out_w * g->stride - g->padding + tap / g->kernel_w,
		    x = p % g->out_w * g->stride - g->padding + tap % g->kernel_w;
		const int is_reached = y >= 0 && y < g->in_h && x >= 0 && x < g->in_w;
		for (int64_t i = 0; is_reached && i < k->out.n; i += 2) {
			float a[2] = { 0 }, b[2] = { 0 };
			for (int s = 0; s < 2 && i + s < k->out.n; s++) {
				a[s] = k->x[(((i + s) * g->in_c + c) * g->in_h + y) * g->in_w + x];
				b[s] = k->dy[((i + s) * g->out_c + o) * g->out_h * g->out_w + p];
			}
			add_pair(&sum, k->bf16, a, b);
		}
		if (ends_part(k, p))
			end_part(&sum);
	}
	return sum.sum;
}

static void check_bits(const conv_kit *k, const conv_made *m)
{
	const int taps = k->geometry.kernel_h * k->geometry.kernel_w, in = k->in.h * k->in.w, out = k->out.h * k->out.w;
	const int64_t outputs = panels_dense(&k->out), inputs = panels_dense(&k->in);
	const int64_t weights = (int64_t)ls_param_elements(&k->weight);
	float *want = check_floats(outputs), *got = check_floats(outputs);
	float *dx = check_floats(inputs), *got_dx = check_floats(inputs);
	float *dw = check_floats(weights), *got_dw = check_floats(weights);

	for (int64_t e = 0; e < outputs; e++)
		want[e] = output_in_bf16(k, e / out / k->out.c, (int)(e / out % k->out.c), (int)(e % out / k->out.w),
					 (int)(e % out % k->out.w));
	for (int64_t e = 0; e < inputs; e++)
		dx[e] = input_in_bf16(k, e / in / k->in.c, (int)(e / in % k->in.c), (int)(e % in / k->in.w),
				      (int)(e % in % k->in.w));
	for (int64_t e = 0; e < weights; e++)
		dw[e] = weight_in_bf16(k, (int)(e / taps / k->in.c), (int)(e / taps % k->in.c), (int)(e % taps));
	panels_unpack(&k->out, m->y, got);
	panels_unpack(&k->in, m->dx, got_dx);
	ls_param_export(&k->weight, LS_STORE_REACHABLE, m->dw, got_dw);
	check_same(k->name, got, want, outputs);
	check_same(k->name, got_dx, dx, inputs);
	check_same(k->name, got_dw, dw, weights);
	float *all[] = { want, got, dx, got_dx, dw, got_dw };
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		free(all[i]);
}

static void check_elements(const conv_shape *s, const ls_bf16_kernels *bf16)
{
	conv_kit k;
	conv_made m;
	conv_kit_init(&k, s, LS_CONV_DIRECT, bf16, 0);
	conv_run(&k, &m, 2, 0, 0);
	check_bits(&k, &m);
	conv_made_release(&m);
	conv_kit_release(&k);
}

/* The bits of ordinary numbers, element by element: what other processors and kernels must find as well. */
static void test_bf16_bits(void **state)
{
	static const conv_shape shapes[] = { { 70, 40, 5, 4, 3, 3, 1, 1, 7 },   { 64, 64, 7, 7, 3, 3, 2, 1, 4 },
					     { 130, 20, 4, 4, 1, 1, 2, 0, 33 }, { 32, 16, 12, 3, 3, 3, 1, 1, 2 },
					     { 16, 70, 20, 9, 1, 1, 1, 0, 3 },  { 20, 20, 9, 30, 3, 3, 1, 1, 1 },
					     { 20, 36, 6, 11, 3, 3, 1, 1, 64 }, { 70, 16, 9, 9, 1, 1, 1, 0, 16 } };
	(void)state;
	for (size_t n = 0; n < sizeof(shapes) / sizeof(*shapes); n++) {
		check_elements(&shapes[n], ls_bf16_get());
		check_elements(&shapes[n], ls_bf16_amx_get());
		check_elements(&shapes[n], &ls_simd_get()->bf16_amx); /* emulated, whatever the processor has */
	}
}

TEST_MAIN(test_bf16_bits)
