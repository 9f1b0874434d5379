/*
 * model.h - the model a job asks for, in the shape its data wants.
 */
#ifndef LS_SETTINGS_MODEL_H
#define LS_SETTINGS_MODEL_H

#include <lockstep/data.h>
#include <lockstep/models.h>
#include <lockstep/train.h>

/* Which part of the data is wanted, and what is known of the model it is for. */
typedef struct ls_data_wanted {
	ls_split split;
	uint64_t samples;                      /* 0: all */
	int classes;                           /* of the model; 0: as many as the data has */
	const ls_normalisation *normalisation; /* of images; NULL: the data's own */
	const ls_dataset_info *shape;          /* that images of any size are scaled to; NULL: by the settings */
	const char *columns;                   /* of a table (ls_dataset_columns()); NULL: the data's own */
} ls_data_wanted;

/* The settings are those of a language model, by name or by graph. */
int ls_train_predicts_next(const ls_train_options *options);

/* The model takes tokens, not numbers. */
int ls_train_takes_text(const ls_train_options *options);

/* Whether the data of these settings is read with a vocabulary: text from files. */
int ls_train_needs_vocabulary(const ls_train_options *options);

/* What a model is built from: its name and sizes, dropout, label smoothing, adapters. */
void ls_train_copy_model(ls_train_options *to, const ls_train_options *from);

/* The dataset that settings name, text read as they say. */
ls_status ls_train_open_data(ls_dataset **out, const ls_train_options *options, const ls_data_wanted *wanted);

/* The losses that settings name; NULL past the end. */
const char *ls_loss_name(size_t i);
const char *ls_loss_summary(size_t i);

/* A finished graph for samples like `info`'s: images for models of images, text for models of text. Text with tokens to
 * be predicted makes a model for pretraining, otherwise one that classifies. */
ls_status ls_train_build_model(ls_graph **out, const ls_train_options *options, const ls_dataset_info *info);

/* Refuse micro-batches of one sample for a model with a batch norm on 1x1 maps, as PyTorch does: such a norm has one
 * value per channel and would train on constants. `where` says which micro-batches have `size` samples, `advice` how to
 * get others. */
ls_status ls_train_check_norms(const ls_graph *graph, int64_t size, const char *where, const char *advice);

#endif
