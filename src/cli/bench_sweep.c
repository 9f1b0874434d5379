/*
 * bench_sweep.c - recipes, points and the table of a sweep.
 */
#include "bench_sweep.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <lockstep/launch.h>
#include <lockstep/models.h>
#include <lockstep/report.h>
#include <lockstep/train.h>

#include "command.h"
#include "stop.h"
#include "text_table.h"

int ls_bench_sweep_word(char *out, size_t size, const char *name, const char *value)
{
	size_t used = strlen(out);
	const char *quote = value && (!*value || strpbrk(value, " \t\n")) ? "'" : "";
	if (value && strchr(value, '\''))
		return 1;
	int more = snprintf(out + used, size - used, "%s--%s%s%s%s%s", used ? " " : "", name, value ? " " : "", quote,
			    value ? value : "", quote);
	return (size_t)more >= size - used;
}

/* ---- lists ---- */

static int list_recipes(const char *command)
{
	const ls_recipe *recipe;
	for (size_t i = 0; (recipe = ls_recipe_at(i)); i++) {
		char title[256], source[256];
		int quick = 0, full = 0;
		ls_status status = ls_recipe_title(recipe, title, sizeof(title), source, sizeof(source));
		if (status == LS_OK)
			status = ls_recipe_forms(recipe, &quick, &full);
		if (status != LS_OK)
			return ls_command_finish(command, status);
		printf("%-18s %s%s%s%s%s\n", recipe->name, title, quick || full ? " (" : "", quick ? "--quick" : "",
		       full ? quick ? ", --full" : "--full" : "", quick || full ? ")" : "");
	}
	return LS_EXIT_OK;
}

static int list_points(const char *command, const ls_sweep_options *options)
{
	ls_sweep_result plan;
	ls_status status = ls_sweep_points(options, &plan);
	if (status != LS_OK)
		return ls_command_finish(command, status);
	for (size_t i = 0; i < plan.row_count; i++)
		puts(plan.rows[i].key);
	ls_sweep_result_release(&plan);
	return LS_EXIT_OK;
}

/* ---- the table ---- */

/* "3+2" is printed as it is, "4+4" as 4 per node. */
static void add_shape(ls_text_table *table, const ls_sweep_row *row)
{
	int64_t each = row->devices / row->nodes;
	char same[24];
	snprintf(same, sizeof(same), "%" PRId64, each);
	int equal = row->devices % row->nodes == 0 && !strncmp(row->shape, same, strlen(same));
	for (const char *at = strchr(row->shape, '+'); at && equal; at = strchr(at + 1, '+'))
		equal = !strncmp(at + 1, same, strlen(same)) && (at[1 + strlen(same)] == '+' || !at[1 + strlen(same)]);
	ls_text_table_add(table, "%" PRId64, row->nodes);
	ls_text_table_add(table, "%s", equal ? same : row->shape);
}

/* The rule of lockstep report: measured figures vary by up to 2 %. */
static int is_above_ideal(const ls_sweep_row *row)
{
	return row->speedup > 1.02 * (double)row->devices;
}

/* "7", "7 (1 failed)" */
static void add_launches(ls_text_table *table, const ls_sweep_row *row)
{
	if (row->launches_failed > 0)
		ls_text_table_add(table, "%" PRId64 " (%" PRId64 " failed)", row->launches, row->launches_failed);
	else
		ls_text_table_add(table, "%" PRId64, row->launches);
}

/* With several launches: their number, and the spread within them and between them; else the spread of the repeats. */
static void add_spread(ls_text_table *table, const ls_sweep_row *row, int with_launches)
{
	if (with_launches) {
		add_launches(table, row);
		ls_text_table_add(table, "%.1f %%", 100 * row->spread_within);
		ls_text_table_add(table, "%.1f %%", 100 * row->spread_between);
	} else {
		ls_text_table_add(table, "%.1f %%", 100 * row->spread_within);
	}
}

static void add_row(ls_text_table *table, const ls_sweep_row *row, int with_launches)
{
	int done = !strcmp(row->state, "done");
	ls_text_table_add(table, "%s", row->model);
	ls_text_table_add(table, "%s", row->precision);
	add_shape(table, row);
	ls_text_table_add(table, "%" PRId64, row->batch);
	ls_text_table_add(table, "%s%s%s", row->strategy, strcmp(row->wire, "fp32") ? " " : "",
			  strcmp(row->wire, "fp32") ? row->wire : "");
	ls_text_table_add(table, "%s", row->rate[0] ? row->rate : "-");
	ls_text_table_add(table, "%s", row->replay ? "simulated" : "measured");
	if (!done)
		ls_text_table_add(table, "%s", row->state);
	else
		ls_text_table_add(table, "%.1f%s", row->samples_per_s, row->launches_busy > 0 ? " !" : "");
	if (done)
		add_spread(table, row, with_launches);
	else
		for (int i = 0; i < (with_launches ? 3 : 1); i++)
			ls_text_table_add(table, "-");
	if (done && row->speedup > 0)
		ls_text_table_add(table, "%.2f%s", row->speedup, is_above_ideal(row) ? " +" : "");
	else
		ls_text_table_add(table, "-");
}

/* The table of a sweep of lists; a recipe's table has its published form. */
static int print_rows(const ls_sweep_result *result, FILE *to)
{
	ls_text_table few = { .columns = 11,
			      .heads = { "<model", "<precision", "nodes", "devices", "batch", "<strategy", "rate",
					 "<figure", "samples/s", "spread", "speedup" } };
	ls_text_table more = { .columns = 13,
			       .heads = { "<model", "<precision", "nodes", "devices", "batch", "<strategy", "rate",
					  "<figure", "samples/s", "launches", "within", "between", "speedup" } };
	int replayed = 0, above = 0, alone = 0, busy = 0, with_launches = 0;
	for (size_t i = 0; i < result->row_count; i++)
		with_launches |= result->rows[i].launches > 1;
	ls_text_table table = with_launches ? more : few;
	for (size_t i = 0; i < result->row_count; i++) {
		add_row(&table, &result->rows[i], with_launches);
		busy |= result->rows[i].launches_busy > 0;
		replayed |= result->rows[i].replay;
		above |= is_above_ideal(&result->rows[i]);
		alone |= !strcmp(result->rows[i].state, "done") && !(result->rows[i].speedup > 0);
	}
	int failed = ls_text_table_print(&table, to);
	ls_text_table_release(&table);
	if (replayed)
		fprintf(to, "simulated: compute, because this machine has fewer cores than devices; communication is "
			    "real\n");
	if (with_launches)
		fprintf(to, "within, between: (largest - smallest) / median of repeats in a launch, and of launches\n");
	if (busy)
		fprintf(to, "! the machine was busy during a launch: results.json has load and steal time of each\n");
	if (alone)
		fprintf(to, "- no speedup: no row of one device was measured the same way\n");
	if (above)
		fprintf(to, "+ above ideal: lockstep report prints the likely reason\n");
	return failed;
}

static int print_table(const char *command, const ls_sweep_options *options, const ls_sweep_result *result, FILE *to)
{
	if (options->recipe || options->to_accuracy > 0) {
		int code = ls_command_finish(command, ls_report_markdown(result->path, to));
		if (code)
			return code;
	} else if (print_rows(result, to)) {
		fprintf(stderr, "%s: cannot write the table\n", command);
		return LS_EXIT_FAILURE;
	}
	fprintf(to, "%s%zu of %zu point%s done; %s\nA page with plots: lockstep report %.*s\n",
		options->recipe || options->to_accuracy > 0 ? "\n" : "", result->done, result->row_count,
		ls_plural(result->row_count, "s"), result->path, (int)(strlen(result->path) - strlen("/results.json")),
		result->path);
	return LS_EXIT_OK;
}

/* ---- measuring ---- */

static int check_model(const char *command, const char *name)
{
	const char *known[64] = { NULL };
	size_t count = 0;
	if (ls_model_row_of(name))
		return LS_EXIT_OK;
	for (; count < 64 && ls_model_row_at(count); count++)
		known[count] = ls_model_row_at(count)->name;
	const char *nearest = ls_name_nearest(name, known, count);
	return ls_usage_error(command, "unknown model '%s'%s%s%s; 'lockstep models' lists them", name,
			      nearest ? "; did you mean '" : "", nearest ? nearest : "", nearest ? "'?" : "");
}

/* Check all points before the first is measured. */
static int check_models(const char *command, const ls_sweep_options *options)
{
	ls_sweep_result plan;
	int code = LS_EXIT_OK;
	ls_status status = ls_sweep_points(options, &plan);
	if (status != LS_OK)
		return ls_command_finish(command, status);
	for (size_t i = 0; i < plan.row_count && code == LS_EXIT_OK; i++)
		code = check_model(command, plan.rows[i].model);
	ls_sweep_result_release(&plan);
	return code;
}

/* --hosts a:3,b:2 alone sets the number of nodes and their devices. The texts are static. */
static ls_status take_hosts(ls_sweep_options *o)
{
	static char nodes[16], devices[1024];
	ls_host *hosts = NULL;
	size_t count = 0, used = 0;
	if (!o->hosts || o->recipe || o->nodes)
		return LS_OK;
	ls_status status = ls_hosts_parse(&hosts, &count, o->hosts);
	if (status != LS_OK)
		return status;
	snprintf(nodes, sizeof(nodes), "%zu", count);
	for (size_t i = 0; i < count && hosts[0].devices && used < sizeof(devices); i++)
		used += (size_t)snprintf(devices + used, sizeof(devices) - used, "%s%d", i ? "+" : "",
					 hosts[i].devices);
	o->nodes = nodes;
	if (used && !o->devices)
		o->devices = devices;
	ls_hosts_free(hosts);
	return LS_OK;
}

/* Whether points are given, by a recipe or by lists. */
static int has_points(const ls_sweep_options *o)
{
	return o->recipe || o->to_accuracy > 0 || o->model || o->nodes || o->devices || o->batch || o->strategy ||
	       o->rate;
}

/* Whether an earlier row has the same reason. */
static int was_reported(const ls_sweep_result *result, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (!strcmp(result->rows[k].state, "skipped") &&
		    !strcmp(result->rows[k].reason, result->rows[i].reason))
			return 1;
	return 0;
}

/* The reasons why points were skipped, each once; a reason names what is missing. */
static void report_skipped(const char *command, const ls_sweep_result *result)
{
	for (size_t i = 0; i < result->row_count; i++) {
		size_t count = 0;
		if (strcmp(result->rows[i].state, "skipped") != 0 || was_reported(result, i))
			continue;
		for (size_t k = i; k < result->row_count; k++)
			count += !strcmp(result->rows[k].state, "skipped") &&
				 !strcmp(result->rows[k].reason, result->rows[i].reason);
		fprintf(stderr, "%s: %zu of %zu point%s skipped: %s\n", command, count, result->row_count,
			ls_plural(result->row_count, "s"), result->rows[i].reason);
	}
	fprintf(stderr, "Provide what is missing, then run the same command again to measure the skipped points.\n");
}

static int conclude(const char *command, const ls_sweep_options *options, const ls_sweep_result *result)
{
	int code = print_table(command, options, result, stdout);
	if (code)
		return code;
	fflush(stdout);
	if (result->skipped)
		report_skipped(command, result);
	if (result->failed)
		fprintf(stderr, "%s: %zu of %zu point%s failed; run the same command to try again\n", command,
			result->failed, result->row_count, ls_plural(result->row_count, "s"));
	return result->failed ? LS_EXIT_FAILURE : result->skipped ? LS_EXIT_SKIPPED : LS_EXIT_OK;
}

int ls_bench_sweep(const char *command, ls_sweep_options *options, int list)
{
	ls_sweep_result result;
	if (ls_launched() > 1)
		return ls_usage_error(command,
				      "a sweep starts the nodes of each point itself; leave out mpirun or srun");
	ls_status status = take_hosts(options);
	if (status != LS_OK)
		return ls_command_finish(command, status);
	if (list && !has_points(options))
		return list_recipes(command);
	int code = check_models(command, options);
	if (code || list)
		return code ? code : list_points(command, options);
	ls_stop_on_signals(LS_STOP_SWEEP, 0);
	status = ls_sweep(options, &result);
	if (status == LS_EINTERRUPTED && ls_stop_signal()) {
		fprintf(stderr, "%s: stopped with %zu of %zu point%s done; run the same command to continue\n", command,
			result.done, result.row_count, ls_plural(result.row_count, "s"));
		ls_sweep_result_release(&result);
		return 128 + ls_stop_signal();
	}
	if (status != LS_OK)
		return ls_command_finish(command, status);
	code = conclude(command, options, &result);
	ls_sweep_result_release(&result);
	return code;
}
