/*
 * commands.c - the table of subcommands. A new one is a row here, a line in command.h, and cmd_NAME.c
 * with the table of its options.
 */
#include "command.h"

static const ls_command commands[] = {
	{ "train", "train a model", ls_cmd_train },
	{ "eval", "evaluate a run or a file of weights", ls_cmd_eval },
	{ "predict", "predict classes of images, numbers or text", ls_cmd_predict },
	{ "generate", "generate text with a language model", ls_cmd_generate },
	{ "serve", "answer predictions over HTTP", ls_cmd_serve },
	{ "export", "write a trained model as ONNX", ls_cmd_export },
	{ "data", "get, make and show datasets", ls_cmd_data },
	{ "models", "list models with their sizes, or the layers of one", ls_cmd_models },
	{ "bench", "measure how fast a model trains", ls_cmd_bench },
	{ "plan", "predict how a job would scale on a cluster", ls_cmd_plan },
	{ "probe", "measure this machine or cluster: cores, memory, links", ls_cmd_probe },
	{ "report", "make a page of tables and plots from sweeps and runs", ls_cmd_report },
	{ "slurm", "write a job script for a cluster", ls_cmd_slurm },
	{ "k8s", "write a job for Kubernetes", ls_cmd_k8s },
};

const ls_command_group ls_commands = {
	.name = "lockstep",
	.purpose = "Train neural networks on CPUs, from one core to a cluster, to identical bits.",
	.more = "\nStart with:\n"
		"  lockstep train --model cnn --data glyphs --samples 6k --run runs/start\n"
		"  lockstep eval runs/start\n",
	.commands = commands,
	.count = sizeof(commands) / sizeof(commands[0]),
};
