#include "base/median.h"

/* Shell's sort with Ciura's gaps: in place, because qsort() may allocate and a step must not. */
void ls_sort_numbers(double *values, size_t count)
{
	static const size_t gaps[] = { 1750, 701, 301, 132, 57, 23, 10, 4, 1 };
	for (size_t g = 0; g < sizeof(gaps) / sizeof(*gaps); g++) {
		for (size_t i = gaps[g]; i < count; i++) {
			double moving = values[i];
			size_t at = i;
			for (; at >= gaps[g] && values[at - gaps[g]] > moving; at -= gaps[g])
				values[at] = values[at - gaps[g]];
			values[at] = moving;
		}
	}
}

double ls_median(double *values, size_t count)
{
	if (count == 0)
		return 0.0;
	ls_sort_numbers(values, count);
	return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2.0;
}
