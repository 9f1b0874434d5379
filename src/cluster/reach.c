/*
 * reach.c - connecting to the hosts' port of ssh. A refusal is an answer, too: the host is there.
 *
 * This only explains a start that failed. Asking before the start would refuse hosts that ssh reaches by an alias, a
 * proxy or another port.
 */
#include "cluster/reach.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"

typedef struct probe {
	const char *host;
	ls_address address; /* length 0: not known yet */
	int socket;         /* -1: decided */
	const char *why;    /* NULL: it answers */
} probe;

static const char *const silence = "no answer";

static int resolve(probe *p)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *found;
	int code = getaddrinfo(p->host, "22", &hints, &found);
	if (code) {
		p->why = gai_strerror(code);
		return 0;
	}
	p->address.length = found->ai_addrlen;
	memcpy(&p->address.bytes, found->ai_addr, found->ai_addrlen);
	freeaddrinfo(found);
	return 1;
}

static void probe_start(probe *p)
{
	p->socket = -1;
	if (!p->address.length && !resolve(p))
		return;
	const struct sockaddr *to = (const struct sockaddr *)&p->address.bytes;
	p->socket = socket(to->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	p->why = p->socket >= 0 ? silence : NULL;
	if (p->socket < 0 || !connect(p->socket, to, p->address.length) || errno == EINPROGRESS)
		return;
	p->why = errno == ECONNREFUSED ? NULL : strerrordesc_np(errno);
	close(p->socket); /* poll() would find it ready, and without an error */
	p->socket = -1;
}

static void probe_settle(probe *p)
{
	int code = 0;
	socklen_t length = sizeof(code);
	getsockopt(p->socket, SOL_SOCKET, SO_ERROR, &code, &length);
	p->why = !code || code == ECONNREFUSED ? NULL : strerrordesc_np(code);
	close(p->socket);
	p->socket = -1;
}

static void probe_wait(probe *probes, struct pollfd *waits, size_t count, double seconds)
{
	double end = ls_clock_seconds() + seconds;
	for (;;) {
		size_t open = 0;
		for (size_t i = 0; i < count; i++) {
			waits[i] = (struct pollfd){ .fd = probes[i].socket, .events = POLLOUT };
			open += probes[i].socket >= 0;
		}
		double left = end - ls_clock_seconds();
		if (!open || left <= 0 || (poll(waits, count, (int)(left * 1e3) + 1) < 0 && errno != EINTR))
			return;
		for (size_t i = 0; i < count; i++)
			if (probes[i].socket >= 0 && waits[i].revents)
				probe_settle(&probes[i]);
	}
}

static size_t probe_hosts(probe *probes, const ls_host *hosts, size_t count)
{
	size_t used = 0;
	for (size_t i = 0; i < count; i++) {
		int known = ls_host_is_here(hosts[i].name);
		for (size_t k = 0; k < used; k++)
			known = known || !strcmp(probes[k].host, hosts[i].name);
		if (!known)
			probes[used++].host = hosts[i].name;
	}
	return used;
}

void ls_launch_reach(const ls_host *hosts, size_t count, double seconds, char *out, size_t size)
{
	probe *probes = calloc(count, sizeof(*probes));
	struct pollfd *waits = calloc(count, sizeof(*waits));
	size_t used = 0, asked = probes && waits ? probe_hosts(probes, hosts, count) : 0;
	out[0] = '\0';
	for (size_t i = 0; i < asked; i++)
		probe_start(&probes[i]);
	probe_wait(probes, waits, asked, seconds);
	for (size_t i = 0; i < asked; i++) {
		if (probes[i].why && used < size)
			used += (size_t)snprintf(out + used, size - used, "%s%s: %s", used ? "; " : "", probes[i].host,
						 probes[i].why);
		if (probes[i].socket >= 0)
			close(probes[i].socket);
	}
	free(waits);
	free(probes);
}

static int is_cancelled(const atomic_int *cancel)
{
	return cancel && atomic_load(cancel);
}

void ls_reach_ask(ls_reach *list, size_t count, double seconds, const atomic_int *cancel)
{
	probe *probes = calloc(count + 1, sizeof(*probes));
	struct pollfd *waits = calloc(count + 1, sizeof(*waits));
	int is_asking = probes && waits;

	for (size_t i = 0; is_asking && i < count; i++) {
		probes[i] = (probe){ .host = list[i].host, .address = list[i].address, .socket = -1 };
		if (list[i].is_asked && !is_cancelled(cancel) && !ls_host_is_here(list[i].host))
			probe_start(&probes[i]);
	}
	if (is_asking)
		probe_wait(probes, waits, count, seconds);
	for (size_t i = 0; i < count; i++) {
		list[i].answers = !is_asking || !probes[i].why;
		if (is_asking)
			list[i].address = probes[i].address;
		if (is_asking && probes[i].socket >= 0)
			close(probes[i].socket);
	}
	free(waits);
	free(probes);
}
