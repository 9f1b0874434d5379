/*
 * log.h - metrics.jsonl of an elastic run with faults: its starts, and what each trained undisturbed.
 */
#ifndef LS_TOOLS_FAULTS_LOG_H
#define LS_TOOLS_FAULTS_LOG_H

#include "tools/results/memberships.h"

/* Of a start: recorded steps that count, from behind its warm-up. */
typedef struct ls_fault_stretch {
	int64_t records; /* of steps */
	double from_s, to_s;
	int64_t from_step, to_step;
	double snapshot_every, snapshot_s; /* as of its last snapshot that counts; 0: it has none */
} ls_fault_stretch;

typedef struct ls_fault_log {
	int64_t warmup; /* steps: set by the caller, the rest is 0 */
	ls_memberships nodes;
	ls_fault_stretch *stretches; /* (nodes.count) */
	size_t room;
	uint64_t fingerprint; /* the last one, and the step it is of */
	int64_t fingerprint_step;
} ls_fault_log;

/* `label` names the text in errors. */
ls_status ls_fault_log_read(ls_fault_log *log, const char *text, size_t bytes, const char *label);
void ls_fault_log_release(ls_fault_log *log);

#endif
