/*
 * host.h - whom a request is for: the value of its Host header, "localhost:8080".
 */
#ifndef LS_TOOLS_SERVE_HOST_H
#define LS_TOOLS_SERVE_HOST_H

/* It is localhost, a loopback address or `own`, the name that the server listens on; with any port, for one may be
 * forwarded to the server's. */
int ls_host_is_local(const char *host, const char *own);

#endif
