#include "choice.h"

#include <stdio.h>
#include <string.h>

#include "command.h"

int ls_args_choose(const ls_args *args, const char *setting, const char *typed)
{
	ls_setting_value value;
	char list[256] = "";
	const ls_setting row = { .name = setting };

	for (size_t i = 0; args->value_at(&row, i, &value); i++) {
		if (!typed || !strcmp(value.name, typed))
			return (int)i;
		size_t used = strlen(list);
		snprintf(list + used, sizeof(list) - used, "%s%s", used ? ", " : "", value.name);
	}
	ls_usage_error(args->command, "--%s is '%s'; it can be %s", setting, typed, list);
	return -1;
}

int ls_resize_value_at(const ls_setting *row, size_t i, ls_setting_value *out)
{
	static const ls_setting_value values[] = {
		{ "cover", "the largest central part of the model's aspect ratio (the default)" },
		{ "stretch", "the whole image, whatever its aspect ratio" },
	};

	if (strcmp(row->name, "resize") != 0)
		return ls_setting_value_at(row, i, out);
	if (i < sizeof(values) / sizeof(values[0]))
		*out = values[i];
	return i < sizeof(values) / sizeof(values[0]);
}
