#include "run/saver.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "comm/agree.h"
#include "comm/collectives.h"
#include "run/run_dir.h"

#define NOTHING_SAVED UINT64_MAX /* any more: the directory was removed */

/* A checkpoint, or the best weights, on its way to the disk. The thread that writes it touches nothing else. */
typedef struct ls_saver_write {
	int is_pending, is_best;
	ls_keep_job job;
	ls_ckpt_content *content; /* the snapshot's, or the job's own */
	ls_metrics_files records; /* that led to it */
	char run[4096];
	int64_t keep;
	double seconds, stall_s; /* see ls_reporter_checkpoint() */
	ls_status status;
	char why[2048]; /* the message of a failure */
} ls_saver_write;

/* Where checkpoints are written while training goes on. */
static ls_status begin_writer(ls_saver *s)
{
	ls_ckpt_content like = ls_keep_content(s->setup->trainer);

	like.slots += s->setup->trainer->average != NULL; /* then the parameters are beside it */
	LS_TRY(ls_snapshot_new(&s->snapshot, &like));
	return ls_background_begin(&s->writer, "checkpoints");
}

/* Only the first node has it. */
static ls_status begin_here(ls_saver *s)
{
	if (!s->setup->options->run || !ls_setup_is_first(s->setup))
		return LS_OK;
	s->write = calloc(1, sizeof(*s->write));
	if (!s->write)
		return ls_fail(LS_EMEMORY, "no memory for checkpoints");
	return s->setup->has_snapshot ? begin_writer(s) : LS_OK;
}

/* What was due last before the position, with every `ckpt_every` steps or epoch, is not on disk. */
static int is_overdue(const ls_saver *s)
{
	const ls_ckpt_progress *p = s->position;
	uint64_t every = (uint64_t)s->setup->options->ckpt_every;
	uint64_t due = every > 0 ? p->step - p->step % every : p->step - p->epoch_step;

	return s->memory.is_used && s->memory.on_disk < due;
}

ls_status ls_saver_begin(ls_saver *s)
{
	ls_snapshots_init(&s->memory, s->setup);
	LS_TRY(ls_keep_begin(s->setup, &s->lock, &s->memory, s->position));
	s->saved_step = s->memory.is_used ? s->memory.on_disk : s->position->step;
	s->is_overdue = is_overdue(s);
	LS_TRY(ls_comm_agree(s->setup->layout.comm, begin_here(s)));
	return ls_snapshots_begin(&s->memory, s->lock.generation, s->position->step);
}

void ls_saver_look(ls_saver *s)
{
	const char *run = s->setup->options->run;

	if (!run || !ls_setup_is_first(s->setup) || s->where != LS_RUN_THERE)
		return;
	s->where = ls_run_lock_where(&s->lock, run, s->place, sizeof(s->place));
	if (s->where == LS_RUN_THERE)
		return;
	if (s->where == LS_RUN_TAKEN) {
		ls_log_warning("%s was started again meanwhile: this process stops, and saves nothing any more", run);
		ls_reporter_mute(s->reporter);
		return;
	}
	ls_log_warning("the run directory %s was %s%s during the run: stopping", run,
		       s->where == LS_RUN_MOVED ? "moved to " : "removed", s->place);
	s->was = run;
	if (s->where == LS_RUN_MOVED)
		s->setup->resolved.run = s->place;
	else
		s->saved_step = NOTHING_SAVED;
}

const char *ls_saver_kept(ls_saver *s)
{
	if (ls_saver_collect(s, 1) != LS_OK)
		ls_log_warning("%s", ls_last_error());
	if (!s->setup->options->run)
		return "there is no run directory, so nothing is saved";
	if (s->where == LS_RUN_TAKEN)
		return "the run was started again meanwhile, and what that saves is kept";
	if (s->where == LS_RUN_REMOVED && s->saved_step == NOTHING_SAVED)
		return "the run directory was removed, and nothing is saved";
	return s->saved_step == 0 ? "no checkpoint had been written yet" : "the last checkpoint is kept";
}

/* A directory that was removed is made anew. */
static ls_status find_directory(ls_saver *s)
{
	ls_saver_write *w = s->write;

	if (s->where == LS_RUN_REMOVED && !s->is_restored) {
		LS_TRY(ls_keep_restore(s->setup, &s->lock));
		LS_TRY(ls_metrics_restore(s->reporter->metrics, s->setup->options->run, s->position->step));
		s->is_restored = 1;
	}
	snprintf(w->run, sizeof(w->run), "%s", s->setup->options->run);
	return ls_metrics_share(s->reporter->metrics, &w->records);
}

/* All that touches the disk, by whichever thread. What led to a checkpoint outlasts a power cut as it does. */
static void write_files(void *context)
{
	ls_saver_write *w = context;

	w->status = ls_metrics_sync(&w->records);
	if (w->status == LS_OK)
		w->status =
			w->is_best ? ls_keep_write_best(w->run, w->content) : ls_ckpt_save(w->run, w->content, w->keep);
	if (w->status != LS_OK)
		snprintf(w->why, sizeof(w->why), "%s", ls_last_error());
}

/* On the first node, which has the state of all nodes by now; `began`: when training stood still for it; `best`: the
 * metric by which the weights are the best, NULL for a checkpoint. */
static ls_status begin_writing(ls_saver *s, const char *best, int goes_on, double began)
{
	ls_saver_write *w = s->write;

	LS_TRY(find_directory(s));
	w->is_best = best != NULL;
	ls_status status = best ? ls_keep_prepare_best(&w->job, s->setup, s->position, best)
				: ls_keep_prepare(&w->job, s->setup, s->position);
	if (status != LS_OK) {
		ls_metrics_sync(&w->records);
		return status;
	}
	w->seconds = ls_reporter_seconds(s->reporter);
	w->keep = s->setup->options->keep;
	w->job.content.generation = s->lock.generation;
	w->is_pending = 1;
	if (goes_on) {
		ls_snapshot_take(s->snapshot, &w->job.content);
		w->content = &s->snapshot->content;
		ls_background_do(&s->writer, write_files, w);
	} else {
		w->content = &w->job.content;
		write_files(w);
	}
	w->stall_s = ls_clock_seconds() - began;
	return LS_OK;
}

/* Once more where the directory is by now, if it was moved or removed while it was written to. */
static ls_status write_again(ls_saver *s)
{
	ls_saver_write *w = s->write;

	ls_saver_look(s);
	if (s->where == LS_RUN_THERE || s->where == LS_RUN_TAKEN || s->is_restored)
		return ls_fail(w->status, "%s", w->why);
	LS_TRY(find_directory(s));
	write_files(w);
	return w->status == LS_OK ? LS_OK : ls_fail(w->status, "%s", w->why);
}

static ls_status record(ls_saver *s)
{
	const ls_saver_write *w = s->write;
	uint64_t step = w->content->progress.step, fingerprint = w->content->fingerprint;

	if (w->is_best || (s->where == LS_RUN_REMOVED && !s->is_restored)) /* since, and it went with the others */
		return LS_OK;
	s->saved_step = step;
	LS_TRY(ls_reporter_checkpoint(s->reporter, step, fingerprint, w->seconds, w->stall_s));
	ls_hooks_checkpoint(s->hooks, step, s->setup->options->run, fingerprint);
	return LS_OK;
}

ls_status ls_saver_collect(ls_saver *s, int wait)
{
	ls_saver_write *w = s->write;

	if (!w || !w->is_pending || (!wait && ls_background_is_busy(&s->writer)))
		return LS_OK;
	ls_background_wait(&s->writer);
	w->is_pending = 0;
	ls_status status = w->status == LS_OK ? LS_OK : write_again(s);
	if (status == LS_OK)
		status = record(s);
	ls_keep_job_release(&w->job);
	return status;
}

/* The first node looks, for all. */
static ls_status check_weights(ls_saver *s)
{
	const ls_node_trainer *t = s->setup->trainer;
	const ls_ckpt_progress *p = s->position;
	int usable = 1;

	if (s->setup->probe) {
		LS_TRY(ls_evaluator_probe(s->setup->probe, t->params, t->buffers, &usable));
		usable = usable && ls_node_trainer_finite(t);
	}
	LS_TRY(ls_comm_broadcast(s->setup->layout.comm, 0, &usable, sizeof(usable), "check of the weights"));
	if (usable)
		return LS_OK;
	return ls_fail(LS_ENUMERIC, "the weights of step %llu (epoch %llu) give no finite loss: %s; " LS_DIVERGED,
		       (unsigned long long)p->step, (unsigned long long)ls_last_epoch(p) + 1, ls_saver_kept(s));
}

ls_status ls_saver_save(ls_saver *s, int goes_on)
{
	double began = ls_clock_seconds();

	s->is_overdue = 0;
	if (!s->setup->options->run)
		return LS_OK;
	LS_TRY(ls_saver_collect(s, 1));
	ls_saver_look(s);
	LS_TRY(check_weights(s));
	LS_TRY(ls_keep_gather(s->setup));
	if (!ls_setup_is_first(s->setup) || s->where == LS_RUN_TAKEN) {
		s->saved_step = s->position->step;
		return LS_OK;
	}
	goes_on = goes_on && s->snapshot;
	LS_TRY(begin_writing(s, NULL, goes_on, began));
	return goes_on ? LS_OK : ls_saver_collect(s, 1);
}

/* In a directory that was removed there will be the last checkpoint alone. */
ls_status ls_saver_keep_best(ls_saver *s, const char *metric)
{
	double began = ls_clock_seconds();

	if (!s->setup->options->run || !ls_setup_is_first(s->setup))
		return LS_OK;
	LS_TRY(ls_saver_collect(s, 1));
	ls_saver_look(s);
	if (s->where == LS_RUN_REMOVED || s->where == LS_RUN_TAKEN)
		return LS_OK;
	LS_TRY(begin_writing(s, metric, s->snapshot != NULL, began));
	return s->snapshot ? LS_OK : ls_saver_collect(s, 1);
}

ls_status ls_saver_rescue(ls_saver *s, ls_status status, int test_failed)
{
	const ls_node_trainer *t = s->setup->trainer;
	uint64_t step = s->position->step;
	char why[1024];

	if (status == LS_OK || s->setup->layout.nodes > 1 || !s->setup->options->run ||
	    !(atomic_load(&t->data_failed) || test_failed) || t->step != step)
		return status;
	snprintf(why, sizeof(why), "%s", ls_last_error());
	ls_saver_look(s);
	const char *kept = ls_saver_kept(s);
	if (s->saved_step != step &&
	    (s->where == LS_RUN_TAKEN || !ls_node_trainer_finite(t) || ls_keep_gather(s->setup) != LS_OK ||
	     begin_writing(s, NULL, 0, ls_clock_seconds()) != LS_OK || ls_saver_collect(s, 1) != LS_OK))
		return ls_fail(status, "%s; %s", why, kept);
	return ls_fail(status,
		       "%s; step %llu is saved: with the data whole again, continue with options.run %s options.resume",
		       why, (unsigned long long)step, s->setup->options->run);
}

ls_status ls_saver_report(ls_saver *s, int *is_moved)
{
	ls_run_where where = s->where;
	const char *run = s->setup->options->run;
	unsigned long long step = s->position->step;

	LS_TRY(ls_comm_broadcast(s->setup->layout.comm, 0, &where, sizeof(where), "location of the run directory"));
	*is_moved = where != LS_RUN_THERE;
	if (where == LS_RUN_THERE)
		return LS_OK;
	if (where == LS_RUN_TAKEN)
		return ls_fail(
			LS_EIO,
			"the run was started again meanwhile: stopped after step %llu; what was not saved before "
			"is left to the newer start",
			step);
	if (!ls_setup_is_first(s->setup))
		return ls_fail(LS_EIO, "the run directory was %s during the run: stopped after step %llu",
			       where == LS_RUN_MOVED ? "moved" : "removed", step);
	if (where == LS_RUN_MOVED)
		return ls_fail(LS_EIO,
			       "the run directory %s was moved to %s during the run: stopped after step %llu, which "
			       "is saved there; continue with options.run %s options.resume",
			       s->was, run, step, run);
	return ls_fail(
		LS_EIO,
		"the run directory %s was removed during the run: stopped after step %llu; the directory "
		"was created again with run.json, metrics.jsonl and a checkpoint of that step, earlier checkpoints are "
		"lost; continue with options.run %s options.resume",
		run, step, run);
}

ls_status ls_saver_end(ls_saver *s, ls_status status)
{
	char why[2048];

	snprintf(why, sizeof(why), "%s", status != LS_OK ? ls_last_error() : "");
	if (ls_saver_collect(s, 1) != LS_OK)
		ls_log_warning("%s", ls_last_error());
	ls_snapshots_end(&s->memory, status);
	ls_background_end(&s->writer);
	ls_snapshot_free(s->snapshot);
	free(s->write);
	s->snapshot = NULL;
	s->write = NULL;
	return status == LS_OK ? LS_OK : ls_fail(status, "%s", why);
}
