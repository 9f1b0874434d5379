/*
 * Columns of a table as weights keep them: what is read is written and read again as the same text, and
 * any row can be put through it.
 */
#include <stdlib.h>
#include <string.h>

#include "common.h"
#include "data/readers/table_schema.h"

static void read_row(const ls_table_schema *s)
{
	static const char *const fields[] = { "1.5", "", "a" };
	size_t *places = calloc(s->inputs + 1, sizeof(*places));
	float *compact = calloc(s->inputs + 1, sizeof(float)),
	      *features = calloc(ls_table_features(s) + 1, sizeof(float));
	const ls_table_row row = { .line = 1, .field = fields };
	ls_table_met met = { 0 };

	fuzz_require(places && compact && features);
	for (size_t i = 0; i < s->inputs; i++)
		places[i] = i % 3;
	if (ls_table_read_inputs(s, places, &row, "row", compact, &met) == LS_OK)
		ls_table_expand(s, compact, features);
	free(features);
	free(compact);
	free(places);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1), *again = NULL, *third = NULL;
	ls_table_schema s = { 0 }, copy = { 0 };

	fuzz_require(text != NULL);
	if (size > 0)
		memcpy(text, data, size);
	text[size] = '\0';
	if (ls_table_schema_from_text(&s, text, "weights") == LS_OK) {
		fuzz_require(ls_table_schema_to_text(&s, &again) == LS_OK);
		fuzz_require(ls_table_schema_from_text(&copy, again, "weights") == LS_OK);
		fuzz_require(ls_table_schema_to_text(&copy, &third) == LS_OK && strcmp(again, third) == 0);
		fuzz_require(ls_table_outputs(&s) > 0 && ls_table_output_name(&s, 0) != NULL);
		read_row(&s);
	} else {
		fuzz_require(s.inputs == 0 && s.target == NULL);
	}
	ls_table_schema_release(&copy);
	ls_table_schema_release(&s);
	free(third);
	free(again);
	free(text);
	return 0;
}
