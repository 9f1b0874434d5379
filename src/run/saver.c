#include "run/saver.h"

#include <stdatomic.h>
#include <stdio.h>

#include "base/log.h"
#include "comm/collectives.h"
#include "run/run_dir.h"

#define NOTHING_SAVED UINT64_MAX /* any more: the directory was removed */

ls_status ls_saver_begin(ls_saver *s)
{
	LS_TRY(ls_keep_begin(s->setup, &s->lock, s->position));
	s->saved_step = s->position->step;
	return LS_OK;
}

void ls_saver_look(ls_saver *s)
{
	const char *run = s->setup->options->run;

	if (!run || !ls_setup_is_first(s->setup) || s->where != LS_RUN_THERE)
		return;
	s->where = ls_run_lock_where(&s->lock, run, s->place, sizeof(s->place));
	if (s->where == LS_RUN_THERE)
		return;
	ls_log_warning("the run directory %s was %s%s during the run: stopping", run,
		       s->where == LS_RUN_MOVED ? "moved to " : "removed", s->place);
	s->was = run;
	if (s->where == LS_RUN_MOVED)
		s->setup->resolved.run = s->place;
	else
		s->saved_step = NOTHING_SAVED;
}

const char *ls_saver_kept(const ls_saver *s)
{
	if (!s->setup->options->run)
		return "there is no run directory, so nothing is saved";
	if (s->where == LS_RUN_REMOVED && s->saved_step == NOTHING_SAVED)
		return "the run directory was removed, and nothing is saved";
	return s->saved_step == 0 ? "no checkpoint had been written yet" : "the last checkpoint is kept";
}

/* On the first node, which has the state of all nodes by now. A directory that was removed is made anew. */
static ls_status write_checkpoint(ls_saver *s)
{
	uint64_t fingerprint = 0;

	if (s->where == LS_RUN_REMOVED && !s->is_restored) {
		LS_TRY(ls_keep_restore(s->setup, &s->lock));
		LS_TRY(ls_metrics_restore(s->reporter->metrics, s->setup->options->run, s->position->step));
		s->is_restored = 1;
	}
	LS_TRY(ls_metrics_flush(s->reporter->metrics)); /* what led to a checkpoint outlasts a power cut as it does */
	LS_TRY(ls_keep_save(s->setup, s->position, &fingerprint));
	LS_TRY(ls_reporter_checkpoint(s->reporter, s->position->step, fingerprint));
	ls_hooks_checkpoint(s->hooks, s->position->step, s->setup->options->run, fingerprint);
	return LS_OK;
}

/* Once more where the directory is by now, if it was moved or removed while it was written to. */
static ls_status write_checkpoint_somewhere(ls_saver *s)
{
	ls_run_where where = s->where;
	ls_status status = write_checkpoint(s);

	if (status == LS_OK || where != LS_RUN_THERE)
		return status;
	ls_saver_look(s);
	return s->where == LS_RUN_THERE ? status : write_checkpoint(s);
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

ls_status ls_saver_save(ls_saver *s)
{
	if (!s->setup->options->run)
		return LS_OK;
	ls_saver_look(s);
	LS_TRY(check_weights(s));
	LS_TRY(ls_keep_gather(s->setup));
	if (ls_setup_is_first(s->setup))
		LS_TRY(write_checkpoint_somewhere(s));
	s->saved_step = s->position->step;
	return LS_OK;
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
	if (s->saved_step != step) {
		if (!ls_node_trainer_finite(t) || write_checkpoint_somewhere(s) != LS_OK)
			return ls_fail(status, "%s; %s", why, ls_saver_kept(s));
		s->saved_step = step;
	}
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
