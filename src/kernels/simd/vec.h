/*
 * vec.h - one native vector of the instruction set being compiled, as compiler vector types.
 *
 * A lane is a channel: only softmax, layer norm and attention add across lanes (sixteen of them, see fold.h), so an
 * element-wise result or a sum over rows has the same bits whatever LS_LANES is. Loads and stores accept any alignment;
 * panels are 64-byte aligned, which costs nothing.
 */
#ifndef LS_KERNELS_SIMD_VEC_H
#define LS_KERNELS_SIMD_VEC_H

#include <stdint.h>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(LS_ISA_IS_neon)
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
typedef float ls_vf_any __attribute__((vector_size(4 * LS_LANES), aligned(4), may_alias));

#define LS_INLINE static inline __attribute__((always_inline))
#if defined(LS_ISA_IS_generic)
#include "kernels/simd/fma.h"
#endif

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
/* value where the comparison held, else +0; and a or b. */
LS_INLINE ls_vf ls_vf_where(ls_vi mask, ls_vf value)
{
	return (ls_vf)(mask & (ls_vi)value);
}
LS_INLINE ls_vi ls_vi_select(ls_vi mask, ls_vi a, ls_vi b)
{
#if defined(LS_ISA_IS_avx2)
	return (ls_vi)_mm256_blendv_epi8((__m256i)b, (__m256i)a, (__m256i)mask);
#elif defined(LS_ISA_IS_neon)
	return (ls_vi)vbslq_s32((uint32x4_t)mask, (int32x4_t)a, (int32x4_t)b);
#else
	return (mask & a) | (~mask & b);
#endif
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

/* a > b ? a : b and a < b ? a : b: b where either is a NaN. */
LS_INLINE ls_vf ls_vf_max(ls_vf a, ls_vf b)
{
#if defined(LS_ISA_IS_avx512)
	return (ls_vf)_mm512_max_ps((__m512)a, (__m512)b);
#elif defined(LS_ISA_IS_avx2)
	return (ls_vf)_mm256_max_ps((__m256)a, (__m256)b);
#else
	return ls_vf_select(a > b, a, b);
#endif
}
LS_INLINE ls_vf ls_vf_min(ls_vf a, ls_vf b)
{
#if defined(LS_ISA_IS_avx512)
	return (ls_vf)_mm512_min_ps((__m512)a, (__m512)b);
#elif defined(LS_ISA_IS_avx2)
	return (ls_vf)_mm256_min_ps((__m256)a, (__m256)b);
#else
	return ls_vf_select(a < b, a, b);
#endif
}

/* LS_LANES bytes as integers and back; written out because compilers take __builtin_convertvector apart. */
LS_INLINE ls_vi ls_vi_from_bytes(const uint8_t *p)
{
#if defined(LS_ISA_IS_avx512)
	return (ls_vi)_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)p));
#elif defined(LS_ISA_IS_avx2)
	return (ls_vi)_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)p));
#else
	return (ls_vi){ p[0], p[1], p[2], p[3] };
#endif
}

LS_INLINE void ls_vi_to_bytes(uint8_t *p, ls_vi v)
{
#if defined(LS_ISA_IS_avx512)
	_mm_storeu_si128((__m128i *)p, _mm512_cvtepi32_epi8((__m512i)v));
#elif defined(LS_ISA_IS_avx2)
	__m128i words = _mm_packus_epi32(_mm256_castsi256_si128((__m256i)v), _mm256_extracti128_si256((__m256i)v, 1));
	_mm_storel_epi64((__m128i *)p, _mm_packus_epi16(words, words));
#else
	for (int i = 0; i < LS_LANES; i++)
		p[i] = (uint8_t)v[i];
#endif
}

/* a*b + c, rounded once: written out, because contraction is off everywhere. */
LS_INLINE ls_vf ls_vf_fma(ls_vf a, ls_vf b, ls_vf c)
{
#if defined(LS_ISA_IS_avx512)
	return (ls_vf)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(LS_ISA_IS_avx2)
	return (ls_vf)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#elif defined(LS_ISA_IS_neon)
	return (ls_vf)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
#elif defined(__SSE2__)
	return (ls_vf)ls_fma_emulated((__m128)a, (__m128)b, (__m128)c);
#else
	return (ls_vf){ ls_fma_one(a[0], b[0], c[0]), ls_fma_one(a[1], b[1], c[1]), ls_fma_one(a[2], b[2], c[2]),
			ls_fma_one(a[3], b[3], c[3]) };
#endif
}

#endif
