#include "cluster/host_list.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/child.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/status.h"
#include "cluster/launch_watch.h"

enum { TEXT_MOST = 1 << 20 }; /* bytes: more is no list of hosts */

/* ---- text -------------------------------------------------------------------------------------------------------- */

/* "a slots=4" of Open MPI's and "a 4" of other files become "a:4"; in place, for it gets no longer. */
static void join_number(char *line)
{
	char *gap = line + strcspn(line, " \t"), *number = gap + strspn(gap, " \t");
	if (*gap == '\0')
		return;
	if (*number == '\0') {
		*gap = '\0';
		return;
	}
	if (!strncmp(number, "slots=", 6))
		number += 6;
	*gap = ':';
	memmove(gap + 1, number, strlen(number) + 1);
	gap[1 + strcspn(gap + 1, " \t")] = '\0'; /* max_slots=... */
}

/* One line, without comment and blanks around it, joined to the list of `used` bytes by a comma. */
static size_t add_line(char *list, size_t used, char *line)
{
	line[strcspn(line, "#\r")] = '\0';
	line += strspn(line, " \t,");
	size_t length = strlen(line);
	while (length && strchr(" \t,", line[length - 1]))
		line[--length] = '\0';
	if (!length)
		return used;
	if (!strchr(line, ','))
		join_number(line);
	if (used)
		list[used++] = ',';
	length = strlen(line);
	memcpy(list + used, line, length);
	return used + length;
}

ls_status ls_host_list_parse(ls_host **out, size_t *count, const char *text, const char *label)
{
	size_t bytes = strlen(text), used = 0;
	char *copy = strdup(text), *list = calloc(1, bytes + 2), *rest = copy, *line;
	ls_status status = copy && list ? LS_OK : ls_fail(LS_EMEMORY, "no memory for the hosts of %s", label);

	while (status == LS_OK && (line = strsep(&rest, "\n")))
		used = add_line(list, used, line);
	if (status == LS_OK && !used)
		status = ls_fail(LS_EINVALID, "%s names no host; write one per line, like lm1:4", label);
	if (status == LS_OK && ls_hosts_parse_list(out, count, list) != LS_OK) {
		char why[1024];
		snprintf(why, sizeof(why), "%s", ls_last_error());
		status = ls_fail(LS_EINVALID, "%s: %s", label, why);
	}
	free(list);
	free(copy);
	return status;
}

/* ---- a file ------------------------------------------------------------------------------------------------------ */

ls_status ls_host_list_file(ls_host **out, size_t *count, const char *path)
{
	ls_file_map map;
	LS_TRY(ls_file_map_open(&map, path));
	char *text = map.bytes <= TEXT_MOST ? malloc(map.bytes + 1) : NULL;
	ls_status status = text ? LS_OK : ls_fail(LS_EFORMAT, "%s is too large to be a list of hosts", path);
	if (text) {
		if (map.bytes)
			memcpy(text, map.data, map.bytes);
		text[map.bytes] = '\0';
	}
	if (text && strlen(text) != map.bytes)
		status = ls_fail(LS_EFORMAT, "%s has bytes that are no text: not a list of hosts", path);
	status = ls_file_map_end(&map, status);
	if (status == LS_OK)
		status = ls_host_list_parse(out, count, text, path);
	free(text);
	return status;
}

/* ---- a command --------------------------------------------------------------------------------------------------- */

typedef struct discovery {
	const char *command;
	pid_t shell;
	int from;
	char *text; /* (TEXT_MOST + 1) */
	size_t length;
	double end;               /* when it must have ended */
	const atomic_int *cancel; /* NULL: nobody does */
} discovery;

/* The user, who wants to stop, and a run that has ended wait for no command. */
static int is_given_up(const discovery *d)
{
	return ls_launch_is_stopping() || (d->cancel && atomic_load(d->cancel));
}

static ls_status start_command(discovery *d)
{
	int output[2];
	if (pipe2(output, O_CLOEXEC))
		return ls_fail_errno(LS_EIO, "discover: cannot make a pipe");
	pid_t self = getpid();
	d->shell = fork();
	if (d->shell == 0) {
		int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
		if (ls_child_prepare(self) && nothing >= 0 && dup2(nothing, STDIN_FILENO) >= 0 &&
		    dup2(output[1], STDOUT_FILENO) >= 0)
			execl("/bin/sh", "sh", "-c", d->command, (char *)NULL);
		_exit(127);
	}
	close(output[1]);
	d->from = output[0];
	if (d->shell > 0)
		return LS_OK;
	close(d->from);
	return ls_fail_errno(LS_EIO, "discover: cannot start '%s'", d->command);
}

/* 1: its output is complete; 0: the time is over, or it is too much. */
static int hear(discovery *d)
{
	enum { SLICE_MS = 50 };
	for (;;) {
		struct pollfd wait = { .fd = d->from, .events = POLLIN };
		if (ls_clock_seconds() > d->end || is_given_up(d) || d->length == TEXT_MOST)
			return 0;
		if (poll(&wait, 1, SLICE_MS) <= 0)
			continue;
		ssize_t count = read(d->from, d->text + d->length, TEXT_MOST - d->length);
		if (count == 0)
			return 1;
		if (count > 0)
			d->length += (size_t)count;
		else if (errno != EINTR)
			return 1;
	}
}

/* With all that it started: it is a process group. Waits for an end that follows that of its output. */
static int end_command(discovery *d, int is_whole)
{
	int status = 0;
	while (is_whole && waitpid(d->shell, &status, WNOHANG) == 0) {
		if (ls_clock_seconds() > d->end || is_given_up(d)) {
			is_whole = 0;
			break;
		}
		usleep(5000);
	}
	kill(-d->shell, SIGKILL);
	if (!is_whole)
		waitpid(d->shell, &status, 0);
	close(d->from);
	return is_whole ? status : -1;
}

static ls_status judge_command(const discovery *d, int status, double seconds)
{
	if (d->length == TEXT_MOST)
		return ls_fail(LS_EFORMAT, "discover: '%s' prints more than a list of hosts", d->command);
	if (status < 0 && is_given_up(d))
		return ls_fail(LS_EINTERRUPTED, "stopped on request");
	if (status < 0)
		return ls_fail(LS_EIO, "discover: '%s' has not ended within %.0f s", d->command, seconds);
	if (WIFSIGNALED(status))
		return ls_fail(LS_EIO, "discover: '%s' was ended by signal %d", d->command, WTERMSIG(status));
	if (WEXITSTATUS(status) != 0)
		return ls_fail(LS_EIO, "discover: '%s' failed with status %d", d->command, WEXITSTATUS(status));
	if (strlen(d->text) != d->length)
		return ls_fail(LS_EFORMAT, "discover: '%s' prints bytes that are no text", d->command);
	return LS_OK;
}

static ls_status read_command(ls_host **out, size_t *count, const char *command, double seconds,
			      const atomic_int *cancel)
{
	discovery d = { .command = command, .text = malloc(TEXT_MOST + 1), .cancel = cancel };
	char label[256];
	d.end = ls_clock_seconds() + seconds;
	if (!d.text)
		return ls_fail(LS_EMEMORY, "discover: no memory for the output of '%s'", command);
	ls_status status = start_command(&d);
	if (status == LS_OK) {
		int is_whole = hear(&d);
		d.text[d.length] = '\0';
		status = judge_command(&d, end_command(&d, is_whole), seconds);
	}
	snprintf(label, sizeof(label), "discover: '%.200s'", command);
	if (status == LS_OK)
		status = ls_host_list_parse(out, count, d.text, label);
	free(d.text);
	return status;
}

ls_status ls_host_list_read(ls_host **out, size_t *count, const char *hosts, const char *discover, double seconds,
			    const atomic_int *cancel)
{
	return discover ? read_command(out, count, discover, seconds, cancel) : ls_hosts_parse(out, count, hosts);
}
