/*
 * custom_loop.h - what the tests of ls_trainer train: small datasets, models and options, steps in several ways, and
 * the bits that ls_train() gives for the same settings.
 */
#ifndef LS_TESTS_UNIT_RUN_CUSTOM_LOOP_H
#define LS_TESTS_UNIT_RUN_CUSTOM_LOOP_H

#include <lockstep/trainer.h>
#include <stdlib.h>
#include <string.h>

#include "data/shuffle.h"
#include "unit/assert_status.h"

enum { SEED = 91, SAMPLES = 75, BATCH = 24, MICRO = 6, PIXELS = 28 * 28, STEPS = 8 };

/* ---- what is trained --------------------------------------------------------------------------------------------- */

static inline ls_dataset *open_set(const char *name)
{
	ls_dataset_options o = LS_DATASET_OPTIONS_INIT;
	ls_dataset *set = NULL;

	o.name = name;
	o.samples = SAMPLES;
	o.tokens = strstr(name, "babble") ? 16 : 0;
	o.seed = SEED;
	assert_ok(ls_dataset_open(&set, &o));
	return set;
}

static double label_smoothing; /* of models that are made and trained */

static inline ls_model *make_model(const char *name, const ls_dataset *set)
{
	const ls_dataset_info *info = ls_dataset_describe(set);
	ls_model_options o = LS_MODEL_OPTIONS_INIT;
	ls_model *model = NULL;

	o.name = name;
	o.classes = info->classes;
	o.label_smoothing = label_smoothing;
	if (info->tokens_max == 0) {
		o.channels = info->channels;
		o.height = info->height;
		o.width = info->width;
		o.dropout = 0.2f;
	} else {
		o.text = (ls_text_model){ .tokens = info->tokens_max,
					  .masked = info->masked_max,
					  .vocabulary = info->vocabulary };
		if (strcmp(name, "transformer") == 0) {
			o.text.layers = 1;
			o.text.hidden = 32;
			o.text.heads = 2;
		}
	}
	assert_ok(ls_model_new_named(&model, &o, SEED));
	return model;
}

static inline ls_trainer_options options_of(const char *optimizer)
{
	ls_trainer_options o = LS_TRAINER_OPTIONS_INIT;

	o.batch = BATCH;
	o.micro_batch = MICRO;
	o.optimizer = optimizer;
	o.schedule = "wsd";
	o.steps = STEPS;
	o.warmup = 2;
	o.lr = 0.003;
	o.seed = SEED;
	o.weight_decay = 0.01;
	o.devices = 2;
	o.threads = 1;
	return o;
}

static inline uint64_t fingerprint(const ls_model *model)
{
	ls_model_facts facts;
	assert_ok(ls_model_describe(model, &facts));
	return facts.fingerprint;
}

/* The bits that the command comes to. */
static inline uint64_t train(const char *model, const ls_dataset *set, const ls_trainer_options *t)
{
	ls_train_options o = LS_TRAIN_OPTIONS_INIT;
	ls_train_result result;

	o.model = model;
	o.train_set = set;
	o.eval_every = 0;
	o.steps = STEPS;
	o.batch = t->batch;
	o.micro_batch = t->micro_batch;
	o.optimizer = t->optimizer;
	o.lr = t->lr;
	o.weight_decay = t->weight_decay;
	o.warmup = t->warmup;
	o.clip_norm = t->clip_norm;
	o.freeze = t->freeze;
	o.augment = t->augment ? t->augment : "none";
	o.precision = t->precision ? t->precision : "fp32";
	o.label_smoothing = label_smoothing;
	o.seed = t->seed;
	o.devices = 1;
	o.threads = 2;
	o.quiet = 1;
	if (ls_dataset_describe(set)->tokens_max == 0)
		o.dropout = 0.2f;
	else if (strcmp(model, "transformer") == 0) {
		o.layers = 1;
		o.width = 32;
		o.heads = 2;
	}
	assert_ok(ls_train(&o, &result));
	return result.fingerprint;
}

/* ---- the samples of a step, as ls_train() takes them ------------------------------------------------------------- */

typedef struct samples {
	float images[BATCH * PIXELS];
	int32_t labels[BATCH];
	uint64_t indices[BATCH];
	ls_text_sample text[BATCH];
	int32_t tokens[BATCH][4][64];
} samples;

static inline ls_batch take(samples *s, const ls_dataset *set, int step)
{
	const ls_dataset_info *info = ls_dataset_describe(set);
	int per_epoch = (SAMPLES + BATCH - 1) / BATCH, first = step % per_epoch * BATCH;
	ls_permutation order = ls_permutation_make(SEED, (uint64_t)(step / per_epoch), info->samples);
	ls_batch batch = LS_BATCH_INIT;

	batch.count = SAMPLES - first < BATCH ? SAMPLES - first : BATCH;
	batch.indices = s->indices;
	for (int i = 0; i < batch.count; i++) {
		uint64_t index = s->indices[i] = ls_permutation_at(&order, (uint64_t)(first + i));
		if (info->tokens_max == 0) {
			assert_ok(ls_dataset_read(set, index, s->images + (size_t)i * PIXELS, &s->labels[i]));
			continue;
		}
		s->text[i] = (ls_text_sample){ .tokens = s->tokens[i][0],
					       .segments = s->tokens[i][1],
					       .places = s->tokens[i][2],
					       .targets = s->tokens[i][3] };
		assert_ok(ls_dataset_read_text(set, index, (uint64_t)(step / per_epoch), &s->text[i]));
	}
	if (info->tokens_max > 0) {
		batch.text = s->text;
	} else {
		batch.images = s->images;
		batch.labels = s->labels;
	}
	return batch;
}

typedef enum way { WHOLE, HALVES, HALVES_SET, DATASET, WAYS } way;

/* A gradient that is read and set again is the same. */
static inline void set_again(ls_trainer *trainer, const ls_model *model)
{
	ls_model_param param;

	for (size_t i = 0; ls_model_param_at(model, i, &param); i++) {
		float *values = malloc(param.elements * sizeof(*values));
		if (param.is_trained) {
			assert_ok(ls_trainer_get_gradient(trainer, param.name, values, param.elements));
			assert_ok(ls_trainer_set_gradient(trainer, param.name, values, param.elements));
		}
		free(values);
	}
}

static inline void do_steps(ls_trainer *trainer, const ls_model *model, const ls_dataset *set, int first, int last,
			    way how)
{
	samples *s = malloc(sizeof(*s));
	ls_trainer_report report;
	double norm;

	for (int i = first; i < last; i++) {
		ls_batch batch = take(s, set, i);
		if (how == DATASET) {
			assert_ok(ls_trainer_run(trainer, set, 1, &report));
		} else if (how == WHOLE) {
			assert_ok(ls_trainer_step(trainer, &batch, &report));
		} else {
			assert_ok(ls_trainer_backward(trainer, &batch, &report));
			assert_int_equal(report.steps, i);
			if (how == HALVES_SET)
				set_again(trainer, model);
			assert_ok(ls_trainer_update(trainer, &norm));
		}
		assert_int_equal(report.samples, batch.count);
		assert_int_equal(report.steps, how == WHOLE || how == DATASET ? i + 1 : i);
		assert_true(report.loss > 0 && report.lr > 0);
	}
	free(s);
}

static inline uint64_t train_here(const char *name, const ls_dataset *set, const ls_trainer_options *o, way how)
{
	ls_model *model = make_model(name, set);
	ls_trainer *trainer = NULL;

	assert_ok(ls_trainer_new(&trainer, model, o));
	do_steps(trainer, model, set, 0, STEPS, how);
	ls_trainer_free(trainer);
	uint64_t bits = fingerprint(model);
	ls_model_free(model);
	return bits;
}

#endif
