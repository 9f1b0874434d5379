/*
 * power.h - integer powers with the same bits on every machine.
 *
 * The C library's pow() chooses an implementation by processor, and two of them may differ in the last bit: enough for
 * two nodes to train different numbers. Squaring costs about 2*log2(exponent) products and stays within
 * exponent * 2^-53 of the true value, far below a float's precision wherever the result is not negligible.
 */
#ifndef LS_OPTIM_POWER_H
#define LS_OPTIM_POWER_H

#include <stdint.h>

static inline double ls_power(double base, uint64_t exponent)
{
	double result = 1.0;
	for (; exponent; exponent >>= 1) {
		if (exponent & 1)
			result *= base;
		base *= base;
	}
	return result;
}

#endif
