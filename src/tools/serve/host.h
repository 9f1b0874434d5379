/*
 * host.h - whom a request is for: the value of its Host header, "localhost:8080".
 */
#ifndef LS_TOOLS_SERVE_HOST_H
#define LS_TOOLS_SERVE_HOST_H

#include <stddef.h>

/* It is localhost, a loopback address or `own`, the name that the server listens on; with any port, for one may be
 * forwarded to the server's. */
int ls_host_is_local(const char *host, const char *own);

/* The header for a message, whatever a client sent: every character that no host name and no port has becomes '?', and
 * it is cut to `size`. Returns `out`. */
const char *ls_host_printable(char *out, size_t size, const char *host);

#endif
