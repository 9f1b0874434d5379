/*
 * exact_math.h - logarithm and exponential that are the same on every machine: additions, products and quotients of
 * doubles, which IEEE 754 rounds exactly. libm's differ in their last bits between versions and processors. Errors are
 * below 1e-14 of a logarithm (of 1 for those near 0) and 3e-13 of an exponential.
 */
#ifndef LS_BASE_EXACT_MATH_H
#define LS_BASE_EXACT_MATH_H

#include <math.h>

#define LS_LN2 0.69314718055994530942

/* ln x of a positive number: x = m 2^e with m from 1/sqrt(2) to sqrt(2), and ln m = 2 atanh((m - 1) / (m + 1)). */
static inline double ls_exact_log(double x)
{
	int e;
	double m = frexp(x, &e); /* exact */

	if (m < 0.70710678118654752440) {
		m *= 2;
		e--;
	}
	double t = (m - 1) / (m + 1), q = t * t, sum = 0;
	for (int k = 19; k >= 1; k -= 2)
		sum = sum * q + 1.0 / k;
	return (double)e * LS_LN2 + 2 * t * sum;
}

/* e^x: x = k ln 2 + r with |r| <= ln(2) / 2, and Taylor's series of e^r. 0 and infinity where a double has no more; NaN
 * of NaN. */
static inline double ls_exact_exp(double x)
{
	if (isnan(x))
		return x;
	if (x < -745)
		return 0;
	if (x > 709)
		return INFINITY;
	double k = floor(x / LS_LN2 + 0.5), r = x - k * LS_LN2, sum = 1;
	for (int i = 14; i >= 1; i--)
		sum = 1 + sum * r / i;
	return ldexp(sum, (int)k); /* exact, but for the smallest numbers */
}

#endif
