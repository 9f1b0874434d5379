#include "base/link_rate.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/array.h"
#include "base/names.h"

/* What stands before "bit" or "bps". */
static double scale_of(const char **unit)
{
	static const struct {
		char letter;
		double scale;
	} scales[] = { { 'k', 1e3 }, { 'm', 1e6 }, { 'g', 1e9 }, { 't', 1e12 } };

	for (size_t i = 0; i < LS_COUNT(scales); i++)
		if (tolower((unsigned char)**unit) == scales[i].letter) {
			++*unit;
			return scales[i].scale;
		}
	return 1;
}

double ls_link_rate(const char *text)
{
	const char *end = text + ls_decimal_span(text);
	double number = strtod(text, NULL);

	if (end == text || !(number > 0) || !isfinite(number))
		return 0;
	while (isspace((unsigned char)*end))
		end++;
	const char *unit = end;
	double rate = number * scale_of(&unit);
	return !strcasecmp(unit, "bit") || !strcasecmp(unit, "bit/s") || !strcasecmp(unit, "bps") ? rate : 0;
}
