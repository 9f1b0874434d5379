#include "tools/serve/head.h"

#ifdef LS_HAVE_HTTPD
#include <microhttpd.h>
#include <string.h>

#include "base/names.h"
#include "base/status.h"

typedef struct faults {
	int lengths, hosts;
	int is_misnamed; /* "Content-Length : 5" is no header to us, and the length to others */
	int is_coded;    /* in another way than "chunked", so nobody knows where it ends */
} faults;

static enum MHD_Result look_at_header(void *context, enum MHD_ValueKind kind, const char *name, const char *value)
{
	static const char allowed[] = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
	faults *f = context;
	(void)kind;

	int is_coding = strcasecmp(name, "Transfer-Encoding") == 0;
	f->lengths += is_coding || strcasecmp(name, "Content-Length") == 0;
	f->hosts += strcasecmp(name, "Host") == 0;
	f->is_misnamed |= !*name || name[strspn(name, allowed)] != '\0';
	f->is_coded |= is_coding && (!value || strcasecmp(value, "chunked") != 0);
	return MHD_YES;
}

unsigned ls_head_check(struct MHD_Connection *connection, const char *version, const char **why)
{
	faults f = { 0 };

	MHD_get_connection_values(connection, MHD_HEADER_KIND, look_at_header, &f);
	if (f.is_misnamed) {
		*why = "the name of a header has a character that is not allowed there";
		return MHD_HTTP_BAD_REQUEST;
	}
	if (f.lengths > 1) {
		*why = "duplicate or conflicting Content-Length and Transfer-Encoding headers";
		return MHD_HTTP_BAD_REQUEST;
	}
	if (f.is_coded) {
		*why = "the only Transfer-Encoding taken is chunked; or send a Content-Length";
		return MHD_HTTP_NOT_IMPLEMENTED;
	}
	if (f.hosts > 1 || (f.hosts == 0 && strcmp(version, MHD_HTTP_VERSION_1_1) == 0)) {
		*why = "HTTP/1.1 requires exactly one Host header";
		return MHD_HTTP_BAD_REQUEST;
	}
	return 0;
}

int64_t ls_head_length(struct MHD_Connection *connection)
{
	const char *length = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Content-Length");
	int64_t bytes = -1;

	if (!length || ls_parse_int(length, "a length", &bytes) != LS_OK)
		return -1;
	return bytes;
}

/* Every byte that was given is looked at, beside one of the token. */
static int is_token(const char *given, const char *token)
{
	size_t length = strlen(token), count = strlen(given);
	size_t wrong = count != length;

	for (size_t i = 0; i < count; i++)
		wrong |= (size_t)(given[i] != token[i % length]);
	return wrong == 0;
}

int ls_head_has_token(struct MHD_Connection *connection, const char *token)
{
	static const char scheme[] = "Bearer ";
	const char *given = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Authorization");

	return given && strncasecmp(given, scheme, sizeof(scheme) - 1) == 0 &&
	       is_token(given + sizeof(scheme) - 1, token);
}

#endif
