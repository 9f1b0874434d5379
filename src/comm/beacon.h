/*
 * beacon.h - a sign of life beside MPI, by UDP.
 *
 * After a link was cut, TCP waits for as long as that lasted before it sends again: a link that is back after 27 s
 * brings no heartbeat over MPI before second 51. So a node that has not heard of a peer for a moment also asks it by a
 * datagram, and a node that is asked answers. While all is well nothing is sent, and where datagrams do not get
 * through, heartbeats over MPI are all there is.
 *
 * One thread uses a beacon. Addresses are those of IPv4.
 */
#ifndef LS_COMM_BEACON_H
#define LS_COMM_BEACON_H

#include <stddef.h>
#include <stdint.h>

enum { LS_BEACON_ADDRESSES = 4 };

typedef struct ls_beacon ls_beacon;

/* Where a node can be asked, for the other nodes: zeros where it cannot. Addresses and port are in network
 * order. */
typedef struct ls_beacon_card {
	uint64_t key; /* a datagram with it comes from a node of the job */
	uint32_t addresses[LS_BEACON_ADDRESSES];
	uint16_t port;
	uint16_t count;
	uint32_t unused;
} ls_beacon_card;

/* An address of this machine, and what is known about the interface that has it. */
typedef struct ls_beacon_link {
	uint32_t address; /* network order */
	int has_carrier;
	int is_default;  /* the default route goes there */
	int is_physical; /* a device, not made by software */
	int is_bridge;   /* between containers or virtual machines of this host, mostly */
} ls_beacon_link;

/* Fill the card's addresses with those that other hosts are most likely to reach. */
void ls_beacon_choose(ls_beacon_card *card, const ls_beacon_link *links, size_t count);

/* NULL when this machine has no address or no socket: then there is no beacon. */
ls_beacon *ls_beacon_new(int rank);
void ls_beacon_free(ls_beacon *beacon);

/* The three take NULL, too, and do nothing then. */
ls_beacon_card ls_beacon_own_card(const ls_beacon *beacon);
void ls_beacon_ask(ls_beacon *beacon, const ls_beacon_card *peer);

/* The sender of the next datagram, -1 when there is none left. A question is answered; `card_of(context, node)`,
 * with node < size, says where. */
int ls_beacon_hear(ls_beacon *beacon, const ls_beacon_card *(*card_of)(void *context, int peer), void *context,
		   int size);

#endif
