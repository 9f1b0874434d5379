/*
 * faults.c - train a job elastically while its nodes are killed, and measure it.
 *
 *     temporary directory, emulated nodes -> lockstep train --elastic, with LOCKSTEP_FAULTS -> its metrics.jsonl -> figures
 *
 * The nodes kill themselves (cluster/faults.h), so nothing here looks for processes, and no host but those of the job
 * is touched.
 *
 * Invariant: whatever happens, the processes end first, then go emulated nodes, run directory and snapshots in memory.
 */
#include <lockstep/faults.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <lockstep/launch.h>

#include "base/files.h"
#include "base/log.h"
#include "base/names.h"
#include "base/options.h"
#include "checkpoint/memory_file.h"
#include "cluster/faults.h"
#include "tools/faults/figures.h"
#include "tools/sweep/command.h"

typedef struct fault_bench {
	const ls_fault_bench_options *options;
	char program[4096], directory[4096], run[4200];
	char *hosts_text; /* of emulated nodes */
	ls_host *hosts;
	size_t count;
	ls_lab lab;
	ls_arena arena;
} fault_bench;

/* ---- what is asked for ------------------------------------------------------------------------------------------- */

static ls_status check(const ls_fault_bench_options *o)
{
	if (!o->train)
		return ls_fail(LS_EINVALID, "options.train names no job");
	if (!(o->every >= 1) || o->every > 1e9)
		return ls_fail(LS_EINVALID, "options.every must be from 1 to 1000000000 seconds, not %g", o->every);
	if (o->faults < 1 || o->faults > 1000000)
		return ls_fail(LS_EINVALID, "options.faults must be from 1 to 1000000, not %" PRId64, o->faults);
	if (o->hosts && (o->nodes > 0 || o->rate))
		return ls_fail(LS_EINVALID, "options.hosts names real nodes, options.%s is about emulated ones",
			       o->nodes > 0 ? "nodes" : "rate");
	if (ls_launched() > 1)
		return ls_fail(LS_EINVALID, "a bench with faults starts its nodes itself; leave out mpirun or srun");
	return LS_OK;
}

/* "node1:2,node2:2,node3:1", servers last. */
static ls_status name_emulated(fault_bench *b)
{
	const ls_fault_bench_options *o = b->options;
	int64_t nodes = o->nodes + o->servers;
	size_t room = (size_t)(nodes > 0 && nodes <= LS_SWEEP_NODES ? nodes : 0) * 32 + 1, used = 0;

	if (nodes > LS_SWEEP_NODES)
		return ls_fail(LS_EINVALID, "options.nodes: at most %d nodes are emulated, not %" PRId64,
			       LS_SWEEP_NODES, nodes);
	if (!(b->hosts_text = calloc(room, 1)))
		return ls_fail(LS_EMEMORY, "no memory for the names of %" PRId64 " nodes", nodes);
	for (int64_t i = 0; i < nodes; i++)
		used += (size_t)snprintf(b->hosts_text + used, room - used, "%s" LS_LAB_HOST "%" PRId64 ":%" PRId64,
					 i > 0 ? "," : "", i + 1, i < o->nodes ? o->devices : 1);
	return LS_OK;
}

static ls_status name_nodes(fault_bench *b)
{
	const ls_fault_bench_options *o = b->options;

	if (!o->hosts)
		LS_TRY(name_emulated(b));
	if (o->hosts || b->hosts_text[0] != '\0')
		LS_TRY(ls_hosts_parse(&b->hosts, &b->count, o->hosts ? o->hosts : b->hosts_text));
	if (b->count < 2)
		return ls_fail(LS_EINVALID,
			       "options.%s: a run survives faults on two nodes or more, not on %zu; the node that is "
			       "lost has the only snapshots",
			       o->hosts ? "hosts" : "nodes", b->count);
	return LS_OK;
}

/* ---- where it happens -------------------------------------------------------------------------------------------- */

/* Real hosts see the working directory, if any; emulated ones see all directories of this machine. */
static ls_status make_directory(fault_bench *b)
{
	const char *temporary = getenv("TMPDIR");
	char here[4000];

	if (!getcwd(here, sizeof(here)))
		return ls_fail_errno(LS_EIO, "cannot determine the working directory");
	if (!b->options->hosts)
		snprintf(here, sizeof(here), "%s", temporary && temporary[0] == '/' ? temporary : "/tmp");
	snprintf(b->directory, sizeof(b->directory), "%s/lockstep-faults-XXXXXX", here);
	if (!mkdtemp(b->directory)) {
		b->directory[0] = '\0';
		return ls_fail_errno(LS_EIO, "cannot make a directory for the run in %s", here);
	}
	return ls_path_join(b->run, sizeof(b->run), b->directory, "run");
}

static ls_status emulate_nodes(fault_bench *b)
{
	ls_sweep_point point = { .job.nodes = b->options->nodes, .job.servers = b->options->servers };

	if (b->options->hosts)
		return LS_OK;
	snprintf(point.job.rate, sizeof(point.job.rate), "%s", b->options->rate ? b->options->rate : "");
	LS_TRY(ls_lab_init(&b->lab, b->program, b->directory));
	if (!ls_lab_possible(&b->lab))
		return ls_fail(LS_EUNSUPPORTED, "cannot emulate nodes: %s", b->lab.reason);
	return ls_lab_need(&b->lab, &point);
}

/* The run is gone by then, so its snapshots are of a run that is over, under the names of all nodes that may be on
 * this machine. */
static void clean(fault_bench *b)
{
	char here[256] = "";

	ls_lab_down(&b->lab);
	if (b->directory[0] != '\0' && ls_path_remove_tree(b->directory) != LS_OK)
		ls_log_warning("%s", ls_last_error());
	for (size_t i = 0; i < b->count; i++)
		ls_memory_sweep(LS_MEMORY_DIRECTORY, b->hosts[i].name);
	if (gethostname(here, sizeof(here) - 1) == 0)
		ls_memory_sweep(LS_MEMORY_DIRECTORY, here);
	ls_hosts_free(b->hosts);
	free(b->hosts_text);
	ls_arena_release(&b->arena);
}

/* ---- the run ----------------------------------------------------------------------------------------------------- */

/* The job goes on until the nodes end it, without evaluations and checkpoints on disk: they are not what is
 * measured. */
static ls_status make_command(fault_bench *b, char ***out)
{
	static const char *const words[] = { "train",     "--elastic",      "--quiet",   "--schedule",
					     "constant",  "--steps",        "100000000", "--log-every",
					     "1",         "--eval-every",   "0",         "--ckpt-every",
					     "100000000", "--max-restarts", "1000000" };
	const ls_fault_bench_options *o = b->options;
	ls_argv w = { .arena = &b->arena };
	char faults[128];

	if (!o->hosts) {
		ls_argv_add(&w, b->lab.tool);
		ls_argv_add(&w, "run");
		ls_argv_addf(&w, "--name", "%s", b->lab.name);
	}
	snprintf(faults, sizeof(faults), LS_FAULTS "=%.17g:%" PRIu64 ":%" PRId64, o->every, o->seed, o->faults);
	ls_argv_add(&w, "env");
	ls_argv_add(&w, faults);
	ls_argv_add(&w, b->program);
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		ls_argv_add(&w, words[i]);
	ls_argv_addf(&w, "--run", "%s", b->run);
	ls_argv_addf(&w, "--hosts", "%s", o->hosts ? o->hosts : b->hosts_text);
	ls_argv_addf(&w, "--timeout", "%" PRId64, o->timeout);
	for (char *const *word = o->train; *word; word++)
		ls_argv_add(&w, *word);
	return ls_argv_end(&w, out);
}

/* All times of training are known from the seed; each start may take as long as its nodes have to come up, twice. */
static double limit_of(const fault_bench *b)
{
	const ls_fault_bench_options *o = b->options;
	const ls_faults faults = { .every = o->every, .seed = o->seed, .count = (uint64_t)o->faults };
	double limit = 0;

	for (uint64_t start = 1; start <= faults.count + 1; start++) {
		ls_fault fault = ls_faults_draw(&faults, start, (int)b->count);
		limit += 4 * (double)o->timeout + 60 + (fault.node >= 0 ? fault.after : 0);
	}
	return limit;
}

static ls_status train(fault_bench *b)
{
	char **command, why[512];
	ls_child child;

	LS_TRY(make_command(b, &command));
	LS_TRY(ls_child_run(&child, &(ls_child_options){ .argv = command, .limit_s = limit_of(b) }));
	int code = child.code;
	if (code != 0 || child.late)
		ls_child_reason(&child, why, sizeof(why));
	ls_status status = LS_OK;
	if (code != 0 || child.late)
		status = ls_fail(code == 2 ? LS_EINVALID : LS_EIO, "the run with faults failed: %s", why);
	ls_child_release(&child);
	return status;
}

static ls_status measure(const fault_bench *b, ls_fault_bench_result *out)
{
	ls_fault_log log = { .warmup = b->options->warmup };
	char path[4300];
	ls_file_map map;

	LS_TRY(ls_path_join(path, sizeof(path), b->run, "metrics.jsonl"));
	LS_TRY(ls_file_map_open(&map, path));
	ls_status status =
		ls_file_map_end(&map, ls_fault_log_read(&log, (const char *)map.data, map.bytes, "metrics.jsonl"));
	if (status == LS_OK)
		status = ls_fault_figures(&log, out);
	if (status == LS_OK)
		ls_fault_predict(out, b->options->every);
	ls_fault_log_release(&log);
	return status;
}

ls_status ls_fault_bench(const ls_fault_bench_options *options, ls_fault_bench_result *result)
{
	ls_fault_bench_options own = LS_FAULT_BENCH_OPTIONS_INIT;
	fault_bench b = { .options = &own };

	LS_TRY(LS_OPTIONS_TAKE(&own, options, program, "LS_FAULT_BENCH_OPTIONS_INIT"));
	LS_TRY(check(&own));
	ls_status status = name_nodes(&b);
	if (status == LS_OK)
		status = ls_path_program(b.program, sizeof(b.program), own.program);
	if (status == LS_OK)
		status = make_directory(&b);
	if (status == LS_OK)
		status = emulate_nodes(&b);
	if (status == LS_OK)
		status = train(&b);
	if (status == LS_OK)
		status = measure(&b, result);
	char why[1024];
	snprintf(why, sizeof(why), "%s", ls_last_error());
	clean(&b);
	return status == LS_OK ? LS_OK : ls_fail(status, "%s", why);
}
