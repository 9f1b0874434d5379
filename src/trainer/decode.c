/*
 * decode.c - all texts in one micro-batch: the next tokens of each, packed, with a cache behind attention.
 */
#include "trainer/decode.h"

#include <stdlib.h>
#include <string.h>

#include "graph/kv_cache.h"

/* What a text is fed next. */
typedef struct fed {
	int32_t *tokens; /* (room) */
	int count;
	int asked; /* of the last ones, whose logits are wanted */
	int rests; /* a token that is not kept holds its place */
} fed;

struct ls_decoder {
	ls_decoder_options options;
	ls_devices *devices;
	ls_executor *executor;
	ls_kv_cache *cache;
	int room;
	fed *fed;        /* (texts) */
	int32_t *past;   /* (texts) tokens that are kept */
	int32_t *start;  /* (texts + 1) */
	int32_t *asked;  /* (texts + 1) where the rows begin whose logits are wanted */
	int32_t *rows;   /* (texts * room) these */
	int32_t *tokens; /* (texts * room) */
	int32_t *zeros;  /* (texts * room) segments, labels and targets, which nobody reads */
	uint64_t *samples;
	float *logits;
};

static ls_status take_memory(ls_decoder *d)
{
	size_t texts = (size_t)d->options.texts, all = texts * (size_t)d->room;

	d->fed = calloc(texts, sizeof(*d->fed));
	d->past = calloc(texts, sizeof(*d->past));
	d->start = calloc(texts + 1, sizeof(*d->start));
	d->asked = calloc(texts + 1, sizeof(*d->asked));
	d->rows = calloc(all, sizeof(*d->rows));
	d->tokens = calloc(all, sizeof(*d->tokens));
	d->zeros = calloc(all + 1, sizeof(*d->zeros));
	d->samples = calloc(texts, sizeof(*d->samples));
	int has_all = d->fed && d->past && d->start && d->asked && d->rows && d->tokens && d->zeros && d->samples;
	for (size_t i = 0; i < texts && has_all; i++)
		has_all = (d->fed[i].tokens = calloc((size_t)d->room, sizeof(int32_t))) != NULL;
	return has_all ? LS_OK
		       : ls_fail(LS_EMEMORY, "no memory for %lld texts of %d tokens", (long long)d->options.texts,
				 d->room);
}

static ls_status make(ls_decoder *d)
{
	const ls_decoder_options *o = &d->options;
	ls_devices_options devices = { .count = 1, .threads = o->threads };
	ls_load_options load = { .inference = 1, .sizes = { o->texts } };

	if (!o->graph->predicts_next)
		return ls_fail(LS_EUNSUPPORTED, "the model does not predict the next token: only language models, "
						"such as gpt-nano, generate text");
	d->room = o->graph->tokens_max;
	LS_TRY(take_memory(d));
	LS_TRY(ls_kv_cache_new(&d->cache, o->graph, o->texts, d->room));
	LS_TRY(ls_devices_open(&d->devices, o->backend, &devices));
	return ls_devices_load(d->devices, 0, o->graph, &load, &d->executor);
}

ls_status ls_decoder_new(ls_decoder **out, const ls_decoder_options *options)
{
	ls_decoder *d = calloc(1, sizeof(*d));
	if (!d)
		return ls_fail(LS_EMEMORY, "no memory to generate text");
	d->options = *options;
	ls_status status = make(d);
	if (status == LS_OK)
		*out = d;
	else
		ls_decoder_free(d);
	return status;
}

void ls_decoder_free(ls_decoder *d)
{
	if (!d)
		return;
	if (d->executor)
		ls_executor_free(d->executor);
	if (d->devices)
		ls_devices_close(d->devices);
	ls_kv_cache_free(d->cache);
	for (int64_t i = 0; d->fed && i < d->options.texts; i++)
		free(d->fed[i].tokens);
	free(d->fed);
	free(d->past);
	free(d->start);
	free(d->asked);
	free(d->rows);
	free(d->tokens);
	free(d->zeros);
	free(d->samples);
	free(d);
}

void ls_decoder_set_params(ls_decoder *d, const float *params, const float *buffers)
{
	d->options.backend->set_params(d->executor, params, buffers);
	for (int64_t i = 0; i < d->options.texts; i++)
		ls_decoder_restart(d, i);
}

int ls_decoder_room(const ls_decoder *d)
{
	return d->room;
}

int ls_decoder_length(const ls_decoder *d, int64_t i)
{
	return d->past[i];
}

void ls_decoder_restart(ls_decoder *d, int64_t i)
{
	d->past[i] = 0;
	d->fed[i].count = d->fed[i].rests = 0;
}

void ls_decoder_feed(ls_decoder *d, int64_t i, const int32_t *tokens, int count)
{
	memcpy(d->fed[i].tokens, tokens, (size_t)count * sizeof(*tokens));
	d->fed[i].count = count;
	d->fed[i].asked = 1;
	d->fed[i].rests = 0;
}

void ls_decoder_ask(ls_decoder *d, int64_t i, int count)
{
	d->fed[i].asked = count;
}

void ls_decoder_take_back(ls_decoder *d, int64_t i, int count)
{
	d->past[i] -= count;
}

/* Any token, in a place that the next one overwrites. */
void ls_decoder_rest(ls_decoder *d, int64_t i)
{
	d->fed[i].tokens[0] = 0;
	d->fed[i].count = 1;
	d->fed[i].asked = 1;
	d->fed[i].rests = 1;
	d->past[i] -= d->past[i] == d->room;
}

static void drive(void *context, int device)
{
	ls_decoder *d = context;
	ls_packed text = { .start = d->start,
			   .masked_start = d->asked,
			   .token = d->tokens,
			   .segment = d->zeros,
			   .masked_at = d->rows,
			   .target = d->zeros,
			   .past = d->past,
			   .cache = d->cache };
	ls_exec_microbatch microbatch = {
		.count = d->options.texts, .text = &text, .labels = d->zeros, .samples = d->samples
	};

	(void)device;
	d->options.backend->infer(d->executor, &microbatch, d->logits);
}

void ls_decoder_run(ls_decoder *d, float *logits)
{
	int32_t at = 0, row = 0;

	for (int64_t i = 0; i < d->options.texts; i++) {
		const fed *f = &d->fed[i];
		d->start[i] = at;
		d->asked[i] = row;
		memcpy(d->tokens + at, f->tokens, (size_t)f->count * sizeof(int32_t));
		at += f->count;
		for (int32_t r = at - f->asked; r < at; r++)
			d->rows[row++] = r;
	}
	d->start[d->options.texts] = at;
	d->asked[d->options.texts] = row;
	d->logits = logits;
	ls_devices_run(d->devices, 1, drive, d);
	ls_devices_leave(d->devices);
	for (int64_t i = 0; i < d->options.texts; i++)
		d->past[i] += d->fed[i].rests ? 0 : d->fed[i].count;
}
