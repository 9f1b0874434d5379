/*
 * mpi_library.c - the MPI library in this process.
 *
 * MPI is initialised by the first transport and finalised when the process exits: a program may train several times,
 * and MPI cannot be initialised twice. A program that has initialised MPI itself finalises it, too. Where a transport
 * was abandoned MPI is not finalised, for MPI_Finalize() waits for all nodes.
 */
#include "comm/mpi_library.h"

#include <stdio.h>

#include "comm/transport.h"

#ifdef LS_HAVE_MPI

#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cluster/launched.h"
#include "comm/window.h"

/* Of this process. */
static struct {
	pid_t initialised_by; /* 0: not by us */
	int abandoned;        /* a transport was */
} library;

ls_status ls_mpi_fail(const char *what, int code)
{
	char text[MPI_MAX_ERROR_STRING + 1] = "unknown error";
	int length = 0;
	if (MPI_Error_string(code, text, &length) != MPI_SUCCESS)
		return ls_fail(LS_EIO, "MPI: %s failed with code %d", what, code);
	return ls_fail(LS_EIO, "MPI: %s failed: %s", what, text);
}

void ls_mpi_abandon(void)
{
	library.abandoned = 1;
}

/* Whatever fits in a communication thread's largest window, with what MPI puts before it. */
#define EAGER_BYTES (LS_WINDOW_MOST + (128 << 10))

/*
 * Open MPI over TCP fetches the body of a large message by PUT: a control message for every part, which queues
 * behind the bulk that goes the other way, so that a link carries one direction at a time (0.48 Gbit/s each way of 0.94
 * at 1 Gbit/s). Sent instead, both go at once (0.90 to 0.95).
 *
 * Before it sends more than 64 kB it asks the other side, which answers when it looks, some half a millisecond later:
 * the wire waits at the beginning of every message that has none before it. Ours are mostly expected there already, so
 * they go unasked, one behind the other: steps of ResNet-18 on two nodes at 1 Gbit/s took 147 instead of 152 ms, with a
 * server 158 instead of 181. The price: what comes for a node that has not begun the step, for it still writes a
 * checkpoint, MPI keeps in memory of its own: at most the partial sums of one step.
 *
 * hwloc, which Open MPI asks about the machine, would load drivers of graphics cards, and LLVM with them: that replaces
 * this program's signal handlers.
 *
 * What the environment has set stays; other networks and other MPIs do not look at it.
 */
static void tune_open_mpi(void)
{
	char bytes[32];
	snprintf(bytes, sizeof(bytes), "%zu", EAGER_BYTES);
	setenv("OMPI_MCA_btl_tcp_flags", "send,inplace,need-ack,need-csum", 0);
	setenv("OMPI_MCA_btl_tcp_eager_limit", bytes, 0);
	setenv("OMPI_MCA_btl_tcp_max_send_size", bytes, 0);
	setenv("HWLOC_COMPONENTS", LS_HWLOC_COMPONENTS, 0);
}

/* A process that fails does not wait for the others: its launcher ends them. Nor does a fork of one that trained. */
static void finalise(int status, void *unused)
{
	int done = 1;
	(void)unused;
	if (status != 0 || library.abandoned || library.initialised_by != getpid())
		return;
	if (MPI_Finalized(&done) == MPI_SUCCESS && !done)
		MPI_Finalize();
}

static ls_status initialise_first(int *level)
{
	tune_open_mpi();
	int code = MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, level);
	if (code != MPI_SUCCESS)
		return ls_mpi_fail("initialising", code);
	library.initialised_by = getpid();
	on_exit(finalise, NULL);
	return LS_OK;
}

ls_status ls_mpi_begin(void)
{
	int before = 0, over = 0, level = MPI_THREAD_SINGLE;
	MPI_Initialized(&before);
	MPI_Finalized(&over);
	if (over)
		return ls_fail(LS_EUNSUPPORTED, "MPI: this program has called MPI_Finalize, after which nodes cannot "
						"talk to each other any more; call it once all training is done");
	if (library.abandoned)
		return ls_fail(LS_EPEER, "MPI: an earlier job of this process failed or lost a node, so another cannot "
					 "begin; exit with a status other than zero, and start all nodes again");
	if (!before)
		LS_TRY(initialise_first(&level));
	else if (MPI_Query_thread(&level) != MPI_SUCCESS)
		level = MPI_THREAD_SINGLE;
	if (level < MPI_THREAD_SERIALIZED)
		return ls_fail(LS_EUNSUPPORTED, "this MPI library lets no thread but the first use it; Lockstep needs "
						"MPI_THREAD_SERIALIZED");
	return LS_OK;
}

/* "Open MPI v4.1.4, package: ..." or "MPICH Version:\t4.0.2\nMPICH Release date: ...": the part that names it. */
void ls_mpi_version(char *text, size_t size)
{
	char all[MPI_MAX_LIBRARY_VERSION_STRING + 1] = "";
	int length = 0;
	if (MPI_Get_library_version(all, &length) != MPI_SUCCESS)
		length = 0;
	all[length] = '\0';
	all[strcspn(all, ",\n")] = '\0';
	for (char *tab = all; (tab = strchr(tab, '\t')); tab++)
		*tab = ' ';
	snprintf(text, size, "%s", all);
}

#else

void ls_mpi_version(char *text, size_t size)
{
	if (size)
		text[0] = '\0';
}

#endif
