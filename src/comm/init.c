#include "comm/init.h"

#include <math.h>
#include <stdio.h>
#include <time.h>

#include <lockstep/launch.h>

#include "cluster/launched.h"

/* mpirun ends all nodes as soon as one has failed, so this costs nothing where the speaker is quick. On a busy machine
 * it needs a second to come to it. */
static const double SPEAKER_S = 3;

/* Messages that may be awaited at once: of thousands of buckets, a partial sum and new values. */
enum { INCOMING_PER_NODE = 8192 };

ls_status ls_comm_init(ls_comm **out, int nodes, double timeout)
{
	ls_comm_options carry = { .timeout = timeout, .beacon = 1, .speaker_s = SPEAKER_S };

	ls_launch_report_joins(0);
	LS_TRY(ls_mpi_transport(&carry.transport, ls_comm_slots(nodes, INCOMING_PER_NODE * nodes)));
	LS_TRY(ls_comm_new(out, &carry));
	ls_launch_report_joins(1);
	return LS_OK;
}

/* One node reports what ended the run: where a node has failed, the one the communication threads agree on; where all
 * nodes found the same, the first; else the one with the error. The others' message is empty. */
static void choose_words(const ls_comm *comm, int together, const char *reason, char *message, size_t size)
{
	int rank = ls_comm_rank(comm), failed = ls_comm_has_failed(comm);

	if (failed ? !ls_comm_is_speaker(comm) : together && rank != 0)
		message[0] = '\0';
	else if (failed || together)
		snprintf(message, size, "%s", reason);
	else
		snprintf(message, size, "node %d (%s): %s", rank, ls_comm_host(comm, rank), reason);
}

static void let_the_speaker_go(double seconds)
{
	const struct timespec a_moment = { .tv_sec = (time_t)seconds,
					   .tv_nsec = (long)(1e9 * (seconds - floor(seconds))) };
	nanosleep(&a_moment, NULL);
}

/* Nodes of ours that stop because they were asked to exit with 0, which ends nobody: the start
 * that follows need not wait. */
static int ends_well(ls_status status, ls_status end)
{
	return status == LS_EINTERRUPTED && end == LS_OK && ls_launched_by_us();
}

/* No thread waits for messages any more. */
ls_status ls_comm_finalize(ls_comm *comm, ls_status status, int together)
{
	char reason[1024], message[1200] = "", host[LS_HOST_NAME];
	double speaker_s = ls_comm_speaker_seconds(comm);
	int rank = ls_comm_rank(comm);

	snprintf(host, sizeof(host), "%s", ls_comm_host(comm, rank));
	snprintf(reason, sizeof(reason), "%s", status != LS_OK ? ls_last_error() : "");
	choose_words(comm, together, reason, message, sizeof(message));
	if (status != LS_OK && status != LS_EINTERRUPTED && message[0] == '\0')
		ls_launch_report_heard(ls_comm_has_failed(comm) ? ls_comm_relayed(comm) : reason);
	ls_status end = ls_comm_free(comm, status != LS_OK && !together ? reason : NULL);
	if (status == LS_OK && end == LS_OK)
		return LS_OK;
	if ((status == LS_OK || message[0] == '\0') && !ends_well(status, end))
		let_the_speaker_go(speaker_s);
	if (status != LS_OK)
		return ls_fail(status, "%s", message);
	return ls_fail(end, "node %d (%s) has completed its work, but %s", rank, host, ls_last_error());
}
