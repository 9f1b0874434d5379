/*
 * head.h - what the head of a request must be: one length, one host, names that are names, and the token.
 *
 * A proxy in front may read a head in another way than the library does, and what the library takes for the next
 * request would be this one's body. Heads that two readers may understand in two ways are refused.
 */
#ifndef LS_TOOLS_SERVE_HEAD_H
#define LS_TOOLS_SERVE_HEAD_H

#include <stdint.h>

struct MHD_Connection;

/* 0: it is good; else the status to answer with, and why. `version` is the request's, "HTTP/1.1". */
unsigned ls_head_check(struct MHD_Connection *connection, const char *version, const char **why);

/* Content-Length; -1: there is none. */
int64_t ls_head_length(struct MHD_Connection *connection);

/* It has "Authorization: Bearer TOKEN" with this token, which is compared in a time that does not depend on where they
 * differ. */
int ls_head_has_token(struct MHD_Connection *connection, const char *token);

#endif
