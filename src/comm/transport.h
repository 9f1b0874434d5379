/*
 * transport.h - messages between nodes: the interface that MPI implements, and in tests threads
 * (support/transport_threads.h).
 *
 * One thread of a node (its communication thread) uses its transport. Nothing blocks: send and receive start an
 * operation under a number the caller chooses, its slot, and poll() returns which slots are done. Messages between two
 * nodes with the same tag arrive in the order they were sent; a message has exactly the length its receiver expects, or
 * at most that, where it wants to know the length.
 */
#ifndef LS_COMM_TRANSPORT_H
#define LS_COMM_TRANSPORT_H

#include <stddef.h>

#include "base/status.h"

typedef struct ls_transport ls_transport;

typedef struct ls_transport_ops {
	const char *name, *summary;
	ls_status (*send)(ls_transport *transport, int slot, int peer, int tag, const void *buffer, size_t bytes);
	/* `arrived`: NULL for a message of exactly `bytes`; else it may be shorter, and *arrived is its length once the
	 * slot is done. */
	ls_status (*receive)(ls_transport *transport, int slot, int peer, int tag, void *buffer, size_t bytes,
			     size_t *arrived);
	/* The library's own sum over all nodes, in place; all nodes start their sums in the same order. Optional: NULL.
	 */
	ls_status (*sum)(ls_transport *transport, int slot, float *values, size_t count);
	/* Slots that are done since the last call, at most `most` of them. */
	ls_status (*poll)(ls_transport *transport, int *slots, int most, int *count);
	/* Sleep until something may have happened, at most `seconds`; wake() ends it from another thread. */
	void (*nap)(ls_transport *transport, double seconds);
	void (*wake)(ls_transport *transport);
	/* Something went wrong: from now on wait for no other node, in free() neither. Optional: NULL. */
	void (*abandon)(ls_transport *transport);
	/* An error, LS_EPEER, where it waits for the other nodes and not all of them came. */
	ls_status (*free)(ls_transport *transport);
} ls_transport_ops;

/* The part every transport begins with. */
struct ls_transport {
	const ls_transport_ops *ops;
	int rank, size;  /* this node, and how many there are */
	int slots;       /* operations under way at once: slots are [0, slots) */
	double patience; /* seconds that free() waits for the other nodes, where it does */
};

/*
 * MPI. Initialises it; the calling process is one node of MPI_COMM_WORLD. Fails with LS_EUNSUPPORTED in a build
 * without MPI, with LS_EMISMATCH when MPI sees another number of nodes than ls_mpi_launched(). After
 * ls_mpi_transport() only the thread that uses the transport may talk to MPI. free() waits for all nodes to come to it,
 * for `patience` (30 s unless changed), and exit(0) finalises MPI, unless an operation failed, a send is not done
 * within a second, not all nodes came, or the transport was abandoned: that would wait for a node that may be gone. The
 * process must then exit with a status other than zero, whereupon the launcher ends the others; free() returns an
 * error where the caller does not know yet. One transport after another may be made, until one was abandoned.
 */
ls_status ls_mpi_transport(ls_transport **out, int slots);

/*
 * MPI of the program's own, over a duplicate of one of its communicators (Fortran handle; -1: MPI_COMM_WORLD), with
 * slots for `slots` operations with every rank. Collective, but gives up after `timeout`. MPI must be initialised; only
 * the calling thread talks to it, in calls of the transport. *out is NULL where MPI is not initialised and nothing says
 * that there are several ranks: this process is alone. free() waits for nobody.
 */
ls_status ls_mpi_transport_on(ls_transport **out, int communicator, int slots, double timeout);

/* "Open MPI v4.1.4": the library that ls_mpi_transport() uses; "" in a build without. Does not initialise it. */
void ls_mpi_version(char *text, size_t size);

#endif
