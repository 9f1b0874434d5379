/*
 * metrics.h - measurements of a run, kept: metrics.jsonl and TensorBoard events.
 */
#ifndef LS_METRICS_METRICS_H
#define LS_METRICS_METRICS_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef struct ls_metrics ls_metrics;

typedef struct ls_metric {
	const char *name; /* "loss" */
	double value;     /* NaN and infinity are written as null */
} ls_metric;

/* Kinds of lines about the nodes of an elastic run: a start begins to train, a start ends, a host is lost or back. */
#define LS_METRICS_START "start"
#define LS_METRICS_STOP "stop"
#define LS_METRICS_HOST "host"
/* Of its state in memory: like any other, it goes when its step is computed again. */
#define LS_METRICS_SNAPSHOT "snapshot"

typedef struct ls_metric_text {
	const char *name, *text; /* bytes that are not ASCII are written as '?' */
} ls_metric_text;

/* Open RUN/metrics.jsonl and a TensorBoard event file in RUN. Lines of steps after `resume_step` (work that will be
 * done again) are dropped; resume_step = 0 starts afresh. run == NULL: every call is a no-op. */
ls_status ls_metrics_open(ls_metrics **out, const char *run, uint64_t resume_step);
/* The same for a run that is continued, also from step 0: lines about its nodes (LS_METRICS_START and the two after it)
 * stay, whatever their step. *reached: the last step among the lines that are dropped; 0: none was. */
ls_status ls_metrics_continue(ls_metrics **out, const char *run, uint64_t resume_step, uint64_t *reached);
void ls_metrics_close(ls_metrics *metrics);

/* One line {"kind": "step", "step": 200, "time": ..., "loss": ...} and one scalar "kind/loss" each in TensorBoard. */
ls_status ls_metrics_record(ls_metrics *metrics, const char *kind, uint64_t step, const ls_metric *values,
			    size_t count);
/* One line {"kind": "checkpoint", "step": 200, "time": ..., "fingerprint": "0123456789abcdef", "seconds": ...}, without
 * values that are NaN; TensorBoard has no place for it. */
ls_status ls_metrics_record_fingerprint(ls_metrics *metrics, const char *kind, uint64_t step, uint64_t fingerprint,
					const ls_metric *values, size_t count);
/* One line with texts, which TensorBoard has no place for, and values. */
ls_status ls_metrics_record_texts(ls_metrics *metrics, const char *kind, uint64_t step, const ls_metric_text *texts,
				  size_t text_count, const ls_metric *values, size_t count);
ls_status ls_metrics_flush(ls_metrics *metrics);

/* One line with texts at the end of RUN/metrics.jsonl, by a process that does not train: while no other one writes
 * there. `wall`: when it happened, in seconds since 1970. Without a file, nothing is written. */
ls_status ls_metrics_append(const char *run, const char *kind, double wall, const ls_metric_text *texts, size_t count);

/* The same in two halves, for a thread that waits for the disk while others record: the files as they are now, with
 * all records so far, and their way to the disk. The second half is called once; it needs no `metrics`. */
typedef struct ls_metrics_files {
	int lines, events; /* descriptors; -1: none */
	char path[4096];   /* of the lines */
} ls_metrics_files;
ls_status ls_metrics_share(ls_metrics *metrics, ls_metrics_files *out);
ls_status ls_metrics_sync(ls_metrics_files *files);

/* Whether RUN/metrics.jsonl has a line of this kind with values[0], such as {"step", 200}. The other values are read
 * from the first such line; NaN: it has none. */
ls_status ls_metrics_find(const char *run, const char *kind, ls_metric *values, size_t count, int *found);

/* The directory was removed under us and there is a new one: lines go on there, after those that the file had (it lives
 * as long as it is open); TensorBoard's events begin anew behind `step`. */
ls_status ls_metrics_restore(ls_metrics *metrics, const char *run, uint64_t step);

/* RUN/run.json: settings (JSON object text), versions, machine, start time; published atomically. An existing one of a
 * resumed run keeps its fields and gains an entry in "resumes"; a damaged one is put aside with a warning. */
ls_status ls_run_describe(const char *run, const char *settings, const char *kernels, const char *isa, int resumed);

/* "end" of run.json: the step after which the run ended in order, and the fingerprint of its parameters. */
ls_status ls_run_conclude(const char *run, uint64_t step, uint64_t fingerprint);

/* The settings (JSON object text, malloc'd) that run.json says the run was started with; with `last`, those it was last
 * started or resumed with. */
ls_status ls_run_settings(const char *run, int last, char **out);

#endif
