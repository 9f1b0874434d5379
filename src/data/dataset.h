/*
 * dataset.h - the private part of lockstep/data.h.
 *
 * Every dataset of images that comes with Lockstep has samples of bytes (0 is background, 255 is ink), but for arrays
 * of floats. Floats are made from bytes in one place, ls_dataset_sample(), by a table of 256 levels per channel:
 * (x / 255 - mean) / deviation. Named datasets have constants of their own, others are measured (normalise.h). What
 * `lockstep data make` writes is these bytes and these constants, so a dataset on disk and the virtual one agree
 * exactly. Floats x become (x - mean) / deviation: those that somebody made of bytes by x / 255 have the same bits as
 * the bytes.
 */
#ifndef LS_DATA_DATASET_H
#define LS_DATA_DATASET_H

#include <lockstep/data.h>

/* Like ls_dataset_ops.read, before normalisation: channels*height*width bytes. */
typedef ls_status (*ls_bytes_read)(void *self, uint64_t index, uint8_t *image, int32_t *label);

/* The same for a dataset of floats: channels*height*width values as they are in the file, all finite. */
typedef ls_status (*ls_floats_read)(void *self, uint64_t index, float *image, int32_t *label);

struct ls_dataset {
	ls_dataset_info info;
	ls_dataset_ops ops;
	void *self;
	ls_bytes_read read_bytes;       /* NULL: ops.read writes floats itself, or the dataset is text */
	ls_floats_read read_floats;     /* NULL: not an array of floats */
	ls_normalisation normalisation; /* of a dataset of bytes or floats, one pair per channel */
	float *level;                   /* (channels, 256): byte -> normalised float */
	ls_status (*check)(void *self); /* whether the files are unchanged since opening; NULL: always */
	const char *label_file;         /* where labels come from, for errors; NULL: not from one file */
	const char *const *class_names; /* (classes); NULL: classes have no names here */
	int is_decoded;                 /* samples come from files that are decoded when they are read */
	uint64_t bad;                   /* samples that were left out because they cannot be read */
	const char *columns;            /* see ls_dataset_columns(); NULL: not a table */
	ls_status (*read_label)(void *self, uint64_t index, int32_t *label); /* without the sample; NULL: read both */
};

#define LS_DATASET_KIND "dataset" /* handles.h */

/* ls_dataset_read(), _read_text(), _measure_text() and _read_targets() of a dataset that is known to be alive: threads
 * that read samples at the same time do not meet at a lock. */
ls_status ls_dataset_sample(const ls_dataset *dataset, uint64_t index, float *image, int32_t *label);
ls_status ls_dataset_sample_text(const ls_dataset *dataset, uint64_t index, uint64_t epoch, ls_text_sample *out);
ls_status ls_dataset_sample_measures(const ls_dataset *dataset, uint64_t index, uint64_t epoch, int *length,
				     int *masked);
ls_status ls_dataset_sample_targets(const ls_dataset *dataset, uint64_t index, float *targets);

/* Use samples only if this returns LS_OK after reading them: another process may cut the files short meanwhile. */
ls_status ls_dataset_check(const ls_dataset *dataset);

/* A row of the dataset table (table.c). */
typedef struct ls_dataset_kind {
	ls_dataset_row row;
	ls_status (*open)(ls_dataset **out, const ls_dataset_options *options);
	int can_make; /* `lockstep data make` writes it as IDX files: generated images of 28x28 bytes */
} ls_dataset_kind;

/* The label alone, without decoding where that is possible; `room` is for a sample of images. */
ls_status ls_dataset_read_label(const ls_dataset *dataset, uint64_t index, float *room, int32_t *label);

/* Float target i of a sample: finite, and where it is of a label or a class also from 0 to 1. */
ls_status ls_dataset_check_target(const ls_dataset *dataset, uint64_t index, int i, float value);

/* Row i of the dataset table, NULL past the end. */
const ls_dataset_kind *ls_dataset_kind_at(size_t i);

/* A dataset of bytes with its normalisation (copied). On failure `self` stays the caller's. */
ls_status ls_dataset_new_bytes(ls_dataset **out, const ls_dataset_info *info, const ls_normalisation *normalisation,
			       ls_bytes_read read, void (*release)(void *self), void *self);

ls_status ls_dataset_new_floats(ls_dataset **out, const ls_dataset_info *info, const ls_normalisation *normalisation,
				ls_floats_read read, void (*release)(void *self), void *self);

/* Replace the normalisation. Constants of one channel serve all channels; any other number must match. */
ls_status ls_dataset_normalise(ls_dataset *dataset, const ls_normalisation *normalisation);

/* The bytes of one sample; only for datasets made by ls_dataset_new_bytes(). */
ls_status ls_dataset_read_bytes(const ls_dataset *dataset, uint64_t index, uint8_t *image, int32_t *label);

/* Values of one sample: channels * height * width. */
size_t ls_dataset_values(const ls_dataset_info *info);

/* Name of row i of the dataset table, NULL past the end. */
const char *ls_dataset_name_at(size_t i);

/* Where a downloaded dataset's files are: `dir`, or its folder in the cache when dir is NULL. */
ls_status ls_data_directory(char *out, size_t size, const char *dir, const char *name);

ls_status ls_mnist_open(ls_dataset **out, const ls_dataset_options *options);
ls_status ls_fashion_mnist_open(ls_dataset **out, const ls_dataset_options *options);
ls_status ls_directory_open(ls_dataset **out, const ls_dataset_options *options); /* options->name is the directory */
void ls_data_warn_of_dir(const char *name,
			 const char *dir); /* warn that --dir has no effect on a generated dataset or a path */
/* Warn that the dataset has fewer samples than `option` asks for, and that all are used. */
void ls_data_warn_of_samples(const ls_dataset *set, const char *option, uint64_t wanted, ls_split split);
int ls_directory_is(const char *dir); /* contains an IDX image file of either split */
ls_status ls_glyphs_open(ls_dataset **out, const ls_dataset_options *options);
ls_status ls_bigmnist_open(ls_dataset **out, const ls_dataset_options *options);
ls_status ls_babble_open(ls_dataset **out, const ls_dataset_options *options);
ls_status ls_babble_pairs_open(ls_dataset **out, const ls_dataset_options *options);
ls_status ls_sst_open(ls_dataset **out, const ls_dataset_options *options);
ls_status ls_sotu_open(ls_dataset **out, const ls_dataset_options *options);
ls_status ls_cifar10_open(ls_dataset **out, const ls_dataset_options *options);
ls_status ls_cifar100_open(ls_dataset **out, const ls_dataset_options *options);
ls_status
ls_image_folder_open(ls_dataset **out,
		     const ls_dataset_options *options); /* options->name: a folder of class folders, or shards */
int ls_numpy_is(const char *path); /* a .npz file, or a directory with x_train.npy or images.npy */
ls_status ls_numpy_open(ls_dataset **out, const ls_dataset_options *options); /* options->name is such a path */
ls_status ls_table_open(ls_dataset **out, const ls_dataset_options *options); /* options->name is a file or directory */
ls_status ls_corpus_open(ls_dataset **out,
			 const ls_dataset_options *options); /* options->name is a file or directory */

#endif
