#include "on_hosts.h"

#include <signal.h>
#include <stdlib.h>

#include <lockstep/launch.h>
#include <lockstep/names.h>

#include "command.h"
#include "stop.h"

static int start(const ls_on_hosts_options *o)
{
	char **whole = ls_command_words(o->command, o->argc, o->argv, 1, 0); /* whole[0] is the program itself */
	int code = LS_EXIT_FAILURE;
	if (!whole)
		return code;
	ls_launch_options launch = LS_LAUNCH_OPTIONS_INIT;
	launch.hosts = o->hosts;
	launch.argv = whole;
	launch.timeout = o->timeout;
	ls_stop_on_signals(LS_STOP_LAUNCHER, o->keeps);
	ls_status status = ls_launch(&launch, &code);
	free(whole);
	if (status == LS_EINTERRUPTED && ls_stop_signal()) /* the nodes have said where */
		return 128 + ls_stop_signal();
	int finish_code = ls_command_finish(o->command, status);
	return code ? code : finish_code;
}

/* Later starts continue the run; where --resume is given all do. */
static int supervise(const ls_on_hosts_options *o)
{
	char **first = ls_command_words(o->command, o->argc, o->argv, 1, 0);
	char **later = first ? ls_command_words(o->command, o->argc, o->argv, 1, 1) : NULL;
	ls_elastic_options elastic = *o->elastic;
	int code = LS_EXIT_FAILURE;
	if (later) {
		later[1 + o->argc] = (char *)"--resume";
		elastic.argv = first;
		elastic.resume_argv = later;
		ls_stop_on_signals(LS_STOP_LAUNCHER, o->keeps);
		ls_status status = ls_launch_elastic(&elastic, &code);
		int finish_code = status == LS_EINTERRUPTED && ls_stop_signal() ? 128 + ls_stop_signal()
										: ls_command_finish(o->command, status);
		code = status == LS_OK ? code : finish_code;
	}
	free(later);
	free(first);
	return code;
}

/* The devices of a node that is alone need no launcher: on this host they are --devices. */
static int start_or_stay(const ls_on_hosts_options *o, int64_t *devices)
{
	ls_host *hosts = NULL;
	size_t count = 0;
	if (ls_launched() > 1)
		return ls_usage_error(o->command, "--hosts starts the nodes itself; leave it out under mpirun or srun");
	ls_status status = ls_hosts_parse(&hosts, &count, o->hosts);
	if (status != LS_OK)
		return ls_command_finish(o->command, status);
	int alone_here = count == 1 && ls_host_is_here(hosts[0].name);
	if (alone_here && hosts[0].devices)
		*devices = hosts[0].devices;
	ls_hosts_free(hosts);
	if (o->servers > 0 && o->servers >= (int64_t)count)
		return ls_usage_error(o->command, "--servers %d of %zu node%s: no node would be left to compute",
				      (int)o->servers, count, ls_plural(count, "s"));
	return alone_here ? LS_ON_HOSTS_HERE : start(o);
}

int ls_on_hosts(const ls_on_hosts_options *o, int64_t *devices)
{
	if (o->elastic && !ls_launched_by_us()) {
		if (ls_launched() > 1)
			return ls_usage_error(o->command,
					      "--elastic starts the nodes itself; leave it out under mpirun or srun");
		return supervise(o);
	}
	if (o->hosts && !ls_launched_by_us())
		return start_or_stay(o, devices);
	int given = 0;
	if (ls_launched_by_us() && ls_launched() == 1) { /* the only node, on another host */
		ls_status status = ls_launched_devices(0, &given);
		if (status)
			return ls_command_finish(o->command, status);
	}
	*devices = given ? given : *devices;
	return LS_ON_HOSTS_HERE;
}

void ls_on_hosts_report(void)
{
	if (!ls_launched_by_us())
		return;
	signal(SIGUSR1, SIG_DFL);
	ls_launch_report();
}
