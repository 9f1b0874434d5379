/*
 * comm_state.h - what the communication thread's own files share: comm.c (the thread and the API), messages.c (queues,
 * windows and slots) and liveness.c (heartbeats, goodbyes and failures).
 */
#ifndef LS_COMM_COMM_STATE_H
#define LS_COMM_COMM_STATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "comm/beacon.h"
#include "comm/comm.h"
#include "comm/window.h"

enum { LS_NOTE_TEXT = 496, LS_COMM_WAKES = 4 };

/* What a note between nodes announces. */
typedef enum ls_note_kind {
	LS_NOTE_ALIVE = 1,
	LS_NOTE_FINISHED, /* goodbye, nothing is wrong */
	LS_NOTE_ENDED,    /* goodbye: `text` is why this node ends */
	LS_NOTE_RELAYED   /* goodbye: `text` is what became of `culprit` */
} ls_note_kind;

typedef struct ls_comm_text {
	char text[LS_NOTE_TEXT];
} ls_comm_text;

typedef struct ls_note {
	int32_t kind, culprit;
	int32_t by_itself; /* the culprit reported it itself */
	int32_t unused;
	char host[LS_HOST_NAME]; /* goodbye: the sender's, for it may overtake the introduction */
	char text[LS_NOTE_TEXT];
} ls_note;

/* Slots every peer has for itself: [peer * LS_SLOTS_PER_PEER, ...). */
enum { LS_SLOT_NOTE_IN, LS_SLOT_NOTE_OUT, LS_SLOT_GOODBYE, LS_SLOTS_PER_PEER };

typedef struct ls_message_list {
	ls_message *first, **end;
} ls_message_list;

/* Free slots of one kind of messages. */
typedef struct ls_slot_pool {
	int *slots;
	int count;
} ls_slot_pool;

/* Whether a peer has said goodbye: because it has finished, or because it fails. */
typedef enum ls_leaving { LS_STAYS, LS_FINISHES, LS_FAILS } ls_leaving;

/* The first thing nodes send each other. */
typedef struct ls_introduction {
	char host[LS_HOST_NAME];
	ls_beacon_card card;
} ls_introduction;

typedef struct ls_comm_peer {
	char host[LS_HOST_NAME];                  /* "": not yet known */
	ls_beacon_card card;                      /* zeros: not yet known */
	ls_introduction sent_host, received_host; /* while they are under way */
	ls_message host_messages[2];              /* in, out */

	double heard; /* when, by the communication thread's clock */
	double seen;  /* ... and beside MPI */
	double left_at;
	ls_leaving left;
	int sending; /* a heartbeat is under way to it */
	int goodbye; /* 1: under way, 2: arrived */
	ls_note note_in, sent, goodbye_note;

	ls_message *outgoing; /* queued, in the order they will be started */
	size_t bytes;         /* under way to it */
	ls_window window;     /* how many may be */
	int messages;
	_Atomic(uint64_t) traffic[4]; /* the fields of ls_traffic */
} ls_comm_peer;

typedef struct ls_comm_wake_call {
	void (*wake)(void *context);
	void *context;
} ls_comm_wake_call;

struct ls_comm {
	ls_transport *transport;
	ls_beacon *beacon; /* NULL: none */
	double speaker_s;  /* as given */
	int rank, size;
	double timeout, beat;
	size_t window; /* 0: each peer's own */
	pthread_t thread;

	/* Under `lock`. */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	ls_message_list inbox;
	int names_missing;
	int stop;
	char reason[LS_NOTE_TEXT]; /* of stopping; "": none */
	ls_status status;
	char message[2 * LS_NOTE_TEXT];

	pthread_mutex_t wake_lock; /* while the calls are made, so that none is taken out under way */
	ls_comm_wake_call wakes[LS_COMM_WAKES];
	pthread_mutex_t work_lock; /* while work is done */
	int (*work)(void *context);
	void *work_context;

	_Atomic(int) failed, speaker, hurry;

	/* The thread's own. */
	double now, clock,
		away; /* the communication thread's clock = the machine's less the time this node did not run */
	double next_beat, nap;
	int restless;           /* messages were posted by the thread itself */
	ls_comm_peer *peers;    /* (size) */
	ls_message **under_way; /* (slots) */
	int *slot_numbers;      /* what the pools point into */
	ls_slot_pool incoming_slots, outgoing_slots, sum_slots;
	ls_message_list incoming, sums;
	int most_outgoing; /* messages under way to one peer */
	int most_incoming; /* messages that can be awaited at once */
	int outgoing_left; /* queued or under way */
	int messages;      /* under way */
	int culprit;       /* of a failure; -1: none yet */
	int by_itself, declared_dead;
	ls_comm_text relay; /* the failure as reported to others */
};

void ls_message_list_init(ls_message_list *list);
void ls_message_list_append(ls_message_list *list, ls_message *message);

/* messages.c */
int ls_comm_slots_least(int size);
void ls_comm_divide_slots(ls_comm *comm);
void ls_comm_queue(ls_comm *comm, ls_message *message);
ls_status ls_comm_start_messages(ls_comm *comm, int *started);
ls_message *ls_comm_take_message(ls_comm *comm, int slot); /* it has arrived */
const ls_message *ls_comm_oldest(const ls_comm *comm, int peer);

/* liveness.c */
/* When the peer last showed that it lives. */
double ls_comm_last_sign(const ls_comm *comm, int peer);
/* On another host, as far as is known: nodes of one host share no link that could be cut. */
int ls_comm_is_elsewhere(const ls_comm *comm, int peer);
ls_status ls_comm_begin_notes(ls_comm *comm);
ls_status ls_comm_alive_done(ls_comm *comm, int slot);
ls_status ls_comm_beat(ls_comm *comm); /* heartbeats to the others, and a look at how long they are silent */
void ls_comm_abandon(ls_comm *comm);
void ls_comm_farewell(ls_comm *comm, const ls_note *note, double seconds);
ls_status ls_comm_stay(ls_comm *comm, int *others); /* `others`: how many have not said goodbye */
ls_status ls_comm_outcome(ls_comm *comm);           /* once all have said goodbye: LS_EPEER where one fails */
void ls_comm_fail(ls_comm *comm, ls_status status); /* with this thread's message */

#endif
