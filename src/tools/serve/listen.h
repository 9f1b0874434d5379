/*
 * listen.h - the address of a server: "127.0.0.1:8080", "[::1]:8080", "localhost:0".
 */
#ifndef LS_TOOLS_SERVE_LISTEN_H
#define LS_TOOLS_SERVE_LISTEN_H

#include "base/status.h"

typedef struct ls_listener {
	int fd;
	int is_loopback; /* only this machine can reach it */
	char host[256];  /* "127.0.0.1", as it was given */
	char url[128];   /* "http://127.0.0.1:8080", with the port that it has */
} ls_listener;

ls_status ls_listen(ls_listener *out, const char *address);

#endif
