#include "checkpoint/directory.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/files.h"
#include "base/log.h"

static const char *const prefixes[] = {
	[LS_CKPT_WHOLE] = "step-", [LS_CKPT_TEMPORARY] = ".step-", [LS_CKPT_OLD] = ".step-"
};
static const char *const suffixes[] = { [LS_CKPT_WHOLE] = "", [LS_CKPT_TEMPORARY] = ".tmp", [LS_CKPT_OLD] = ".old" };

ls_status ls_ckpt_root(char *out, const char *run)
{
	return ls_path_join(out, LS_CKPT_PATH, run, "ckpt");
}

static void item_name(char *out, size_t size, ls_ckpt_item item)
{
	snprintf(out, size, "%s%09" PRIu64 "%s", prefixes[item.kind], item.step, suffixes[item.kind]);
}

ls_status ls_ckpt_item_path(char *out, const char *root, ls_ckpt_item item)
{
	char name[64];
	item_name(name, sizeof(name), item);
	return ls_path_join(out, LS_CKPT_PATH, root, name);
}

/* A name is ours when writing what we read in it gives the name back. */
static int parse_name(const char *name, ls_ckpt_item *out)
{
	for (int kind = LS_CKPT_WHOLE; kind <= LS_CKPT_OLD; kind++) {
		size_t prefix = strlen(prefixes[kind]);
		char again[64];
		if (strncmp(name, prefixes[kind], prefix) != 0 || !isdigit((unsigned char)name[prefix]))
			continue;
		errno = 0;
		ls_ckpt_item item = { .step = strtoull(name + prefix, NULL, 10), .kind = (ls_ckpt_kind)kind };
		item_name(again, sizeof(again), item);
		if (errno == 0 && strcmp(name, again) == 0) {
			*out = item;
			return 1;
		}
	}
	return 0;
}

static int compare_newest_first(const void *left, const void *right)
{
	const ls_ckpt_item *a = left, *b = right;
	if (a->step != b->step)
		return a->step > b->step ? -1 : 1;
	return (int)a->kind - (int)b->kind;
}

static ls_status read_entries(ls_ckpt_list *list, DIR *directory, const char *root)
{
	size_t capacity = 0;
	for (;;) {
		errno = 0;
		const struct dirent *entry = readdir(directory);
		ls_ckpt_item item;
		if (!entry)
			return errno ? ls_fail_errno(LS_EIO, "cannot list %s", root) : LS_OK;
		if (!parse_name(entry->d_name, &item))
			continue;
		LS_TRY(ls_array_grow(&list->items, &capacity, list->count + 1, sizeof(*list->items)));
		list->items[list->count++] = item;
	}
}

ls_status ls_ckpt_list_read(ls_ckpt_list *out, const char *root)
{
	ls_ckpt_list list = { 0 };
	DIR *directory = opendir(root);
	if (!directory && errno != ENOENT)
		return ls_fail_errno(LS_EIO, "cannot list the checkpoints in %s", root);
	if (directory) {
		ls_status status = read_entries(&list, directory, root);
		closedir(directory);
		if (status != LS_OK) {
			free(list.items);
			return status;
		}
	}
	if (list.count)
		qsort(list.items, list.count, sizeof(*list.items), compare_newest_first);
	*out = list;
	return LS_OK;
}

static ls_status rename_item(const char *root, ls_ckpt_item from, ls_ckpt_item to)
{
	char source[LS_CKPT_PATH], target[LS_CKPT_PATH];
	LS_TRY(ls_ckpt_item_path(source, root, from));
	LS_TRY(ls_ckpt_item_path(target, root, to));
	if (rename(source, target))
		return ls_fail_errno(LS_EIO, "cannot rename %s to %s", source, target);
	return LS_OK;
}

static ls_status remove_item(const char *root, ls_ckpt_item item)
{
	char path[LS_CKPT_PATH];
	LS_TRY(ls_ckpt_item_path(path, root, item));
	return ls_path_remove_tree(path);
}

static int item_exists(const char *root, ls_ckpt_item item)
{
	char path[LS_CKPT_PATH];
	return ls_ckpt_item_path(path, root, item) == LS_OK && ls_path_exists(path);
}

/* One leftover of a crash. Rubbish that cannot be removed (a network file system may hold on to a file that somebody
 * still reads) must not stop the run from saving. */
static ls_status tidy(const char *root, ls_ckpt_item item)
{
	ls_ckpt_item whole = { .step = item.step, .kind = LS_CKPT_WHOLE };
	if (item.kind == LS_CKPT_OLD && !item_exists(root, whole))
		return rename_item(root, item, whole);
	if (remove_item(root, item) != LS_OK)
		ls_log_warning("an unfinished checkpoint is left behind: %s", ls_last_error());
	return LS_OK;
}

ls_status ls_ckpt_prepare(const char *run, const char *root)
{
	int fresh = mkdir(root, 0777) ==
		    0; /* but not the run directory: if it was moved away, it must not be created again */
	ls_ckpt_list list;
	if (!fresh && (errno != EEXIST || !ls_path_is_directory(root)))
		return ls_fail_errno(LS_EIO, "cannot make directory %s", root);
	if (fresh)
		LS_TRY(ls_path_sync(run));
	LS_TRY(ls_ckpt_list_read(&list, root));
	ls_status status = LS_OK;
	for (size_t i = 0; i < list.count && status == LS_OK; i++)
		if (list.items[i].kind != LS_CKPT_WHOLE)
			status = tidy(root, list.items[i]);
	free(list.items);
	return status;
}

/* What is in the way and not ours to delete is kept, under a name that resume ignores. */
static ls_status set_aside(const char *root, ls_ckpt_item item)
{
	char path[LS_CKPT_PATH], aside[LS_CKPT_PATH], why[1024];
	snprintf(why, sizeof(why), "%s", ls_last_error());
	LS_TRY(ls_ckpt_item_path(path, root, item));
	LS_TRY(ls_path_set_aside(path, aside, sizeof(aside)));
	ls_log_warning("%s is kept as %s and not used any more: %s", path, aside, why);
	return LS_OK;
}

/* One that is whole may be replaced. */
static ls_status make_way(const char *root, ls_ckpt_item whole, int *replace)
{
	char path[LS_CKPT_PATH];
	*replace = 0;
	if (!item_exists(root, whole))
		return LS_OK;
	LS_TRY(ls_ckpt_item_path(path, root, whole));
	ls_status status = ls_ckpt_verify(path);
	if (status == LS_EMEMORY) /* which has nothing to do with this checkpoint */
		return status;
	if (status != LS_OK)
		return set_aside(root, whole);
	*replace = 1;
	return rename_item(root, whole, (ls_ckpt_item){ whole.step, LS_CKPT_OLD });
}

/* A directory cannot be renamed over one that has files, so the old one is renamed first. Between the two renames
 * it is found under its other name. */
ls_status ls_ckpt_publish(const char *root, uint64_t step)
{
	ls_ckpt_item temporary = { step, LS_CKPT_TEMPORARY }, whole = { step, LS_CKPT_WHOLE },
		     old = { step, LS_CKPT_OLD };
	int replace = 0;
	LS_TRY(make_way(root, whole, &replace));
	ls_status status = rename_item(root, temporary, whole);
	if (status != LS_OK) {
		char path[LS_CKPT_PATH], back[LS_CKPT_PATH];
		if (replace && ls_ckpt_item_path(path, root, old) == LS_OK &&
		    ls_ckpt_item_path(back, root, whole) == LS_OK && rename(path, back))
			ls_log_warning("the previous checkpoint is now %s", path);
		return status;
	}
	LS_TRY(ls_path_sync(root));
	if (replace && remove_item(root, old) != LS_OK)
		ls_log_warning("a replaced checkpoint is left behind: %s", ls_last_error());
	return LS_OK;
}

/* Renamed first: a crash half way must not leave a directory that looks whole. */
static void discard(const char *root, ls_ckpt_item item)
{
	ls_ckpt_item temporary = { .step = item.step, .kind = LS_CKPT_TEMPORARY };
	if (rename_item(root, item, temporary) != LS_OK || remove_item(root, temporary) != LS_OK)
		ls_log_warning("an old checkpoint is left behind: %s", ls_last_error());
}

/* A later step than the run's: the resume skipped it because it is damaged, or it belongs to an abandoned history. Only
 * the latter, which is known to be whole, is removed. */
static void retire_later(const char *root, ls_ckpt_item item, uint64_t step)
{
	char path[LS_CKPT_PATH];
	ls_status status = ls_ckpt_item_path(path, root, item);
	if (status == LS_OK)
		status = ls_ckpt_verify(path);
	if (status == LS_OK) {
		ls_log_warning("removing the checkpoint of step %" PRIu64 ": the run has gone back to step %" PRIu64,
			       item.step, step);
		discard(root, item);
	} else if (status == LS_EMEMORY || set_aside(root, item) != LS_OK) {
		ls_log_warning("a checkpoint that cannot be used is left behind: %s", ls_last_error());
	}
}

/* Remove an old checkpoint if it is recognisably one of ours. */
static void retire_old(const char *root, ls_ckpt_item item)
{
	char path[LS_CKPT_PATH];
	ls_status status = ls_ckpt_item_path(path, root, item);
	if (status == LS_OK)
		status = ls_ckpt_recognize(path);
	if (status == LS_OK)
		discard(root, item);
	else if (set_aside(root, item) != LS_OK)
		ls_log_warning("a checkpoint that cannot be used is left behind: %s", ls_last_error());
}

void ls_ckpt_prune(const char *root, uint64_t step, int64_t keep)
{
	ls_ckpt_list list;
	int64_t kept = 1; /* `step` itself */
	if (ls_ckpt_list_read(&list, root) != LS_OK) {
		ls_log_warning("old checkpoints are left behind: %s", ls_last_error());
		return;
	}
	for (size_t i = 0; i < list.count; i++) {
		ls_ckpt_item item = list.items[i];
		if (item.kind != LS_CKPT_WHOLE || item.step == step)
			continue;
		if (item.step > step)
			retire_later(root, item, step);
		else if (kept++ >= keep)
			retire_old(root, item);
	}
	free(list.items);
}
