/*
 * conv_gather.c - lay out the patches of a layer with few input channels.
 */
#include "kernels/conv_walk.h"

/* One patch: depth index = tap * channels + channel, zeros where the tap is outside. */
static void gather_patch(const ls_conv_geometry *g, const float *image, int oy, int ox, float *patch)
{
	for (int r = 0; r < g->kernel_h; r++) {
		int iy = oy * g->stride - g->padding + r;
		for (int s = 0; s < g->kernel_w; s++) {
			int ix = ox * g->stride - g->padding + s;
			int inside = iy >= 0 && iy < g->in_h && ix >= 0 && ix < g->in_w;
			for (int c = 0; c < g->in_c; c++)
				*patch++ = inside ? image[(c * g->in_h + iy) * g->in_w + ix] : 0;
		}
	}
}

/* The same for one channel: whole filter rows at a time. Columns [s0, s1) of the filter are inside; there may be none.
 */
static void gather_patch_grey(const ls_conv_geometry *g, const float *image, int oy, int ox, float *patch)
{
	int x0 = ox * g->stride - g->padding;
	int s0 = ls_min_int(x0 < 0 ? -x0 : 0, g->kernel_w), right = ls_min_int(g->in_w - x0, g->kernel_w);

	for (int r = 0; r < g->kernel_h; r++, patch += g->kernel_w) {
		int iy = oy * g->stride - g->padding + r;
		int s1 = iy >= 0 && iy < g->in_h && right > s0 ? right : s0;
		for (int s = 0; s < s0; s++)
			patch[s] = 0;
		for (int s = s0; s < s1; s++)
			patch[s] = image[iy * g->in_w + x0 + s];
		for (int s = s1; s < g->kernel_w; s++)
			patch[s] = 0;
	}
}

void ls_conv_gather(const ls_conv_geometry *g, int64_t n, const float *images, float *patches, ls_member member)
{
	int64_t image = (int64_t)g->in_c * g->in_h * g->in_w, row = ls_conv_patch_floats(g), unit;
	int depth = g->in_c * g->kernel_h * g->kernel_w;

	while ((unit = ls_team_next(member, (int64_t)g->out_h * g->out_w)) >= 0) {
		int oy = (int)(unit / g->out_w), ox = (int)(unit % g->out_w);
		float *patch = patches + unit * n * row;
		for (int64_t i = 0; i < n; i++, patch += row) {
			(g->in_c == 1 ? gather_patch_grey : gather_patch)(g, images + i * image, oy, ox, patch);
			if (depth < row)
				patch[depth] = 0; /* the other one of a pair in bf16 */
		}
	}
}
