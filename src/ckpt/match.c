/*
 * match.c - does a file hold exactly the tensors a model wants? When not, say what is different.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ckpt/entries.h"
#include "ckpt/shape.h"

#define SHOWN_MAX 3

typedef struct complaints {
	char text[SHOWN_MAX][2 * LS_SHAPE_TEXT + LS_NAME_TEXT + 80]; /* the first ones */
	size_t count;                                                /* of all */
} complaints;

__attribute__((format(printf, 2, 3))) static void complain(complaints *list, const char *format, ...)
{
	size_t place = list->count++;
	va_list arguments;
	if (place >= SHOWN_MAX)
		return;
	va_start(arguments, format);
	vsnprintf(list->text[place], sizeof list->text[place], format, arguments);
	va_end(arguments);
}

static int is_float(ls_dtype dtype)
{
	return dtype == LS_F32 || dtype == LS_F64 || dtype == LS_F16 || dtype == LS_BF16;
}

/* BatchNorm's counter: some writers leave it out, and where it is not wanted it does no harm. */
static int is_counter_name(const char *name)
{
	static const char suffix[] = "num_batches_tracked";
	size_t length = strlen(name);
	return length >= sizeof suffix - 1 && strcmp(name + length - (sizeof suffix - 1), suffix) == 0;
}

/* A counter is one integer >= 0; a list of one is taken as well. */
static int counter_ok(const ls_st_tensor *tensor)
{
	int64_t value;
	if (tensor->dtype != LS_I64 || tensor->bytes != sizeof value)
		return 0;
	memcpy(&value, tensor->data, sizeof value);
	return value >= 0;
}

static void compare_entry(complaints *list, const ls_st_tensor *wanted, int counter, const ls_st_tensor *found)
{
	char has[LS_SHAPE_TEXT], needs[LS_SHAPE_TEXT], name[LS_NAME_TEXT];
	ls_text_printable(name, sizeof name, wanted->name);
	ls_shape_text(needs, sizeof needs, wanted->rank, wanted->shape);
	if (!found) {
		if (!counter)
			complain(list, "'%s' %s is missing", name, needs);
		return;
	}
	ls_shape_text(has, sizeof has, found->rank, found->shape);
	if (counter && !counter_ok(found))
		complain(list, "'%s' must be one I64 number >= 0, it is %s %s", name, ls_dtype_name(found->dtype), has);
	else if (!counter && !ls_shape_equal(wanted->rank, wanted->shape, found->rank, found->shape))
		complain(list, "'%s' has shape %s, the model needs %s", name, has, needs);
	else if (!counter && !is_float(found->dtype))
		complain(list, "'%s' is of integer type %s", name, ls_dtype_name(found->dtype));
}

static int compare_text(const void *left, const void *right)
{
	return strcmp(*(const char *const *)left, *(const char *const *)right);
}

static ls_status find_extras(complaints *list, const ls_ckpt_entries *entries, const ls_st_reader *reader)
{
	const char **names = malloc((entries->count + 1) * sizeof *names);
	if (!names)
		return ls_fail(LS_EMEMORY, "no memory to compare %zu tensors", entries->count);
	for (size_t i = 0; i < entries->count; i++)
		names[i] = entries->tensors[i].name;
	qsort(names, entries->count, sizeof *names, compare_text);
	for (size_t i = 0; i < ls_st_count(reader); i++) {
		const ls_st_tensor *tensor = ls_st_at(reader, i);
		char shown[LS_NAME_TEXT], shape[LS_SHAPE_TEXT];
		if (bsearch(&tensor->name, names, entries->count, sizeof *names, compare_text) ||
		    is_counter_name(tensor->name))
			continue;
		complain(list, "'%s' %s is not in the model", ls_text_printable(shown, sizeof shown, tensor->name),
			 ls_shape_text(shape, sizeof shape, tensor->rank, tensor->shape));
	}
	free(names);
	return LS_OK;
}

static ls_status fail_with(const complaints *list, const char *label)
{
	const char *second = list->count > 1 ? list->text[1] : "", *third = list->count > 2 ? list->text[2] : "";
	char more[64] = "";
	if (list->count > SHOWN_MAX)
		snprintf(more, sizeof more, "; and %zu more (%zu in all)", list->count - SHOWN_MAX, list->count);
	return ls_fail(LS_EMISMATCH, "%s does not fit this model: %s%s%s%s%s%s", label, list->text[0],
		       *second ? "; " : "", second, *third ? "; " : "", third, more);
}

ls_status ls_ckpt_entries_match(const ls_ckpt_entries *entries, const ls_st_reader *reader, const char *label)
{
	complaints list = { .count = 0 };
	for (size_t i = 0; i < entries->count; i++) {
		const ls_st_tensor *wanted = &entries->tensors[i];
		int counter = entries->sources[i].param->role == LS_ROLE_COUNTER;
		compare_entry(&list, wanted, counter, ls_st_find(reader, wanted->name));
	}
	LS_TRY(find_extras(&list, entries, reader));
	return list.count ? fail_with(&list, label) : LS_OK;
}
