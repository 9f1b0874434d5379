/*
 * profile.h - what one device does in a step, layer by layer: recorded by the bench, kept as a file, read by the replay
 * and by the forecast of step times.
 *
 * A micro-batch is `tiles` rounds of: layers forward in order, the loss, layers backward in reverse. Times of a layer
 * are those of the whole micro-batch. In the last round a layer's parameters become ready when its backward is done.
 *
 * A profile adds up to the step that it was taken from:
 *
 *     step_s = micro-batches * (forward_s and backward_s of all layers + loss_s + other_s) + update_s / devices +
 *     exchange_s
 *
 * Invariants of a profile that was read
 *  1. Numbers are finite and in their ranges, names are not empty.
 *  2. Every float of [0, reachable) belongs to exactly one range of one layer, where a range ends at a multiple of
 *     LS_PROFILE_LINE floats (what is behind its own floats is padding): every float becomes ready.
 */
#ifndef LS_BACKENDS_PROFILE_H
#define LS_BACKENDS_PROFILE_H

#include <stddef.h>
#include <stdint.h>

#include <lockstep/data.h>

#include "base/status.h"

#define LS_PROFILE_VERSION 2
enum { LS_PROFILE_NAME = 64, LS_PROFILE_RANGES = 8, LS_PROFILE_LINE = 16 };

typedef struct ls_profile_range {
	int64_t begin, end; /* floats of the flat vector */
} ls_profile_range;

typedef struct ls_profile_layer {
	char name[LS_PROFILE_NAME];
	double forward_s, backward_s; /* of a micro-batch: means over the middle half of the steps, like all times */
	int ranges;
	ls_profile_range range[LS_PROFILE_RANGES]; /* in the order in which they become ready */
} ls_profile_layer;

typedef struct ls_profile {
	char model[LS_PROFILE_NAME], optimizer[LS_PROFILE_NAME];
	char isa[LS_PROFILE_NAME], kernels[LS_PROFILE_NAME], lockstep[LS_PROFILE_NAME]; /* this program's version */
	char precision
		[LS_PROFILE_NAME]; /* "fp32", "bf16"; empty: not known, it was recorded when there was only fp32 */
	int64_t channels, height, width, classes;
	int64_t tokens, masked, vocabulary; /* of text, see ls_dataset_info; 0: images */
	int64_t batch;                      /* samples of a micro-batch */
	int64_t tiles;                      /* rounds it is computed in */
	int64_t threads;                    /* of the device */
	int64_t steps;                      /* that were measured */
	int64_t devices,
		microbatches;     /* devices that computed during the recording; micro-batches of a device per step */
	double step_s;            /* as it was recorded */
	int64_t repeats;          /* of the recording; 0: not known */
	double step_spread;       /* relative standard deviation of a step between repeats; 0: not known */
	double loss_s;            /* between forward and backward, of a micro-batch */
	double other_s;           /* what is in neither layers nor loss nor exchange, of a micro-batch */
	double update_s;          /* of a step: all parameters, by this device alone */
	double exchange_s;        /* of a step: the rest of its exchange; a replay has its own */
	double gflop_a_sample;    /* forward and backward, useful taps only */
	int64_t reachable, extra; /* floats of gradient; of statistics, and one more per node */
	size_t layers;
	ls_profile_layer *layer;
} ls_profile;

/* `label` names the text in errors, which say field and reason. The output is left alone on failure. */
ls_status ls_profile_parse(ls_profile *out, const void *text, size_t bytes, const char *label);
ls_status ls_profile_read(ls_profile *out, const char *path);
void ls_profile_release(ls_profile *profile);

/* Seconds of layers and loss, of a micro-batch. */
double ls_profile_compute(const ls_profile *profile);

/* Samples as the profile's model takes them. */
ls_dataset_info ls_profile_samples(const ls_profile *profile);

/* Whole or absent. */
ls_status ls_profile_write(const ls_profile *profile, const char *path);

/* The text of such a file, malloc'd. */
ls_status ls_profile_to_text(const ls_profile *profile, char **out);

/* A hash of the profile: nodes must replay the same one. */
ls_status ls_profile_hash(const ls_profile *profile, uint64_t *out);

#endif
