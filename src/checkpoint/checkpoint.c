/*
 * checkpoint.c - save: write beside, sync, rename, prune. The invariants are in checkpoint.h.
 *
 * Order of events, and what a crash after each leaves for the next start:
 *  1. remove leftovers of an earlier crash        the old checkpoints
 *  2. files into .step-N.tmp, each synced    the old checkpoints, and a leftover that step 1 of the next save removes
 *  3. the directory renamed to step-N,       the old ones and the new one (for the window while a directory of the
 *     RUN/ckpt synced                        same name is replaced, see directory.c)
 *  4. old ones renamed away and removed      the newest `keep`, and a leftover
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "base/log.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/directory.h"
#include "checkpoint/generation.h"
#include "checkpoint/state.h"
#include "checkpoint/tensors.h"

static ls_status write_entries(const ls_ckpt_tensors *entries, const char *directory, ls_ckpt_file file,
			       const ls_ckpt_content *content, ls_ckpt_sum *sum)
{
	char path[LS_CKPT_PATH];
	struct stat facts;
	LS_TRY(ls_path_join(path, sizeof(path), directory, ls_ckpt_file_name(file)));
	LS_TRY(ls_ckpt_tensors_write(entries, path, content, &sum->xxh64));
	if (stat(path, &facts))
		return ls_fail_errno(LS_EIO, "cannot find %s, just written", path);
	sum->bytes = (uint64_t)facts.st_size;
	return LS_OK;
}

static ls_status write_file(const ls_ckpt_content *content, const char *directory, ls_ckpt_file file, ls_ckpt_sum *sum)
{
	ls_ckpt_tensors entries;
	if (file == LS_CKPT_MODEL)
		LS_TRY(ls_ckpt_tensors_model(&entries, content->table, content->params, content->buffers,
					     content->progress.batches_tracked));
	else
		LS_TRY(ls_ckpt_tensors_optimizer(&entries, content));
	ls_status status = write_entries(&entries, directory, file, content, sum);
	ls_ckpt_tensors_release(&entries);
	return status;
}

static ls_status write_directory(const ls_ckpt_content *content, const char *directory)
{
	char path[LS_CKPT_PATH];
	ls_ckpt_sum sums[LS_CKPT_FILES];
	if (mkdir(directory, 0777))
		return ls_fail_errno(LS_EIO, "cannot make directory %s", directory);
	LS_TRY(write_file(content, directory, LS_CKPT_MODEL, &sums[LS_CKPT_MODEL]));
	LS_TRY(write_file(content, directory, LS_CKPT_OPTIMIZER, &sums[LS_CKPT_OPTIMIZER]));
	LS_TRY(ls_path_join(path, sizeof(path), directory, LS_CKPT_STATE_NAME));
	LS_TRY(ls_ckpt_state_write(path, content, sums));
	return ls_path_sync(directory);
}

static const char *what_is_left(const char *run)
{
	int present = 0;
	if (!ls_path_exists(run))
		return "its run directory is gone, with all earlier ones";
	if (ls_ckpt_present(run, &present) != LS_OK)
		return "earlier ones were not changed";
	return present ? "earlier ones are untouched" : "there is no earlier one";
}

/* Remove what a failed save wrote, to free a full disk; the failure's message stays the one shown. A newer start of the
 * run may have a directory of the same name. */
static ls_status give_up(ls_status status, const char *run, const char *directory, const ls_ckpt_content *content)
{
	char message[2048];
	uint64_t step = content->progress.step;
	snprintf(message, sizeof(message), "%s", ls_last_error());
	int is_ours = ls_generation_check(run, content->generation) == LS_OK;
	if (is_ours && ls_path_exists(directory) && ls_path_remove_tree(directory) != LS_OK)
		ls_log_warning("%s", ls_last_error());
	return ls_fail(status, "the checkpoint of step %" PRIu64 " was not saved (%s): %s", step, what_is_left(run),
		       message);
}

ls_status ls_ckpt_begin(const char *run)
{
	char root[LS_CKPT_PATH];
	LS_TRY(ls_path_make(run));
	LS_TRY(ls_ckpt_root(root, run));
	LS_TRY(ls_ckpt_prepare(run, root));
	if (access(root, R_OK | W_OK | X_OK))
		return ls_fail_errno(LS_EIO, "checkpoints cannot be written to %s", root);
	return LS_OK;
}

ls_status ls_ckpt_save(const char *run, ls_ckpt_content *content, int64_t keep)
{
	char root[LS_CKPT_PATH], temporary[LS_CKPT_PATH];
	uint64_t step = content->progress.step;
	LS_TRY(ls_ckpt_state_check(content));
	LS_TRY(ls_params_fingerprint(content->table, content->params, content->buffers, &content->fingerprint));
	LS_TRY(ls_ckpt_root(root, run));
	LS_TRY(ls_ckpt_item_path(temporary, root, (ls_ckpt_item){ step, LS_CKPT_TEMPORARY }));
	ls_status status = ls_generation_check(run, content->generation);
	if (status == LS_OK)
		status = ls_ckpt_prepare(run, root);
	if (status == LS_OK)
		status = write_directory(content, temporary);
	if (status == LS_OK) /* again, for writing takes its time */
		status = ls_generation_check(run, content->generation);
	if (status == LS_OK)
		status = ls_ckpt_publish(root, step);
	if (status != LS_OK)
		return give_up(status, run, temporary, content);
	ls_ckpt_prune(root, step, keep);
	return LS_OK;
}
