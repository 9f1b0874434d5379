/*
 * command.c - mpirun's options, with the reason for each.
 *
 * Every entry is a part of its own, "-np 1 -host a lockstep train ... : -np 1 -host b lockstep train ...": ranks then
 * follow the parts, whatever the order of the hosts and however often one is named. What the user has set for Open MPI
 * by OMPI_MCA_name stays in force: such an option is left out here.
 */
#include "cluster/command.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "cluster/launched.h"
#include "cluster/session.h"

extern char **environ;

typedef struct words {
	ls_arena *arena;
	char **words; /* grows by doubling, the old ones stay in the arena */
	size_t used, room;
	int failed;
} words;

static void add_word(words *w, const char *text)
{
	if (w->used + 1 >= w->room) {
		size_t room = w->room ? 2 * w->room : 64;
		char **more = ls_arena_alloc(w->arena, room * sizeof(*more));
		if (!more) {
			w->failed = 1;
			return;
		}
		if (w->used)
			memcpy(more, w->words, w->used * sizeof(*more));
		w->words = more;
		w->room = room;
	}
	char *copy = ls_arena_copy(w->arena, text);
	w->failed |= !copy;
	w->words[w->used] = copy;
	w->used += copy != NULL;
}

static int is_set(const char *parameter)
{
	char name[128];
	snprintf(name, sizeof(name), "OMPI_MCA_%s", parameter);
	return getenv(name) != NULL;
}

static void add_parameter(words *w, const char *parameter, const char *value)
{
	if (is_set(parameter))
		return;
	add_word(w, "--mca");
	add_word(w, parameter);
	add_word(w, value);
}

static void add_seconds(words *w, const char *parameter, double seconds)
{
	char text[32];
	snprintf(text, sizeof(text), "%.0f", seconds < 1 ? 1 : seconds);
	add_parameter(w, parameter, text);
}

/*
 * mpirun and its daemons must survive whatever the nodes survive, a link that is cut for up to `timeout`, and not much
 * more: nodes that do not talk to each other are ended by them alone. A cut may begin just before the first probe, so
 * the probes that go unanswered must last for the timeout by themselves, and KEEPALIVE_SPARE_S longer: then the nodes,
 * which can report more, come first.
 */
#define KEEPALIVE_SPARE_S 2.0

static void add_keepalive(words *w, double timeout)
{
	double interval = timeout < 20 ? 1 : floor(timeout / 10);
	add_seconds(w, "oob_tcp_keepalive_time", interval);
	add_seconds(w, "oob_tcp_keepalive_intvl", interval);
	add_seconds(w, "oob_tcp_keepalive_probes", ceil((timeout + KEEPALIVE_SPARE_S) / interval) + 1);
}

/* Whether the user chose how mpirun reaches other hosts: options of ssh might then not apply. */
static int has_own_agent(void)
{
	char line[1024], path[PATH_MAX];
	if (is_set("plm_rsh_agent") || is_set("orte_rsh_agent") || is_set("plm_rsh_args") || is_set("plm"))
		return 1;
	snprintf(path, sizeof(path), "%s/.openmpi/mca-params.conf", getenv("HOME") ? getenv("HOME") : "");
	FILE *file = fopen(path, "re");
	int found = 0;
	while (file && fgets(line, sizeof(line), file))
		found |= line[0] != '#' && strstr(line, "rsh_a");
	if (file)
		fclose(file);
	return found;
}

static void add_general(words *w, const ls_launch_options *options, int hurries)
{
	if (!geteuid())
		add_word(w, "--allow-run-as-root");
	add_word(w, "--oversubscribe"); /* a node is many threads: slots mean nothing here ... */
	add_word(w, "--bind-to");       /* ... and it pins them by itself */
	add_word(w, "none");
	if (hurries)
		add_parameter(w, "odls_base_sigkill_timeout", "0");
	else
		add_seconds(w, "odls_base_sigkill_timeout", LS_LAUNCH_WAIT_S);
	add_parameter(w, "orte_keep_fqdn_hostnames", "1"); /* else lm1.example.org is called as lm1 */
	add_parameter(w, "orte_base_help_aggregate", "0"); /* no "2 more processes have sent help message" */
	add_parameter(w, "state_base_verbose", "1"); /* which node died, even where there is no banner: see output.c */
	add_keepalive(w, options->timeout);
	add_parameter(w, "orte_launch_agent", "env HWLOC_COMPONENTS=" LS_HWLOC_COMPONENTS " orted");
	if (!has_own_agent()) /* no question for a password, no two minutes for a host that is off */
		add_parameter(w, "plm_rsh_args", "-o BatchMode=yes -o ConnectTimeout=10");
}

/* -x NAME: the nodes get Lockstep's variables, and find the libraries this program found. */
static void add_environment(words *w)
{
	for (char **entry = environ; *entry; entry++) {
		size_t length = strcspn(*entry, "=");
		int wanted = !strncmp(*entry, "LOCKSTEP_", 9) && strncmp(*entry, LS_LAUNCH_MARK "=", length + 1) &&
			     strncmp(*entry, LS_DEVICES_PER_NODE "=", length + 1) &&
			     strncmp(*entry, LS_NODE_HOSTS "=", length + 1) &&
			     strncmp(*entry, LS_SESSION_ENDED "=", length + 1);
		if (!wanted && strncmp(*entry, "LD_LIBRARY_PATH=", 16))
			continue;
		char name[256];
		snprintf(name, sizeof(name), "%.*s", (int)length, *entry);
		add_word(w, "-x");
		add_word(w, name);
	}
}

static void add_node(words *w, const char *host, const char *directory)
{
	add_word(w, "-np");
	add_word(w, "1");
	add_word(w, "-host");
	add_word(w, host);
	add_word(w, "-wdir");
	add_word(w, directory);
	add_word(w, "-x");
	add_word(w, LS_LAUNCH_MARK);
	add_word(w, "-x");
	add_word(w, LS_NODE_HOSTS);
}

/* In PATH: Debian's name of Open MPI's first, for there `mpirun` may be MPICH's. */
static ls_status find_mpirun(char *out, size_t size)
{
	static const char *const names[] = { "mpirun.openmpi", "mpirun" };
	const char *path = getenv("PATH") ? getenv("PATH") : "/usr/bin:/bin";
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		for (const char *at = path; *at; at += strcspn(at, ":"), at += *at == ':') {
			snprintf(out, size, "%.*s/%s", (int)strcspn(at, ":"), at, names[i]);
			if (!access(out, X_OK))
				return LS_OK;
		}
	return ls_fail(LS_ENOTFOUND, "hosts: there is no mpirun in PATH to start nodes with; install Open MPI (Debian: "
				     "openmpi-bin)");
}

/* MPICH's takes other options. Asked once: a run that is started again because a node was lost does not wait for it. */
static ls_status check_mpirun(ls_arena *arena, const char *path)
{
	static char known[PATH_MAX];
	char line[256] = "";
	if (!strcmp(known, path))
		return LS_OK;
	char *command = ls_arena_format(arena, "'%s' --version 2>&1", path);
	FILE *version = command ? popen(command, "re") : NULL;
	if (version) {
		if (!fgets(line, sizeof(line), version))
			line[0] = '\0';
		pclose(version);
	}
	line[strcspn(line, "\n")] = '\0';
	if (strstr(line, "Open MPI") || strstr(line, "OpenRTE")) {
		snprintf(known, sizeof(known), "%s", path);
		return LS_OK;
	}
	return ls_fail(LS_EUNSUPPORTED,
		       "hosts: %s is not Open MPI's (it says '%s'); start the nodes with it yourself: mpiexec -n 1 "
		       "-host a lockstep train ... : -n 1 -host b lockstep train ...",
		       path, line);
}

ls_status ls_launch_devices(ls_arena *arena, const ls_host *hosts, size_t count, char **out)
{
	char *text = NULL;
	for (size_t i = 0; i < count && hosts[i].devices; i++) {
		text = i ? ls_arena_format(arena, "%s,%d", text, hosts[i].devices)
			 : ls_arena_format(arena, "%d", hosts[i].devices);
		if (!text)
			return ls_fail(LS_EMEMORY, "hosts: no memory for %zu entries", count);
	}
	*out = text;
	return LS_OK;
}

ls_status ls_launch_command(ls_arena *arena, const ls_launch_options *options, int is_watched, const ls_host *hosts,
			    size_t count, char ***out)
{
	char program[PATH_MAX], directory[PATH_MAX], mpirun[PATH_MAX];
	words w = { .arena = arena };
	LS_TRY(find_mpirun(mpirun, sizeof(mpirun)));
	LS_TRY(check_mpirun(arena, mpirun));
	LS_TRY(ls_path_program(program, sizeof(program), NULL));
	if (!getcwd(directory, sizeof(directory)))
		return ls_fail_errno(LS_EIO, "hosts: cannot determine the working directory");
	add_word(&w, mpirun);
	add_general(&w, options, is_watched);
	for (size_t i = 0; i < count; i++) {
		if (i)
			add_word(&w, ":");
		add_node(&w, hosts[i].name, directory);
		if (hosts[i].devices) {
			add_word(&w, "-x");
			add_word(&w, LS_DEVICES_PER_NODE);
		}
		if (is_watched) {
			add_word(&w, "-x");
			add_word(&w, LS_SESSION_ENDED);
		}
		add_environment(&w);
		add_word(&w, program);
		for (char *const *argument = options->argv + 1; *argument; argument++)
			add_word(&w, *argument);
	}
	if (w.failed)
		return ls_fail(LS_EMEMORY, "hosts: no memory for the command line of %zu nodes", count);
	w.words[w.used] = NULL;
	*out = w.words;
	return LS_OK;
}
