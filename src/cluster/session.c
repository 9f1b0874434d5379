#include "cluster/session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"

enum { PATH_BYTES = 4096 };

static const char *const daemon_variable = "OMPI_MCA_orte_jobfam_session_dir";

/* A directory of this user's, not a link to one. */
static int is_own_directory(const char *path)
{
	struct stat info;
	return lstat(path, &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == geteuid();
}

/* The directory of the host and the user goes with the last session in it. */
void ls_session_remove(const char *path)
{
	char parent[PATH_BYTES];

	snprintf(parent, sizeof(parent), "%s", path);
	char *slash = strrchr(parent, '/');
	if (!slash || slash == parent)
		return;
	*slash = '\0';
	if (!is_own_directory(parent))
		return;
	if (is_own_directory(path))
		ls_path_remove_tree(path);
	rmdir(parent);
}

/* Where Open MPI looks for it, in this order. */
static const char *temporary(void)
{
	static const char *const names[] = { "OMPI_MCA_orte_tmpdir_base", "TMPDIR", "TEMP", "TMP" };
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *value = getenv(names[i]);
		if (value && *value)
			return value;
	}
	return "/tmp";
}

void ls_session_end_mpirun(pid_t mpirun)
{
	char path[PATH_BYTES], host[256] = "";

	if (gethostname(host, sizeof(host) - 1))
		return;
	int length = snprintf(path, sizeof(path), "%s/ompi.%s.%u/pid.%d", temporary(), host, (unsigned)geteuid(),
			      (int)mpirun);
	if ((size_t)length < sizeof(path))
		ls_session_remove(path);
}

/* A name that is not as above belongs to a version of Open MPI that we do not know. */
void ls_session_of_daemon(char *out, size_t size)
{
	const char *path = getenv(daemon_variable), *name = path ? strrchr(path, '/') : NULL;

	out[0] = '\0';
	if (name && path[0] == '/' && !strncmp(name, "/jf.", 4) && strstr(path, "/ompi.") && strlen(path) < size)
		memcpy(out, path, strlen(path) + 1);
}

void ls_session_sweep(void)
{
	char own[PATH_BYTES], path[PATH_BYTES + 32];
	const char *ended = getenv(LS_SESSION_ENDED);

	ls_session_of_daemon(own, sizeof(own));
	if (!own[0])
		return;
	int parent = (int)(strrchr(own, '/') - own);
	while (ended && *ended) {
		char *end;
		unsigned long family = strtoul(ended, &end, 10);
		if (end == ended)
			return;
		snprintf(path, sizeof(path), "%.*s/jf.%lu", parent, own, family);
		if (strcmp(path, own) != 0)
			ls_session_remove(path);
		ended = *end == ',' ? end + 1 : end;
	}
}

void ls_sessions_note(ls_sessions *s, unsigned family)
{
	s->ended[s->count++ % LS_SESSIONS_MOST] = family;
}

void ls_sessions_export(const ls_sessions *s)
{
	char text[LS_SESSIONS_MOST * 12] = "";
	size_t used = 0;

	for (size_t i = 0; i < s->count && i < LS_SESSIONS_MOST; i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%u", i ? "," : "", s->ended[i]);
	setenv(LS_SESSION_ENDED, text, 1);
}
