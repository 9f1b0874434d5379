/*
 * cmd_probe.c - lockstep probe: measure this machine, the nodes of a launcher, or the given hosts.
 */

#include <lockstep/launch.h>

#include "args.h"
#include "command.h"
#include "on_hosts.h"
#include "probe_print.h"
#include "stop.h"

typedef struct probe_options {
	ls_probe_options probe;
	const char *hosts;
	int json;
} probe_options;

#define PROBE(member) offsetof(probe_options, probe) + offsetof(ls_probe_options, member)
#define OWN(member) offsetof(probe_options, member)

static const ls_setting rows[] = {
	{ "hosts", 0, "LIST", "Nodes", "start a node on each host: a:4,b:2 (devices)", LS_SETTING_STRING, OWN(hosts), 0,
	  0, 0 },
	{ "servers", 0, "N", "Nodes", "also measure parameter servers on the last N nodes", LS_SETTING_INT,
	  PROBE(servers), 0, 1e6, 0 },
	{ "timeout", 0, "SECONDS", "Nodes", "give up on a silent node after N seconds", LS_SETTING_INT, PROBE(timeout),
	  1, 1e6, 0 },
	{ "devices", 0, "N", "Exchange", "devices per node (default: 2, and all cores)", LS_SETTING_INT, PROBE(devices),
	  0, 4096, 0 },
	{ "bytes", 0, "N", "Exchange", "bytes of gradient (default: 44M, quick: 4M)", LS_SETTING_COUNT, PROBE(bytes), 0,
	  0x1p36, 0 },
	{ "bucket-bytes", 0, "N", "Exchange", "bytes sent together (default: as in training)", LS_SETTING_INT,
	  PROBE(bucket_bytes), 0, 0x1p36, 0 },
	{ "repeat", 0, "N", "Measurement", "repeats per figure (default: 9, quick: 3)", LS_SETTING_INT, PROBE(repeat),
	  0, 99, 0 },
	{ "quick", 0, NULL, "Measurement", "measure for 1 to 2 seconds, less precisely", LS_SETTING_FLAG, PROBE(quick),
	  0, 1, 0 },
	{ "json", 0, NULL, "Measurement", "print one JSON object", LS_SETTING_FLAG, OWN(json), 0, 1, 0 },
};
LS_ARGS_TABLE(row_at, rows)

static const ls_args args = {
	.command = "lockstep probe",
	.purpose = "Measure this machine or cluster: cores, GFLOP/s, memory, links and the exchange\n"
		   "of gradients, on all nodes under mpirun or srun or of --hosts. Prints medians.",
	.example = "lockstep probe --hosts lm1:4,lm6:2",
	.at = row_at,
};

/* One node prints the error; the others have no message. */
static int finish(ls_status status)
{
	int stopped = status == LS_EINTERRUPTED ? ls_stop_signal() : 0;
	if (status != LS_OK && !ls_last_error()[0])
		return LS_EXIT_FAILURE;
	int code = ls_command_finish(args.command, status);
	return stopped ? 128 + stopped : code;
}

static int probe_here(const probe_options *options)
{
	ls_probe_result result;
	ls_on_hosts_report();
	ls_status status = ls_probe(&options->probe, &result);
	if (status != LS_OK)
		return finish(status);
	int failed = 0;
	if (result.node == 0)
		failed = options->json ? ls_probe_print_json(&result, stdout) : ls_probe_print_text(&result, stdout);
	ls_probe_result_release(&result);
	if (failed)
		ls_command_end(args.command, LS_EIO, "cannot write the result");
	return failed ? LS_EXIT_FAILURE : LS_EXIT_OK;
}

int ls_cmd_probe(int argc, char **argv)
{
	probe_options options = { .probe = LS_PROBE_OPTIONS_INIT };
	int code = ls_args_parse(&args, &options, NULL, argc, argv);
	if (code != LS_ARGS_GO)
		return code;
	ls_on_hosts_options hosts = { .command = args.command,
				      .hosts = options.hosts,
				      .timeout = (double)options.probe.timeout,
				      .servers = options.probe.servers,
				      .argc = argc,
				      .argv = argv };
	code = ls_on_hosts(&hosts, &options.probe.devices);
	return code == LS_ON_HOSTS_HERE ? probe_here(&options) : code;
}
