/*
 * op_bias.c - gradient of a bias: db[c] = sum over positions and samples of dy[c].
 */
#include "graph/op.h"

size_t ls_bias_grad_floats(const ls_tensor *t, int64_t rows)
{
	return (size_t)(t->blocks * ls_chunks(rows) * t->panel);
}

void ls_bias_grad_partials(const ls_tensor *t, int64_t rows, const float *dy, float *partial, ls_member member)
{
	int64_t chunks = ls_chunks(rows), begin, end;

	ls_team_range(member, t->blocks * chunks, &begin, &end);
	for (int64_t unit = begin; unit < end; unit++) {
		int64_t block = unit / chunks, chunk = unit % chunks;
		ls_simd_get()->column_sums(dy + (block * rows + chunk * LS_CHUNK_ROWS) * t->panel,
					   ls_chunk_rows(rows, chunk), t->panel, partial + unit * t->panel);
	}
}

void ls_bias_grad_combine(const ls_tensor *t, int64_t rows, const float *partial, int accumulate, float *dbias,
			  ls_member member)
{
	int64_t chunks = ls_chunks(rows), begin, end;

	ls_team_range(member, (int64_t)t->blocks * t->panel, &begin, &end);
	for (int64_t c = begin; c < end; c++) {
		const float *column = partial + c / t->panel * chunks * t->panel + c % t->panel;
		float sum = accumulate ? dbias[c] : 0;
		for (int64_t chunk = 0; chunk < chunks; chunk++)
			sum += column[chunk * t->panel];
		dbias[c] = sum;
	}
}
