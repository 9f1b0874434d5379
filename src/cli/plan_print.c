#include "plan_print.h"

#include <inttypes.h>
#include <string.h>

#include <lockstep/names.h>

#include "text_table.h"

static int same(const ls_forecast *f, const char *(*of)(const ls_forecast_row *row))
{
	for (size_t i = 1; i < f->count; i++)
		if (strcmp(of(&f->row[i]), of(&f->row[0])) != 0)
			return 0;
	return 1;
}

static const char *wire_of(const ls_forecast_row *row)
{
	return row->wire;
}

/* "ps 2, bf16, 256k": strategy and servers, and wire and bucket where they differ between rows. */
static void add_setting(ls_text_table *table, const ls_forecast *f, const ls_forecast_row *row)
{
	char buckets[32] = "", servers[24] = "", wire[24] = "";
	int differ = 0;

	for (size_t i = 1; i < f->count; i++)
		differ |= f->row[i].bucket_bytes != f->row[0].bucket_bytes;
	if (row->servers > 0)
		snprintf(servers, sizeof(servers), " %" PRId64, row->servers);
	if (!same(f, wire_of))
		snprintf(wire, sizeof(wire), ", %s", row->wire);
	if (differ)
		snprintf(buckets, sizeof(buckets), ", %" PRId64 "k", row->bucket_bytes / 1024);
	ls_text_table_add(table, "%s%s%s%s", row->strategy, servers, wire, buckets);
}

/* Whether other rows have the same nodes and rate. */
static int has_rivals(const ls_forecast *f, const ls_forecast_row *row)
{
	int rows = 0;
	for (size_t i = 0; i < f->count; i++)
		rows += f->row[i].nodes == row->nodes && !strcmp(f->row[i].rate, row->rate);
	return rows > 1;
}

/* "4 x 2", or "4 x 1.75" where workers have different numbers of devices. */
static void add_size(ls_text_table *table, const ls_forecast_row *row)
{
	int64_t workers = row->nodes - row->servers > 0 ? row->nodes - row->servers : 1;

	if (row->devices % workers == 0)
		ls_text_table_add(table, "%" PRId64 " x %" PRId64, row->nodes, row->devices / workers);
	else
		ls_text_table_add(table, "%" PRId64 " x %.2f", row->nodes, (double)row->devices / (double)workers);
}

void ls_rate_range(char *out, size_t size, double rate, double low, double high)
{
	int decimals = rate >= 100 ? 0 : rate >= 10 ? 1 : rate >= 1 ? 2 : 4;
	if (high > 0)
		snprintf(out, size, "%.*f (%.*f–%.*f)", decimals, rate, decimals, low, decimals, high);
	else
		snprintf(out, size, "%.*f", decimals, rate);
}

static void add_row(ls_text_table *table, const ls_forecast *f, size_t i)
{
	const ls_forecast_row *row = &f->row[i];
	int best = has_rivals(f, row) && ls_forecast_best(f, row->nodes, row->rate) == (int)i;
	char rate[LS_RATE_RANGE];

	add_size(table, row);
	ls_text_table_add(table, "%s", row->nodes > 1 ? row->rate : "-");
	add_setting(table, f, row);
	ls_text_table_add(table, "%.1f", row->step_ms);
	ls_text_table_add(table, "%.1f", row->exposed_ms);
	ls_rate_range(rate, sizeof(rate), row->samples_per_s, row->samples_per_s_low, row->samples_per_s_high);
	ls_text_table_add(table, "%s%s", rate, best ? " *" : "  ");
	ls_text_table_add(table, "%.0f %%", 100 * row->efficiency);
	ls_text_table_add(table, "%s", row->bottleneck);
}

void ls_forecast_print(const ls_forecast *f, int best, const char *advice, FILE *to)
{
	ls_text_table table = { .columns = 8,
				.heads = { "nodes", "links", "<setting", "step ms", "exposed", "samples/s (90 %)  ",
					   "ideal", "<limited by" } };

	const int is_fp32 = !strcmp(f->precision, "fp32");
	fprintf(to, "%s, batch %" PRId64 ", %s%s%s: one device %.1f samples/s, gradient %.1f MB\n\n", f->model,
		f->batch, f->optimizer, is_fp32 ? "" : ", products in ", is_fp32 ? "" : f->precision, f->device_per_s,
		f->gradient_bytes / 1e6);
	for (size_t i = 0; i < f->count; i++)
		add_row(&table, f, i);
	ls_text_table_print(&table, to);
	ls_text_table_release(&table);
	int marked = 0, above = 0;
	for (size_t i = 0; i < f->count; i++) {
		marked |= has_rivals(f, &f->row[i]);
		above |= f->row[i].efficiency >= 1.005;
	}
	if (marked)
		fputs("* best for this number of nodes at this rate.\n", to);
	if (above)
		fputs("Above 100 % of ideal: a node of several updates only its shard of the parameters.\n", to);
	fputs("Predicted, not measured; (low–high) is a 90 % interval.\n\n", to);
	if (best >= 0 && f->count > 1)
		fprintf(to, "%" PRId64 " node%s at %s. ", f->row[best].nodes,
			ls_plural((uint64_t)f->row[best].nodes, "s"), f->row[best].rate);
	fputs(advice, to);
}
