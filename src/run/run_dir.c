#include "run/run_dir.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/files.h"
#include "base/isa.h"
#include "base/log.h"
#include "comm/collectives.h"
#include "metrics/metrics.h"
#include "run/class_names.h"
#include "run/handshake.h"
#include "run/vocabulary.h"
#include "run/weights.h"
#include "trainer/state_transfer.h"

static ls_settings_context context_of(const ls_setup *s)
{
	const ls_dataset_info *info = ls_dataset_describe(s->train_set);
	return (ls_settings_context){ .vocabulary = info->vocabulary_hash,
				      .text = info->text_hash,
				      .train = s->train_hash,
				      .test = s->test_hash,
				      .normalisation = ls_dataset_normalisation(s->train_set),
				      .nodes = s->layout.nodes,
				      .node_devices = s->asked.devices,
				      .node_threads = s->asked.threads };
}

/* The settings as they are kept. */
typedef struct kept {
	ls_train_options options;
	ls_settings_paths paths; /* of the options */
	ls_settings_context context;
	char *text; /* free() */
} kept;

static ls_status make_kept(const ls_setup *s, kept *k)
{
	k->options = *s->options;
	LS_TRY(ls_settings_absolute(&k->options, &k->paths));
	k->context = context_of(s);
	return ls_settings_to_json(&k->options, k->context, &k->text);
}

static ls_status compare_settings(const ls_setup *s, const char *stored, const char *where)
{
	return ls_settings_compare(s->options, &s->stored.options, context_of(s), stored, where);
}

static uint64_t vocabulary_of(const ls_setup *s)
{
	return ls_dataset_describe(s->train_set)->vocabulary_hash;
}

/* The trainer's stores as a checkpoint sees them. */
static ls_ckpt_content content_of(const ls_setup *s)
{
	ls_node_trainer *t = s->trainer;
	return (ls_ckpt_content){ .table = &t->graph->params,
				  .params = t->master,
				  .buffers = t->buffers,
				  .slots = t->kind->slots,
				  .slot_names = t->kind->slot_names,
				  .slot = t->slots,
				  .model = !s->options->graph || s->options->model_handle ? s->options->model : NULL,
				  .isa = ls_isa_name(ls_isa_get()),
				  .kernels = s->backend->kernels() };
}

ls_status ls_keep_gather(const ls_setup *s)
{
	return ls_state_gather(s->trainer, s->layout.comm);
}

ls_status ls_keep_save(const ls_setup *s, const ls_ckpt_progress *position, uint64_t *fingerprint)
{
	ls_ckpt_content content = content_of(s);
	ls_weights_notes notes;
	kept k;

	LS_TRY(make_kept(s, &k));
	ls_status status = ls_weights_note(&notes, &k.options, k.context);
	if (status == LS_OK)
		ls_weights_note_input(&notes, s->graph); /* a run is used where its data is not */
	content.metadata = notes.pair;
	content.metadata_count = notes.count;
	content.progress = *position;
	content.settings = k.text;
	if (status == LS_OK)
		status = ls_ckpt_save(s->options->run, &content, s->options->keep);
	ls_weights_notes_release(&notes);
	free(k.text);
	if (status == LS_OK)
		*fingerprint = content.fingerprint;
	return status;
}

static ls_status load_checkpoint(const ls_setup *s, const char *checkpoint, ls_ckpt_progress *position)
{
	ls_ckpt_content content = content_of(s);
	char *settings = NULL;

	LS_TRY(ls_ckpt_settings(checkpoint, &settings));
	ls_status status = compare_settings(s, settings, checkpoint);
	free(settings);
	LS_TRY(status);
	content.params = s->trainer->params;
	LS_TRY(ls_ckpt_load(checkpoint, &content));
	*position = content.progress;
	ls_log_note("resuming %s at step %llu", checkpoint, (unsigned long long)position->step);
	return LS_OK;
}

/* A fresh run must not write over another one, of which run.json or a checkpoint may be all that is left. That a
 * resumed one has a run to continue is known since its settings were read (remembered.c). */
static ls_status check_claim(const ls_train_options *o)
{
	char path[4096];
	int checkpoints = 0;

	if (o->resume)
		return LS_OK;
	LS_TRY(ls_path_join(path, sizeof(path), o->run, "run.json"));
	LS_TRY(ls_ckpt_present(o->run, &checkpoints));
	if (checkpoints || ls_path_exists(path))
		return ls_fail(LS_EINVALID,
			       "%s already holds a run; continue it with options.resume, or choose another directory",
			       o->run);
	return LS_OK;
}

/* Looked at twice: before, so that a refusal leaves no file behind, and under the lock, when nobody else can
 * change it.
 */
static ls_status claim(const ls_train_options *o, ls_run_lock *lock)
{
	if (!o->resume)
		LS_TRY(ls_path_make(o->run));
	LS_TRY(check_claim(o));
	LS_TRY(ls_run_lock_take(lock, o->run));
	return check_claim(o);
}

static ls_status describe_as(const ls_setup *s, const char *settings)
{
	return ls_run_describe(s->options->run, settings, s->backend->kernels(), ls_isa_name(ls_isa_get()),
			       s->options->resume);
}

static ls_status describe(const ls_setup *s)
{
	kept k;
	LS_TRY(make_kept(s, &k));
	ls_status status = describe_as(s, k.text);
	free(k.text);
	return status;
}

/* A resume of a complete run trains nothing, so the run keeps the settings it was trained with. A run.json that is lost
 * is made again from the checkpoint's. */
static ls_status describe_complete(const ls_setup *s)
{
	char checkpoint[4096], *settings = NULL;
	ls_status status = ls_run_settings(s->options->run, 1, &settings);

	if (status == LS_ENOTFOUND || status == LS_EFORMAT) {
		LS_TRY(ls_ckpt_newest(s->options->run, checkpoint, sizeof(checkpoint)));
		LS_TRY(ls_ckpt_settings(checkpoint, &settings));
		status = describe_as(s, settings);
	}
	free(settings);
	return status;
}

/* The same vocabulary cuts other tokens when capitals are kept that the weights have never seen, and the reverse. A
 * file without the field is not checked. */
static void warn_of_case(const ls_setup *s, const char *file)
{
	ls_train_options theirs = LS_TRAIN_OPTIONS_INIT;
	ls_weights_said said;

	if (ls_weights_read_notes(file, &theirs, &said) != LS_OK || !said.has_vocabulary || vocabulary_of(s) == 0 ||
	    theirs.cased == s->options->cased)
		return;
	ls_log_warning("%s was trained on text %s, and this run reads it %s: %s", file,
		       theirs.cased ? "with capitals (options.cased)" : "in lower case",
		       theirs.cased ? "in lower case" : "with capitals (options.cased)",
		       theirs.cased ? "add options.cased" : "leave options.cased out");
}

/* A model in memory has its own, in the stores that it lends. */
static ls_status first_weights(const ls_setup *s)
{
	return s->lender ? LS_OK : ls_node_trainer_init(s->trainer);
}

static ls_status start_weights(const ls_setup *s, const char *init, ls_ckpt_progress *position)
{
	ls_node_trainer *t = s->trainer;
	ls_ckpt_import how = { .fresh_heads = 1,
			       .head = ls_graph_head(t->graph),
			       .seed = s->options->seed,
			       .vocabulary = vocabulary_of(s) };
	ls_weights weights;
	char vocab[4096];

	LS_TRY(first_weights(s));
	if (!init)
		return LS_OK;
	LS_TRY(ls_weights_find(&weights, init));
	ls_vocabulary_find(vocab, sizeof(vocab), weights.run);
	how.trained = vocab[0] != '\0' ? vocab : NULL;
	warn_of_case(s, weights.file);
	return ls_ckpt_load_weights(weights.file, &t->graph->params, &how, t->params, t->buffers,
				    &position->batches_tracked);
}

/* A run that ended before its first checkpoint starts again as run.json says it did. */
static ls_status start_again(const ls_setup *s, ls_ckpt_progress *position)
{
	const ls_train_options *o = s->options;
	char *settings = NULL, *init = NULL;
	ls_status status = ls_run_settings(o->run, 0, &settings);

	if (status == LS_EFORMAT)
		return ls_fail(status, "%s, and there is no checkpoint: remove %s and start a new run", ls_last_error(),
			       o->run);
	LS_TRY(status);
	status = compare_settings(s, settings, o->run);
	if (status == LS_OK)
		status = ls_settings_get_init(settings, &init);
	free(settings);
	if (status == LS_OK) {
		ls_log_note("%s has no checkpoint yet: starting from the beginning", o->run);
		status = start_weights(s, init, position);
	}
	free(init);
	return status;
}

static ls_status load_newest(const ls_setup *s, ls_ckpt_progress *position)
{
	char checkpoint[4096];
	ls_status found = ls_ckpt_newest(s->options->run, checkpoint, sizeof(checkpoint));

	if (found == LS_ENOTFOUND)
		return start_again(s, position);
	return found == LS_OK ? load_checkpoint(s, checkpoint, position) : found;
}

ls_status ls_keep_restore(const ls_setup *s, ls_run_lock *lock)
{
	const ls_train_options *o = s->options;

	if (ls_path_exists(o->run))
		return ls_fail(LS_EIO,
			       "the run directory %s was removed during the run, and something else has its name "
			       "now: this run's steps are not saved",
			       o->run);
	ls_run_lock_drop(lock);
	LS_TRY(ls_path_make(o->run));
	LS_TRY(ls_run_lock_take(lock, o->run));
	LS_TRY(ls_ckpt_begin(o->run));
	LS_TRY(ls_vocabulary_keep(o, vocabulary_of(s)));
	LS_TRY(ls_class_names_keep(o->run, s->train_set, s->graph->values[s->graph->logits].channels));
	return describe(s);
}

static ls_status begin_run(const ls_setup *s, ls_run_lock *lock, ls_ckpt_progress *position)
{
	const ls_train_options *o = s->options;

	if (o->run)
		LS_TRY(claim(o, lock));
	LS_TRY(o->resume ? load_newest(s, position) : start_weights(s, o->init, position));
	if (!o->run)
		return LS_OK;
	LS_TRY(ls_ckpt_begin(o->run));
	LS_TRY(ls_vocabulary_keep(o, vocabulary_of(s)));
	LS_TRY(ls_class_names_keep(o->run, s->train_set, s->graph->values[s->graph->logits].channels));
	return position->step < s->total_steps ? describe(s) : describe_complete(s);
}

/* A run that is refused before it began leaves nothing: neither the lock's file nor, when it is new and empty,
 * its directory. */
static ls_status begin_here(const ls_setup *s, ls_run_lock *lock, ls_ckpt_progress *position)
{
	const ls_train_options *o = s->options;
	int is_new = o->run && !o->resume && !ls_path_exists(o->run);
	ls_status status = begin_run(s, lock, position);

	if (status == LS_OK || !o->run || o->resume)
		return status;
	ls_run_lock_withdraw(lock, o->run);
	if (is_new)
		rmdir(o->run);
	return status;
}

ls_status ls_keep_begin(const ls_setup *s, ls_run_lock *lock, ls_ckpt_progress *position)
{
	ls_comm *comm = s->layout.comm;
	int first = ls_setup_is_first(s), spread = s->options->resume || s->options->init || s->lender;

	*position = (ls_ckpt_progress){ 0 };
	LS_TRY(ls_handshake_status(comm, first ? begin_here(s, lock, position) : first_weights(s)));
	LS_TRY(ls_comm_broadcast(comm, 0, &spread, sizeof(spread), "start"));
	LS_TRY(ls_comm_broadcast(comm, 0, position, sizeof(*position), "position"));
	return spread ? ls_state_scatter(s->trainer, comm, position->step > 0) : LS_OK;
}
