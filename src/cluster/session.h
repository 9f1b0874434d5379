/*
 * session.h - the session directories of Open MPI: mpirun and each daemon have one, below a directory of the host and
 * the user, and remove it at their end; not when they are killed.
 *
 *     TMPDIR/ompi.HOST.UID/pid.PID    of mpirun
 *     TMPDIR/ompi.HOST.UID/jf.NUMBER  of its daemon on another host; NUMBER is that of the job family, one per mpirun
 *
 * Who knows that one of them has ended removes its directory: the launcher that of mpirun, a node's guard that of the
 * daemon, and the next start those of families before it, of which a host may have lost all processes at once.
 */
#ifndef LS_CLUSTER_SESSION_H
#define LS_CLUSTER_SESSION_H

#include <stddef.h>
#include <sys/types.h>

/* Numbers of families whose daemons are to be gone, "4711,815": from the supervisor to the nodes. */
#define LS_SESSION_ENDED "LOCKSTEP_ENDED_SESSIONS"

/* By the launcher, which has waited for this mpirun. */
void ls_session_end_mpirun(pid_t mpirun);

/* By a node: the directory of its daemon, "" where it has none of its own. */
void ls_session_of_daemon(char *out, size_t size);
void ls_session_remove(const char *path);

/* By a node: those of LS_SESSION_ENDED on this host. */
void ls_session_sweep(void);

/* By the supervisor: families of the last few starts that have ended. */
enum { LS_SESSIONS_MOST = 16 };

typedef struct ls_sessions {
	unsigned ended[LS_SESSIONS_MOST];
	size_t count; /* of all, also those that were forgotten */
} ls_sessions;

void ls_sessions_note(ls_sessions *sessions, unsigned family);
/* In a child process, which becomes mpirun: into its environment. */
void ls_sessions_export(const ls_sessions *sessions);

#endif
