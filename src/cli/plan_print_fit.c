#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <lockstep/names.h>

#include "plan_print.h"
#include "text_table.h"

enum { LINES_SHOWN = 8 };

/* ---- rows that were left out ------------------------------------------------------------------------------------- */

static int same_reason(const ls_fit *f, size_t a, size_t b)
{
	return !strcmp(f->left_out[a].reason, f->left_out[b].reason);
}

static void print_lines(const ls_fit *f, size_t first, FILE *to)
{
	size_t count = 0;

	for (size_t i = first; i < f->left_out_count; i++)
		count += (size_t)same_reason(f, first, i);
	if (count == 1 && !f->is_sweep)
		fprintf(to, "%s:%" PRId64 ": ", f->path, f->left_out[first].line);
	else
		fprintf(to, "%s: %s%s ", f->path, f->is_sweep ? "point" : "line", ls_plural(count, "s"));
	for (size_t i = first, shown = 0; i < f->left_out_count && (count > 1 || f->is_sweep); i++) {
		if (!same_reason(f, first, i) || shown++ >= LINES_SHOWN)
			continue;
		fprintf(to, "%s%" PRId64, shown > 1 ? ", " : "", f->left_out[i].line);
	}
	if (count > LINES_SHOWN)
		fprintf(to, " and %zu more", count - LINES_SHOWN);
	if (count > 1 || f->is_sweep)
		fputs(": ", to);
}

void ls_fit_print_left_out(const char *command, const ls_fit *f, FILE *to)
{
	for (size_t i = 0; i < f->left_out_count; i++) {
		size_t first = 0;
		while (!same_reason(f, first, i))
			first++;
		if (first < i)
			continue;
		fprintf(to, "%s: ", command);
		print_lines(f, i, to);
		fprintf(to, "left out: %s\n", f->left_out[i].reason);
	}
}

/* ---- table ------------------------------------------------------------------------------------------------------- */

/* "16 x 1", "3+2", "2 x 1 + 1 server" */
static void add_size(ls_text_table *table, const ls_fit_row *row)
{
	char size[64], servers[24] = "";
	const char *at = row->shape;
	size_t length = strcspn(at, "+");
	int equal = 1;

	for (at += length; *at == '+'; at += 1 + strcspn(at + 1, "+"))
		equal &= strcspn(at + 1, "+") == length && !strncmp(at + 1, row->shape, length);
	if (equal)
		snprintf(size, sizeof(size), "%" PRId64 " x %.*s", row->nodes, (int)length, row->shape);
	else
		snprintf(size, sizeof(size), "%s", row->shape);
	if (row->servers > 0)
		snprintf(servers, sizeof(servers), " + %" PRId64, row->servers);
	ls_text_table_add(table, "%s%s", size, servers);
}

static int any_hosts(const ls_fit *f)
{
	for (size_t i = 0; i < f->count; i++)
		if (f->row[i].hosts[0])
			return 1;
	return 0;
}

static void add_measured(ls_text_table *table, const ls_fit_row *row)
{
	char rate[LS_RATE_RANGE];

	ls_rate_range(rate, sizeof(rate), row->measured, row->low, 0);
	ls_text_table_add(table, "%s", row->measured > 0 ? rate : "-");
	ls_rate_range(rate, sizeof(rate), row->predicted, row->low, row->fitted ? 0 : row->high);
	ls_text_table_add(table, "%s", rate);
	int none = row->error > -0.0005 && row->error < 0.0005;
	if (row->measured > 0 && none)
		ls_text_table_add(table, "0.0 %%");
	else if (row->measured > 0)
		ls_text_table_add(table, "%+.1f %%", 100 * row->error);
	else
		ls_text_table_add(table, "-");
	int inside = row->measured >= row->low && row->measured <= row->high;
	ls_text_table_add(table, "%s",
			  row->fitted            ? "fitted"
			  : !(row->measured > 0) ? ""
			  : inside               ? "inside"
						 : "outside");
}

static void add_row(ls_text_table *table, const ls_fit_row *row, int hosts)
{
	ls_text_table_add(table, "%s%s%s", row->model, row->data[0] ? " " : "", row->data);
	ls_text_table_add(table, "%" PRId64, row->batch);
	if (hosts)
		ls_text_table_add(table, "%s", row->hosts);
	add_size(table, row);
	ls_text_table_add(table, "%s%s%s", row->rate[0] ? row->rate : "-", strcmp(row->strategy, "ps") ? "" : " ps",
			  strcmp(row->wire, "bf16") ? "" : " bf16");
	add_measured(table, row);
}

static void print_summary(const ls_fit *f, FILE *to)
{
	size_t fitted = 0;

	for (size_t i = 0; i < f->count; i++)
		fitted += f->row[i].fitted != 0;
	fprintf(to, "\nFitted on %zu row%s of one node", fitted, ls_plural(fitted, "s"));
	if (f->spread > 0)
		fprintf(to, "; hosts differ by a standard deviation of %.1f %%", 100 * f->spread);
	fputs(". ", to);
	if (f->compared > 0)
		fprintf(to,
			"%zu predicted row%s measured: mean error %.1f %%, worst %.1f %%, %zu inside the interval.\n",
			f->compared, f->compared == 1 ? " was" : "s were", 100 * f->mean_error, 100 * f->worst_error,
			f->inside);
	else
		fputs("No predicted row was measured.\n", to);
	if (f->left_out_count > 0)
		fprintf(to, "%zu row%s left out.\n", f->left_out_count, f->left_out_count == 1 ? " was" : "s were");
}

void ls_fit_print(const ls_fit *f, FILE *to)
{
	int hosts = any_hosts(f);
	ls_text_table table = { .columns = hosts ? 9 : 8,
				.heads = { "<model", "batch", "<hosts", "nodes", "links", "measured",
					   "predicted (90 %)", "error", "<" } };

	if (!hosts)
		memmove(&table.heads[2], &table.heads[3], 6 * sizeof(table.heads[0]));
	fprintf(to, "%s, in samples/s\n\n", f->title);
	for (size_t i = 0; i < f->count; i++)
		add_row(&table, &f->row[i], hosts);
	ls_text_table_print(&table, to);
	ls_text_table_release(&table);
	print_summary(f, to);
}
