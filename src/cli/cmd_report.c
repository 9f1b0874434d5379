/*
 * cmd_report.c - lockstep report: tables and plots of sweeps, runs and forecasts.
 */
#include <stdio.h>
#include <string.h>

#include <lockstep/report.h>

#include "args.h"
#include "command.h"

enum { PATHS_MAX = 64 };

typedef struct report_options {
	ls_report_options report;
	int markdown;
} report_options;

#define AT(member) offsetof(report_options, member)

static const ls_setting rows[] = {
	{ "out", 'o', "FILE", "Options", "write the page to FILE (default: PATH/report.html)", LS_SETTING_STRING,
	  AT(report.out), 0, 0, 0 },
	{ "markdown", 0, NULL, "Options", "print the tables as Markdown instead", LS_SETTING_FLAG, AT(markdown), 0, 1,
	  0 },
	{ "compare", 0, "SET", "Options", "compare with published figures: 'published' or FILE.csv", LS_SETTING_STRING,
	  AT(report.compare), 0, 0, 0 },
	{ "title", 0, "TEXT", "Options", "title of the page", LS_SETTING_STRING, AT(report.title), 0, 0, 0 },
};
LS_ARGS_TABLE(row_at, rows)

static const ls_args args = {
	.command = "lockstep report",
	.operands = "PATH...",
	.purpose = "Write one HTML page with tables and plots. A PATH is a sweep's results.json or\n"
		   "its directory, the directory of a run, or a forecast of lockstep plan.",
	.example = "lockstep report runs/first --out first.html",
	.operands_min = 1,
	.operands_max = PATHS_MAX,
	.at = row_at,
};

static void print_marked(size_t ours, size_t published)
{
	if (ours)
		printf("; %zu figure%s", ours, ls_plural(ours, "s"));
	if (published)
		printf("%s %zu published %s", ours ? " and" : ";", published, published == 1 ? "figure" : "figures");
	if (ours || published)
		fputs(" marked as implausibly fast or unreliable", stdout);
}

/* "1 sweep (16 of 16 points done, 6 of them simulated)" */
static void print_sweeps(const ls_report_result *r)
{
	printf("%zu sweep%s (%zu of %zu point%s done", r->sweeps, ls_plural(r->sweeps, "s"), r->done, r->points,
	       ls_plural(r->points, "s"));
	if (r->simulated)
		printf(", %zu of them simulated", r->simulated);
	putchar(')');
}

static void print_result(const ls_report_result *r)
{
	const char *comma = "";
	if (r->sweeps)
		print_sweeps(r);
	comma = r->sweeps ? ", " : "";
	if (r->runs)
		printf("%s%zu run%s", comma, r->runs, ls_plural(r->runs, "s"));
	comma = r->sweeps || r->runs ? ", " : "";
	if (r->forecasts)
		printf("%s%zu forecast%s", comma, r->forecasts, ls_plural(r->forecasts, "s"));
	print_marked(r->flags - r->published, r->published);
	printf("\n%s\n", r->path);
}

int ls_cmd_report(int argc, char **argv)
{
	report_options options = { .report = LS_REPORT_OPTIONS_INIT };
	ls_report_result result;
	const char *paths[PATHS_MAX];
	for (int i = 1; i < argc; i++)
		if (!strncmp(argv[i], "--beside", 8))
			return ls_usage_error(args.command, "--beside seeds is now --compare published");
	int code = ls_args_parse(&args, &options, paths, argc, argv);
	if (code != LS_ARGS_GO)
		return code;
	options.report.paths = paths;
	while (options.report.path_count < PATHS_MAX && paths[options.report.path_count])
		options.report.path_count++;
	if (options.markdown && options.report.out)
		return ls_usage_error(args.command, "--markdown prints to standard output: it takes no --out");
	ls_status status =
		options.markdown ? ls_report_print(&options.report, stdout) : ls_report_write(&options.report, &result);
	if (status == LS_OK && !options.markdown)
		print_result(&result);
	return ls_command_finish(args.command, status);
}
