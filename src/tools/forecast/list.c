#include "tools/forecast/list.h"

#include <string.h>

#include "base/names.h"

ls_status ls_list_split(ls_list *out, const char *name, const char *text)
{
	*out = (ls_list){ 0 };
	for (const char *at = text; *at != '\0' || at == text;) {
		size_t length = strcspn(at, ",");
		if (length == 0 || length >= LS_LIST_TEXT)
			return ls_fail(LS_EINVALID, "%s '%s' is not a list like a,b,c of short words", name, text);
		if (out->count == LS_LIST_MAX)
			return ls_fail(LS_EINVALID, "%s '%s' has more than %d entries", name, text, LS_LIST_MAX);
		memcpy(out->text[out->count++], at, length);
		at += length;
		if (*at == ',' && *++at == '\0')
			return ls_fail(LS_EINVALID, "%s '%s' ends with a comma", name, text);
	}
	return LS_OK;
}

ls_status ls_list_number(const char *name, const char *text, double most, int64_t *out)
{
	uint64_t number;
	LS_TRY(ls_parse_count(text, name, &number));
	if (number < 1 || (double)number > most)
		return ls_fail(LS_EINVALID, "%s '%s' is not a whole number from 1 to %.0f", name, text, most);
	*out = (int64_t)number;
	return LS_OK;
}
