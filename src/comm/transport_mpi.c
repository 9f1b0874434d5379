/*
 * transport_mpi.c - messages between nodes over MPI; besides mpi_library.c the only file that knows mpi.h.
 *
 * Invariants
 *  1. A slot has at most one operation under way. Those that have one lie without gaps at the front of `requests`;
 *     `slot_of` has their slots: asking for what is done costs what is under way, not what could be.
 *  2. Errors of MPI are returned, never fatal: everything goes over a communicator of our own that says so.
 *  3. Once an operation has failed the transport is abandoned: free() talks to no other node, and MPI is not finalised,
 *     for MPI_Finalize() waits for all of them.
 *  4. Nothing is allocated after ls_mpi_transport() by this file, but for messages of more than INT_MAX bytes: those
 *     need a datatype. MPI itself keeps what comes before it is asked for (mpi_library.c).
 *
 * MPI has no descriptor to sleep on, so nap() is a sleep that wake() ends; how long is the communication thread's
 * choice.
 */
#include "cluster/launched.h"
#include "comm/transport.h"

#ifdef LS_HAVE_MPI

#include <limits.h>
#include <math.h>
#include <mpi.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "comm/mpi_library.h"

#define DRAIN_S 1.0 /* for what is under way when a transport is freed */
#define PATIENCE_S 30.0

typedef enum slot_kind { SLOT_SEND, SLOT_RECEIVE, SLOT_SUM } slot_kind;

typedef struct slot_state {
	slot_kind kind;
	int peer, tag;
	size_t bytes;
	size_t *arrived; /* a receive that may be shorter: how long it was */
} slot_state;

typedef struct mpi_transport {
	ls_transport base;
	MPI_Comm comm;
	MPI_Request *requests; /* (slots) [0, started) are under way */
	int *slot_of;          /* (slots) the slot of each request */
	slot_state *states;    /* (slots) */
	MPI_Status *statuses;  /* (slots) of the last MPI_Testsome() */
	int *done;             /* (slots) what it found done, given to poll()'s caller from `given` on */
	int done_count, given;
	int started;    /* operations under way */
	int abandoned;  /* invariant 3 */
	int is_guest;   /* in an MPI program: what it does with MPI is its own business */
	int is_joining; /* its communicator is not there yet, and MPI may write it at any time */

	pthread_mutex_t lock;
	pthread_cond_t bell;
	int rung;
} mpi_transport;

static mpi_transport *self(ls_transport *transport)
{
	return (mpi_transport *)transport;
}

static ls_status fail_slot(mpi_transport *t, int slot, int code)
{
	static const char *const what[] = { "sending to", "receiving from", "summing over all nodes with" };
	const slot_state *state = &t->states[slot];
	char text[MPI_MAX_ERROR_STRING + 1] = "unknown error";
	int length = 0;
	t->abandoned = 1;
	MPI_Error_string(code, text, &length);
	return ls_fail(LS_EIO, "MPI: %s node %d (%zu bytes, tag %d) failed: %s", what[state->kind], state->peer,
		       state->bytes, state->tag, text);
}

/* ---- starting ---------------------------------------------------------------------------------------------------- */

/*
 * The datatype and count of a message. MPI 3 counts in int: a longer message is one element that consists of whole
 * chunks and a rest. The caller frees a type made here (`*made`) as soon as the operation has started.
 */
enum { CHUNK = 1 << 20 };

static int large_type(size_t bytes, MPI_Datatype *out)
{
	MPI_Datatype chunk, parts[2];
	int lengths[2] = { (int)(bytes / CHUNK), (int)(bytes % CHUNK) };
	MPI_Aint places[2] = { 0, (MPI_Aint)(bytes - bytes % CHUNK) };
	int code = MPI_Type_contiguous(CHUNK, MPI_BYTE, &chunk);
	if (code != MPI_SUCCESS)
		return code;
	parts[0] = chunk;
	parts[1] = MPI_BYTE;
	code = MPI_Type_create_struct(2, lengths, places, parts, out);
	MPI_Type_free(&chunk);
	return code == MPI_SUCCESS ? MPI_Type_commit(out) : code;
}

static int message_type(size_t bytes, MPI_Datatype *type, int *count, int *made)
{
	*made = bytes > INT_MAX;
	*type = MPI_BYTE;
	*count = *made ? 1 : (int)bytes;
	return *made ? large_type(bytes, type) : MPI_SUCCESS;
}

static ls_status after_start(mpi_transport *t, int slot, int code)
{
	if (code != MPI_SUCCESS) {
		t->requests[t->started] = MPI_REQUEST_NULL;
		return fail_slot(t, slot, code);
	}
	t->slot_of[t->started++] = slot;
	return LS_OK;
}

static ls_status mpi_send(ls_transport *transport, int slot, int peer, int tag, const void *buffer, size_t bytes)
{
	mpi_transport *t = self(transport);
	MPI_Datatype type;
	int count, made;
	t->states[slot] = (slot_state){ SLOT_SEND, peer, tag, bytes, NULL };
	int code = message_type(bytes, &type, &count, &made);
	if (code == MPI_SUCCESS)
		code = MPI_Isend(buffer, count, type, peer, tag, t->comm, &t->requests[t->started]);
	if (made && type != MPI_BYTE)
		MPI_Type_free(&type);
	return after_start(t, slot, code);
}

static ls_status mpi_receive(ls_transport *transport, int slot, int peer, int tag, void *buffer, size_t bytes,
			     size_t *arrived)
{
	mpi_transport *t = self(transport);
	MPI_Datatype type;
	int count, made;
	t->states[slot] = (slot_state){ SLOT_RECEIVE, peer, tag, bytes, arrived };
	int code = message_type(bytes, &type, &count, &made);
	if (code == MPI_SUCCESS)
		code = MPI_Irecv(buffer, count, type, peer, tag, t->comm, &t->requests[t->started]);
	if (made && type != MPI_BYTE)
		MPI_Type_free(&type);
	return after_start(t, slot, code);
}

/* The library sums numbers of its own types only, so there is no way around its int; cut into several sums. */
static ls_status mpi_sum(ls_transport *transport, int slot, float *values, size_t count)
{
	mpi_transport *t = self(transport);
	if (count > INT_MAX)
		return ls_fail(LS_EUNSUPPORTED, "MPI: a sum of %zu values is more than the %d MPI can count", count,
			       INT_MAX);
	t->states[slot] = (slot_state){ SLOT_SUM, t->base.rank, 0, count * sizeof(*values), NULL };
	int code =
		MPI_Iallreduce(MPI_IN_PLACE, values, (int)count, MPI_FLOAT, MPI_SUM, t->comm, &t->requests[t->started]);
	return after_start(t, slot, code);
}

/* ---- finding what is done ---------------------------------------------------------------------------------------- */

/* A message that is too long is MPI's error, one that is too short is ours, unless it may be. */
static ls_status check_length(mpi_transport *t, int slot, const MPI_Status *status)
{
	const slot_state *state = &t->states[slot];
	MPI_Count got = 0;
	if (state->kind != SLOT_RECEIVE)
		return LS_OK;
	int code = MPI_Get_elements_x(status, MPI_BYTE, &got);
	if (code != MPI_SUCCESS)
		return fail_slot(t, slot, code);
	if (state->arrived && got >= 0)
		*state->arrived = (size_t)got;
	if ((size_t)got == state->bytes || (state->arrived && got >= 0))
		return LS_OK;
	t->abandoned = 1;
	return ls_fail(LS_EMISMATCH, "MPI: a message from node %d has %lld bytes where %zu were expected (tag %d)",
		       state->peer, (long long)got, state->bytes, state->tag);
}

/* Those that are done leave no gap. */
static void close_gaps(mpi_transport *t)
{
	int kept = 0;
	for (int i = 0; i < t->started; i++) {
		if (t->requests[i] == MPI_REQUEST_NULL)
			continue;
		t->requests[kept] = t->requests[i];
		t->slot_of[kept++] = t->slot_of[i];
	}
	for (int i = kept; i < t->started; i++)
		t->requests[i] = MPI_REQUEST_NULL;
	t->started = kept;
}

static ls_status test_requests(mpi_transport *t)
{
	t->given = t->done_count = 0;
	int count = 0;
	int code = MPI_Testsome(t->started, t->requests, &count, t->done, t->statuses);
	if (code != MPI_SUCCESS && code != MPI_ERR_IN_STATUS) {
		t->abandoned = 1;
		return ls_mpi_fail("testing for messages", code);
	}
	for (int i = 0; count != MPI_UNDEFINED && i < count; i++) {
		t->done[i] = t->slot_of[t->done[i]];
		if (code == MPI_ERR_IN_STATUS && t->statuses[i].MPI_ERROR != MPI_SUCCESS)
			return fail_slot(t, t->done[i], t->statuses[i].MPI_ERROR);
		LS_TRY(check_length(t, t->done[i], &t->statuses[i]));
		t->done_count++;
	}
	if (t->done_count > 0)
		close_gaps(t);
	return LS_OK;
}

/* What was sent may still wait inside the library after its request is done: without requests, too, MPI must get to
 * work now and then. */
static ls_status let_mpi_work(mpi_transport *t)
{
	int there;
	int code = MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, t->comm, &there, MPI_STATUS_IGNORE);
	if (code == MPI_SUCCESS)
		return LS_OK;
	t->abandoned = 1;
	return ls_mpi_fail("looking for messages", code);
}

static ls_status mpi_poll(ls_transport *transport, int *slots, int most, int *count)
{
	mpi_transport *t = self(transport);
	*count = 0;
	if (t->given == t->done_count)
		LS_TRY(t->started ? test_requests(t) : let_mpi_work(t));
	while (t->given < t->done_count && *count < most)
		slots[(*count)++] = t->done[t->given++];
	return LS_OK;
}

/* ---- sleeping ---------------------------------------------------------------------------------------------------- */

static struct timespec after(double seconds)
{
	struct timespec until;
	clock_gettime(CLOCK_MONOTONIC, &until);
	double whole = floor(seconds);
	until.tv_sec += (time_t)whole;
	until.tv_nsec += (long)((seconds - whole) * 1e9);
	if (until.tv_nsec >= 1000000000) {
		until.tv_nsec -= 1000000000;
		until.tv_sec++;
	}
	return until;
}

static void mpi_nap(ls_transport *transport, double seconds)
{
	mpi_transport *t = self(transport);
	struct timespec until = after(seconds > 0 ? seconds : 0);
	pthread_mutex_lock(&t->lock);
	while (!t->rung && !pthread_cond_timedwait(&t->bell, &t->lock, &until))
		;
	t->rung = 0;
	pthread_mutex_unlock(&t->lock);
}

static void mpi_wake(ls_transport *transport)
{
	mpi_transport *t = self(transport);
	pthread_mutex_lock(&t->lock);
	t->rung = 1;
	pthread_cond_signal(&t->bell);
	pthread_mutex_unlock(&t->lock);
}

/* ---- making and freeing ------------------------------------------------------------------------------------------ */

static void mpi_abandon(ls_transport *transport)
{
	self(transport)->abandoned = 1;
}

/* What was sent may be done without anybody having asked since: a last word is. */
static void finish_send(MPI_Request *request, double until)
{
	int done = 0;
	while (!done && MPI_Test(request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && ls_clock_seconds() < until)
		;
}

/* Receives that nobody will send to any more end here, other operations get a moment: under way they would keep
 * MPI_Finalize() waiting. */
static ls_status drain_requests(mpi_transport *t)
{
	double until = ls_clock_seconds() + DRAIN_S;
	for (int i = 0; i < t->started && !t->abandoned; i++) {
		if (t->requests[i] == MPI_REQUEST_NULL)
			continue;
		if (t->states[t->slot_of[i]].kind != SLOT_RECEIVE)
			finish_send(&t->requests[i], until);
		else if (MPI_Cancel(&t->requests[i]) == MPI_SUCCESS)
			MPI_Wait(&t->requests[i], MPI_STATUS_IGNORE);
		if (t->requests[i] != MPI_REQUEST_NULL) {
			t->abandoned = 1;
			return ls_fail(LS_EPEER,
				       "a message to another node was not delivered within %g s; exiting without that",
				       DRAIN_S);
		}
	}
	return LS_OK;
}

static void release(mpi_transport *t)
{
	pthread_cond_destroy(&t->bell);
	pthread_mutex_destroy(&t->lock);
	free(t->done);
	free(t->statuses);
	free(t->states);
	free(t->slot_of);
	free(t->requests);
	free(t);
}

/* A node must not leave before all have come here: it may exit with a status other than zero, whereupon the launcher
 * ends the others. One that still writes a checkpoint is waited for before (comm.c), so what is missing after
 * `patience` does not come: it may have died after its goodbye, under a launcher that does not end the others. */
static ls_status await_all(mpi_transport *t)
{
	const struct timespec a_moment = { .tv_nsec = 1000 * 1000 };
	double until = ls_clock_seconds() + t->base.patience;
	MPI_Request all;
	int done = 0, code = MPI_Ibarrier(t->comm, &all);
	while (code == MPI_SUCCESS && !done && ls_clock_seconds() < until) {
		code = MPI_Test(&all, &done, MPI_STATUS_IGNORE);
		if (!done)
			nanosleep(&a_moment, NULL);
	}
	if (code != MPI_SUCCESS)
		return ls_mpi_fail("the final barrier", code);
	if (!done)
		return ls_fail(LS_EPEER, "another node did not reach the final barrier within %g s; exiting without it",
			       t->base.patience);
	return LS_OK;
}

/* Heartbeats that nobody has received may still be on their way in the communicator. A new one could be given its
 * number, and with it those heartbeats: so it is kept until the next transport is freed, whose nodes have since talked.
 */
static MPI_Comm last_comm = MPI_COMM_NULL;

static void retire(MPI_Comm comm)
{
	if (last_comm != MPI_COMM_NULL)
		MPI_Comm_free(&last_comm);
	last_comm = comm;
}

/* All operations are done, or the transport is abandoned: there is nobody to wait for. */
static ls_status free_guest(mpi_transport *t)
{
	int over = 1;
	MPI_Finalized(&over);
	if (!over && !t->abandoned)
		MPI_Comm_free(&t->comm);
	release(t);
	return LS_OK;
}

static ls_status mpi_free(ls_transport *transport)
{
	if (!transport)
		return LS_OK;
	mpi_transport *t = self(transport);
	if (t->is_guest)
		return free_guest(t);
	ls_status status = drain_requests(t);
	if (!t->abandoned)
		status = await_all(t);
	if (!t->abandoned && status == LS_OK)
		retire(t->comm);
	else
		ls_mpi_abandon();
	release(t);
	return status;
}

static const ls_transport_ops mpi_ops = {
	.name = "mpi",
	.summary = "MPI point-to-point messages between processes",
	.send = mpi_send,
	.receive = mpi_receive,
	.sum = mpi_sum,
	.poll = mpi_poll,
	.nap = mpi_nap,
	.wake = mpi_wake,
	.abandon = mpi_abandon,
	.free = mpi_free,
};

static ls_status make_bell(mpi_transport *t)
{
	pthread_condattr_t monotonic;
	if (pthread_condattr_init(&monotonic))
		return ls_fail(LS_EMEMORY, "MPI transport: no memory for a condition variable");
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&t->bell, &monotonic);
	pthread_condattr_destroy(&monotonic);
	pthread_mutex_init(&t->lock, NULL);
	return LS_OK;
}

static ls_status allocate(mpi_transport **out, int slots)
{
	mpi_transport *t = calloc(1, sizeof(*t));
	if (!t)
		return ls_fail(LS_EMEMORY, "MPI transport: out of memory");
	t->base = (ls_transport){ .ops = &mpi_ops, .slots = slots, .patience = PATIENCE_S };
	size_t count = (size_t)slots;
	t->requests = malloc(count * sizeof(*t->requests));
	t->slot_of = calloc(count, sizeof(*t->slot_of));
	t->states = calloc(count, sizeof(*t->states));
	t->statuses = calloc(count, sizeof(*t->statuses));
	t->done = calloc(count, sizeof(*t->done));
	ls_status status = make_bell(t);
	if (status == LS_OK && (!t->requests || !t->slot_of || !t->states || !t->statuses || !t->done))
		status = ls_fail(LS_EMEMORY, "MPI transport: no memory for %d slots", slots);
	if (status != LS_OK) {
		release(t);
		return status;
	}
	for (int i = 0; i < slots; i++)
		t->requests[i] = MPI_REQUEST_NULL;
	*out = t;
	return LS_OK;
}

static ls_status join(mpi_transport *t)
{
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	int code = MPI_Comm_dup(MPI_COMM_WORLD, &t->comm);
	if (code != MPI_SUCCESS)
		return ls_mpi_fail("making a communicator", code);
	MPI_Comm_set_errhandler(t->comm, MPI_ERRORS_RETURN);
	MPI_Comm_rank(t->comm, &t->base.rank);
	MPI_Comm_size(t->comm, &t->base.size);
	return LS_OK;
}

/* A launcher of another MPI starts processes that do not know of each other: they would all train alone, into the same
 * run directory. */
static ls_status check_size(const mpi_transport *t)
{
	int launched = ls_mpi_launched();
	if (launched <= 1 || launched == t->base.size)
		return LS_OK;
	return ls_fail(LS_EMISMATCH,
		       "this process was started as one of %d, but MPI sees %d: start it with the mpirun of the MPI "
		       "library Lockstep was built with, or with an srun that speaks its PMI (srun --mpi=list)",
		       launched, t->base.size);
}

ls_status ls_mpi_transport(ls_transport **out, int slots)
{
	mpi_transport *t = NULL;
	LS_TRY(allocate(&t, slots));
	ls_status status = ls_mpi_begin();
	if (status == LS_OK)
		status = join(t);
	if (status == LS_OK)
		status = check_size(t);
	if (status != LS_OK) {
		release(t);
		return status;
	}
	*out = &t->base;
	return LS_OK;
}

/* A duplicate of `parent`, which a rank that does not come must not keep waiting. */
static ls_status join_guest(mpi_transport *t, MPI_Comm parent, double timeout)
{
	const struct timespec a_moment = { .tv_nsec = 200 * 1000 };
	double until = ls_clock_seconds() + timeout;
	MPI_Request request;
	int done = 0, code = MPI_Comm_idup(parent, &t->comm, &request);

	while (code == MPI_SUCCESS && !done && ls_clock_seconds() < until) {
		code = MPI_Test(&request, &done, MPI_STATUS_IGNORE);
		if (code == MPI_SUCCESS && !done)
			nanosleep(&a_moment, NULL);
	}
	if (code != MPI_SUCCESS)
		return ls_mpi_fail("duplicating the communicator", code);
	t->is_joining = !done;
	if (!done)
		return ls_fail(LS_EPEER, "another rank did not duplicate the communicator within %g s", timeout);
	MPI_Comm_set_errhandler(t->comm, MPI_ERRORS_RETURN);
	MPI_Comm_rank(t->comm, &t->base.rank);
	MPI_Comm_size(t->comm, &t->base.size);
	t->is_guest = 1;
	return LS_OK;
}

static ls_status find_parent(int communicator, MPI_Comm *parent, int *size)
{
	int is_inter = 0;

	*parent = communicator == -1 ? MPI_COMM_WORLD : MPI_Comm_f2c((MPI_Fint)communicator);
	if (*parent == MPI_COMM_NULL)
		return ls_fail(LS_EINVALID, "options.communicator %d is no communicator; give MPI_Comm_c2f(comm)",
			       communicator);
	if (MPI_Comm_test_inter(*parent, &is_inter) != MPI_SUCCESS || is_inter ||
	    MPI_Comm_size(*parent, size) != MPI_SUCCESS)
		return ls_fail(LS_EINVALID, "options.communicator must be an intracommunicator");
	return LS_OK;
}

ls_status ls_mpi_transport_on(ls_transport **out, int communicator, int slots, double timeout)
{
	int before = 0, over = 0, size = 0;
	mpi_transport *t = NULL;
	MPI_Comm parent;

	MPI_Initialized(&before);
	MPI_Finalized(&over);
	if (over || (!before && (communicator != -1 || ls_mpi_launched() > 1)))
		return ls_fail(LS_EINVALID, over ? "MPI: this program has called MPI_Finalize already"
						 : "MPI is not initialised; call MPI_Init() first");
	*out = NULL;
	if (!before)
		return LS_OK;
	LS_TRY(find_parent(communicator, &parent, &size));
	LS_TRY(allocate(&t, slots * size));
	ls_status status = join_guest(t, parent, timeout);
	if (status != LS_OK) {
		if (!t->is_joining)
			release(t);
		return status; /* where it is joining, MPI may still write the communicator: its memory stays */
	}
	*out = &t->base;
	return LS_OK;
}

#else

ls_status ls_mpi_transport_on(ls_transport **out, int communicator, int slots, double timeout)
{
	(void)slots, (void)timeout;
	if (communicator != -1 || ls_mpi_launched() > 1)
		return ls_fail(LS_EUNSUPPORTED,
			       "this build of Lockstep has no MPI; install libopenmpi-dev and build it "
			       "again to use several ranks");
	*out = NULL;
	return LS_OK;
}

ls_status ls_mpi_transport(ls_transport **out, int slots)
{
	(void)out, (void)slots;
	return ls_fail(LS_EUNSUPPORTED, "this build of Lockstep has no MPI and trains on one node only; install "
					"libopenmpi-dev and build it again to use several");
}

#endif
