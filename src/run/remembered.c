#include "run/remembered.h"

#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/log.h"
#include "base/options.h"
#include "base/status.h"
#include "checkpoint/checkpoint.h"
#include "comm/agree.h"
#include "comm/collectives.h"
#include "metrics/metrics.h"
#include "settings/settings.h"
#include "trained/vocabulary.h"

/* People name a file of the run, or a checkpoint: the run is above it. */
static ls_status no_run(const char *run)
{
	char above[4096];

	if (ls_path_find_above(above, sizeof(above), run, "run.json"))
		return ls_fail(LS_ENOTFOUND,
			       "options.resume needs the directory of the run, not a file or directory in it: use "
			       "options.run %s",
			       above);
	if (ls_path_exists(run) && !ls_path_is_directory(run))
		return ls_fail(LS_ENOTFOUND, "options.resume: %s is a file; give the directory of a run", run);
	return ls_fail(LS_ENOTFOUND, "options.resume: %s holds no run (no run.json there, and no checkpoint)", run);
}

/* run.json knows of resumes that did not get to a checkpoint; where it is lost, the newest checkpoint has settings. */
static ls_status read_run(const char *run, char **out)
{
	char checkpoint[4096], why[1024];

	if (!run)
		return ls_fail(LS_EINVALID, "options.resume needs options.run, the directory of the run to continue");
	if (ls_path_exists(run) && !ls_path_is_directory(run))
		return no_run(run);
	ls_status status = ls_run_settings(run, 1, out);
	if (status != LS_ENOTFOUND && status != LS_EFORMAT)
		return status;
	snprintf(why, sizeof(why), "%s", ls_last_error());
	ls_status found = ls_ckpt_newest(run, checkpoint, sizeof(checkpoint));
	if (found == LS_OK)
		return ls_ckpt_settings(checkpoint, out);
	if (found != LS_ENOTFOUND)
		return found;
	if (status == LS_EFORMAT)
		return ls_fail(status, "%s, and there is no checkpoint: remove %s and start a new run", why, run);
	return no_run(run);
}

ls_status ls_train_recall(ls_train_stored *out, const char *run)
{
	const size_t first = LS_OPTIONS_UP_TO(&out->options, given);
	ls_train_stored stored = LS_TRAIN_STORED_INIT;
	char *text = NULL;
	size_t size = 0;

	LS_TRY(ls_options_size(&out->options, sizeof(out->options), first, "LS_TRAIN_STORED_INIT", &size));
	LS_TRY(read_run(run, &text));
	ls_status status = ls_settings_from_json(&stored, text, run);
	free(text);
	LS_TRY(status);
	out->owner = stored.owner;
	memcpy(&out->options, &stored.options, size < sizeof(stored.options) ? size : sizeof(stored.options));
	out->options.size = size;
	return LS_OK;
}

void ls_train_stored_release(ls_train_stored *stored)
{
	ls_settings_stored own = { .owner = stored->owner }; /* a program's struct may be shorter */
	ls_settings_stored_release(&own);
	stored->owner = NULL;
}

static int is_meant(const ls_train_options *o, const ls_setting *row)
{
	static const ls_train_options defaults = LS_TRAIN_OPTIONS_INIT;
	char value[4096], usual[4096];

	ls_setting_format(row, o, value, sizeof(value));
	ls_setting_format(row, &defaults, usual, sizeof(usual));
	return ls_train_setting_is_given(o, row) || strcmp(value, usual) != 0;
}

/* Of a program's own graph and data a run keeps no name. */
static int is_known(const ls_train_options *stored, const ls_setting *row)
{
	return row->kind != LS_SETTING_STRING || *(const char *const *)((const char *)stored + row->offset);
}

/* A run of an earlier version, whose bf16 is called bf16-layers now: the line that began it also continues it, however
 * often. */
static int means_layers(const ls_train_options *o, const ls_train_options *stored)
{
	return strcmp(o->precision, "bf16") == 0 && stored->precision && strcmp(stored->precision, "bf16-layers") == 0;
}

static int is_taken(const ls_train_options *o, const ls_train_options *stored, int as_many, const ls_setting *row)
{
	char own[4096];

	if (strcmp(row->name, "precision") == 0 && (strcmp(o->precision, "auto") == 0 || means_layers(o, stored)))
		return 1;
	if ((row->marks & LS_SETTING_ONCE) || is_meant(o, row) || !is_known(stored, row))
		return 0;
	if (strcmp(row->group, LS_SETTINGS_NODES) == 0)
		return as_many;
	if (strcmp(row->name, "batch") == 0 || strcmp(row->name, "micro-batch") == 0)
		return !is_meant(o, ls_train_setting_of("batch-per-device"));
	if (strcmp(row->name, "steps") == 0)
		return !is_meant(o, ls_train_setting_of("epochs"));
	if (strcmp(row->name, "vocab") != 0 || !o->run)
		return 1;
	ls_vocabulary_find(own, sizeof(own), o->run); /* wins: where the file was, another may be by now */
	return own[0] == '\0';
}

static void take(ls_train_options *o, const ls_train_options *stored, const ls_setting *row)
{
	memcpy((char *)o + row->offset, (const char *)stored + row->offset, ls_setting_bytes(row));
}

static void take_all(ls_train_options *out, const ls_train_options *o, const ls_train_stored *stored, int nodes)
{
	int as_many = ls_settings_get_nodes(stored->owner) == nodes;
	const ls_setting *row;
	for (size_t i = 0; (row = ls_train_setting_at(i)); i++)
		if (is_taken(o, &stored->options, as_many, row))
			take(out, &stored->options, row);
}

/* The first node's text, on all. */
static ls_status share_text(char **text, ls_comm *comm, int is_first)
{
	int64_t bytes = is_first ? (int64_t)strlen(*text) + 1 : 0;

	LS_TRY(ls_comm_broadcast(comm, 0, &bytes, sizeof(bytes), "length of the run's settings"));
	if (!is_first)
		*text = malloc((size_t)bytes);
	LS_TRY(ls_comm_agree(comm, *text ? LS_OK : ls_fail(LS_EMEMORY, "no memory for the run's settings")));
	return ls_comm_broadcast(comm, 0, *text, (size_t)bytes, "the run's settings");
}

/* Nodes that do not all resume would wait for different things. All of them find the same. */
static ls_status check_agreement(const ls_train_options *o, ls_comm *comm, int nodes)
{
	int32_t mine = o->resume, *all = calloc((size_t)nodes, sizeof(*all));

	if (!all)
		return ls_fail(LS_EMEMORY, "no memory to compare options.resume of %d nodes", nodes);
	ls_status status = ls_comm_allgather(comm, &mine, sizeof(mine), all, "check of the resume setting");
	for (int i = 1; status == LS_OK && i < nodes; i++)
		if (!all[i] != !all[0])
			status =
				ls_fail(LS_EMISMATCH, "options.resume is given on node %d (%s) and not on node %d (%s)",
					all[0] ? 0 : i, ls_comm_host(comm, all[0] ? 0 : i), all[0] ? i : 0,
					ls_comm_host(comm, all[0] ? i : 0));
	free(all);
	return status;
}

ls_status ls_recall(ls_train_options *out, ls_train_stored *stored, const ls_train_options *o, ls_comm *comm)
{
	int nodes = comm ? ls_comm_size(comm) : 1;
	int is_first = !comm || ls_comm_rank(comm) == 0;
	char *text = NULL;

	*out = *o;
	if (comm)
		LS_TRY(check_agreement(o, comm, nodes));
	if (!o->resume)
		return LS_OK;
	LS_TRY(ls_comm_agree(comm, is_first ? read_run(o->run, &text) : LS_OK));
	ls_status status = share_text(&text, comm, is_first);
	if (status == LS_OK)
		status = ls_settings_from_json(stored, text, "the run");
	free(text);
	LS_TRY(status);
	if (is_first && means_layers(o, &stored->options))
		ls_log_note("the run goes on in bf16-layers, which is what options.precision bf16 was when it began");
	take_all(out, o, stored, nodes);
	return LS_OK;
}
