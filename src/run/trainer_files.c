/*
 * trainer_files.c - lockstep/trainer.h: the state of a trainer as a checkpoint, and back.
 */
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/handles.h"
#include "checkpoint/checkpoint.h"
#include "run/run_dir.h"
#include "run/trainer_handle.h"
#include "settings/model.h"
#include "settings/settings.h"
#include "trained/weights.h"
#include "trainer/hold.h"

/* What the model is and was made for, with how it is trained. */
static ls_train_options kept_of(const ls_trainer *t)
{
	const ls_train_options *m = &t->model->trained.settings;
	ls_train_options s = t->settings;

	if (!m->model)
		return s;
	ls_train_copy_model(&s, m);
	s.data = m->data;
	s.data_dir = m->data_dir;
	s.samples = m->samples;
	s.test_samples = m->test_samples;
	s.vocab = m->vocab;
	s.cased = m->cased;
	s.seq_len = m->seq_len;
	s.phrases = m->phrases;
	s.replace_invalid = m->replace_invalid;
	s.conv = m->conv;
	return s;
}

static ls_ckpt_content content_of(const ls_trainer *t)
{
	ls_ckpt_content content = ls_keep_content(t->node);

	content.model = t->model->trained.settings.model;
	content.progress = (ls_ckpt_progress){ .step = ls_node_trainer_updates(t->node),
					       .epoch = t->epoch,
					       .epoch_step = t->epoch_step,
					       .batches_tracked = t->node->batches_tracked };
	return content;
}

static ls_status save(const ls_trainer *t, const char *directory, int64_t keep)
{
	ls_train_options kept = kept_of(t);
	const ls_normalisation *n = &t->model->trained.normalisation;
	const ls_settings_context context = { .vocabulary = t->model->vocabulary,
					      .normalisation = n->channels > 0 ? n : NULL,
					      .columns = t->model->trained.columns,
					      .task = t->model->trained.task,
					      .nodes = 1 };
	ls_ckpt_content content = content_of(t);
	ls_weights_notes notes = { 0 };
	char *settings = NULL;
	ls_status status = ls_settings_to_json(&kept, context, &settings);

	if (status == LS_OK)
		status = ls_weights_note(&notes, &kept, context);
	if (status == LS_OK)
		ls_weights_note_input(&notes, t->node->graph);
	content.metadata = notes.pair;
	content.metadata_count = notes.count;
	content.settings = settings;
	if (status == LS_OK)
		status = ls_ckpt_save(directory, &content, keep > 0 ? keep : INT64_MAX);
	ls_weights_notes_release(&notes);
	free(settings);
	return status;
}

ls_status ls_trainer_save(const ls_trainer *t, const char *directory, int64_t keep)
{
	LS_TRY(ls_handle_check(t, LS_TRAINER_KIND));
	LS_TRY(ls_trainer_check_between_steps(t));
	if (!directory || keep < 0)
		return ls_fail(LS_EINVALID, "%s", directory ? "`keep` is negative" : "the directory is NULL");
	if (t->node->held_samples > 0)
		return ls_fail(LS_EINVALID,
			       "a gradient is waiting: call ls_trainer_update() or ls_trainer_zero_gradient() "
			       "first");
	if (!ls_node_trainer_finite(t->node))
		return ls_fail(LS_ENUMERIC, "the weights of step %llu are not finite numbers: nothing is saved",
			       (unsigned long long)ls_node_trainer_updates(t->node));
	LS_TRY(ls_path_make(directory));
	LS_TRY(ls_ckpt_begin(directory));
	return save(t, directory, keep);
}

/* What it was saved with. */
static ls_status read_settings(const char *checkpoint, ls_settings_stored *out)
{
	char *text = NULL;

	LS_TRY(ls_ckpt_settings(checkpoint, &text));
	ls_status status = ls_settings_from_json(out, text, checkpoint);
	free(text);
	return status;
}

/* The schedule that it was saved with; a rate that was set is one, too. */
static ls_status take_schedule(ls_trainer *t, const ls_train_options *s)
{
	ls_schedule_options schedule = ls_setup_schedule(s);

	LS_TRY(ls_schedule_check(&schedule));
	schedule.name = ls_schedule_find(schedule.name)->name; /* that of `s` does not live as long */
	t->node->options.schedule = schedule;
	t->settings.schedule = schedule.name;
	t->settings.lr = schedule.lr;
	t->settings.lr_min = s->lr_min;
	t->settings.warmup = s->warmup;
	t->settings.steps = s->steps;
	t->settings.lr_step_every = s->lr_step_every;
	t->settings.lr_step_factor = s->lr_step_factor;
	return LS_OK;
}

/* Others would change the bits of the steps to come. */
static ls_status check_precision(const ls_trainer *t, const ls_train_options *stored, const char *checkpoint)
{
	if (strcmp(stored->precision, t->settings.precision) == 0)
		return LS_OK;
	return ls_fail(LS_EMISMATCH,
		       "%s was trained with precision %s, and this trainer has %s; make one with options.precision %s",
		       checkpoint, stored->precision, t->settings.precision, stored->precision);
}

/* Precision and schedule first: they fail before anything is changed. Weights that were read in part are of no use. */
static ls_status load(ls_trainer *t, const char *checkpoint, ls_ckpt_content *content)
{
	ls_settings_stored stored = { 0 };
	ls_status status = read_settings(checkpoint, &stored);

	if (status == LS_OK)
		status = check_precision(t, &stored.options, checkpoint);
	if (status == LS_OK)
		status = take_schedule(t, &stored.options);
	ls_settings_stored_release(&stored);
	LS_TRY(status);
	return ls_trainer_break_off(t, ls_ckpt_load(checkpoint, content));
}

ls_status ls_trainer_load(ls_trainer *t, const char *directory)
{
	char checkpoint[4096];

	LS_TRY(ls_trainer_check(t));
	if (!directory)
		return ls_fail(LS_EINVALID, "the directory is NULL");
	LS_TRY(ls_ckpt_newest(directory, checkpoint, sizeof(checkpoint)));
	ls_ckpt_content content = content_of(t);
	LS_TRY(load(t, checkpoint, &content));
	ls_node_trainer_zero_gradient(t->node);
	t->backward_samples = 0;
	t->was_set = 0;
	t->node->steps_held = (int64_t)t->node->step - (int64_t)content.progress.step;
	t->node->batches_tracked = content.progress.batches_tracked;
	t->epoch = content.progress.epoch;
	t->epoch_step = content.progress.epoch_step;
	return LS_OK;
}
