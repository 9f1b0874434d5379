/*
 * lab.c - tools/lab: check, up and down.
 */
#include "tools/sweep/lab.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

static void take_down_left(ls_lab *lab)
{
	char name[sizeof(lab->name)] = "";
	FILE *mark = fopen(lab->mark, "re");

	if (!mark)
		return;
	int got = fgets(name, sizeof(name), mark) != NULL;
	fclose(mark);
	name[strcspn(name, "\n")] = '\0';
	if (got && strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == strlen(name) && lab->tool[0] != '\0') {
		char own[sizeof(lab->name)];
		memcpy(own, lab->name, sizeof(own));
		memcpy(lab->name, name, sizeof(name));
		lab->hosts = 1;
		ls_lab_down(lab);
		memcpy(lab->name, own, sizeof(own));
	}
}

ls_status ls_lab_init(ls_lab *lab, const char *program, const char *directory)
{
	*lab = (ls_lab){ 0 };
	snprintf(lab->name, sizeof(lab->name), "bench-%ld", (long)getpid());
	LS_TRY(ls_path_join(lab->mark, sizeof(lab->mark), directory, "lab"));
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

static ls_status write_mark(const ls_lab *lab)
{
	return ls_file_put_text(lab->mark, lab->name);
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
