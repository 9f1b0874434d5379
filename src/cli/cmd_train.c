/*
 * cmd_train.c - lockstep train: the library's own table of settings, and signals.
 */
#include "args.h"
#include "command.h"
#include "stop.h"

static const ls_args args = {
	.command = "lockstep train",
	.purpose = "Train a model. Values shown are the defaults; 'man lockstep-train' tells more.",
	.example = "lockstep train --model cnn --data glyphs --samples 6k --run runs/first",
	.columns = 2,
	.at = ls_train_setting_at,
};

int ls_cmd_train(int argc, char **argv)
{
	ls_train_options options = LS_TRAIN_OPTIONS_INIT;
	int code = ls_args_parse(&args, &options, NULL, argc, argv);
	if (code != LS_ARGS_GO)
		return code;
	ls_stop_on_signals(options.run != NULL);
	ls_status status = ls_train(&options, NULL);
	if (status == LS_EINTERRUPTED && ls_stop_signal()) {
		ls_command_finish(args.command, status);
		return 128 + ls_stop_signal();
	}
	return ls_command_finish(args.command, status);
}
