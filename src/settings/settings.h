/*
 * settings.h - settings of a run as JSON, and whether a resumed run may go on with other ones.
 */
#ifndef LS_SETTINGS_SETTINGS_H
#define LS_SETTINGS_SETTINGS_H

#include <lockstep/data.h>
#include <lockstep/train.h>

/* Fields that a program has set directly are held to the table's ranges, as typed ones are. */
ls_status ls_settings_check(const ls_train_options *options);

/* A setting as messages name it: "options.lr_min" of the row "lr-min". Returns out. */
enum { LS_SETTING_FIELD = 64 };
const char *ls_setting_field(const ls_setting *row, char out[LS_SETTING_FIELD]);

/* Mark a setting as given (ls_train_setting_is_given) without setting it. */
void ls_settings_give(ls_train_options *options, const ls_setting *row);

/* The group of settings of text. Those of them that bind say how text is read and how large a model of it is. */
#define LS_SETTINGS_TEXT "Text"

/* The data and the number of workers of a run, which settings do not determine, since files may change. 0: there is
 * none. */
typedef struct ls_settings_context {
	uint64_t vocabulary;                   /* that the data was read with */
	uint64_t text;                         /* see ls_dataset_info.text_hash */
	const ls_normalisation *normalisation; /* of images; NULL: text, or the program's own dataset */
	const char *columns;                   /* of a table; NULL: it is none */
	ls_task task;                          /* of the training set */
	uint64_t train, test;                  /* ls_sample_hash() of both sets */
	int64_t nodes;                         /* how many there were */
	int64_t node_devices; /* options.devices of the first node, as given: `devices` is of all; 0: by the cores */
	int64_t node_threads; /* options.threads of the first node, as given; 0: by the cores */
} ls_settings_context;

/* Paths among the settings (data where it is one, data-dir, vocab, init) made absolute, as a run keeps them: it may be
 * read from another directory. `room` holds the new ones. */
typedef struct ls_settings_paths {
	char data[4096], data_dir[4096], vocab[4096], init[4096];
} ls_settings_paths;
ls_status ls_settings_absolute(ls_train_options *options, ls_settings_paths *room);

/* The hash of the test set, and the number of nodes, that stored settings name; 0: they do not. */
uint64_t ls_settings_get_test_hash(const void *owner);
int64_t ls_settings_get_nodes(const void *owner);

/* Bytes of the field that a row describes. */
size_t ls_setting_bytes(const ls_setting *row);

/* The group of settings of several nodes. */
#define LS_SETTINGS_NODES "Nodes"

/* All settings as the text of one JSON object, keyed by the rows' names; numbers read back exactly. malloc'd. The
 * context goes along. */
ls_status ls_settings_to_json(const ls_train_options *options, ls_settings_context context, char **out);

/* Settings from such a text, or the defaults where it has none of a row. */
typedef ls_train_stored ls_settings_stored;
ls_status ls_settings_from_json(ls_settings_stored *out, const char *stored_json, const char *where);
void ls_settings_stored_release(ls_settings_stored *stored); /* harmless when it is zero */

/* What the precision of a version whose bf16 left attention in fp32 is called now: "bf16" of a model with attention is
 * "bf16-layers", others stay. `model` NULL: a program's own graph. */
const char *ls_settings_earlier_precision(const char *precision, const char *model);

/*
 * Fail with LS_EMISMATCH when going on with `now` would not give the bits of the run that `stored_json` describes; the
 * message names every setting at fault with both values. `where` names the stored run in it. A setting that
 * `stored_json` does not have (it is newer than the run) counts as its default. `recalled` has the settings of the
 * run's last start, from which `now` was completed: what was not given but taken from there is not at fault. NULL: none
 * was.
 */
ls_status ls_settings_compare(const ls_train_options *now, const ls_train_options *recalled,
			      ls_settings_context context, const char *stored_json, const char *where);

/*
 * Two nodes' settings (JSON) must be the same but for what concerns one node alone: where its files are, its threads,
 * what it shows. Fails with LS_EMISMATCH, naming every setting at fault with both values and both nodes.
 */
ls_status ls_settings_agree(const char *first_json, const char *first, const char *other_json, const char *other);

/* What stored settings say images were normalised with: MNIST's constants where they do not, for then they are older.
 * `where` names the stored run in errors. */
ls_status ls_settings_get_normalisation(const char *stored_json, const char *where, ls_normalisation *out);

/* The file of initial weights that stored settings name, malloc'd; NULL when they name none. */
ls_status ls_settings_get_init(const char *stored_json, char **out);

/*
 * What the three batch settings resolve to. batch_per_device N: micro-batches of N, and N * devices in a step, where 0
 * devices count as one. Else batch, in micro-batches of micro_batch; by default in equal parts of at most
 * LS_MICRO_BATCH samples, of which the last is smaller where they do not come out even. Nothing here depends on the
 * machine.
 */
typedef struct ls_settings_batches {
	int64_t microbatch, global;
} ls_settings_batches;
ls_status ls_settings_get_batches(const ls_train_options *options, ls_settings_batches *out);

/* Micro-batches of a step on a training set of `samples`; 0: as many as there are devices (batch_per_device). */
int64_t ls_settings_micro_batches(const ls_train_options *options, uint64_t samples);

/*
 * The same options once it is known how many devices all workers have together: `devices` is that number, batch and
 * micro_batch are what the batch settings come to, batch_per_device is 0, and beta2 is the optimizer's where it is not
 * given. This is what a run keeps, so that it can be resumed on other workers. A micro_batch that does not divide the
 * batch is refused, unless a run is resumed with it.
 */
ls_status ls_settings_resolve(const ls_train_options *options, int64_t devices, ls_train_options *out);

#endif
