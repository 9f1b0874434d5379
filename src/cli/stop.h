/*
 * stop.h - Ctrl-C, SIGTERM and SIGHUP end a training run without losing it.
 */
#ifndef LS_CLI_STOP_H
#define LS_CLI_STOP_H

/* From now on the first SIGINT, SIGTERM or SIGHUP asks ls_train() to finish its step (and to write a checkpoint, when
 * `has_run`), the second exits at once with 128 + signal. One that is ignored already (by nohup, say) stays so. */
void ls_stop_on_signals(int has_run);

/* The signal that asked to stop; 0: none did. */
int ls_stop_signal(void);

#endif
