#include "run/run_dir.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files.h"
#include "base/isa.h"
#include "base/log.h"
#include "checkpoint/generation.h"
#include "checkpoint/tensors.h"
#include "comm/agree.h"
#include "comm/collectives.h"
#include "metrics/metrics.h"
#include "run/best.h"
#include "trained/class_names.h"
#include "trained/vocabulary.h"
#include "trained/weights.h"
#include "trainer/state_transfer.h"

#define ELASTIC_WAIT_S 20.0
#define RAW "raw" /* "raw.conv1.weight" in optimizer.safetensors: the parameters that a moving average follows */

static ls_settings_context context_of(const ls_setup *s)
{
	const ls_dataset_info *info = ls_dataset_describe(s->train_set);
	return (ls_settings_context){ .vocabulary = info->vocabulary_hash,
				      .text = info->text_hash,
				      .train = s->train_hash,
				      .test = s->test_hash,
				      .normalisation = ls_dataset_normalisation(s->train_set),
				      .columns = ls_dataset_columns(s->train_set),
				      .task = info->task,
				      .nodes = s->layout.nodes,
				      .node_devices = s->asked.devices,
				      .node_threads = s->asked.threads };
}

static ls_status make_kept(const ls_setup *s, ls_kept *k)
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

static ls_keep_stores state_of(const ls_node_trainer *t, float *params)
{
	ls_keep_stores found = { .count = t->kind->slots };

	for (int i = 0; i < found.count; i++) {
		found.names[i] = t->kind->slot_names[i];
		found.arrays[i] = t->slots[i];
	}
	if (t->average) {
		found.names[found.count] = RAW;
		found.arrays[found.count++] = params;
	}
	return found;
}

/* The trainer's stores as a checkpoint sees them. */
ls_ckpt_content ls_keep_content(ls_node_trainer *t)
{
	return (ls_ckpt_content){ .table = &t->graph->params,
				  .params = t->master,
				  .buffers = t->buffers,
				  .slots = t->kind->slots,
				  .slot_names = t->kind->slot_names,
				  .slot = t->slots,
				  .isa = ls_isa_name(ls_isa_get()),
				  .kernels = t->options.backend->kernels() };
}

/* The same of a run; `params` are those that it trains. */
static ls_ckpt_content content_of(const ls_setup *s, float *params, const ls_keep_stores *state)
{
	ls_node_trainer *t = s->trainer;
	ls_ckpt_content content = ls_keep_content(t);

	content.params = t->average ? t->average : params;
	content.slots = state->count;
	content.slot_names = state->names;
	content.slot = state->arrays;
	content.model = !s->options->graph || s->options->model_handle ? s->options->model : NULL;
	return content;
}

ls_status ls_keep_gather(const ls_setup *s)
{
	return ls_state_gather(s->trainer, s->layout.comm);
}

/* `params` are those that the run trains. */
static ls_status prepare(ls_keep_job *job, const ls_setup *s, const ls_ckpt_progress *position, float *params)
{
	ls_ckpt_content *content = &job->content;

	LS_TRY(make_kept(s, &job->kept));
	ls_status status = ls_weights_note(&job->notes, &job->kept.options, job->kept.context);
	if (status != LS_OK) {
		ls_keep_job_release(job);
		return status;
	}
	ls_weights_note_input(&job->notes, s->graph); /* a run is used where its data is not */
	job->stores = state_of(s->trainer, params);
	*content = content_of(s, params, &job->stores);
	content->metadata = job->notes.pair;
	content->metadata_count = job->notes.count;
	content->progress = *position;
	content->settings = job->kept.text;
	return LS_OK;
}

ls_status ls_keep_prepare(ls_keep_job *job, const ls_setup *s, const ls_ckpt_progress *position)
{
	return prepare(job, s, position, s->trainer->master);
}

void ls_keep_job_release(ls_keep_job *job)
{
	ls_weights_notes_release(&job->notes);
	free(job->kept.text);
	job->kept.text = NULL;
}

static ls_status load_checkpoint(const ls_setup *s, const char *checkpoint, ls_ckpt_progress *position)
{
	ls_node_trainer *t = s->trainer;
	const ls_param_table *table = &t->graph->params;
	ls_keep_stores state = state_of(t, t->params);
	ls_ckpt_content content = content_of(s, t->params, &state);
	ls_settings_stored stored;
	char *settings = NULL;

	LS_TRY(ls_ckpt_settings(checkpoint, &settings));
	ls_status status = compare_settings(s, settings, checkpoint);
	if (status == LS_OK)
		status = ls_settings_from_json(&stored, settings, checkpoint);
	free(settings);
	LS_TRY(status);
	status = ls_ckpt_load(checkpoint, &content);
	if (status == LS_OK)
		ls_best_forget(&content.progress, &stored.options, s->options);
	ls_settings_stored_release(&stored);
	LS_TRY(status);
	if (t->average) /* what no gradient reaches is the same in both */
		memcpy(t->params + table->reachable, t->average + table->reachable,
		       (table->total - table->reachable) * sizeof(float));
	*position = content.progress;
	ls_log_note("resuming %s at step %llu", checkpoint, (unsigned long long)position->step);
	return LS_OK;
}

/* A file like model.safetensors of a checkpoint, which says of what it is the best. */
ls_status ls_keep_prepare_best(ls_keep_job *job, const ls_setup *s, const ls_ckpt_progress *position,
			       const char *metric)
{
	LS_TRY(prepare(job, s, position, s->trainer->params));
	ls_weights_note_best(&job->notes, metric, position->best, position->best_step);
	job->content.metadata_count = job->notes.count;
	job->content.slots = 0;
	return LS_OK;
}

ls_status ls_keep_write_best(const char *run, const ls_ckpt_content *content)
{
	ls_ckpt_tensors tensors;
	char path[4096];

	LS_TRY(ls_path_join(path, sizeof(path), run, LS_WEIGHTS_BEST));
	LS_TRY(ls_ckpt_tensors_model(&tensors, content->table, content->params, content->buffers,
				     content->progress.batches_tracked));
	ls_status status = ls_ckpt_tensors_write(&tensors, path, content, NULL);
	ls_ckpt_tensors_release(&tensors);
	return status;
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

/* In an elastic run the start before may still be ending. */
static ls_status take_lock(const ls_train_options *o, ls_run_lock *lock)
{
	const struct timespec moment = { .tv_nsec = 50000000 };
	double end = ls_clock_seconds() + (o->elastic ? ELASTIC_WAIT_S : 0);
	ls_status status;

	while ((status = ls_run_lock_take(lock, o->run)) == LS_EIO && ls_clock_seconds() < end)
		nanosleep(&moment, NULL);
	return status;
}

/* Looked at twice: before, so that a refusal leaves no file behind, and under the lock, when nobody else can
 * change it.
 */
static ls_status claim(const ls_train_options *o, ls_run_lock *lock)
{
	if (!o->resume)
		LS_TRY(ls_path_make(o->run));
	LS_TRY(check_claim(o));
	LS_TRY(take_lock(o, lock));
	return check_claim(o);
}

static ls_status describe_as(const ls_setup *s, const char *settings)
{
	return ls_run_describe(s->options->run, settings, s->backend->kernels(), ls_isa_name(ls_isa_get()),
			       s->options->resume);
}

static ls_status describe(const ls_setup *s)
{
	ls_kept k;
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
	ls_weights_said said = { .class_weights = NULL };
	ls_status status = ls_weights_read_notes(file, &theirs, &said);

	ls_weights_said_release(&said);
	if (status != LS_OK || !said.has_vocabulary || vocabulary_of(s) == 0 || theirs.cased == s->options->cased)
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
	LS_TRY(ls_weights_find(&weights, init, 0));
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

/* The snapshot was taken by a start that the last entry of run.json is about. */
static ls_status use_memory(const ls_setup *s, ls_snapshots *memory, ls_ckpt_progress *position)
{
	const ls_train_options *o = s->options;
	ls_settings_stored stored;
	char *settings = NULL;

	LS_TRY(ls_run_settings(o->run, 1, &settings));
	ls_status status = compare_settings(s, settings, o->run);
	if (status == LS_OK)
		status = ls_settings_from_json(&stored, settings, o->run);
	free(settings);
	LS_TRY(status);
	*position = memory->found.progress;
	ls_best_forget(position, &stored.options, o);
	ls_settings_stored_release(&stored);
	memory->is_used = 1;
	ls_log_note("resuming %s at step %llu, from snapshots in memory", o->run, (unsigned long long)position->step);
	return LS_OK;
}

/* ".../step-000000200" */
static uint64_t step_of(const char *checkpoint)
{
	const char *name = strrchr(checkpoint, '/');
	unsigned long long step = 0;

	return name && sscanf(name, "/step-%llu", &step) == 1 ? step : 0;
}

/* A model in memory has lent its first weights, and snapshots were read over them. */
static ls_status fail_overwritten(const ls_train_options *o)
{
	return ls_fail(LS_EFORMAT,
		       "%s has no checkpoint, and the weights of options.model_handle, which the run began with, were "
		       "overwritten by a snapshot in memory that is damaged: make the model again, and start again "
		       "with options.resume",
		       o->run);
}

static ls_status load_newest(const ls_setup *s, ls_snapshots *memory, ls_ckpt_progress *position)
{
	char checkpoint[4096];
	ls_status found = ls_ckpt_newest(s->options->run, checkpoint, sizeof(checkpoint));
	int is_known = found == LS_OK || found == LS_ENOTFOUND;

	memory->on_disk = found == LS_OK ? step_of(checkpoint) : 0;
	if (memory->found.sequence > 0 && is_known && memory->on_disk < memory->found.progress.step)
		return use_memory(s, memory, position);
	if (found == LS_ENOTFOUND)
		return memory->has_spoiled && s->lender ? fail_overwritten(s->options) : start_again(s, position);
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
	LS_TRY(ls_generation_restore(o->run, lock->generation));
	LS_TRY(ls_ckpt_begin(o->run));
	LS_TRY(ls_vocabulary_keep(o, vocabulary_of(s)));
	LS_TRY(ls_class_names_keep(o->run, s->train_set, s->graph->values[s->graph->logits].channels));
	return describe(s);
}

static ls_status begin_run(const ls_setup *s, ls_run_lock *lock, ls_snapshots *memory, ls_ckpt_progress *position)
{
	const ls_train_options *o = s->options;

	if (o->run && !o->resume) /* a resumed one has been */
		LS_TRY(claim(o, lock));
	LS_TRY(o->resume ? load_newest(s, memory, position) : start_weights(s, o->init, position));
	if (o->resume)
		LS_TRY(ls_best_recall(position, s));
	if (!o->run)
		return LS_OK;
	LS_TRY(ls_generation_begin(o->run, &lock->generation));
	LS_TRY(ls_ckpt_begin(o->run));
	LS_TRY(ls_vocabulary_keep(o, vocabulary_of(s)));
	LS_TRY(ls_class_names_keep(o->run, s->train_set, s->graph->values[s->graph->logits].channels));
	return position->step < s->total_steps ? describe(s) : describe_complete(s);
}

/* A run that is refused before it began leaves nothing: neither the lock's file and the number of its start nor, when
 * it is new and empty, its directory. */
static ls_status begin_here(const ls_setup *s, ls_run_lock *lock, ls_snapshots *memory, ls_ckpt_progress *position)
{
	const ls_train_options *o = s->options;
	int is_new = o->run && !o->resume && !ls_path_exists(o->run);
	ls_status status = begin_run(s, lock, memory, position);

	if (status == LS_OK || !o->run || o->resume)
		return status;
	if (lock->generation == 1)
		ls_generation_withdraw(o->run);
	ls_run_lock_withdraw(lock, o->run);
	if (is_new)
		rmdir(o->run);
	return status;
}

/* A run that is continued, on all nodes: claim it, and see which snapshots they have. */
static ls_status begin_resumed(const ls_setup *s, ls_run_lock *lock, ls_snapshots *memory)
{
	ls_status status = ls_setup_is_first(s) ? claim(s->options, lock) : LS_OK;

	LS_TRY(ls_comm_agree(s->layout.comm, status));
	return ls_snapshots_find(memory);
}

/* Whatever a snapshot has left in the stores of the first node. */
static void clear_state(const ls_setup *s)
{
	const ls_node_trainer *t = s->trainer;

	for (int i = 0; i < t->kind->slots; i++)
		memset(t->slots[i], 0, t->graph->params.reachable * sizeof(float));
}

/* Snapshots that were whole when they were found cannot be read any more: by all nodes, what is on disk. */
static ls_status begin_from_disk(const ls_setup *s, ls_snapshots *memory, ls_ckpt_progress *position)
{
	ls_comm *comm = s->layout.comm;
	ls_status status = LS_OK;

	memory->is_used = 0;
	memory->has_spoiled = 1;
	memory->found = (ls_memory_facts){ 0 };
	*position = (ls_ckpt_progress){ 0 };
	if (ls_setup_is_first(s)) {
		ls_log_warning("the snapshots in memory cannot be used: %s; going on from the disk", ls_last_error());
		clear_state(s);
		status = load_newest(s, memory, position);
		if (status == LS_OK)
			status = ls_best_recall(position, s);
	}
	LS_TRY(ls_comm_agree(comm, status));
	return ls_comm_broadcast(comm, 0, position, sizeof(*position), "position");
}

static ls_status load_memory(const ls_setup *s, ls_snapshots *memory, ls_ckpt_progress *position)
{
	ls_status status = ls_snapshots_load(memory);

	return status == LS_EFORMAT ? begin_from_disk(s, memory, position) : status;
}

ls_status ls_keep_begin(const ls_setup *s, ls_run_lock *lock, ls_snapshots *memory, ls_ckpt_progress *position)
{
	ls_comm *comm = s->layout.comm;
	int first = ls_setup_is_first(s), spread = s->options->resume || s->options->init || s->lender;

	*position = (ls_ckpt_progress){ 0 };
	if (s->options->resume && s->options->run)
		LS_TRY(begin_resumed(s, lock, memory));
	LS_TRY(ls_comm_agree(comm, first ? begin_here(s, lock, memory, position) : first_weights(s)));
	LS_TRY(ls_comm_broadcast(comm, 0, &spread, sizeof(spread), "start"));
	LS_TRY(ls_comm_broadcast(comm, 0, position, sizeof(*position), "position"));
	LS_TRY(ls_comm_broadcast(comm, 0, &lock->generation, sizeof(lock->generation), "number of the start"));
	LS_TRY(ls_comm_broadcast(comm, 0, &memory->is_used, sizeof(memory->is_used), "use of snapshots"));
	LS_TRY(ls_comm_broadcast(comm, 0, &memory->on_disk, sizeof(memory->on_disk), "newest checkpoint"));
	if (memory->is_used)
		LS_TRY(load_memory(s, memory, position));
	return spread ? ls_state_scatter(s->trainer, comm, position->step > 0) : LS_OK;
}
