/*
 * settings_compare.c - the check that a resumed run keeps to its settings, and that all nodes have the same.
 *
 * What must agree is what changes the trained bits. Most rows of the table say so themselves (`LS_SETTING_BINDS`); four
 * things are compared by what they resolve to instead of by what was typed:
 *   1. batch, micro-batch, batch-per-device and devices: by the micro-batch and the batch they give;
 *   2. lr, lr-scale-workers and devices: by the learning rate they give;
 *   3. epochs and steps: only where the schedule looks at the length of the run; otherwise a run may be extended;
 *   4. model and data: the names do not count when the program brought its own graph or dataset; data may lie in
 *      another place as long as its samples are the same (by hash), and must have the same samples in the same place.
 *
 * What is kept is resolved (ls_settings_resolve), so that the first two do not depend on the workers of either run. The
 * vocabulary binds by its hash, wherever its file is. init does not bind: a resumed run takes none but has the
 * checkpoint's weights, or those that run.json names.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "data/normalise.h"
#include "optim/schedule.h"
#include "settings/settings_json.h"

/* What differs, as one sentence in the making; what does not fit is counted. */
typedef struct differences {
	const char *verb, *between, *after; /* "options.lr [ was ]0.1[, now ]0.2[]" */
	char text[1024];
	size_t used;
	int count, left_out;
	const ls_train_options *recalled; /* see ls_settings_compare() */
	int other_samples;                /* a setting that decides which samples there are differs */
} differences;

static void __attribute__((format(printf, 2, 3))) differ(differences *found, const char *format, ...)
{
	char item[512];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(item, sizeof(item), format, arguments);
	va_end(arguments);
	found->count++;
	int length = snprintf(NULL, 0, "%s%s", found->used ? "; " : "", item);
	if (found->used + (size_t)length >= sizeof(found->text)) {
		found->left_out++;
		return;
	}
	snprintf(found->text + found->used, sizeof(found->text) - found->used, "%s%s", found->used ? "; " : "", item);
	found->used += (size_t)length;
}

/* `names` ends with NULL. */
static int is_among(const char *name, const char *const *names)
{
	while (*names && strcmp(*names, name) != 0)
		names++;
	return *names != NULL;
}

static int has_rule(const char *name)
{
	static const char *const ruled[] = {
		"data", "batch", "micro-batch", "batch-per-device", "lr", "lr-scale-workers", NULL
	};
	return is_among(name, ruled);
}

static int same_value(const ls_setting *row, const ls_train_options *was, const ls_train_options *now)
{
	json_t *before = ls_settings_field_json(row, was), *after = ls_settings_field_json(row, now);
	int same = before && after && json_equal(before, after);
	json_decref(before);
	json_decref(after);
	return same;
}

/* A setting that was neither given nor set now is not reported. */
static int is_own(const ls_setting *row, const ls_train_options *now, const differences *found)
{
	return !found->recalled || ls_train_setting_is_given(now, row) || !same_value(row, found->recalled, now);
}

/* As text, for people: "" and, where that stands for the default, 0 are no values that anybody gave. */
static const char *show(const ls_setting *row, const ls_train_options *options, char *out, size_t size)
{
	ls_setting_format(row, options, out, size);
	int is_set = *out && !((row->marks & LS_SETTING_NOT_0) && !strcmp(out, "0"));
	return is_set ? out : "not set";
}

static void compare_row(const ls_setting *row, const ls_train_options *was, const ls_train_options *now,
			differences *found)
{
	if (same_value(row, was, now))
		return;
	char before[200], after[200], name[LS_SETTING_FIELD];
	differ(found, "%s%s%s%s%s%s", ls_setting_field(row, name), found->verb, show(row, was, before, sizeof(before)),
	       found->between, show(row, now, after, sizeof(after)), found->after);
}

static void compare_named(const char *name, const ls_train_options *was, const ls_train_options *now,
			  differences *found)
{
	compare_row(ls_train_setting_of(name), was, now, found);
}

static ls_status compare_batches(const ls_train_options *was, const ls_train_options *now, differences *found)
{
	ls_settings_batches before, after;
	LS_TRY(ls_settings_get_batches(was, &before));
	LS_TRY(ls_settings_get_batches(now, &after));
	if (before.microbatch != after.microbatch)
		differ(found, "options.micro_batch was %" PRId64 ", now %" PRId64, before.microbatch, after.microbatch);
	if (before.global != after.global)
		differ(found, "options.batch was %" PRId64 ", now %" PRId64, before.global, after.global);
	return LS_OK;
}

static double effective_rate(const ls_train_options *options)
{
	double devices = options->devices > 0 ? (double)options->devices : 1;
	return options->lr_scale_workers ? options->lr * devices : options->lr;
}

static void compare_rates(const ls_train_options *was, const ls_train_options *now, differences *found)
{
	if (effective_rate(was) == effective_rate(now))
		return;
	int before = found->count;
	if (is_own(ls_train_setting_of("lr"), now, found))
		compare_named("lr", was, now, found);
	compare_named("lr-scale-workers", was, now, found);
	if (found->count == before)
		differ(found, "options.lr times options.devices was %.9g, now %.9g", effective_rate(was),
		       effective_rate(now));
}

static int looks_at_length(const char *schedule)
{
	const ls_schedule_kind *kind = ls_schedule_find(schedule);
	return kind && kind->needs_length;
}

static void compare_lengths(const ls_train_options *was, const ls_train_options *now, differences *found)
{
	if (!looks_at_length(now->schedule) || !same_value(ls_train_setting_of("schedule"), was, now))
		return; /* another schedule is refused as such */
	int before = found->count;
	compare_named("steps", was, now, found);
	if (!was->steps && !now->steps)
		compare_named("epochs", was, now, found);
	if (found->count > before)
		differ(found,
		       "its length cannot change: schedule %s %s; use options.schedule constant for a run you may "
		       "extend",
		       now->schedule,
		       strcmp(now->schedule, "wsd") ? "decays over the whole run"
						    : "decays over the last 20 % of the run");
}

/* By hash: the same vocabulary may lie elsewhere, and another one in the same place. A run that does not say had none,
 * or is older than this. 1: they differ. */
static int compare_hashes(const json_t *was, const char *key, const char *what, uint64_t now, differences *found)
{
	const char *before = json_string_value(json_object_get(was, key));
	char after[32];
	snprintf(after, sizeof(after), "%016" PRIx64, now);
	if (!before || !strcmp(before, after))
		return 0;
	differ(found, "%s had xxh64 %.16s, now %s", what, before, now ? after : "there is none");
	return 1;
}

/* A dataset that the program opened itself may be normalised otherwise than the run was. */
static ls_status compare_normalisation(const json_t *was, const char *where, const ls_normalisation *now,
				       differences *found)
{
	ls_normalisation before;
	char shown[2][320];
	LS_TRY(ls_settings_read_normalisation(was, where, &before));
	if (before.channels && now && !ls_normalisation_equal(&before, now))
		differ(found, "images were normalised with %s, now with %s",
		       ls_normalisation_show(&before, shown[0], sizeof(shown[0])),
		       ls_normalisation_show(now, shown[1], sizeof(shown[1])));
	ls_normalisation_release(&before);
	return LS_OK;
}

/* Runs of earlier versions have no hash, and may have a path that was relative: to the directory of that start, which
 * may be this one. */
static ls_status compare_data(const json_t *stored, const ls_train_options *was, const ls_train_options *now,
			      uint64_t hash, differences *found)
{
	uint64_t before = ls_settings_stored_hash(stored, LS_KEY_TRAIN_HASH);
	ls_settings_paths old_room, new_room;
	ls_train_options old = *was, new = *now;

	if (before && hash && before == hash)
		return LS_OK;
	LS_TRY(ls_settings_absolute(&old, &old_room));
	LS_TRY(ls_settings_absolute(&new, &new_room));
	const ls_setting *row = ls_train_setting_of("data");
	int names = found->count;
	if (!before || !hash || is_own(row, now, found))
		compare_row(row, &old, &new, found);
	found->other_samples |= found->count > names;
	if (found->other_samples || !before || !hash)
		return LS_OK;
	differ(found, "the training data has different samples than before (hash %016" PRIx64 ", now %016" PRIx64 ")",
	       before, hash);
	found->other_samples = 1;
	return LS_OK;
}

/* Where one of these differs the hash of the samples does, too, and says nothing more. */
static int decides_samples(const char *name)
{
	static const char *const names[] = {
		"samples", "seed", "cased", "seq-len", "phrases", "replace-invalid", NULL
	};
	return is_among(name, names);
}

static void compare_rows(const ls_train_options *was, const ls_train_options *now, differences *found)
{
	const ls_setting *row;
	for (size_t i = 0; (row = ls_train_setting_at(i)); i++) {
		int before = found->count;
		if ((row->marks & LS_SETTING_BINDS) && !has_rule(row->name))
			compare_row(row, was, now, found);
		found->other_samples |= found->count > before && decides_samples(row->name);
	}
}

static ls_status compare_all(const json_t *stored, const char *where, const ls_train_options *was,
			     const ls_train_options *now, ls_settings_context context, differences *found)
{
	compare_rows(was, now, found);
	found->other_samples |=
		compare_hashes(stored, LS_KEY_VOCABULARY, "the vocabulary (options.vocab)", context.vocabulary, found);
	LS_TRY(compare_data(stored, was, now, context.train, found));
	if (!found->other_samples)
		compare_hashes(stored, LS_KEY_TEXT, "the text (or labels) of the training set", context.text, found);
	LS_TRY(compare_batches(was, now, found));
	compare_rates(was, now, found);
	compare_lengths(was, now, found);
	LS_TRY(compare_normalisation(stored, where, context.normalisation, found));
	return LS_OK;
}

ls_status ls_settings_compare(const ls_train_options *options, const ls_train_options *recalled,
			      ls_settings_context context, const char *stored_json, const char *where)
{
	ls_train_options was = LS_TRAIN_OPTIONS_INIT;
	ls_train_options now = ls_settings_without_names(options);
	json_t *owner = NULL; /* of the strings in `was` */
	LS_TRY(ls_settings_read_stored(stored_json, where, &was, &owner));

	differences found = { .verb = " was ", .between = ", now ", .after = "", .recalled = recalled };
	ls_status status = compare_all(owner, where, &was, &now, context, &found);
	json_decref(owner);
	if (status || !found.count)
		return status;
	char more[32] = "";
	if (found.left_out)
		snprintf(more, sizeof(more), "; and %d more", found.left_out);
	return ls_fail(LS_EMISMATCH, "%s was started with different settings: %s%s", where, found.text, more);
}

/* What every node may have its own of. */
static int is_private(const char *name)
{
	static const char *const own[] = { "data-dir", "vocab", "threads", "pin",       "hosts", "timeout",
					   "init",     "keep",  "quiet",   "log-every", "run",   NULL };
	return is_among(name, own);
}

static void compare_nodes(const ls_train_options *a, const ls_train_options *b, differences *found)
{
	const ls_setting *row;
	for (size_t i = 0; (row = ls_train_setting_at(i)); i++)
		if (!is_private(row->name))
			compare_row(row, a, b, found);
	if (!a->run != !b->run) /* the directory concerns the first node alone; whether there is one, all nodes */
		compare_named("run", a, b, found);
}

ls_status ls_settings_agree(const char *first_json, const char *first, const char *other_json, const char *other)
{
	ls_train_options a = LS_TRAIN_OPTIONS_INIT, b = LS_TRAIN_OPTIONS_INIT;
	json_t *owner_a = NULL, *owner_b = NULL;
	char between[256], after[256];
	snprintf(between, sizeof(between), " on %s and ", first);
	snprintf(after, sizeof(after), " on %s", other);
	differences found = { .verb = " is ", .between = between, .after = after };
	ls_status status = ls_settings_read_stored(first_json, first, &a, &owner_a);
	if (!status)
		status = ls_settings_read_stored(other_json, other, &b, &owner_b);
	if (!status)
		compare_nodes(&a, &b, &found);
	json_decref(owner_a);
	json_decref(owner_b);
	if (status || !found.count)
		return status;
	return ls_fail(LS_EMISMATCH, "nodes were started with different settings: %s", found.text);
}
