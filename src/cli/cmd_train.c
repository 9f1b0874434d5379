/*
 * cmd_train.c - lockstep train: the library's own table of settings, signals, and starting nodes on other hosts.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include <lockstep/launch.h>

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

/* Where mpirun sees a node end with a status other than zero it ends the others, one of which may still be writing the
 * checkpoint: a node that has stopped on its launcher's request is content, and the launcher tells by its status. */
static int finish(ls_status status)
{
	int code = ls_command_finish(args.command, status);
	int stopped = status == LS_EINTERRUPTED ? ls_stop_signal() : 0;
	if (!stopped)
		return code;
	return stopped == SIGUSR1 && ls_launched_by_us() ? LS_EXIT_OK : 128 + stopped;
}

static int train_here(const ls_train_options *options)
{
	ls_stop_on_signals(ls_launched_by_us() ? LS_STOP_NODE : LS_STOP_ALONE, options->run != NULL);
	if (ls_launched_by_us())
		ls_launch_report();
	return finish(ls_train(options, NULL));
}

/* The nodes get this command line. They find --hosts in it, too, and know that it has been done. */
static int train_there(const ls_train_options *options, int argc, char **argv)
{
	char **whole = calloc((size_t)argc + 2, sizeof *whole);
	int code = LS_EXIT_OK;
	if (!whole)
		return ls_usage_error(args.command, "out of memory");
	memcpy(whole + 1, argv, (size_t)argc * sizeof *whole); /* whole[0] is the program itself */
	ls_launch_options launch = LS_LAUNCH_OPTIONS_INIT;
	launch.hosts = options->hosts;
	launch.argv = whole;
	launch.timeout = (double)options->timeout;
	ls_stop_on_signals(LS_STOP_LAUNCHER, options->run != NULL);
	ls_status status = ls_launch(&launch, &code);
	free(whole);
	if (status == LS_EINTERRUPTED && ls_stop_signal()) /* the nodes have said where */
		return 128 + ls_stop_signal();
	int told = ls_command_finish(args.command, status);
	return code ? code : told;
}

/* The devices of a node that is alone need no launcher: on this host they are --devices. */
static int train_on_hosts(ls_train_options *options, int argc, char **argv)
{
	ls_host *hosts = NULL;
	size_t count = 0;
	if (ls_launched() > 1)
		return ls_usage_error(args.command,
				      "--hosts starts the nodes itself; leave it out under mpirun or srun");
	ls_status status = ls_hosts_parse(&hosts, &count, options->hosts);
	if (status != LS_OK)
		return ls_command_finish(args.command, status);
	int alone_here = count == 1 && ls_host_is_here(hosts[0].name);
	if (alone_here && hosts[0].devices)
		options->devices = hosts[0].devices;
	ls_hosts_free(hosts);
	return alone_here ? train_here(options) : train_there(options, argc, argv);
}

int ls_cmd_train(int argc, char **argv)
{
	ls_train_options options = LS_TRAIN_OPTIONS_INIT;
	int code = ls_args_parse(&args, &options, NULL, argc, argv);
	if (code != LS_ARGS_GO)
		return code;
	if (options.hosts && !ls_launched_by_us())
		return train_on_hosts(&options, argc, argv);
	const char *devices = getenv(LS_DEVICES_PER_NODE);
	if (ls_launched_by_us() && ls_launched() == 1 && devices) /* the only node, on another host */
		options.devices = atoi(devices);
	return train_here(&options);
}
