#include "tools/bench/data.h"

#include <stdlib.h>

#include "base/memory.h"
#include "base/names.h"
#include "base/rng.h"
#include "base/status.h"
#include "settings/model.h"

/* ---- random text ------------------------------------------------------------------------------------------------- */

enum {
	TOKENS = 128,
	MASKED = 20,
	VOCABULARY = 30522,
	GPT_VOCABULARY = 50257,
	SAMPLES = 4096,
	CLS = 101,
	SEP = 102,
	MASK = 103
};

typedef struct babel {
	ls_dataset_info info;
	uint64_t seed;
	int next_token;
} babel;

static uint32_t word_below(const babel *b, uint64_t index, uint64_t place, int below)
{
	uint32_t words[4];
	ls_rng_words(ls_rng_make(b->seed, LS_RNG_BENCH, 2), index, place, words);
	return ls_rng_below(words[0], (uint32_t)below);
}

/* [CLS], any words, [SEP]; the tokens to be predicted are masked, and stand evenly apart. For language models any
 * words, each of which predicts the next. */
static ls_status babel_read(void *self, uint64_t index, uint64_t epoch, ls_text_sample *out)
{
	const babel *b = self;
	int length = b->info.tokens_max, masked = b->info.masked_max;

	(void)epoch;
	for (int i = 0; i < length; i++) {
		out->tokens[i] = (int32_t)word_below(b, index, (uint64_t)i, b->info.vocabulary);
		out->segments[i] = i >= length / 2;
	}
	if (b->next_token) {
		for (int i = 0; i < length; i++) {
			out->places[i] = i;
			out->targets[i] = i + 1 < length ? out->tokens[i + 1] : out->tokens[0];
			out->segments[i] = 0;
		}
		out->length = out->masked = length;
		return LS_OK;
	}
	out->tokens[0] = CLS % b->info.vocabulary;
	out->tokens[length - 1] = SEP % b->info.vocabulary;
	for (int p = 0; p < masked; p++) {
		out->places[p] = (int32_t)((int64_t)p * length / masked);
		out->targets[p] = out->tokens[out->places[p]];
		out->tokens[out->places[p]] = MASK % b->info.vocabulary;
	}
	out->length = length;
	out->masked = masked;
	out->label = (int32_t)word_below(b, index, UINT32_MAX, b->info.classes);
	return LS_OK;
}

static ls_status babel_measure(void *self, uint64_t index, uint64_t epoch, int *length, int *masked)
{
	const babel *b = self;
	(void)index, (void)epoch;
	*length = b->info.tokens_max;
	*masked = b->info.masked_max;
	return LS_OK;
}

static ls_status open_babel(ls_dataset **out, const ls_train_options *job, const ls_model_row *row, int classes)
{
	static const ls_dataset_ops ops = { .read_text = babel_read, .measure_text = babel_measure, .free = free };
	babel *b = calloc(1, sizeof(*b));
	if (!b)
		return ls_fail(LS_EMEMORY, "no memory for the bench");
	int tokens = job->seq_len > 0 ? (int)job->seq_len : TOKENS;
	b->seed = job->seed;
	b->info = (ls_dataset_info){ .name = "random",
				     .samples = SAMPLES,
				     .classes = row->predicts_next ? 1
						: row->pretrains   ? 2
								   : classes,
				     .tokens_max = tokens,
				     .masked_max = row->predicts_next ? tokens
						   : row->pretrains   ? (tokens < MASKED ? tokens : MASKED)
								      : 0,
				     .vocabulary = row->predicts_next ? GPT_VOCABULARY : VOCABULARY };
	b->next_token = row->predicts_next;
	ls_status status = ls_dataset_new(out, &b->info, &ops, b);
	if (status != LS_OK)
		free(b);
	return status;
}

/* ---- both kinds -------------------------------------------------------------------------------------------------- */

ls_status ls_bench_data_open(ls_bench_data *d, const ls_bench_options *o, const ls_train_options *job,
			     ls_dataset_info *info)
{
	const ls_model_row *row = ls_model_row_of(job->model);

	if (!row || !row->is_text) { /* building it reports an unknown name */
		*info = (ls_dataset_info){
			.channels = o->channels, .height = o->height, .width = o->width, .classes = o->classes
		};
		if (o->data && row)
			return ls_fail(LS_EINVALID,
				       "options.data: a bench of %s takes random images; only text is read",
				       job->model);
		return LS_OK;
	}
	if (o->data) {
		ls_train_options read = *job;
		read.data = o->data;
		LS_TRY(ls_train_open_data(&d->set, &read, &(ls_data_wanted){ .split = LS_SPLIT_TRAIN }));
	} else {
		LS_TRY(open_babel(&d->set, job, row, o->classes));
	}
	*info = *ls_dataset_describe(d->set);
	return LS_OK;
}

static size_t image_floats(const ls_train_options *job, const ls_graph *graph)
{
	const ls_tensor *in = &graph->values[graph->input]; /* options may leave its shape to the model */
	return (size_t)job->micro_batch * (size_t)in->channels * (size_t)in->height * (size_t)in->width;
}

/* Random images of one micro-batch. */
static ls_status fill_images(ls_bench_data *d, const ls_train_options *job, const ls_graph *graph)
{
	size_t count = (size_t)job->micro_batch, floats = image_floats(job, graph);
	uint32_t classes = (uint32_t)graph->values[graph->logits].channels;
	ls_rng rng = ls_rng_make(job->seed, LS_RNG_BENCH, 0);
	void *images = NULL;

	d->image_bytes = floats * sizeof(float);
	LS_TRY(ls_buffer_new(&images, d->image_bytes, "bench images"));
	d->images = images;
	d->labels = calloc(count, sizeof(*d->labels));
	d->samples = calloc(count, sizeof(*d->samples));
	if (!d->labels || !d->samples)
		return ls_fail(LS_EMEMORY, "no memory for the bench");
	ls_rng_fill_normal(rng, 0, 0, floats, 1, d->images);
	for (size_t i = 0; i < count; i++) {
		uint32_t words[4];
		ls_rng_words(rng, 1, i, words);
		d->labels[i] = (int32_t)ls_rng_below(words[0], classes);
		d->samples[i] = i;
	}
	d->microbatch = (ls_microbatch){ .count = job->micro_batch,
					 .images = d->images,
					 .labels = d->labels,
					 .samples = d->samples,
					 .step_samples = job->batch };
	return LS_OK;
}

static ls_loader_options loader_options(const ls_train_options *job, int device)
{
	return (ls_loader_options){ .seed = job->seed + (uint64_t)device,
				    .shuffle = 1,
				    .microbatch = job->micro_batch,
				    .global_batch = job->micro_batch };
}

static ls_status fill_text(ls_bench_data *d, const ls_train_options *job, int devices)
{
	uint64_t samples = ls_dataset_describe(d->set)->samples;

	if (samples < (uint64_t)job->micro_batch)
		return ls_fail(LS_EINVALID, "dataset %s has %llu sample%s, fewer than a micro-batch of %lld",
			       ls_dataset_describe(d->set)->name, (unsigned long long)samples, ls_plural(samples, "s"),
			       (long long)job->micro_batch);
	d->devices = devices;
	d->loaders = calloc((size_t)devices, sizeof(*d->loaders));
	d->tokens = calloc(3 * (size_t)devices, sizeof(*d->tokens));
	if (!d->loaders || !d->tokens)
		return ls_fail(LS_EMEMORY, "no memory for the bench");
	d->masked = d->tokens + devices;
	d->seen = d->masked + devices;
	for (int i = 0; i < devices; i++) {
		ls_loader_options options = loader_options(job, i);
		LS_TRY(ls_loader_new(&d->loaders[i], d->set, &options));
	}
	return LS_OK;
}

ls_status ls_bench_data_fill(ls_bench_data *d, const ls_train_options *job, const ls_graph *graph, int devices)
{
	d->microbatch_size = job->micro_batch;
	return d->set ? fill_text(d, job, devices) : fill_images(d, job, graph);
}

size_t ls_bench_data_bytes(const ls_bench_data *d, const ls_train_options *job, const ls_graph *graph, int devices)
{
	ls_loader_options options = loader_options(job, 0);

	if (devices == 0)
		return 0;
	return d->set ? (size_t)devices * ls_loader_bytes(d->set, &options, UINT64_MAX)
		      : image_floats(job, graph) * sizeof(float);
}

void ls_bench_data_close(ls_bench_data *d)
{
	for (int i = 0; d->loaders && i < d->devices; i++)
		ls_loader_free(d->loaders[i]);
	free(d->loaders);
	free(d->tokens);
	free(d->samples);
	free(d->labels);
	if (d->images)
		ls_buffer_free(d->images, d->image_bytes);
	ls_dataset_free(d->set);
	*d = (ls_bench_data){ 0 };
}

/* Every micro-batch of images is the same: no less work, and less memory. The short micro-batch at the end of an epoch
 * of text is passed over. */
ls_status ls_bench_data_next(void *context, int device, const ls_microbatch **microbatch)
{
	ls_bench_data *d = context;

	*microbatch = &d->microbatch;
	if (!d->set)
		return LS_OK;
	do
		LS_TRY(ls_loader_next(d->loaders[device], microbatch));
	while ((*microbatch)->count != d->microbatch_size);
	d->tokens[device] += (*microbatch)->text->start[d->microbatch_size];
	d->masked[device] += (*microbatch)->text->masked_start[d->microbatch_size];
	d->seen[device] += (double)d->microbatch_size;
	return LS_OK;
}

double ls_bench_data_tokens(const ls_bench_data *d, double *masked)
{
	double tokens = 0, seen = 0;

	*masked = 0;
	for (int i = 0; i < d->devices; i++) {
		tokens += d->tokens[i];
		*masked += d->masked[i];
		seen += d->seen[i];
	}
	if (seen == 0)
		return 0;
	*masked /= seen;
	return tokens / seen;
}
