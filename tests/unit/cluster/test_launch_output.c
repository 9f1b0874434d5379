/*
 * What mpirun and the nodes print, kept apart: texts as Open MPI 4.1 prints them, arriving in pieces of any size.
 */
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/output.h"
#include "unit/test_main.h"

#define DASHES "--------------------------------------------------------------------------\n"

typedef struct scene {
	ls_launch_output output;
	char *shown;
	size_t size;
} scene;

static void begin(scene *s)
{
	memset(s, 0, sizeof(*s));
	s->output.to = open_memstream(&s->shown, &s->size);
	assert_non_null(s->output.to);
	s->output.nodes_up = 1;
}

static void give(scene *s, const char *text, size_t partial, double now)
{
	for (size_t left = strlen(text); left; text += partial, left -= partial) {
		partial = partial < left ? partial : left;
		ls_launch_output_take(&s->output, text, partial, now);
	}
}

static void end(scene *s)
{
	ls_launch_output_flush(&s->output, 0, 1);
	fclose(s->output.to);
	free(s->shown);
}

static void lines_pass_and_banners_do_not(void **state)
{
	(void)state;
	for (size_t partial = 1; partial < 100; partial += 7) {
		scene s;
		begin(&s);
		give(&s,
		     "one\n" DASHES "Primary job  terminated normally, but 1 process returned\n"
		     "a non-zero exit code. Per user-direction, the job has been aborted.\n" DASHES
		     "Killed\nTerminated\nmpirun: Forwarding signal 10 to job\n[vm:31546] Read -1, expected 262144, "
		     "errno = "
		     "3\n[a:4898] plm:rsh: Warning: setpgid(4944,4944) failed in parent with errno=Permission "
		     "denied(13)\n" LS_LAUNCH_UP "\ntwo\n" LS_LAUNCH_UP "\nthree",
		     partial, 0);
		ls_launch_output_flush(&s.output, 0.1, 0);
		fflush(s.output.to);
		assert_string_equal(s.shown, ""); /* they wait a moment */
		ls_launch_output_flush(&s.output, 1, 0);
		assert_string_equal(s.shown, "one\ntwo\n");
		ls_launch_output_flush(&s.output, 1, 1);
		assert_string_equal(s.shown, "one\ntwo\nthree\n");
		assert_int_equal(s.output.nodes_up, 1 + 2);
		assert_int_equal(s.output.end, LS_LAUNCH_REPORTED);
		end(&s);
	}
}

static void reasons_are_found(void **state)
{
	(void)state;
	static const struct {
		const char *banner;
		ls_launch_end end;
		const char *reason;
	} cases[] = {
		{ "mpirun noticed that process rank 3 with PID 20618 on node b exited on signal 9 (Killed).\n",
		  LS_LAUNCH_REASON, "node 3 (b) was ended by signal 9 (Killed)" },
		{ "mpirun noticed that process rank 0 with PID 0 on node lm6 exited on signal 11 (Segmentation "
		  "fault).\n",
		  LS_LAUNCH_REASON, "node 0 (lm6) was ended by signal 11 (Segmentation fault)" },
		{ "ORTE has lost communication with a remote daemon.\n\n"
		  "  HNP daemon   : [[27085,0],0] on node a\n  Remote daemon: [[27085,0],1] on node b\n\n",
		  LS_LAUNCH_REASON, "lost contact with host b: it or the network to it is down, or was for too long" },
		{ "mpirun was unable to launch the specified application as it could not access\n"
		  "or execute an executable:\n\nExecutable: /opt/lockstep\nNode: b\n\n"
		  "while attempting to start process rank 0.\n",
		  LS_LAUNCH_REASON,
		  "host b cannot run /opt/lockstep: Lockstep must be installed at the same place on every host" },
		{ "mpirun was unable to launch the specified application as it could not\n"
		  "change to the specified working directory:\n\nWorking directory: /nowhere\nNode: c\n",
		  LS_LAUNCH_REASON, "host c has no directory /nowhere: start in one that is there on every host" },
		{ "mpirun has exited due to process rank 0 with PID 26078 on\nnode b exiting improperly. There are "
		  "three "
		  "reasons this could occur:\n\n1. this process did not call \"init\" before exiting\n",
		  LS_LAUNCH_REASON, "node 0 (b) left before the others had finished" },
		{ "ORTE was unable to reliably start one or more daemons.\nThis usually is caused by:\n",
		  LS_LAUNCH_UNSTARTED, "" },
		{ "mpirun detected that one or more processes exited with non-zero status, thus causing\n",
		  LS_LAUNCH_REPORTED, "" },
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		scene s;
		begin(&s);
		give(&s, DASHES, 50, 0);
		give(&s, cases[i].banner, 50, 0);
		give(&s, DASHES, 50, 0);
		assert_int_equal(s.output.end, cases[i].end);
		assert_string_equal(s.output.reason, cases[i].reason);
		assert_int_equal(s.output.is_unfit,
				 strstr(cases[i].reason, "cannot run") || strstr(cases[i].reason, "no dir"));
		ls_launch_output_flush(&s.output, 0, 1);
		fflush(s.output.to);
		assert_int_equal(s.size, 0);
		end(&s);
	}
}

/* mpirun first says that a process was aborted, then why; and after a reason only consequences. */
static void the_best_reason_stays(void **state)
{
	(void)state;
	scene s;
	begin(&s);
	give(&s, DASHES "a non-zero exit code. Per user-direction, the job has been aborted.\n" DASHES, 9, 0);
	give(&s, DASHES "process rank 1 with PID 7 on node b exited on signal 9 (Killed).\n" DASHES, 9, 0);
	give(&s, DASHES "exited with non-zero status\n" DASHES, 9, 0);
	assert_int_equal(s.output.end, LS_LAUNCH_REASON);
	assert_string_equal(s.output.reason, "node 1 (b) was ended by signal 9 (Killed)");
	end(&s);
}

/* One of both is reported: a node's own message where there is one, for it has what the node was doing. */
static void nodes_know_more_than_mpirun(void **state)
{
	(void)state;
	scene s;
	begin(&s);
	give(&s,
	     "warning: something\n" DASHES "An MPI communication peer process has unexpectedly disconnected.\n" DASHES,
	     9, 0);
	assert_int_equal(s.output.end, LS_LAUNCH_RUNS);
	give(&s,
	     DASHES "ORTE has lost communication with a remote daemon.\n  Remote daemon: [[1,0],2] on node b\n" DASHES,
	     9, 0);
	assert_int_equal(s.output.end, LS_LAUNCH_REASON);
	give(&s, DASHES "WARNING: Open MPI failed to TCP connect to a peer MPI process.\n" DASHES, 9, 0);
	assert_int_equal(s.output.end, LS_LAUNCH_REASON);
	give(&s, "[a][[1,1],0][btl_tcp_frag.c:135:mca_btl_tcp_frag_send] writev failed\n", 9, 0);
	give(&s, "[b:10154] ../../../../../../ompi/mca/pml/ob1/pml_ob1_sendreq.c:317 FATAL\n", 9, 0);
	give(&s, "[a:1] [[2,0],0] ORTE_ERROR_LOG: Data unpack would read past end of buffer in file show_help.c\n", 9,
	     0);
	give(&s, LS_LAUNCH_STOPS "lockstep train: stopped after step 7\n", 9, 0);
	give(&s, LS_LAUNCH_FAILS "lockstep train: the disk is full\n", 9, 0);
	assert_false(s.output.nodes_reported);
	give(&s, LS_LAUNCH_FAILS "lockstep train: node 1 (b) has not responded\n", 9, 0);
	assert_true(s.output.nodes_reported);
	ls_launch_output_flush(&s.output, 1, 1);
	assert_string_equal(s.shown, "warning: something\nlockstep train: node 1 (b) has not responded\n");
	end(&s);
}

/* Only a node that says so with the mark fails: not one that warns, stops, or runs a program of a similar name. */
static void only_marked_lines_are_failures(void **state)
{
	(void)state;
	static const char *const lines = "lockstep-foo: hello\nlockstep: a remark\nlockstep train: a remark\n"
					 "warning: " LS_LAUNCH_FAILS "is a mark\nlockstep: node fails\n";
	scene s;
	begin(&s);
	give(&s, lines, 9, 0);
	give(&s, lines, 9, 0);
	give(&s, LS_LAUNCH_STOPS "lockstep train: stopped after step 7\n", 9, 0);
	assert_false(s.output.nodes_reported);
	give(&s, DASHES "half a banner\n" LS_LAUNCH_FAILS "lockstep train: no\nof mpirun\n" DASHES, 9, 0);
	assert_true(s.output.nodes_reported);
	ls_launch_output_flush(&s.output, 9, 1);
	assert_int_equal(strncmp(s.shown, lines, strlen(lines)), 0);
	assert_int_equal(strncmp(s.shown + strlen(lines), lines, strlen(lines)), 0); /* not held for one message */
	assert_string_equal(s.shown + 2 * strlen(lines), "lockstep train: stopped after step 7\nlockstep train: no\n");
	end(&s);
}

/* The first is kept, nothing is printed, and the job goes on until somebody reports. */
static void what_nodes_have_heard_is_kept(void **state)
{
	(void)state;
	scene s;
	begin(&s);
	give(&s, LS_LAUNCH_HEARD "node 1 (b) is silent\n" LS_LAUNCH_HEARD "node 2 (c) is silent\n", 9, 0);
	ls_launch_output_flush(&s.output, 9, 1);
	fflush(s.output.to);
	assert_string_equal(s.output.heard, "node 1 (b) is silent");
	assert_int_equal(s.output.end, LS_LAUNCH_RUNS);
	assert_false(s.output.nodes_reported);
	assert_string_equal(s.shown, "");
	end(&s);
}

/* With orte_tag_output. */
static void open_mpis_tags_are_seen_through(void **state)
{
	(void)state;
	scene s;
	begin(&s);
	give(&s, "[25102,1]<stderr>:" LS_LAUNCH_UP "\n[25102,1]<stderr>:a line\n", 9, 0);
	assert_int_equal(s.output.nodes_up, 1 + 1);
	assert_false(s.output.nodes_reported);
	give(&s, "[25102,1]<stderr>:" LS_LAUNCH_FAILS "lockstep train: no\n", 9, 0);
	assert_true(s.output.nodes_reported);
	ls_launch_output_flush(&s.output, 9, 1);
	assert_string_equal(s.shown, "[25102,1]<stderr>:a line\nlockstep train: no\n");
	end(&s);
}

/* What Open MPI prints of itself is news while the job runs, and noise before and after it says that the job ends. */
static void mpis_own_lines_pass_only_while_the_job_runs(void **state)
{
	(void)state;
	static const char *const lines = "[a:12] a warning\n../../ompi/mca/x.c: no\n[epoch:] is ours\n[x] is ours\n";
	for (int ends = 0; ends < 2; ends++) {
		scene s;
		begin(&s);
		give(&s, lines, 9, 0);
		ls_launch_output_flush(&s.output, 1, 0); /* those of MPI wait longer, and others behind them */
		fflush(s.output.to);
		assert_int_equal(s.size, 0);
		if (ends)
			give(&s, DASHES "process rank 1 on node b exited on signal 9 (Killed).\n" DASHES, 9, 1.5);
		give(&s, lines, 9, 2);
		give(&s, DASHES "a banner of another kind\n" DASHES, 9, 2);
		ls_launch_output_flush(&s.output, 9, 0);
		assert_int_equal(strstr(s.shown, "warning") != NULL, !ends);
		assert_int_equal(strstr(s.shown, "ompi") != NULL, !ends);
		assert_int_equal(strstr(s.shown, "another kind") != NULL, !ends);
		assert_non_null(strstr(s.shown, "[epoch:] is ours\n[x] is ours\n"));
		end(&s);
	}
}

/* Nodes whose output mpirun forwards at the same time tear each other's lines. */
static void torn_dashes_do_not_matter(void **state)
{
	(void)state;
	static const char warning[] =
		"WARNING: Open MPI failed to TCP connect to a peer MPI process.  This\nshould not "
		"happen.\n";
	static const char *const openings[] = { "", "--------------------", (DASHES DASHES), ("some text-" DASHES) };
	for (size_t i = 0; i < sizeof(openings) / sizeof(openings[0]); i++) {
		scene s;
		begin(&s);
		give(&s, openings[i], 1000, 0);
		give(&s, i == 1 ? "\n" : "", 1000, 0);
		give(&s, warning, 1000, 0);
		give(&s, DASHES DASHES, 1000, 0);
		give(&s, warning, 1000, 0);
		/* the dashes at the end have lost their line break */
		ls_launch_output_take(&s.output, DASHES, sizeof(DASHES) - 2, 0);
		give(&s, LS_LAUNCH_FAILS "lockstep train: node 1 (b) ended\nafter\n", 1000, 0);
		ls_launch_output_flush(&s.output, 10, 1);
		fflush(s.output.to);
		const char *expected[] = { "lockstep train: node 1 (b) ended\nafter\n",
					   "--------------------\nlockstep train: node 1 (b) ended\nafter\n",
					   "lockstep train: node 1 (b) ended\nafter\n",
					   "some text\nlockstep train: node 1 (b) ended\nafter\n" };
		assert_string_equal(s.shown, expected[i]);
		end(&s);
	}
}

static void unknown_banners_are_shown(void **state)
{
	(void)state;
	scene s;
	begin(&s);
	give(&s, DASHES "WARNING: something about the network\n" DASHES, 9, 0);
	fflush(s.output.to);
	assert_string_equal(s.shown, "WARNING: something about the network\n");
	assert_int_equal(s.output.end, LS_LAUNCH_RUNS);
	end(&s);
}

static void an_error_of_all_nodes_is_printed_once(void **state)
{
	(void)state;
	scene s;
	begin(&s);
	give(&s,
	     LS_LAUNCH_FAILS "lockstep train: a\nplain\n" LS_LAUNCH_STOPS "lockstep train: b\n" LS_LAUNCH_FAILS
			     "lockstep train: a\nplain\n" LS_LAUNCH_STOPS "lockstep train: b\n",
	     5, 0);
	ls_launch_output_flush(&s.output, 1, 0);
	assert_string_equal(s.shown, "lockstep train: a\nplain\nlockstep train: b\nplain\n");
	for (int i = 0; i < 3 * LS_LAUNCH_HELD; i++)
		give(&s, "many lines\n", 5, 2);
	ls_launch_output_flush(&s.output, 2, 1);
	assert_int_equal(s.size, 48 + 3 * LS_LAUNCH_HELD * 11);
	end(&s);
}

static void lines_that_wait_can_explain(void **state)
{
	(void)state;
	scene s;
	char why[64];
	begin(&s);
	s.output.nodes_up = 0; /* then lines wait longer */
	give(&s, "ssh: no\nssh: never\n", 4, 0);
	ls_launch_output_flush(&s.output, 2, 0);
	ls_launch_output_explain(&s.output, why, sizeof(why));
	assert_string_equal(why, "ssh: no; ssh: never");
	give(&s, "@@@@\r\n@  WARNING  @\r\nHost key for c has changed.\r\nSHA256:abc\r\nIt failed.\r\n", 4, 0);
	ls_launch_output_explain(&s.output, why, sizeof(why));
	assert_string_equal(why, "Host key for c has changed.; It failed.");
	ls_launch_output_explain(&s.output, why, sizeof(why));
	assert_string_equal(why, "");
	give(&s, "a line that is much longer than there is room for here, and then more\nanother\n", 4, 0);
	ls_launch_output_explain(&s.output, why, sizeof(why));
	assert_int_equal(strlen(why), sizeof(why) - 1);
	fflush(s.output.to);
	assert_int_equal(s.size, 0);
	end(&s);
}

/* mpirun ended in the middle of it: the reason is known all the same, before the end is judged. */
static void a_line_without_an_end_counts(void **state)
{
	(void)state;
	scene s;
	begin(&s);
	give(&s, LS_LAUNCH_LOST "lockstep train: node 1 (b) closed its connection", 7, 0);
	assert_false(s.output.nodes_reported);
	ls_launch_output_end(&s.output, 0);
	assert_true(s.output.nodes_reported);
	end(&s);
}

static void endless_lines_are_cut(void **state)
{
	(void)state;
	scene s;
	begin(&s);
	for (int i = 0; i < 3 * LS_LAUNCH_LINE; i++)
		give(&s, "x", 1, 0);
	ls_launch_output_flush(&s.output, 0, 1);
	assert_in_range(s.size, 3 * LS_LAUNCH_LINE, 3 * LS_LAUNCH_LINE + 8);
	end(&s);
}

/* Where the banner about a node that a signal has ended does not come, its status is taken from mpirun's notes, which
 * are not printed. */
static void notes_tell_who_was_killed_first(void **state)
{
	(void)state;
	static const char *const before =
		"[a:1] [[25102,0],0] ACTIVATE JOB [25102,1] STATE RUNNING AT ../../orte/mca/state/base/x.c:692\n"
		"[a:1] [[25102,0],0] ACTIVATE PROC [[25102,0],7] STATE ABORTED BY SIGNAL AT ../../orte/y.c:1\n"
		"[a:1] [[25102,0],0] ACTIVATE PROC [[25102,1],4] STATE RUNNING AT ../../orte/mca/odls/z.c:1056\n";
	scene s;
	begin(&s);
	give(&s, before, 9, 0);
	assert_false(s.output.has_killed); /* job 0 is of mpirun's daemons */
	give(&s, DASHES "a non-zero exit code. Per user-\n", 9, 0);
	give(&s, "[a:1] [[25102,0],0] ACTIVATE PROC [[25102,1],3] STATE ABORTED BY SIGNAL AT ../../orte/y.c:1746\n", 9,
	     0);
	give(&s, "direction, the job has been aborted.\n" DASHES, 9, 0);
	give(&s, "[a:1] [[25102,0],0] ACTIVATE PROC [[25102,1],0] STATE ABORTED BY SIGNAL AT ../../orte/y.c:1746\n", 9,
	     0);
	assert_true(s.output.has_killed);
	assert_int_equal(s.output.killed, 3);
	assert_int_equal(s.output.end, LS_LAUNCH_REPORTED);
	ls_launch_output_flush(&s.output, 9, 1);
	fflush(s.output.to);
	assert_int_equal(s.size, 0);
	end(&s);
}

static void notes_of_open_mpi_5_do_so_too(void **state)
{
	(void)state;
	scene s;
	begin(&s);
	give(&s,
	     "[a:11] [prterun-a-11@0,0] [1795124774.123536] ACTIVATING JOB prterun-a-11@1 STATE RUNNING\n"
	     "[a:11] [prterun-a-11@0,0] [1795124774.1] ACTIVATING PROC [prterun-a-11@0,7] STATE ABORTED BY SIGNAL\n"
	     "[a:11] [prterun-a-11@0,0] [1795124774.2] ACTIVATING PROC [prterun-a-11@1,4] STATE RUNNING\n"
	     "[a:11] [prterun-a-11@0,0] [1795124774.3] ACTIVATING JOB NULL STATE DAEMONS TERMINATED\n"
	     "[a:11] plm:ssh: Warning: setpgid(12,12) failed in parent with errno=Permission denied(13)\n",
	     9, 0);
	assert_false(s.output.has_killed || s.output.noted_state[0]); /* job 0 is of mpirun's daemons */
	give(&s, "[a:11] [prterun-a-11@0,0] [1795124774.4] ACTIVATING PROC [prterun-a-11@1,2] STATE CALLED ABORT\n", 9,
	     0);
	give(&s,
	     "[a:11] [prterun-a-11@0,0] [1795124774.5] ACTIVATING PROC [prterun-a-11@1,3] STATE ABORTED BY SIGNAL\n", 9,
	     0);
	assert_int_equal(s.output.noted, 2);
	assert_string_equal(s.output.noted_state, "CALLED ABORT");
	assert_true(s.output.has_killed);
	assert_int_equal(s.output.killed, 3);
	assert_int_equal(s.output.family, 0);
	ls_launch_output_flush(&s.output, 20, 1);
	fflush(s.output.to);
	assert_int_equal(s.size, 0);
	end(&s);
}

/* Who waits for whom before nodes watch each other, and the number by which daemons' directories are found. */
static void nodes_join(void **state)
{
	(void)state;
	scene s;
	begin(&s);
	assert_true(s.output.joining == 0 && s.output.family == 0);
	give(&s, LS_LAUNCH_JOINS "\n", 9, 5);
	give(&s, LS_LAUNCH_JOINS "\n" LS_LAUNCH_JOINED "\n", 9, 7);
	assert_true(s.output.joining == 7); /* of the last one, which the others wait for */
	assert_int_equal(s.output.nodes_joined, 1);
	give(&s, "[a:1] [[21450,0],0] ACTIVATE PROC [[21450,0],2] STATE COMMUNICATION FAILURE AT x.c:1\n", 9, 8);
	assert_int_equal(s.output.family, 21450);
	ls_launch_output_flush(&s.output, 20, 1);
	fflush(s.output.to);
	assert_string_equal(s.shown, "");
	end(&s);
}

/* Where hosts have joined, what fails before nodes train is the supervisor's to judge. */
static void failures_of_a_trial_are_kept(void **state)
{
	(void)state;
	for (int trains = 0; trains < 2; trains++) {
		scene s;
		begin(&s);
		s.output.hides_failures = 1;
		give(&s, trains ? LS_LAUNCH_TRAINS "\n" : "", 9, 3);
		give(&s, LS_LAUNCH_FAILS "lockstep train: first\n" LS_LAUNCH_FAILS "lockstep train: second\n", 9, 4);
		ls_launch_output_flush(&s.output, 9, 1);
		fflush(s.output.to);
		assert_string_equal(s.shown, trains ? "lockstep train: first\nlockstep train: second\n" : "");
		assert_string_equal(s.output.failed, "lockstep train: first");
		assert_true(s.output.nodes_failed && s.output.nodes_reported);
		assert_true(s.output.trains == (trains ? 3 : 0));
		end(&s);
	}
}

/* A failure may overtake the first node's line, which comes by another daemon: then it is the run's. */
static void a_kept_failure_can_be_shown(void **state)
{
	scene s;
	(void)state;
	begin(&s);
	s.output.hides_failures = 1;
	give(&s, LS_LAUNCH_FAILS "lockstep train: first\n", 9, 4);
	give(&s, LS_LAUNCH_TRAINS "\n", 9, 5);
	assert_true(s.output.has_hidden && s.output.trains == 5);
	ls_launch_output_show_failure(&s.output, 6);
	ls_launch_output_flush(&s.output, 9, 1);
	fflush(s.output.to);
	assert_string_equal(s.shown, "lockstep train: first\n");
	end(&s);
}

TEST_MAIN(failures_of_a_trial_are_kept, a_kept_failure_can_be_shown, lines_pass_and_banners_do_not,
	  what_nodes_have_heard_is_kept, reasons_are_found, the_best_reason_stays, torn_dashes_do_not_matter,
	  unknown_banners_are_shown, an_error_of_all_nodes_is_printed_once, lines_that_wait_can_explain,
	  a_line_without_an_end_counts, endless_lines_are_cut, nodes_know_more_than_mpirun,
	  only_marked_lines_are_failures, open_mpis_tags_are_seen_through, mpis_own_lines_pass_only_while_the_job_runs,
	  notes_tell_who_was_killed_first, notes_of_open_mpi_5_do_so_too, nodes_join)
