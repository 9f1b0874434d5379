#include "data/info_table.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/names.h"
#include "data/dataset.h"
#include "data/readers/table_schema.h"
#include "data/task.h"

enum { COLUMNS_SHOWN = 64, CLASSES_SHOWN = 32 };

static void print_column(const ls_table_column *c, FILE *to)
{
	char name[64];

	ls_text_printable(name, sizeof(name), c->name);
	if (c->is_category)
		fprintf(to, "  %s: %zu categor%s\n", name, c->values, c->values == 1 ? "y" : "ies");
	else
		fprintf(to, "  %s: number, mean %g, deviation %g\n", name, c->mean, c->deviation);
}

/* Samples of every class; of numbers, what they were in training. */
static ls_status print_classes(const ls_dataset *set, const ls_table_schema *s, FILE *to)
{
	uint64_t *count = calloc((size_t)set->info.classes, sizeof(*count));
	float *features = calloc(ls_dataset_values(&set->info) + 1, sizeof(*features));
	ls_status status = count && features ? LS_OK : ls_fail(LS_EMEMORY, "no memory to count classes");
	char name[64];

	for (uint64_t i = 0; status == LS_OK && i < set->info.samples; i++) {
		int32_t label = 0;
		status = ls_dataset_sample(set, i, features, &label);
		count[label]++;
	}
	for (int i = 0; status == LS_OK && i < set->info.classes && i < CLASSES_SHOWN; i++)
		fprintf(to, "    %s: %" PRIu64 "\n",
			ls_text_printable(name, sizeof(name), ls_table_output_name(s, (size_t)i)), count[i]);
	free(features);
	free(count);
	return status;
}

static ls_status print_targets(const ls_dataset *set, const ls_table_schema *s, FILE *to)
{
	char name[64];

	fprintf(to, "  %s of", ls_task_title(s->task));
	for (size_t i = 0; i < s->targets; i++)
		fprintf(to, "%s '%s'", i > 0 ? "," : "", ls_text_printable(name, sizeof(name), s->target[i].name));
	putc('\n', to);
	if (s->task == LS_TASK_REGRESSION)
		for (size_t i = 0; i < s->targets; i++)
			print_column(&s->target[i], to);
	return s->task == LS_TASK_CLASSIFICATION && !s->text ? print_classes(set, s, to) : LS_OK;
}

ls_status ls_info_table(const ls_dataset *set, const char *title, FILE *to)
{
	ls_table_schema s;

	LS_TRY(ls_table_schema_from_text(&s, set->columns, set->info.name));
	fprintf(to, "%s: %" PRIu64 " row%s", title, set->info.samples, ls_plural(set->info.samples, "s"));
	if (s.text)
		fprintf(to, " of text in column '%s', up to %d tokens\n", s.text, set->info.tokens_max);
	else
		fprintf(to, " of %zu column%s, %d feature%s\n", s.inputs, ls_plural(s.inputs, "s"), set->info.channels,
			ls_plural((uint64_t)set->info.channels, "s"));
	ls_status status = print_targets(set, &s, to);
	for (size_t i = 0; i < s.inputs && i < COLUMNS_SHOWN; i++)
		print_column(&s.input[i], to);
	if (s.inputs > COLUMNS_SHOWN)
		fprintf(to, "  and %zu columns more\n", s.inputs - COLUMNS_SHOWN);
	ls_table_schema_release(&s);
	return status;
}
