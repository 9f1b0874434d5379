#include "tools/serve/host.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/names.h"

/* "", ":" or ":8080". */
static int is_port(const char *text)
{
	return *text == '\0' || (*text == ':' && text[1 + strspn(text + 1, "0123456789")] == '\0');
}

static int is_loopback_v6(const char *name)
{
	struct in6_addr address;

	return inet_pton(AF_INET6, name, &address) == 1 && IN6_IS_ADDR_LOOPBACK(&address);
}

static int is_loopback_v4(const char *name)
{
	struct in_addr address;

	return inet_pton(AF_INET, name, &address) == 1 && ntohl(address.s_addr) >> 24 == 127;
}

int ls_host_is_local(const char *host, const char *own)
{
	const int is_v6 = host[0] == '[';
	const char *begin = host + is_v6, *end = begin + strcspn(begin, is_v6 ? "]" : ":");
	char name[256];

	if ((size_t)(end - begin) >= sizeof(name) || (is_v6 && *end != ']') || !is_port(end + is_v6))
		return 0;
	snprintf(name, sizeof(name), "%.*s", (int)(end - begin), begin);
	if (is_v6)
		return is_loopback_v6(name);
	size_t length = strlen(name);
	if (length > 1 && name[length - 1] == '.') /* the root of all names */
		name[length - 1] = '\0';
	return strcasecmp(name, "localhost") == 0 || strcasecmp(name, own) == 0 || is_loopback_v4(name);
}

const char *ls_host_printable(char *out, size_t size, const char *host)
{
	ls_text_printable(out, size, host);
	for (char *c = out; *c; c++)
		if (!strchr("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-_:[]", *c))
			*c = '?';
	return out;
}
