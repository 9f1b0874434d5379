/*
 * vec.h - one native vector of the instruction set being compiled, as compiler vector types.
 *
 * A lane is a channel: no kernel but the softmax adds across lanes, so an element-wise result or a sum over rows has
 * the same bits whatever LS_LANES is. Loads and stores accept any alignment; panels are 64-byte aligned, which costs
 * nothing.
 */
#ifndef LS_KERNELS_SIMD_VEC_H
#define LS_KERNELS_SIMD_VEC_H

#include <stdint.h>

#if defined(LS_ISA_IS_avx512) || defined(LS_ISA_IS_avx2)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#if defined(LS_ISA_IS_avx512)
#define LS_LANES 16
#elif defined(LS_ISA_IS_avx2)
#define LS_LANES 8
#else
#define LS_LANES 4
#endif

typedef float ls_vf __attribute__((vector_size(4 * LS_LANES)));
typedef int32_t ls_vi __attribute__((vector_size(4 * LS_LANES)));
typedef uint8_t ls_vb __attribute__((vector_size(LS_LANES)));
typedef float ls_vf_any __attribute__((vector_size(4 * LS_LANES), aligned(4), may_alias));
typedef uint8_t ls_vb_any __attribute__((vector_size(LS_LANES), aligned(1), may_alias));

#define LS_INLINE static inline __attribute__((always_inline))

/* Unroll the loop that follows completely: arrays of vectors must become registers. */
#if defined(__clang__)
#define LS_UNROLL _Pragma("clang loop unroll(full)")
#else
#define LS_UNROLL _Pragma("GCC unroll 16")
#endif

LS_INLINE ls_vf ls_vf_load(const float *p)
{
	return *(const ls_vf_any *)p;
}
LS_INLINE void ls_vf_store(float *p, ls_vf v)
{
	*(ls_vf_any *)p = v;
}
LS_INLINE ls_vf ls_vf_set(float value)
{
	return value - (ls_vf){ 0 };
}
LS_INLINE ls_vb ls_vb_load(const uint8_t *p)
{
	return *(const ls_vb_any *)p;
}
LS_INLINE void ls_vb_store(uint8_t *p, ls_vb v)
{
	*(ls_vb_any *)p = v;
}

/* value where the comparison held, else +0; and a or b. */
LS_INLINE ls_vf ls_vf_where(ls_vi mask, ls_vf value)
{
	return (ls_vf)(mask & (ls_vi)value);
}
LS_INLINE ls_vi ls_vi_select(ls_vi mask, ls_vi a, ls_vi b)
{
	return (mask & a) | (~mask & b);
}
LS_INLINE ls_vf ls_vf_select(ls_vi mask, ls_vf a, ls_vf b)
{
	return (ls_vf)ls_vi_select(mask, (ls_vi)a, (ls_vi)b);
}

/* max(0, v); a NaN stays a NaN, so that a run that left the finite numbers is noticed. */
LS_INLINE ls_vf ls_vf_relu(ls_vf v)
{
#if defined(LS_ISA_IS_avx512)
	return (ls_vf)_mm512_max_ps(_mm512_setzero_ps(), (__m512)v);
#elif defined(LS_ISA_IS_avx2)
	return (ls_vf)_mm256_max_ps(_mm256_setzero_ps(), (__m256)v);
#else
	return (ls_vf)((ls_vi)v & ~(ls_vi)(v < 0));
#endif
}

/* a*b + c, fused where the instruction set can: written out, because contraction is off everywhere. */
LS_INLINE ls_vf ls_vf_fma(ls_vf a, ls_vf b, ls_vf c)
{
#if defined(LS_ISA_IS_avx512)
	return (ls_vf)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(LS_ISA_IS_avx2)
	return (ls_vf)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#elif defined(__aarch64__)
	return (ls_vf)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
#else
	return a * b + c;
#endif
}

#endif
