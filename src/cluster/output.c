/*
 * output.c - separating the lines of nodes from mpirun's banners, which stand between two lines of dashes.
 */
#include "cluster/output.h"

#include <stdlib.h>
#include <string.h>

static const double hold_s = 0.3, hold_mpi_s = 3;

/* ---- lines ------------------------------------------------------------------------------------------------------- */

static uint64_t hash(const char *text)
{
	uint64_t value = 0xcbf29ce484222325u;
	for (; *text; text++)
		value = (value ^ (unsigned char)*text) * 0x100000001b3u;
	return value;
}

/* What a node printed, without "[25102,1]<stderr>:", which Open MPI puts in front if asked to. */
static const char *without_tag(const char *line)
{
	static const char tag[] = "<stderr>:";
	const char *at = line[0] == '[' ? strstr(line, tag) : NULL;
	return at ? at + sizeof(tag) - 1 : line;
}

/* What follows a mark that only a node which ends puts in front of a line; NULL: the line has none. */
static const char *after_mark(const char *line, const char *mark)
{
	size_t length = strlen(mark);
	const char *text = without_tag(line);
	return strncmp(text, mark, length) ? NULL : text + length;
}

/* Errors that every node reports in the same words are one message to the reader. */
static int is_repeated(ls_launch_output *output, const char *line)
{
	uint64_t value = hash(line);
	size_t known = output->seen_count < LS_LAUNCH_SEEN ? output->seen_count : LS_LAUNCH_SEEN;
	for (size_t i = 0; i < known; i++)
		if (output->seen[i] == value)
			return 1;
	output->seen[output->seen_count++ % LS_LAUNCH_SEEN] = value;
	return 0;
}

/* A line that Open MPI's libraries or mpirun print of themselves: "[host:4711] ..." or with a source file of theirs. */
static int is_of_mpi(const char *line)
{
	size_t host = line[0] == '[' ? strcspn(line + 1, ":]") : 0;
	const char *id = line + 1 + host;
	if (host && *id == ':' && strspn(id + 1, "0123456789") && id[1 + strspn(id + 1, "0123456789")] == ']')
		return 1;
	return strstr(line, "/ompi/") || strstr(line, "/opal/") || strstr(line, "/orte/");
}

/* Then a node or mpirun has reported why, and what else Open MPI prints helps nobody. */
static int is_ending(const ls_launch_output *output)
{
	return output->end != LS_LAUNCH_RUNS || output->nodes_reported;
}

static void pass_first(ls_launch_output *output)
{
	char *line = output->held[0].line;
	int is_last = output->held[0].is_last;
	output->held_count--;
	memmove(output->held, output->held + 1, output->held_count * sizeof(output->held[0]));
	if (is_last ? !is_repeated(output, line) : !(is_ending(output) && is_of_mpi(line)))
		fprintf(output->to, "%s\n", line);
	fflush(output->to);
	free(line);
}

static void hold(ls_launch_output *output, const char *line, int is_last, double now)
{
	if (output->held_count == LS_LAUNCH_HELD)
		pass_first(output);
	char *copy = strdup(line);
	if (!copy) {
		fprintf(output->to, "%s\n", line);
		return;
	}
	output->held[output->held_count].line = copy;
	output->held[output->held_count].at = now;
	output->held[output->held_count++].is_last = is_last;
}

/* ---- banners ----------------------------------------------------------------------------------------------------- */

/* What stands after `label` in the banner, up to a character of `ends`, in a buffer of the caller's; "" when it is not
 * there. */
static const char *text_after(const char *banner, const char *label, const char *ends, char *out, size_t size)
{
	const char *at = strstr(banner, label);
	out[0] = '\0';
	if (!at)
		return out;
	at += strlen(label);
	at += strspn(at, " \n");
	snprintf(out, size, "%.*s", (int)strcspn(at, ends), at);
	return out;
}

static const char *word_after(const char *banner, const char *label, char *out, size_t size)
{
	return text_after(banner, label, " \n", out, size);
}

static void explain_signal(ls_launch_output *output)
{
	char rank[32], host[256], signal[64];
	snprintf(output->reason, sizeof(output->reason), "node %s (%s) was ended by signal %s",
		 word_after(output->banner, "process rank ", rank, sizeof(rank)),
		 word_after(output->banner, "on node ", host, sizeof(host)),
		 text_after(output->banner, "on signal ", ".\n", signal, sizeof(signal)));
}

static void explain_lost(ls_launch_output *output)
{
	char host[256];
	const char *remote = strstr(output->banner, "Remote daemon");
	word_after(remote ? remote : output->banner, "on node ", host, sizeof(host));
	snprintf(output->reason, sizeof(output->reason),
		 "lost contact with host %s: it or the network to it is down, or was for too long", host);
}

static void explain_program(ls_launch_output *output)
{
	char host[256], path[512];
	snprintf(output->reason, sizeof(output->reason),
		 "host %s cannot run %s: Lockstep must be installed at the same place on every host",
		 word_after(output->banner, "Node:", host, sizeof(host)),
		 word_after(output->banner, "Executable:", path, sizeof(path)));
	output->is_unfit = 1;
}

static void explain_directory(ls_launch_output *output)
{
	char host[256], path[512];
	snprintf(output->reason, sizeof(output->reason),
		 "host %s has no directory %s: start in one that is there on every host",
		 word_after(output->banner, "Node:", host, sizeof(host)),
		 word_after(output->banner, "Working directory:", path, sizeof(path)));
	output->is_unfit = 1;
}

static void explain_agent(ls_launch_output *output)
{
	char path[512];
	snprintf(output->reason, sizeof(output->reason),
		 "hosts: there is no '%s' to reach other hosts with: correct or unset OMPI_MCA_plm_rsh_agent",
		 word_after(output->banner, "plm_rsh_agent:", path, sizeof(path)));
}

/* A node whose status is zero, but which did not wait for the others: it has nothing to report, and all of them end. */
static void explain_left(ls_launch_output *output)
{
	char rank[32], host[256];
	snprintf(output->reason, sizeof(output->reason), "node %s (%s) left before the others had finished",
		 word_after(output->banner, "process rank ", rank, sizeof(rank)),
		 word_after(output->banner, "\nnode ", host, sizeof(host)));
}

/* What Open MPI 4 and 5 print, and what it means. The first row that matches is taken. */
static const struct {
	const char *text;
	ls_launch_end end;
	void (*explain)(ls_launch_output *output);
} banners[] = {
	{ "exited on signal", LS_LAUNCH_REASON, explain_signal },
	{ "lost communication with", LS_LAUNCH_REASON, explain_lost },
	{ "execute an executable", LS_LAUNCH_REASON, explain_program },
	{ "specified working directory", LS_LAUNCH_REASON, explain_directory },
	{ "parameter \"plm_rsh_agent\" was set to a path", LS_LAUNCH_REASON, explain_agent },
	{ "peer process has unexpectedly disconnected", LS_LAUNCH_RUNS, NULL }, /* the nodes' own messages are better */
	{ "failed to TCP connect to a peer", LS_LAUNCH_RUNS, NULL },
	{ "unable to reliably start", LS_LAUNCH_UNSTARTED, NULL },
	{ "daemon has unexpectedly failed", LS_LAUNCH_UNSTARTED, NULL },
	{ "failed to start", LS_LAUNCH_UNSTARTED, NULL },
	{ "non-zero exit code", LS_LAUNCH_REPORTED, NULL },
	{ "non-zero status", LS_LAUNCH_REPORTED, NULL },
	{ "exiting improperly", LS_LAUNCH_REASON, explain_left },
	{ "MPI_ABORT was invoked", LS_LAUNCH_REPORTED, NULL },
	{ "abort", LS_LAUNCH_REPORTED, NULL },
};

/* A reason stays: what mpirun reports later is its consequence. */
static void understand(ls_launch_output *output)
{
	for (size_t i = 0; i < sizeof(banners) / sizeof(banners[0]); i++) {
		if (!strstr(output->banner, banners[i].text))
			continue;
		if (output->end < LS_LAUNCH_UNSTARTED && output->end < banners[i].end)
			output->end = banners[i].end;
		if (output->end == LS_LAUNCH_REASON && banners[i].explain && !output->reason[0])
			banners[i].explain(output);
		return;
	}
	if (!is_ending(output))
		fputs(output->banner, output->to); /* a warning of a kind not known here: pass it on */
	fflush(output->to);
}

static void add_to_banner(ls_launch_output *output, const char *line)
{
	size_t used = strlen(output->banner);
	snprintf(output->banner + used, sizeof(output->banner) - used, "%s\n", line);
}

/* ---- bytes ------------------------------------------------------------------------------------------------------- */

/* The dashes in front of and behind a banner, at the beginning or the end of a line: they share it with something else
 * where two nodes write at once. NULL: there are none; their number in `length`. */
static char *find_dashes(char *line, size_t *length)
{
	enum { LEAST = 60 };
	size_t all = strlen(line), from = all;
	if ((*length = strspn(line, "-")) >= LEAST)
		return line;
	while (from && line[from - 1] == '-')
		from--;
	*length = all - from;
	return *length >= LEAST ? line + from : NULL;
}

/* A banner whose dashes were torn apart is known by how it begins. */
static int begins_banner(const char *line)
{
	static const char *const begins[] = { "WARNING: Open MPI ", "mpirun noticed that ",
					      "mpirun.openmpi noticed that ", "Primary job  terminated normally, but ",
					      "ORTE has lost communication " };
	for (size_t i = 0; i < sizeof(begins) / sizeof(begins[0]); i++)
		if (!strncmp(line, begins[i], strlen(begins[i])))
			return 1;
	return 0;
}

/* No banner is empty: dashes right behind dashes are the next one's. */
static void take_dashes(ls_launch_output *output)
{
	if (output->in_banner && !output->banner[0])
		return;
	if (output->in_banner)
		understand(output);
	output->in_banner = !output->in_banner;
	output->banner[0] = '\0';
}

/* What mpirun prints outside of its banners and nobody needs, whether the job ends or not; and its shared memory, of a
 * neighbour that has died. */
static int is_chatter(const char *line)
{
	/* of a daemon, by the shell that started it on another host */
	if (!strcmp(line, "Killed") || !strcmp(line, "Terminated"))
		return 1;
	if (strstr(line, "Read -1, expected ") && strstr(line, ", errno = 3"))
		return 1;
	if (strstr(line, "sh: Warning: setpgid(") /* its child was faster */ || strstr(line, "mca_btl_tcp_"))
		return 1;
	return strstr(line, ": Forwarding signal ") || strstr(line, "total processes failed to start") ||
	       strstr(line, "more process has sent help message") || strstr(line, "more processes have sent help") ||
	       strstr(line, "orte_base_help_aggregate");
}

/* "[a:4711] [[25102,0],0] ACTIVATE PROC [[25102,1],3] STATE ABORTED BY SIGNAL AT ...": mpirun's notes on what it goes
 * through, which it is asked for (see command.c) because its banner about a node that a signal has ended is lost when
 * mpirun is the first to end. Nobody needs to read them. In Open MPI 5 they are
 * "[a:4711] [prterun-a-4711@0,0] [1795124774.12] ACTIVATING PROC [prterun-a-4711@1,3] STATE ABORTED BY SIGNAL". */
static int is_note(const char *line)
{
	static const char *const words[] = { "] ACTIVATE PROC ", "] ACTIVATE JOB ", "] ACTIVATING PROC ",
					     "] ACTIVATING JOB " };
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (line[0] == '[' && strstr(line, words[i]))
			return 1;
	return 0;
}

/* The process that a note is about. *family: 0 in Open MPI 5, whose jobs have none. */
static int find_process(const char *note, unsigned *family, unsigned *job, unsigned *rank)
{
	const char *old = strstr(note, "] ACTIVATE PROC [["), *now = strstr(note, "] ACTIVATING PROC [");
	const char *at = now ? strchr(now, '@') : NULL;

	*family = 0;
	if (old)
		return sscanf(old, "] ACTIVATE PROC [[%u,%u],%u]", family, job, rank) == 3;
	return at && sscanf(at, "@%u,%u]", job, rank) == 2;
}

/* What mpirun notes of a process that has not ended well. */
static int is_bad(const char *state)
{
	static const char *const bad[] = { "ABORTED", "CALLED ABORT", "TERM WITHOUT SYNC", "EXITED WITH NON-ZERO" };
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (!strncmp(state, bad[i], strlen(bad[i])))
			return 1;
	return 0;
}

/* The job of the nodes is number 1. Those that mpirun ends because of the first are noted in other words. */
static void learn_from_note(ls_launch_output *output, const char *line)
{
	const char *state = strstr(line, " STATE ");
	unsigned family, job, rank;
	if (!state || !find_process(line, &family, &job, &rank))
		return;
	output->family = family;
	if (job != 1)
		return;
	state += strlen(" STATE ");
	if (is_bad(state) && !output->noted_state[0]) {
		const char *end = strstr(state, " AT ");
		snprintf(output->noted_state, sizeof(output->noted_state), "%.*s",
			 end ? (int)(end - state) : (int)strlen(state), state);
		output->noted = rank;
	}
	if (!output->has_killed && !strncmp(state, "ABORTED BY SIGNAL", strlen("ABORTED BY SIGNAL"))) {
		output->has_killed = 1;
		output->killed = rank;
	}
}

/* What nodes end with after mpirun has reported a reason follows from it, unless it is about a node: then they know
 * more. */
static void take_last(ls_launch_output *output, const char *message, int fails, double now)
{
	if (output->reason[0] && !strstr(message, ": node "))
		return;
	output->nodes_reported |= fails;
	hold(output, message, 1, now);
}

/* A node that fails by itself. */
static void take_failure(ls_launch_output *output, const char *message, double now)
{
	output->nodes_failed = 1;
	if (!output->failed[0])
		snprintf(output->failed, sizeof(output->failed), "%s", message);
	if (output->hides_failures && output->trains == 0) {
		output->nodes_reported = 1;
		output->has_hidden = 1;
	} else {
		take_last(output, message, 1, now);
	}
}

void ls_launch_output_show_failure(ls_launch_output *output, double now)
{
	hold(output, output->failed, 1, now);
}

static void take_text(ls_launch_output *output, const char *line, double now)
{
	const char *failure = after_mark(line, LS_LAUNCH_FAILS), *stop = after_mark(line, LS_LAUNCH_STOPS);
	const char *heard = after_mark(line, LS_LAUNCH_HEARD), *lost = after_mark(line, LS_LAUNCH_LOST);
	if (failure) {
		take_failure(output, failure, now);
	} else if (stop) {
		if (!output->hides_stops)
			take_last(output, stop, 0, now);
	} else if (lost) {
		if (!output->lost[0])
			snprintf(output->lost, sizeof(output->lost), "%s", lost);
		output->nodes_reported = 1;
		if (!output->is_watched)
			take_last(output, lost, 1, now);
	} else if (heard) {
		if (!output->heard[0])
			snprintf(output->heard, sizeof(output->heard), "%s", heard);
	} else if (is_note(line)) {
		learn_from_note(output, line);
	} else if (output->in_banner || begins_banner(line)) {
		output->in_banner = 1;
		add_to_banner(output, line);
	} else if (!strcmp(without_tag(line), LS_LAUNCH_UP)) {
		output->nodes_up++;
	} else if (!strcmp(without_tag(line), LS_LAUNCH_JOINS)) {
		output->joining = now; /* of the last one: the others cannot be done before */
	} else if (!strcmp(without_tag(line), LS_LAUNCH_JOINED)) {
		output->nodes_joined++;
	} else if (!strcmp(without_tag(line), LS_LAUNCH_TRAINS)) {
		output->trains = now;
	} else if (!is_chatter(line)) {
		hold(output, line, 0, now);
	}
}

static void take_line(ls_launch_output *output, double now)
{
	char *line = output->line;
	size_t length;
	char *dashes = find_dashes(line, &length);
	if (!dashes) {
		take_text(output, line, now);
		return;
	}
	const char *rest = dashes + length;
	*dashes = '\0';
	if (*line)
		take_text(output, line, now);
	take_dashes(output);
	if (*rest)
		take_text(output, rest, now);
}

/* ssh ends its lines with a carriage return as well, which would make a terminal write over
 * what is joined with them. */
static void end_line(ls_launch_output *output, double now)
{
	output->length -= output->length && output->line[output->length - 1] == '\r';
	output->line[output->length] = '\0';
	output->length = 0;
	take_line(output, now);
}

void ls_launch_output_take(ls_launch_output *output, const char *bytes, size_t count, double now)
{
	for (size_t i = 0; i < count; i++) {
		if (bytes[i] == '\n' || output->length == sizeof(output->line) - 1)
			end_line(output, now);
		if (bytes[i] != '\n')
			output->line[output->length++] = bytes[i];
	}
}

/* Seconds that a line waits for what may explain it. Before a node is up, a line is ssh's about a host, and mpirun
 * takes a while to notice that ssh has failed. */
static double hold_of(const ls_launch_output *output, const char *line)
{
	return is_of_mpi(line) || !output->nodes_up ? hold_mpi_s : hold_s;
}

void ls_launch_output_end(ls_launch_output *output, double now)
{
	if (output->length)
		end_line(output, now);
}

void ls_launch_output_flush(ls_launch_output *output, double now, int all)
{
	if (all)
		ls_launch_output_end(output, now);
	while (output->held_count && (all || now - output->held[0].at >= hold_of(output, output->held[0].line)))
		pass_first(output);
}

/* ssh warns of a host's key that has changed in a dozen lines: those without the host and the file are left out. */
static int is_warning_of_ssh(const char *line)
{
	static const char *const begins[] = {
		"@",
		"IT IS POSSIBLE THAT SOMEONE ",
		"Someone could be eavesdropping ",
		"It is also possible that a host key ",
		"The fingerprint for the ",
		"SHA256:",
		"Please contact your system administrator",
	};
	for (size_t i = 0; i < sizeof(begins) / sizeof(begins[0]); i++)
		if (!strncmp(line, begins[i], strlen(begins[i])))
			return 1;
	return 0;
}

void ls_launch_output_explain(ls_launch_output *output, char *out, size_t size)
{
	size_t used = 0;
	out[0] = '\0';
	for (size_t i = 0; i < output->held_count; i++) {
		if (used < size && !is_warning_of_ssh(output->held[i].line))
			used += (size_t)snprintf(out + used, size - used, "%s%s", used ? "; " : "",
						 output->held[i].line);
		free(output->held[i].line);
	}
	output->held_count = 0;
}
