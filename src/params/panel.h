/*
 * panel.h - how wide a panel is.
 *
 * Activations are stored [blocks][H][W][N][panel]: `panel` channels side by side, a multiple of 16 so that a row is
 * whole cache lines. Narrow layers get narrow panels; wide ones are cut into panels of 64, the last one padded with
 * zeros.
 */
#ifndef LS_PARAMS_PANEL_H
#define LS_PARAMS_PANEL_H

#define LS_PANEL_MAX 64

static inline int ls_panel_width(int channels)
{
	if (channels <= 16)
		return 16;
	return channels <= 32 ? 32 : LS_PANEL_MAX;
}

static inline int ls_panel_blocks(int channels)
{
	int width = ls_panel_width(channels);
	return (channels + width - 1) / width;
}

#endif
