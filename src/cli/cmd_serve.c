/*
 * cmd_serve.c - lockstep serve: answer predictions over HTTP.
 */
#include <stdio.h>

#include <lockstep/serve.h>

#include "args.h"
#include "choice.h"
#include "command.h"
#include "model_rows.h"
#include "stop.h"

typedef struct serve_options {
	ls_model_load_options load;
	ls_serve_options serve;
	const char *resize;
} serve_options;

#define LOAD(member) offsetof(serve_options, load.member)
#define AT(member) offsetof(serve_options, serve.member)
#define OWN(member) offsetof(serve_options, member)

#define OPTIONS "Options"
#define LIMITS "Limits"

static const ls_setting rows[] = {
	{ "listen", 'l', "ADDR:PORT", OPTIONS, "listen on ADDR:PORT (port 0: any free port)", LS_SETTING_STRING,
	  AT(listen), 0, 0, 0 },
	{ "token-file", 0, "FILE", OPTIONS, "require the bearer token in FILE", LS_SETTING_STRING, AT(token_file), 0, 0,
	  0 },
	{ "max-batch", 0, "N", OPTIONS, "predict up to N samples at a time, same result", LS_SETTING_INT, AT(max_batch),
	  1, 65536, 0 },
	{ "max-wait-ms", 0, "X", OPTIONS, "wait up to X ms for others, to fill a batch", LS_SETTING_REAL,
	  AT(max_wait_ms), 0, 60000, 0 },
	{ "resize", 0, "HOW", OPTIONS, "images of another size: {values}", LS_SETTING_STRING, OWN(resize), 0, 0, 0 },
	{ "quiet", 'q', NULL, OPTIONS, "print nothing", LS_SETTING_FLAG, AT(quiet), 0, 1, 0 },

	{ "max-body", 0, "N", LIMITS, "refuse requests of more than N bytes", LS_SETTING_INT, AT(max_body), 1024,
	  1 << 30, 0 },
	{ "max-connections", 0, "N", LIMITS, "serve N connections; answer more with 503", LS_SETTING_INT,
	  AT(max_connections), 1, 65536, 0 },
	{ "timeout", 0, "SECONDS", LIMITS, "close connections without a request (default 30)", LS_SETTING_REAL,
	  AT(timeout), 0.1, 86400, 0 },

	LS_DEVICE_ROWS(LS_MACHINE, LOAD),
	LS_MODEL_ROWS(LS_MODEL_GROUP, LOAD),
};
LS_ARGS_TABLE(row_at, rows)

static const ls_args args = {
	.command = "lockstep serve",
	.operands = "RUN|FILE.safetensors",
	.purpose = "Answer predictions over HTTP: images, text or rows in, labels or values out.",
	.example = "lockstep serve runs/first",
	.operands_min = 1,
	.operands_max = 1,
	.at = row_at,
	.value_at = ls_resize_value_at,
};

static ls_status serve(const serve_options *o)
{
	ls_model *model = NULL;
	ls_status status = ls_model_load(&model, &o->load);

	if (status == LS_OK)
		status = ls_serve(model, &o->serve, NULL);
	ls_model_free(model);
	return status;
}

int ls_cmd_serve(int argc, char **argv)
{
	serve_options options = { .load = LS_MODEL_LOAD_OPTIONS_INIT, .serve = LS_SERVE_OPTIONS_INIT };
	int code = ls_args_parse(&args, &options, &options.load.source, argc, argv);
	if (code != LS_ARGS_GO)
		return code;
	int resize = ls_args_choose(&args, "resize", options.resize);
	if (resize < 0)
		return LS_EXIT_USAGE;
	options.serve.resize = (ls_resize)resize;
	ls_stop_on_signals(LS_STOP_SERVER, 0);
	return ls_command_finish(args.command, serve(&options));
}
