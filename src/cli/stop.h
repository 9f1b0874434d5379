/*
 * stop.h - Ctrl-C and SIGTERM end a training run without losing it.
 */
#ifndef LS_CLI_STOP_H
#define LS_CLI_STOP_H

/* From now on the first SIGINT or SIGTERM asks ls_train() to finish its step (and to write a checkpoint, when
 * `has_run`), the second exits at once with 128 + signal. */
void ls_stop_on_signals(int has_run);

/* The signal that asked to stop; 0: none did. */
int ls_stop_signal(void);

#endif
