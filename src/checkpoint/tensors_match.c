/*
 * tensors_match.c - does a file hold exactly the tensors a model wants? When not, say what is different.
 *
 * Each entry is looked up by the model's name rules and marked; the remaining tensors of the file must be harmless. One
 * line each is logged for newly initialised heads and for unused heads of other tasks.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/names.h"
#include "checkpoint/name_rules.h"
#include "checkpoint/shape.h"
#include "checkpoint/tensors.h"

#define SHOWN_MAX 3

typedef struct complaints {
	char text[SHOWN_MAX][2 * LS_SHAPE_TEXT + LS_NAME_TEXT + 160]; /* the first ones */
	size_t count;                                                 /* of all */
} complaints;

__attribute__((format(printf, 2, 3))) static void complain(complaints *list, const char *format, ...)
{
	size_t place = list->count++;
	va_list arguments;
	if (place >= SHOWN_MAX)
		return;
	va_start(arguments, format);
	vsnprintf(list->text[place], sizeof(list->text[place]), format, arguments);
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
	return length >= sizeof(suffix) - 1 && strcmp(name + length - (sizeof(suffix) - 1), suffix) == 0;
}

/* A counter is one integer >= 0; a list of one is taken as well. */
static int counter_ok(const ls_st_tensor *tensor)
{
	int64_t value;
	if (tensor->dtype != LS_I64 || tensor->bytes != sizeof(value))
		return 0;
	memcpy(&value, tensor->data, sizeof(value));
	return value >= 0;
}

/* Convolutions whose inputs differ in their channels alone. A first layer of few channels reads images; for others the
 * shapes say what there is to say. */
static int differs_in_channels(const ls_st_tensor *a, const ls_st_tensor *b)
{
	return a->rank == 4 && b->rank == 4 && a->shape[0] == b->shape[0] && a->shape[1] != b->shape[1] &&
	       a->shape[2] == b->shape[2] && a->shape[3] == b->shape[3] && a->shape[1] <= 4 && b->shape[1] <= 4;
}

static void compare_entry(complaints *list, const ls_st_tensor *wanted, int counter, const ls_st_tensor *found)
{
	char has[LS_SHAPE_TEXT], needs[LS_SHAPE_TEXT], name[LS_NAME_TEXT];
	ls_text_printable(name, sizeof(name), wanted->name);
	ls_shape_text(needs, sizeof(needs), wanted->rank, wanted->shape);
	if (!found) {
		if (!counter)
			complain(list, "'%s' %s is missing", name, needs);
		return;
	}
	ls_shape_text(has, sizeof(has), found->rank, found->shape);
	if (counter && !counter_ok(found))
		complain(list, "'%s' must be one I64 number >= 0, it is %s %s", name, ls_dtype_name(found->dtype), has);
	else if (!counter && differs_in_channels(wanted, found))
		complain(list,
			 "'%s' has shape %s, the model needs %s: it was trained on images of %" PRId64
			 " channel%s, this data has %" PRId64,
			 name, has, needs, found->shape[1], ls_plural((uint64_t)found->shape[1], "s"),
			 wanted->shape[1]);
	else if (!counter && !ls_shape_equal(wanted->rank, wanted->shape, found->rank, found->shape))
		complain(list, "'%s' has shape %s, the model needs %s", name, has, needs);
	else if (!counter && !is_float(found->dtype))
		complain(list, "'%s' is of integer type %s", name, ls_dtype_name(found->dtype));
}

/* A comparison under way. */
typedef struct match {
	ls_ckpt_tensors *entries;
	const ls_st_reader *reader;
	const ls_ckpt_import *how;
	const ls_ckpt_name_rules *rules; /* NULL: names are as they are */
	const char *label;
	uint8_t *used;                  /* (tensors of the file) */
	int64_t classes, other_classes; /* of the model's layer of classes, and of the file's where they are not the
					   same; else 0 */
	complaints list;
	char fresh[256], idle[256];  /* heads: of the model, and of the file */
	char new[640];               /* tensors that keep their initial values, with these */
	const ls_st_tensor *adapter; /* of the file, for which the model has no place; NULL: none */
} match;

static void mark(match *m, const ls_st_tensor *tensor)
{
	if (tensor)
		m->used[tensor - ls_st_at(m->reader, 0)] = 1;
}

/* "cls.*, qa_outputs.*": the first word of a name, once each; "*.lora_*" for all adapters. */
static void add_head(char *list, size_t size, const char *name)
{
	char word[LS_NAME_TEXT], shown[LS_NAME_TEXT + 4];
	size_t used = strlen(list);
	snprintf(word, sizeof(word), "%.*s", (int)strcspn(name, "."), name);
	ls_text_printable(word, sizeof(word), word);
	snprintf(shown, sizeof(shown), "%s.*", word);
	if (ls_ckpt_is_adapter(name))
		snprintf(shown, sizeof(shown), "*.lora_*");
	if (!strstr(list, shown))
		snprintf(list + used, size - used, "%s%s", used ? ", " : "", shown);
}

/* "fc.weight (10, 512) ~ U(-0.04419, 0.04419), fc.bias (10) = 0": what the file has no values for. */
static void add_new(match *m, size_t i)
{
	const ls_st_tensor *tensor = &m->entries->tensors[i];
	char shape[LS_SHAPE_TEXT], values[64];
	size_t used = strlen(m->new);

	if (sizeof(m->new) - used < 2 * LS_NAME_TEXT) {
		snprintf(m->new + used, sizeof(m->new) - used, "%s", m->new[used - 1] == '.' ? "" : ", ...");
		return;
	}
	snprintf(m->new + used, sizeof(m->new) - used, "%s%s %s %s", used ? ", " : "", tensor->name,
		 ls_shape_text(shape, sizeof(shape), tensor->rank, tensor->shape),
		 ls_param_init_text(m->entries->sources[i].param, values, sizeof(values)));
}

static int same_data(const ls_st_tensor *a, const ls_st_tensor *b)
{
	return a->dtype == b->dtype && a->bytes == b->bytes && memcmp(a->data, b->data, a->bytes) == 0;
}

/* "fc.bias" of layer "fc"; ending NULL: any tensor of the layer. */
static int is_of_layer(const char *name, const char *layer, const char *ending)
{
	size_t length = strlen(layer);
	return strncmp(name, layer, length) == 0 && name[length] == '.' &&
	       (!ending || strcmp(name + length + 1, ending) == 0);
}

static int differs_in_rows(const ls_st_tensor *a, const ls_st_tensor *b)
{
	return a->rank == b->rank && a->rank > 0 && a->shape[0] != b->shape[0] &&
	       ls_shape_equal(a->rank - 1, a->shape + 1, b->rank - 1, b->shape + 1);
}

/* The weights of the layer of classes differ in the number of their rows alone: another task. */
static void find_other_classes(match *m)
{
	const char *head = m->how && m->how->fresh_heads ? m->how->head : NULL;
	for (size_t i = 0; head && i < m->entries->count; i++) {
		const ls_st_tensor *wanted = &m->entries->tensors[i], *found;
		if (!is_of_layer(wanted->name, head, "weight"))
			continue;
		found = ls_st_find(m->reader, wanted->name);
		if (found && differs_in_rows(wanted, found))
			m->classes = wanted->shape[0], m->other_classes = found->shape[0];
	}
}

/* A tensor of that layer is left as it is, when the file's is the whole one of another task. */
static int starts_afresh(const match *m, const ls_st_tensor *wanted, const ls_st_tensor *found)
{
	return m->other_classes > 0 && is_of_layer(wanted->name, m->how->head, NULL) && found &&
	       differs_in_rows(wanted, found) && found->shape[0] == m->other_classes;
}

static void match_entry(match *m, size_t i)
{
	const ls_st_tensor *wanted = &m->entries->tensors[i], *second = NULL;
	const ls_st_tensor *found = ls_ckpt_name_rules_find(m->rules, m->entries, m->reader, wanted->name, &second);
	char first[LS_NAME_TEXT], other[LS_NAME_TEXT];

	m->entries->found[i] = found;
	mark(m, found);
	mark(m, second);
	if (!found && m->how && m->how->fresh_heads && ls_ckpt_is_head(m->rules, wanted->name)) {
		add_head(m->fresh, sizeof(m->fresh), wanted->name);
		add_new(m, i);
		return;
	}
	if (starts_afresh(m, wanted, found)) {
		m->entries->found[i] = NULL;
		add_new(m, i);
		return;
	}
	compare_entry(&m->list, wanted, m->entries->sources[i].param->role == LS_ROLE_COUNTER, found);
	if (second && !same_data(found, second))
		complain(&m->list, "'%s' and '%s' differ, and the model has one for both",
			 ls_text_printable(first, sizeof(first), found->name),
			 ls_text_printable(other, sizeof(other), second->name));
}

static void match_extras(match *m)
{
	for (size_t i = 0; i < ls_st_count(m->reader); i++) {
		const ls_st_tensor *tensor = ls_st_at(m->reader, i);
		char shown[LS_NAME_TEXT], shape[LS_SHAPE_TEXT];
		if (m->used[i] || is_counter_name(tensor->name) || ls_ckpt_is_idle(m->rules, tensor->name))
			continue;
		if (m->rules && ls_ckpt_is_adapter(tensor->name))
			m->adapter = m->adapter ? m->adapter : tensor;
		else if (ls_ckpt_is_head(m->rules, tensor->name))
			add_head(m->idle, sizeof(m->idle), tensor->name);
		else
			complain(&m->list, "'%s' %s is not in the model",
				 ls_text_printable(shown, sizeof(shown), tensor->name),
				 ls_shape_text(shape, sizeof(shape), tensor->rank, tensor->shape));
	}
}

static const ls_st_tensor *wanted_words(const match *m)
{
	for (size_t i = 0; i < m->entries->count; i++)
		if (strcmp(m->entries->tensors[i].name, m->rules->words) == 0)
			return &m->entries->tensors[i];
	return NULL; /* the rules were found by this tensor: it exists */
}

/* Another vocabulary: every row of the embedding would stand for another word. */
static ls_status match_words(const match *m)
{
	const ls_st_tensor *second, *wanted = wanted_words(m);
	const ls_st_tensor *found = ls_ckpt_name_rules_find(m->rules, m->entries, m->reader, wanted->name, &second);
	const char *hash = ls_st_metadata(m->reader, LS_CKPT_VOCABULARY);
	const char *trained = m->how->trained ? m->how->trained : "FILE";
	char mine[32], shown[LS_NAME_TEXT];

	if (found && found->rank == 2 && found->shape[0] != wanted->shape[0])
		return ls_fail(LS_EMISMATCH,
			       "%s was trained with a vocabulary of %" PRId64 " tokens, the data is read with one of "
			       "%" PRId64
			       ": the vocabulary does not match; give the one it was trained with, options.vocab "
			       "%s",
			       m->label, found->shape[0], wanted->shape[0], trained);
	snprintf(mine, sizeof(mine), "%016" PRIx64, m->how->vocabulary);
	if (hash && m->how->vocabulary && strcmp(hash, mine) != 0)
		return ls_fail(LS_EMISMATCH,
			       "%s was trained with another vocabulary (xxh64 %s) than the data is read with (%s): the "
			       "vocabulary does not match; give the one it was trained with, options.vocab %s",
			       m->label, ls_text_printable(shown, sizeof(shown), hash), mine, trained);
	return LS_OK;
}

static ls_status fail_with(const complaints *list, const char *label)
{
	const char *second = list->count > 1 ? list->text[1] : "", *third = list->count > 2 ? list->text[2] : "";
	char more[64] = "";
	if (list->count > SHOWN_MAX)
		snprintf(more, sizeof(more), "; and %zu more (%zu in all)", list->count - SHOWN_MAX, list->count);
	return ls_fail(LS_EMISMATCH, "%s does not fit this model: %s%s%s%s%s%s", label, list->text[0],
		       *second ? "; " : "", second, *third ? "; " : "", third, more);
}

/* The base weights alone are not the fine-tuned model. "*.lora_A.weight" comes first,
 * and is (rank, in). */
static ls_status refuse_adapters(const match *m)
{
	long long rank = m->adapter->rank > 0 ? (long long)m->adapter->shape[0] : 0;

	return ls_fail(
		LS_EMISMATCH,
		"%s has LoRA adapters (rank %lld), which a model without adapters would drop: set options.lora to "
		"%lld, or merge them first with `lockstep export --safetensors`",
		m->label, rank, rank);
}

static ls_status match_all(match *m)
{
	if (m->rules)
		LS_TRY(match_words(m));
	find_other_classes(m);
	for (size_t i = 0; i < m->entries->count; i++)
		match_entry(m, i);
	match_extras(m);
	if (m->adapter)
		return refuse_adapters(m);
	if (m->list.count)
		return fail_with(&m->list, m->label);
	if (*m->fresh)
		ls_log_note("%s has no %s: %s newly initialised", m->label, m->fresh,
			    strstr(m->fresh, "lora") ? "adapters are" : "this head is");
	if (m->other_classes)
		ls_log_note("%s has %" PRId64 " class%s, this model %" PRId64
			    ": its layer %s is not used, the model's own is newly initialised",
			    m->label, m->other_classes, ls_plural((uint64_t)m->other_classes, "es"), m->classes,
			    m->how->head);
	if (*m->new)
		ls_log_note("newly initialised from seed %" PRIu64 ": %s", m->how->seed, m->new);
	if (*m->idle)
		ls_log_note("%s of %s is the head of another task: not used", m->idle, m->label);
	return LS_OK;
}

ls_status ls_ckpt_tensors_match(ls_ckpt_tensors *entries, const ls_st_reader *reader, const ls_ckpt_import *how,
				const char *label)
{
	match m = { .entries = entries, .reader = reader, .how = how, .label = label };
	m.rules = how ? ls_ckpt_name_rules_of(entries) : NULL;
	m.used = calloc(ls_st_count(reader) + 1, 1);
	if (!m.used)
		return ls_fail(LS_EMEMORY, "no memory to compare %zu tensors", entries->count);
	ls_status status = match_all(&m);
	free(m.used);
	return status;
}
