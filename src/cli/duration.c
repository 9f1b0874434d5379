#include "duration.h"

#include <stdio.h>
#include <string.h>

ls_status ls_duration_set(const ls_setting *row, double unit, double *to, const char *text)
{
	static const struct {
		char letter;
		double seconds;
	} units[] = { { 's', 1 }, { 'm', 60 }, { 'h', 3600 }, { 'd', 86400 } };
	size_t length = strlen(text);
	char digits[64];

	for (size_t i = 0; unit > 0 && i < sizeof(units) / sizeof(units[0]); i++) {
		if (length < 2 || length >= sizeof(digits) || text[length - 1] != units[i].letter)
			continue;
		snprintf(digits, sizeof(digits), "%.*s", (int)length - 1, text);
		ls_status status = ls_setting_set(row, to, digits);
		*to *= units[i].seconds / unit;
		return status;
	}
	return ls_setting_set(row, to, text);
}
