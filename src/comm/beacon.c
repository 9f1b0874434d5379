/*
 * beacon.c - the datagrams: sender, whether it is a question, and the receiver's key.
 */
#include "comm/beacon.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ASKS = 1, ANSWERS = 2, MARK = 0x4c53424e, LINKS_MOST = 256 };

/* In network order but for the key, which its owner has chosen. */
typedef struct datagram {
	uint32_t mark, kind, rank, unused;
	uint64_t key;
} datagram;

struct ls_beacon {
	int socket, rank;
	ls_beacon_card card;
};

static int is_outside(const struct ifaddrs *interface)
{
	return interface->ifa_addr && interface->ifa_addr->sa_family == AF_INET && (interface->ifa_flags & IFF_UP) &&
	       !(interface->ifa_flags & IFF_LOOPBACK);
}

/* Least first. A bridge without carrier reaches no host (docker0 where no container runs). Another interface may
 * get its carrier back. */
enum { PREFERENCES = 5, NEVER = PREFERENCES };

static int preference(const ls_beacon_link *link)
{
	if (!link->has_carrier)
		return link->is_bridge ? NEVER : 4;
	if (link->is_default)
		return 0;
	if (link->is_bridge)
		return 3;
	return link->is_physical ? 1 : 2;
}

void ls_beacon_choose(ls_beacon_card *card, const ls_beacon_link *links, size_t count)
{
	card->count = 0;
	for (int wanted = 0; wanted < PREFERENCES; wanted++)
		for (size_t i = 0; i < count && card->count < LS_BEACON_ADDRESSES; i++)
			if (preference(&links[i]) == wanted)
				card->addresses[card->count++] = links[i].address;
}

static int has_entry(const char *interface, const char *entry)
{
	char path[sizeof "/sys/class/net//" + IFNAMSIZ + 16];
	snprintf(path, sizeof(path), "/sys/class/net/%s/%s", interface, entry);
	return access(path, F_OK) == 0;
}

/* "eth0 00000000 0102A8C0 0003 0 0 100 00000000 ...": destination and mask are zero. */
static int has_default_route(const char *interface)
{
	char line[256], name[64];
	unsigned destination, mask;
	int found = 0;
	FILE *routes = fopen("/proc/net/route", "re");
	while (routes && !found && fgets(line, sizeof(line), routes))
		found = sscanf(line, "%63s %x %*x %*x %*d %*d %*d %x", name, &destination, &mask) == 3 &&
			destination == 0 && mask == 0 && !strcmp(name, interface);
	if (routes)
		fclose(routes);
	return found;
}

static ls_beacon_link link_of(const struct ifaddrs *interface)
{
	const char *name = interface->ifa_name;
	return (ls_beacon_link){
		.address = ((const struct sockaddr_in *)(const void *)interface->ifa_addr)->sin_addr.s_addr,
		.has_carrier = (interface->ifa_flags & IFF_RUNNING) != 0,
		.is_default = has_default_route(name),
		.is_physical = has_entry(name, "device"),
		.is_bridge = has_entry(name, "bridge")
	};
}

static void find_addresses(ls_beacon_card *card)
{
	ls_beacon_link links[LINKS_MOST];
	size_t count = 0;
	struct ifaddrs *all = NULL;
	if (getifaddrs(&all))
		return;
	for (struct ifaddrs *at = all; at && count < LINKS_MOST; at = at->ifa_next)
		if (is_outside(at))
			links[count++] = link_of(at);
	freeifaddrs(all);
	ls_beacon_choose(card, links, count);
}

static int open_socket(ls_beacon *beacon)
{
	struct sockaddr_in any = { .sin_family = AF_INET };
	socklen_t length = sizeof(any);
	beacon->socket = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (beacon->socket < 0 || bind(beacon->socket, (struct sockaddr *)&any, sizeof(any)) ||
	    getsockname(beacon->socket, (struct sockaddr *)&any, &length))
		return 0;
	beacon->card.port = any.sin_port;
	return 1;
}

ls_beacon *ls_beacon_new(int rank)
{
	ls_beacon *beacon = calloc(1, sizeof(*beacon));
	if (!beacon)
		return NULL;
	beacon->socket = -1;
	beacon->rank = rank;
	find_addresses(&beacon->card);
	uint64_t *key = &beacon->card.key;
	if (beacon->card.count && getrandom(key, sizeof(*key), 0) == sizeof(*key) && open_socket(beacon))
		return beacon;
	ls_beacon_free(beacon);
	return NULL;
}

void ls_beacon_free(ls_beacon *beacon)
{
	if (!beacon)
		return;
	if (beacon->socket >= 0)
		close(beacon->socket);
	free(beacon);
}

ls_beacon_card ls_beacon_own_card(const ls_beacon *beacon)
{
	return beacon ? beacon->card : (ls_beacon_card){ 0 };
}

/* What does not get through is no error: the peer's silence will be. */
static void send_to(ls_beacon *beacon, const ls_beacon_card *peer, uint32_t kind)
{
	datagram d = {
		.mark = htonl(MARK), .kind = htonl(kind), .rank = htonl((uint32_t)beacon->rank), .key = peer->key
	};
	for (int i = 0; i < peer->count && i < LS_BEACON_ADDRESSES; i++) {
		struct sockaddr_in to = { .sin_family = AF_INET,
					  .sin_port = peer->port,
					  .sin_addr.s_addr = peer->addresses[i] };
		ssize_t ignored = sendto(beacon->socket, &d, sizeof(d), MSG_DONTWAIT | MSG_NOSIGNAL,
					 (const struct sockaddr *)&to, sizeof(to));
		(void)ignored;
	}
}

void ls_beacon_ask(ls_beacon *beacon, const ls_beacon_card *peer)
{
	if (beacon)
		send_to(beacon, peer, ASKS);
}

int ls_beacon_hear(ls_beacon *beacon, const ls_beacon_card *(*card_of)(void *context, int peer), void *context,
		   int size)
{
	datagram d;
	ssize_t length;
	while (beacon && (length = recv(beacon->socket, &d, sizeof(d), MSG_DONTWAIT | MSG_TRUNC)) >= 0) {
		uint32_t rank = ntohl(d.rank);
		if (length != sizeof(d) || ntohl(d.mark) != MARK || d.key != beacon->card.key ||
		    rank >= (uint32_t)size || (int)rank == beacon->rank)
			continue;
		if (ntohl(d.kind) == ASKS)
			send_to(beacon, card_of(context, (int)rank), ANSWERS);
		return (int)rank;
	}
	return -1;
}
