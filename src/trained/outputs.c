#include "trained/outputs.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

ls_status ls_outputs_check(const float *outputs, int64_t count, const char *sample, ...)
{
	char name[4200];
	va_list arguments;
	int64_t k = 0;

	while (k < count && isfinite(outputs[k]))
		k++;
	if (k == count)
		return LS_OK;
	va_start(arguments, sample);
	vsnprintf(name, sizeof(name), sample, arguments);
	va_end(arguments);
	return ls_fail(LS_ENUMERIC,
		       "%s: output %" PRId64
		       " of the model is %s: the values of the input are too large for it, or its "
		       "weights are not finite or too large (did training diverge?)",
		       name, k, isnan(outputs[k]) ? "NaN" : "infinite");
}
