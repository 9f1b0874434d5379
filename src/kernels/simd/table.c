/* table.c - this instruction set's row of functions, picked by kernels/simd_dispatch.c. */
#include "kernels/simd/parts.h"

const ls_simd LS_ISA_SYMBOL(ls_simd_table) = {
	.gemm = LS_ISA_SYMBOL(ls_simd_gemm),
	.moments = LS_ISA_SYMBOL(ls_simd_moments),
	.normalize = LS_ISA_SYMBOL(ls_simd_normalize),
	.normalize_sums = LS_ISA_SYMBOL(ls_simd_normalize_sums),
	.normalize_input = LS_ISA_SYMBOL(ls_simd_normalize_input),
	.layer_norm = LS_ISA_SYMBOL(ls_simd_layer_norm),
	.layer_norm_backward = LS_ISA_SYMBOL(ls_simd_layer_norm_backward),
	.gelu = LS_ISA_SYMBOL(ls_simd_gelu),
	.gelu_backward = LS_ISA_SYMBOL(ls_simd_gelu_backward),
	.tanh = LS_ISA_SYMBOL(ls_simd_tanh),
	.tanh_backward = LS_ISA_SYMBOL(ls_simd_tanh_backward),
	.bias_act = LS_ISA_SYMBOL(ls_simd_bias_act),
	.relu_backward = LS_ISA_SYMBOL(ls_simd_relu_backward),
	.column_sums = LS_ISA_SYMBOL(ls_simd_column_sums),
	.add = LS_ISA_SYMBOL(ls_simd_add),
	.accumulate = LS_ISA_SYMBOL(ls_simd_accumulate),
	.max_pool = LS_ISA_SYMBOL(ls_simd_max_pool),
	.max_pool_backward = LS_ISA_SYMBOL(ls_simd_max_pool_backward),
	.avg_pool = LS_ISA_SYMBOL(ls_simd_avg_pool),
	.avg_pool_backward = LS_ISA_SYMBOL(ls_simd_avg_pool_backward),
	.dropout = LS_ISA_SYMBOL(ls_simd_dropout),
	.softmax_xent = LS_ISA_SYMBOL(ls_simd_softmax_xent),
	.transpose = LS_ISA_SYMBOL(ls_simd_transpose),
};
