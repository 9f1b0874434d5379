/*
 * stop.h - Ctrl-C, SIGTERM and SIGHUP end a training run without losing it.
 */
#ifndef LS_CLI_STOP_H
#define LS_CLI_STOP_H

/* The role of this process: the whole run, a node that ls_launch() has started, the launcher, a sweep of many runs,
 * a bench with faults, a server, or a text that is generated.
 */
typedef enum ls_stop_role {
	LS_STOP_ALONE,
	LS_STOP_NODE,
	LS_STOP_LAUNCHER,
	LS_STOP_SWEEP,
	LS_STOP_FAULTS,
	LS_STOP_SERVER,
	LS_STOP_TEXT
} ls_stop_role;

/*
 * From now on the first SIGINT, SIGTERM, SIGHUP or SIGUSR1 asks the run to finish its step (and to write a checkpoint,
 * when `has_run`), the second exits at once with 128 + signal. A launcher passes both on to its nodes and exits at the
 * third; a node leaves messages to it. A sweep, and a bench with faults, end the measurement they are at, and tidy up
 * however often they are asked. A server answers the requests that it has. Signals within half a second of the last one
 * that counted are the same request: timeout(1) sends two at once. A signal that is ignored already (by nohup, say)
 * stays so.
 */
void ls_stop_on_signals(ls_stop_role role, int has_run);

/* The signal that asked to stop; 0: none did. */
int ls_stop_signal(void);

#endif
