/*
 * sample_log.h - which samples a node's devices took: a file for a check that a run which lost nodes left none out and
 * used none twice (tools/chaos).
 *
 * One file per process, DIRECTORY/start-START-node-NODE-PID, and one line per micro-batch when a device takes it:
 *
 *     EPOCH STEP MICROBATCH SAMPLE SAMPLE ...      all from 0; the step is that of the epoch
 *
 * START is the number of this start in its run directory (checkpoint/generation.h), from 1, elastic or not; 0 of a run
 * without a directory.
 *
 * A line is written at once, by one call: what a kill leaves are whole lines, but for the last.
 */
#ifndef LS_TRAINER_SAMPLE_LOG_H
#define LS_TRAINER_SAMPLE_LOG_H

#include "data/loader.h"

typedef struct ls_sample_log {
	int fd;
	size_t room; /* bytes of a line */
	char *lines; /* (devices, room); NULL: there is no log */
} ls_sample_log;

/* The directory is there. `most`: samples of a micro-batch. */
ls_status ls_sample_log_open(ls_sample_log *log, const char *directory, uint64_t generation, int node, int devices,
			     int64_t most);
void ls_sample_log_close(ls_sample_log *log);

/* By the thread of that device. */
ls_status ls_sample_log_add(ls_sample_log *log, int device, const ls_microbatch *microbatch);

#endif
