/*
 * cmd_train.c - lockstep train: the library's own table of settings, signals, and starting nodes on other hosts.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lockstep/launch.h>

#include "args.h"
#include "command.h"
#include "on_hosts.h"
#include "stop.h"

/* By name, so that the options know what was given. */
static ls_status set(void *options, const ls_setting *row, const char *value)
{
	return ls_train_options_set(options, row->name, value);
}

static const ls_args args = {
	.command = "lockstep train",
	.purpose = "Train a model; the result does not depend on the number of devices and nodes.",
	.example = "lockstep train --model cnn --data glyphs --samples 6k --run runs/cnn\n"
		   "         lockstep train --model transformer --data babble --run runs/text",
	.brief = 1,
	.at = ls_train_setting_at,
	.set = set,
};

/* Where mpirun sees a node end with a status other than zero it ends the others, one of which may still be writing the
 * checkpoint: nodes that stop on their launcher's request, the first by SIGUSR1 and the others because the first wants
 * to, end well, and the launcher's status shows the signal. */
static int finish(ls_status status)
{
	int code = ls_command_finish(args.command, status);
	int stopped = ls_stop_signal();
	if (status != LS_EINTERRUPTED)
		return code;
	if (ls_launched_by_us() && (!stopped || stopped == SIGUSR1))
		return LS_EXIT_OK;
	return stopped ? 128 + stopped : code;
}

static int train_here(const ls_train_options *options)
{
	ls_stop_on_signals(ls_launched_by_us() ? LS_STOP_NODE : LS_STOP_ALONE, options->run != NULL);
	if (ls_launched_by_us())
		ls_launch_report();
	return finish(ls_train(options, NULL));
}

static int is_given(const ls_train_options *options, const char *name)
{
	return ls_train_setting_is_given(options, ls_train_setting_of(name));
}

/* A run that was started on hosts goes on there, with its timeout, unless other hosts, or devices of this one, are
 * given. Where the run is not on this host, hosts must be given: the first of them has it. */
static ls_status recall_hosts(ls_train_options *options, ls_train_stored *stored)
{
	int placed = options->hosts || is_given(options, "devices") || ls_launched() > 1 || ls_launched_by_us();
	if (!options->resume || !options->run || placed)
		return LS_OK;
	ls_status status = ls_train_recall(stored, options->run);
	if (status != LS_OK)
		return status;
	options->hosts = stored->options.hosts;
	if (!is_given(options, "timeout"))
		options->timeout = stored->options.timeout;
	return LS_OK;
}

/* Servers compute nothing: somebody else must be there. */
static int nodes_needed(const ls_train_options *options)
{
	const ls_strategy_info *strategy = ls_strategy_of(options->strategy);
	int64_t servers = strategy && strategy->has_servers ? (options->servers > 0 ? options->servers : 1) : 0;
	return (int)(options->min_nodes > servers ? options->min_nodes : servers + 1);
}

static int train_on(ls_train_options *options, int argc, char **argv)
{
	ls_on_hosts_options hosts = { .command = args.command,
				      .hosts = options->hosts,
				      .timeout = (double)options->timeout,
				      .keeps = options->run != NULL,
				      .argc = argc,
				      .argv = argv };
	ls_elastic_options elastic = LS_ELASTIC_OPTIONS_INIT;
	elastic.hosts = options->hosts;
	elastic.discover = options->discover;
	elastic.run = options->run;
	elastic.timeout = (double)options->timeout;
	elastic.min_nodes = nodes_needed(options);
	elastic.max_restarts = (int)options->max_restarts;
	hosts.elastic = options->elastic ? &elastic : NULL;
	int code = ls_on_hosts(&hosts, &options->devices);
	return code == LS_ON_HOSTS_HERE ? train_here(options) : code;
}

/* Nodes get the settings that their launcher read from the run, for they may not have access to it: `argv` has room for
 * them. */
static int train_recalled(ls_train_options *options, int argc, char **argv)
{
	char timeout[32];
	snprintf(timeout, sizeof(timeout), "--timeout=%" PRId64, options->timeout);
	argv[argc++] = (char *)"--hosts";
	argv[argc++] = (char *)options->hosts;
	argv[argc++] = timeout;
	argv[argc] = NULL;
	return train_on(options, argc, argv);
}

int ls_cmd_train(int argc, char **argv)
{
	ls_train_options options = LS_TRAIN_OPTIONS_INIT;
	ls_train_stored stored = LS_TRAIN_STORED_INIT;
	int code = ls_args_parse(&args, &options, NULL, argc, argv);
	if (code != LS_ARGS_GO)
		return code;
	ls_status status = recall_hosts(&options, &stored);
	if (status != LS_OK)
		return ls_command_finish(args.command, status);
	if (stored.options.hosts) {
		char **more = ls_command_words(args.command, argc, argv, 0, 3);
		code = more ? train_recalled(&options, argc, more) : LS_EXIT_FAILURE;
		free(more);
	} else {
		code = train_on(&options, argc, argv);
	}
	ls_train_stored_release(&stored);
	return code;
}
