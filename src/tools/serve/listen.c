#include "tools/serve/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/names.h"

enum { BACKLOG = 1024 };

typedef struct place {
	char host[256], port[8];
} place;

/* "[::1]:8080" or "127.0.0.1:8080". */
static ls_status parse(place *out, const char *address)
{
	const char *colon = strrchr(address, ':');
	const char *begin = address, *end = colon;
	int64_t port = -1;

	if (colon && address[0] == '[') {
		begin++;
		end = colon > begin && colon[-1] == ']' ? colon - 1 : begin;
	}
	int is_bare_v6 = colon && address[0] != '[' && memchr(address, ':', (size_t)(colon - address));
	if (!colon || is_bare_v6 || end <= begin || (size_t)(end - begin) >= sizeof(out->host) ||
	    ls_parse_int(colon + 1, "a port", &port) != LS_OK || port < 0 || port > 65535)
		return ls_fail(LS_EINVALID,
			       "options.listen is '%s', not ADDRESS:PORT such as 127.0.0.1:8080 or [::1]:8080, with a "
			       "port of 0 "
			       "to 65535",
			       address);
	snprintf(out->host, sizeof(out->host), "%.*s", (int)(end - begin), begin);
	snprintf(out->port, sizeof(out->port), "%d", (int)port);
	return LS_OK;
}

static ls_status resolve(struct addrinfo **out, const place *p)
{
	const struct addrinfo wanted = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE };
	int error = getaddrinfo(p->host, p->port, &wanted, out);

	if (error)
		return ls_fail(LS_EINVALID, "options.listen: there is no address '%s': %s", p->host,
			       gai_strerror(error));
	return LS_OK;
}

static int is_loopback(const struct sockaddr *address)
{
	if (address->sa_family == AF_INET)
		return ntohl(((const struct sockaddr_in *)(const void *)address)->sin_addr.s_addr) >> 24 == 127;
	return address->sa_family == AF_INET6 &&
	       IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)(const void *)address)->sin6_addr);
}

static ls_status open_socket(ls_listener *out, const struct addrinfo *info, const place *p)
{
	int on = 1, fd = socket(info->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return ls_fail_errno(LS_EIO, "cannot open a socket");
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)); /* past connections do not keep the port */
	if (bind(fd, info->ai_addr, info->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0) {
		out->fd = fd;
		out->is_loopback = is_loopback(info->ai_addr);
		return LS_OK;
	}
	int error = errno;
	close(fd);
	errno = error;
	if (error == EADDRINUSE)
		return ls_fail(LS_EIO,
			       "port %s of %s is in use by another program; stop that, or choose another port with "
			       "options.listen (0: any that is free)",
			       p->port, p->host);
	return ls_fail_errno(LS_EIO, "cannot listen on port %s of %s", p->port, p->host);
}

/* The kernel has chosen the port where 0 was asked for. */
static void write_url(ls_listener *listener)
{
	struct sockaddr_storage address = { 0 };
	socklen_t size = sizeof(address);
	char host[64] = "", port[8] = "";

	getsockname(listener->fd, (struct sockaddr *)&address, &size);
	getnameinfo((struct sockaddr *)&address, size, host, sizeof(host), port, sizeof(port),
		    NI_NUMERICHOST | NI_NUMERICSERV);
	snprintf(listener->url, sizeof(listener->url), strchr(host, ':') ? "http://[%s]:%s" : "http://%s:%s", host,
		 port);
}

ls_status ls_listen(ls_listener *out, const char *address)
{
	place p;
	struct addrinfo *info = NULL;

	LS_TRY(parse(&p, address));
	LS_TRY(resolve(&info, &p));
	ls_status status = open_socket(out, info, &p);
	freeaddrinfo(info);
	if (status != LS_OK)
		return status;
	snprintf(out->host, sizeof(out->host), "%s", p.host);
	write_url(out);
	return status;
}
