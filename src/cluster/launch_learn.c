/*
 * launch_learn.c - what the supervisor of an elastic run learns of a launch that has ended: how, by which node, why.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "cluster/launch_run.h"
#include "cluster/suspects.h"

/* The node that a report is about: "node 1 (b) ...", or the host in it. */
static int node_in(const ls_launch_run *l, const char *text)
{
	const char *at = strstr(text, "node ");
	int node = -1;
	if (at && sscanf(at, "node %d (", &node) == 1 && node >= 0 && (size_t)node < l->count)
		return node;
	for (size_t i = 0; i < l->count; i++)
		if (ls_suspects_names(text, l->hosts[i].name))
			return (int)i;
	return -1;
}

/* Messages of nodes begin with the command, "lockstep train: ". */
static const char *past_name(const char *text)
{
	const char *colon = strncmp(text, "lockstep ", 9) ? NULL : strstr(text, ": ");
	return colon ? colon + 2 : text;
}

/* mpirun's own note of a signal is sure; then what nodes reported; then mpirun's banner. */
static void learn_lost(ls_launch_run *l)
{
	ls_launch_watch *w = l->watch;
	const ls_launch_output *o = &l->output;
	const char *texts[] = { o->lost, o->reason, o->heard };
	char name[300];

	w->outcome = LS_OUTCOME_LOST;
	if (o->has_killed && o->killed < l->count) {
		w->node = (int)o->killed;
		w->is_killed = 1;
		ls_launch_name_node(l, 1, o->killed, name, sizeof(name));
		snprintf(w->why, sizeof(w->why), "%s was ended by a signal", name);
		return;
	}
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]) && w->node < 0; i++) {
		if (!texts[i][0])
			continue;
		w->node = node_in(l, texts[i]);
		if (!w->why[0] || w->node >= 0)
			snprintf(w->why, sizeof(w->why), "%.1000s", past_name(texts[i]));
	}
	if (!w->why[0])
		snprintf(w->why, sizeof(w->why), "the nodes ended, and none of them said why");
}

/* Before its node was up, so before it could say why: a library is missing, or it is another program. */
static int has_left_unsaid(const ls_launch_run *l)
{
	const ls_launch_output *o = &l->output;

	return o->nodes_up < l->count && o->noted < l->count && !strncmp(o->noted_state, "EXITED WITH NON", 15) &&
	       !o->lost[0] && !o->heard[0] && !o->reason[0];
}

static void learn_unfit(ls_launch_run *l, int exit_code)
{
	ls_launch_watch *w = l->watch;
	const ls_launch_output *o = &l->output;
	char name[300];

	w->outcome = LS_OUTCOME_UNFIT;
	if (o->nodes_failed || o->is_unfit) {
		snprintf(w->why, sizeof(w->why), "%.1000s", past_name(o->nodes_failed ? o->failed : o->reason));
		return;
	}
	snprintf(name, sizeof(name), "node %zu (%s)", o->noted, l->hosts[o->noted].name);
	snprintf(w->why, sizeof(w->why), "%s ended with status %d before it could say why", name, exit_code);
}

static int is_unfit(const ls_launch_run *l, int exit_code)
{
	const ls_launch_output *o = &l->output;

	if (exit_code == 0 || l->late || o->trains > 0)
		return 0;
	if (o->nodes_failed)
		return l->watch->is_trial;
	return o->is_unfit || has_left_unsaid(l);
}

/* The run ends with it. It was kept from the user where it came before "nodes train" did, which takes another way, or
 * when the start was late. */
static void learn_failed(ls_launch_run *l)
{
	l->watch->outcome = LS_OUTCOME_ENDED;
	if (l->output.has_hidden)
		ls_launch_output_show_failure(&l->output, ls_clock_seconds());
}

void ls_launch_learn(ls_launch_run *l, int exit_code)
{
	ls_launch_watch *w = l->watch;

	w->is_killed = 0;
	w->ended = l->ending > 0 ? l->ending : ls_clock_seconds();
	w->node = -1;
	w->why[0] = '\0';
	w->family = l->output.family;
	if (l->stops)
		w->outcome = LS_OUTCOME_STOPPED;
	else if (is_unfit(l, exit_code))
		learn_unfit(l, exit_code);
	else if (l->output.nodes_failed)
		learn_failed(l);
	else if (exit_code == 0)
		w->outcome = l->regroup > 0 ? LS_OUTCOME_REGROUP : LS_OUTCOME_ENDED;
	else if (l->late || ls_launch_is_unstarted(l)) {
		w->outcome = LS_OUTCOME_UNSTARTED;
		ls_launch_output_explain(&l->output, w->why, sizeof(w->why));
		if (ls_launch_is_unjoined(l))
			snprintf(w->why, sizeof(w->why), "only %zu of %zu nodes completed MPI_Init",
				 l->output.nodes_joined, l->count);
	} else
		learn_lost(l);
}
