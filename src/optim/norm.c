/*
 * norm.c - the global gradient norm over fixed blocks: no split over threads or shard owners changes its bits.
 */
#include "optim/optimizer.h"
#include "optim/simd.h"

size_t ls_norm_blocks(size_t count)
{
	return count / LS_NORM_BLOCK + (count % LS_NORM_BLOCK != 0);
}

void ls_norm_block_sums(const float *x, size_t count, size_t first_block, size_t last_block, double *sums)
{
	const ls_optim_simd *simd = ls_optim_simd_get();
	for (size_t block = first_block; block < last_block; block++) {
		size_t begin = block * LS_NORM_BLOCK;
		size_t length = count - begin < LS_NORM_BLOCK ? count - begin : LS_NORM_BLOCK;
		sums[block] = simd->sum_squares(x + begin, length);
	}
}

double ls_norm_combine(const double *sums, size_t blocks)
{
	double sum = 0.0;
	for (size_t block = 0; block < blocks; block++)
		sum += sums[block];
	return sum;
}
