/*
 * lab.c - tools/lab: check, up and down.
 */
#include "tools/sweep/lab.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/files.h"
#include "base/log.h"

#define TOOL "LOCKSTEP_LAB_TOOL" /* $LOCKSTEP_LAB is a lab's name */
static const double limit_s = 120;

enum { WORDS_MAX = 16 + 2 * LS_RESULTS_NAME };

int64_t ls_lab_hosts(const ls_sweep_point *point)
{
	int64_t need = ls_sweep_point_processes(point), listed = point->speeds[0] != '\0';

	for (const char *at = point->speeds; *at != '\0'; at++)
		listed += *at == ',';
	if (ls_sweep_point_highest(point) > need)
		need = ls_sweep_point_highest(point);
	return listed > need ? listed : need;
}

int ls_lab_is_for(const ls_sweep_point *point)
{
	return ls_sweep_point_processes(point) > 1 || point->on[0] != '\0' || point->speeds[0] != '\0';
}

/* ---- finding it -------------------------------------------------------------------------------------------------- */

static int try_place(ls_lab *lab, const char *program, const char *beside)
{
	char path[sizeof(lab->tool)];
	size_t directory = strrchr(program, '/') ? (size_t)(strrchr(program, '/') - program) : 0;

	if (snprintf(path, sizeof(path), "%.*s/%s", (int)directory, program, beside) >= (int)sizeof(path))
		return 0;
	if (access(path, X_OK) != 0)
		return 0;
	snprintf(lab->tool, sizeof(lab->tool), "%s", path);
	return 1;
}

static void find(ls_lab *lab, const char *program)
{
	const char *given = getenv(TOOL);

	if (given && given[0] != '\0')
		snprintf(lab->tool, sizeof(lab->tool), "%s", given);
	else if (!try_place(lab, program, "../tools/lab"))
		try_place(lab, program, "../libexec/lockstep/lab");
}

/* ---- the mark ---------------------------------------------------------------------------------------------------- */

/*
 * Three lines while a cluster may exist: its name; its owner's process id and start time, because ids are used again;
 * the directory's inode and path, because a copy of the directory has a copy of the mark.
 */
enum { MARK_BYTES = 4096 + 256 };

/* When a process started, in ticks since the machine did; 0: there is no such process. */
static unsigned long long start_of(long pid)
{
	char path[40], text[1024];

	snprintf(path, sizeof(path), "/proc/%ld/stat", pid);
	FILE *file = fopen(path, "re");
	if (!file)
		return 0;
	size_t got = fread(text, 1, sizeof(text) - 1, file);
	fclose(file);
	text[got] = '\0';
	const char *at = strrchr(text, ')'); /* after the name, which may have spaces: fields 3 to 22 */
	for (int field = 2; at && field < 22; field++)
		at = strchr(at + 1, ' ');
	return at ? strtoull(at, NULL, 10) : 0;
}

static ls_status describe_directory(char *out, size_t size, const char *directory)
{
	char path[PATH_MAX];
	struct stat at;

	if (!realpath(directory, path) || stat(path, &at) != 0)
		return ls_fail_errno(LS_EIO, "cannot read %s", directory);
	int used = snprintf(out, size, "directory %llu %s", (unsigned long long)at.st_ino, path);
	return used > 0 && (size_t)used < size ? LS_OK : ls_fail(LS_EINVALID, "path is too long: %.100s...", path);
}

static ls_status write_mark(const ls_lab *lab)
{
	char text[MARK_BYTES + 128];
	long pid = (long)getpid();

	snprintf(text, sizeof(text), "%s\nowner %ld %llu\n%s", lab->name, pid, start_of(pid), lab->directory);
	return ls_file_put_text(lab->mark, text);
}

static size_t read_mark(const ls_lab *lab, char *text, size_t size)
{
	FILE *mark = fopen(lab->mark, "re");
	if (!mark)
		return 0;
	size_t got = fread(text, 1, size - 1, mark);
	fclose(mark);
	if (got > 0 && text[got - 1] == '\n')
		got--;
	text[got] = '\0';
	return got;
}

/* Remove the cluster `name` with the mark. */
static void take_down(ls_lab *lab, const char *name)
{
	char own[sizeof(lab->name)];

	memcpy(own, lab->name, sizeof(own));
	snprintf(lab->name, sizeof(lab->name), "%s", name);
	lab->hosts = 1;
	ls_lab_down(lab);
	memcpy(lab->name, own, sizeof(own));
}

/* A cluster is removed only when this directory's mark names it and its owner is gone. */
static void take_down_left(ls_lab *lab)
{
	char text[MARK_BYTES + 128], name[sizeof(lab->name)];
	unsigned long long start = 0;
	long pid = 0;
	int length = 0;

	if (read_mark(lab, text, sizeof(text)) == 0)
		return;
	int is_ours = sscanf(text, "bench-%*d\nowner %ld %llu\n%n", &pid, &start, &length) == 2 && length > 0 &&
		      strcmp(text + length, lab->directory) == 0;
	snprintf(name, sizeof(name), "bench-%ld", pid);
	if (is_ours && (strcspn(text, "\n") != strlen(name) || strncmp(text, name, strlen(name)) != 0))
		is_ours = 0;
	if (!is_ours) {
		ls_log_warning("%s is not of this directory, which was copied or moved: emulated nodes that a sweep "
			       "left are still there; 'tools/lab status' lists them",
			       lab->mark);
		unlink(lab->mark);
	} else if (start != 0 && start_of(pid) == start) {
		ls_log_warning("%s: process %ld still uses the emulated nodes %s", lab->mark, pid, name);
	} else if (lab->tool[0] != '\0') {
		take_down(lab, name);
	}
}

ls_status ls_lab_init(ls_lab *lab, const char *program, const char *directory)
{
	*lab = (ls_lab){ 0 };
	snprintf(lab->name, sizeof(lab->name), "bench-%ld", (long)getpid());
	LS_TRY(ls_path_join(lab->mark, sizeof(lab->mark), directory, "lab"));
	LS_TRY(describe_directory(lab->directory, sizeof(lab->directory), directory));
	find(lab, program);
	take_down_left(lab);
	return LS_OK;
}

/* ---- commands ---------------------------------------------------------------------------------------------------- */

static ls_status call(ls_child *child, char *const *argv, int goes_on)
{
	return ls_child_run(child, &(ls_child_options){ .argv = argv, .limit_s = limit_s, .goes_on = goes_on });
}

int ls_lab_possible(ls_lab *lab)
{
	char *argv[] = { lab->tool, (char[]){ "check" }, NULL };
	ls_child child;

	if (lab->asked)
		return lab->reason[0] == '\0';
	lab->asked = 1;
	if (lab->tool[0] == '\0')
		snprintf(lab->reason, sizeof(lab->reason),
			 "no tools/lab next to this program to emulate nodes with; set " TOOL ", or give --hosts");
	else if (call(&child, argv, 0) != LS_OK) {
		lab->asked = 0;
		snprintf(lab->reason, sizeof(lab->reason), "%.200s", ls_last_error());
	} else {
		if (child.code != 0)
			ls_child_reason(&child, lab->reason, sizeof(lab->reason));
		ls_child_release(&child);
	}
	return lab->reason[0] == '\0';
}

/* --slow node2=0.5 for each speed below 1, into words[]; `room` holds their text. */
static size_t slow_words(const char *speeds, char **words, char (*room)[40])
{
	size_t count = 0, host = 1;

	for (; *speeds != '\0' && host <= LS_RESULTS_NAME / 2; host++) {
		size_t length = strcspn(speeds, ",");
		if (atof(speeds) < 1 && length < 16) {
			snprintf(room[host], sizeof(room[host]), LS_LAB_HOST "%zu=%.*s", host, (int)length, speeds);
			words[count++] = (char *)"--slow";
			words[count++] = room[host];
		}
		speeds += length;
		speeds += *speeds == ',';
	}
	return count;
}

static ls_status bring_up(ls_lab *lab, const ls_sweep_point *p)
{
	char hosts[24], slow[LS_RESULTS_NAME / 2 + 1][40], *argv[WORDS_MAX];
	size_t n = 0;
	ls_child child;

	snprintf(hosts, sizeof(hosts), "%" PRId64, ls_lab_hosts(p));
	char *head[] = { lab->tool,          (char *)"up",       hosts, (char *)"--name", lab->name,
			 (char *)"--prefix", (char *)LS_LAB_HOST };
	for (; n < LS_COUNT(head); n++)
		argv[n] = head[n];
	if (p->job.rate[0] != '\0')
		argv[n++] = (char *)"--rate", argv[n++] = (char *)p->job.rate;
	n += slow_words(p->speeds, argv + n, slow);
	argv[n] = NULL;
	lab->hosts = ls_lab_hosts(p); /* from here on there may be a lab to remove */
	LS_TRY(call(&child, argv, 0));
	char why[LS_RESULTS_TEXT];
	int code = child.code;
	ls_child_reason(&child, why, sizeof(why));
	ls_child_release(&child);
	return code == 0 ? LS_OK : ls_fail(LS_EIO, "cannot emulate the nodes: %s", why);
}

ls_status ls_lab_need(ls_lab *lab, const ls_sweep_point *p)
{
	if (lab->hosts == ls_lab_hosts(p) && !strcmp(lab->rate, p->job.rate) && !strcmp(lab->speeds, p->speeds))
		return LS_OK;
	ls_lab_down(lab);
	LS_TRY(write_mark(lab));
	memcpy(lab->rate, p->job.rate, sizeof(lab->rate));
	memcpy(lab->speeds, p->speeds, sizeof(lab->speeds));
	ls_status status = bring_up(lab, p);
	if (status != LS_OK)
		ls_lab_down(lab);
	return status;
}

void ls_lab_down(ls_lab *lab)
{
	char *argv[] = { lab->tool, (char *)"down", (char *)"--name", lab->name, NULL };
	char why[LS_RESULTS_TEXT];
	ls_child child;

	if (lab->hosts == 0)
		return;
	lab->hosts = 0;
	if (call(&child, argv, 1) != LS_OK) {
		ls_log_warning("%s", ls_last_error());
		return;
	}
	ls_child_reason(&child, why, sizeof(why));
	if (child.code == 0 || strstr(why, "there is no lab"))
		unlink(lab->mark);
	else
		ls_log_warning("lab %s is still there: %s", lab->name, why);
	ls_child_release(&child);
}
