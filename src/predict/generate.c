/*
 * generate.c - lockstep/generate.h: the prompt once, then token after token of all texts.
 *
 * A text that fills the model's context goes on with the second half of it: what it sees then begins
 * at the first position again.
 *
 * A text that is alone is fed guesses at its next tokens after its last one (lookup.h). The model then says what comes
 * after each, with the bits that it has token by token: as long as a token is drawn that was guessed, the next one can
 * be drawn at once. The cache forgets the others.
 */
#include <lockstep/generate.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backends/backend.h"
#include "base/clock.h"
#include "base/handles.h"
#include "base/options.h"
#include "predict/lookup.h"
#include "predict/token_sampler.h"
#include "trained/model_handle.h"
#include "trainer/decode.h"

enum { TOKENS_MOST = 1 << 30, TEXTS_MOST = 4096 };

typedef struct generation {
	ls_model *model;
	const ls_generate_options *options;
	const ls_bpe *bpe;
	ls_decoder *decoder;
	ls_token_sampler *sampler;
	int room;
	int64_t vocabulary;
	int32_t *context; /* (texts, room) the tokens that a text sees */
	int *length;      /* (texts) of it */
	char *is_over;    /* (texts) */
	float *logits;    /* (texts, vocabulary), of a text that is alone (1 + guesses, vocabulary) */
	int64_t place;    /* of the next token in its text */
	ls_lookup lookup;
	int32_t guesses[LS_LOOKUP_MOST]; /* that the only text was fed */
	int guessed;
	ls_generate_result result;
} generation;

/* ---- what is asked for ------------------------------------------------------------------------------------------- */

static ls_status check_options(const ls_generate_options *o)
{
	if (!o->prompt && o->prompt_bytes > 0)
		return ls_fail(LS_EINVALID, "options.prompt is NULL, and options.prompt_bytes %lld",
			       (long long)o->prompt_bytes);
	if (o->max_new_tokens < 0 || o->max_new_tokens > TOKENS_MOST)
		return ls_fail(LS_EINVALID, "options.max_new_tokens is %lld, not in 0..%d",
			       (long long)o->max_new_tokens, TOKENS_MOST);
	if (o->num_samples < 1 || o->num_samples > TEXTS_MOST)
		return ls_fail(LS_EINVALID, "options.num_samples is %lld, not in 1..%d", (long long)o->num_samples,
			       TEXTS_MOST);
	if (!(o->temperature >= 0 && o->temperature <= 1e6))
		return ls_fail(LS_EINVALID, "options.temperature is %g; it must be 0 or more", o->temperature);
	if (o->top_k < 0)
		return ls_fail(LS_EINVALID, "options.top_k is %lld; it must be 0 or more", (long long)o->top_k);
	if (!(o->top_p > 0 && o->top_p <= 1))
		return ls_fail(LS_EINVALID, "options.top_p is %g, not in (0, 1]", o->top_p);
	if (o->lookup < 0 || o->lookup > LS_LOOKUP_MOST)
		return ls_fail(LS_EINVALID, "options.lookup is %lld, not in 0..%d", (long long)o->lookup,
			       LS_LOOKUP_MOST);
	if (o->threads < 0 || o->threads > LS_THREADS_MAX)
		return ls_fail(LS_EINVALID, "options.threads is %lld, not in 0..%d", (long long)o->threads,
			       LS_THREADS_MAX);
	return LS_OK;
}

static ls_status check_model(const ls_model *model)
{
	LS_TRY(ls_model_check_usable(model));
	if (!model->trained.graph->predicts_next)
		return ls_fail(LS_EUNSUPPORTED,
			       "the model does not predict the next token: only language models, such as gpt-nano, "
			       "generate text");
	if (!model->tokenizer.bpe)
		return ls_fail(LS_EUNSUPPORTED,
			       "the model has no vocabulary: it was trained on generated text, or loaded without one");
	return LS_OK;
}

/* ---- texts ------------------------------------------------------------------------------------------------------- */

static int32_t *context_of(const generation *g, int64_t text)
{
	return g->context + text * g->room;
}

/* All texts begin with the prompt; the end of a prompt that is too long counts. */
static ls_status begin_texts(generation *g)
{
	const ls_generate_options *o = g->options;
	const char *prompt = o->prompt ? o->prompt : "";
	ls_text_sample sample = { .tokens = g->context };
	int cut = 0;

	LS_TRY(ls_model_tokenize(g->model, prompt, o->prompt_bytes < 0 ? strlen(prompt) : (size_t)o->prompt_bytes,
				 &sample, &cut));
	size_t bytes = o->prompt_bytes < 0 ? strlen(prompt) : (size_t)o->prompt_bytes;
	g->result.prompt_tokens = bytes > 0 ? sample.length + cut : 0;
	for (int64_t i = 0; i < o->num_samples; i++) {
		g->length[i] = sample.length;
		memmove(context_of(g, i), g->context, (size_t)sample.length * sizeof(*g->context));
		ls_decoder_feed(g->decoder, i, g->context, sample.length);
	}
	return LS_OK;
}

static void end_text(generation *g, int64_t text)
{
	g->is_over[text] = 1;
	ls_decoder_rest(g->decoder, text);
	if (g->options->write)
		g->options->write(g->options->context, text, "", 0);
}

/* A text whose context is full keeps the second half of it. */
static void feed(generation *g, int64_t text, int32_t token)
{
	int32_t *context = context_of(g, text);

	if (g->length[text] < g->room) {
		context[g->length[text]++] = token;
		ls_decoder_feed(g->decoder, text, &token, 1);
		return;
	}
	int kept = g->room / 2;
	memmove(context, context + g->room - kept, (size_t)kept * sizeof(*context));
	context[kept] = token;
	g->length[text] = kept + 1;
	ls_decoder_restart(g->decoder, text);
	ls_decoder_feed(g->decoder, text, context, g->length[text]);
}

/* Draw the next token of a text and hand it over. */
static ls_status draw(generation *g, int64_t text, const float *logits, int32_t *token)
{
	size_t bytes = 0;

	for (int64_t i = 0; i < g->vocabulary; i++)
		if (!isfinite(logits[i]))
			return ls_fail(LS_ENUMERIC, "a logit of the model is %s: the weights are not usable",
				       isnan(logits[i]) ? "NaN" : "infinite");
	*token = ls_token_sampler_draw(g->sampler, logits, (uint64_t)text, (uint64_t)g->place);
	if (*token == ls_bpe_end(g->bpe) && !g->options->ignore_eos) {
		end_text(g, text);
		return LS_OK;
	}
	const char *piece = ls_bpe_piece(g->bpe, *token, &bytes);
	g->result.tokens++;
	if (piece && g->options->write)
		g->options->write(g->options->context, text, piece, bytes);
	return LS_OK;
}

static void end_all(generation *g)
{
	for (int64_t i = 0; i < g->options->num_samples; i++)
		if (!g->is_over[i])
			end_text(g, i);
}

/* After every token, also one that was guessed: a program's text must not depend on the guesses. */
static ls_status check_stop(generation *g)
{
	const ls_generate_options *o = g->options;

	if (!o->stop || !o->stop(o->context))
		return LS_OK;
	end_all(g);
	return ls_fail(LS_EINTERRUPTED, "stopped after %lld of %lld tokens", (long long)g->place,
		       (long long)o->max_new_tokens);
}

/* ---- several texts: a token of each ------------------------------------------------------------------------------ */

static ls_status extend_all(generation *g)
{
	for (int64_t i = 0; i < g->options->num_samples; i++) {
		int32_t token;
		if (g->is_over[i])
			continue;
		LS_TRY(draw(g, i, g->logits + i * g->vocabulary, &token));
		if (!g->is_over[i])
			feed(g, i, token);
	}
	g->place++;
	return check_stop(g);
}

/* ---- a text that is alone: as many tokens as were guessed, and one more ------------------------------------------ */

/* After the token that the text was fed; the last token of all needs none. */
static void feed_guesses(generation *g)
{
	int64_t left = g->options->max_new_tokens - g->place - 1;
	int length = g->length[0], room = g->room - length;
	int32_t fed[1 + LS_LOOKUP_MOST] = { g->context[length - 1] };

	room = left < room ? (int)left : room;
	g->guessed = length == ls_decoder_length(g->decoder, 0) + 1
			     ? ls_lookup_guess(&g->lookup, g->context, length, room, g->guesses)
			     : 0; /* all of a context that begins anew is on its way */
	if (g->guessed == 0)
		return;
	memcpy(fed + 1, g->guesses, (size_t)g->guessed * sizeof(*fed));
	ls_decoder_feed(g->decoder, 0, fed, 1 + g->guessed);
	ls_decoder_ask(g->decoder, 0, 1 + g->guessed);
}

static void keep_right_guesses(generation *g, int right)
{
	ls_decoder_take_back(g->decoder, 0, g->guessed - right);
	memcpy(g->context + g->length[0], g->guesses, (size_t)right * sizeof(*g->context));
	g->length[0] += right;
	g->result.guesses += g->guessed;
	g->result.right_guesses += right;
	if (g->guessed > 0)
		ls_lookup_learn(&g->lookup, g->guessed, right);
}

static ls_status extend(generation *g)
{
	int32_t token = 0;
	int right = 0, is_right = 1;

	for (int row = 0; is_right && !g->is_over[0]; row++) {
		LS_TRY(draw(g, 0, g->logits + row * g->vocabulary, &token));
		g->place++;
		LS_TRY(check_stop(g));
		is_right = !g->is_over[0] && row < g->guessed && token == g->guesses[row];
		right += is_right;
	}
	keep_right_guesses(g, right);
	if (g->is_over[0])
		return LS_OK;
	feed(g, 0, token);
	feed_guesses(g);
	return LS_OK;
}

/* ---- all tokens -------------------------------------------------------------------------------------------------- */

static int count_open(const generation *g)
{
	int count = 0;
	for (int64_t i = 0; i < g->options->num_samples; i++)
		count += !g->is_over[i];
	return count;
}

static ls_status add_tokens(generation *g)
{
	const ls_generate_options *o = g->options;
	double begun = ls_clock_seconds();

	for (int is_prompt = 1; g->place < o->max_new_tokens && count_open(g) > 0; is_prompt = 0) {
		ls_decoder_run(g->decoder, g->logits);
		if (is_prompt) {
			g->result.prompt_s = ls_clock_seconds() - begun;
			begun = ls_clock_seconds();
		}
		LS_TRY(o->num_samples == 1 ? extend(g) : extend_all(g));
	}
	g->result.tokens_s = ls_clock_seconds() - begun;
	end_all(g);
	return LS_OK;
}

/* ---- the run ----------------------------------------------------------------------------------------------------- */

static ls_status make_decoder(generation *g)
{
	const ls_trained *t = &g->model->trained;
	int64_t cores = ls_pin_cores();
	ls_decoder_options options = { .graph = t->graph,
				       .threads = (int)(g->options->threads > 0 ? g->options->threads
							: cores > 0             ? cores
										: 1),
				       .texts = g->options->num_samples };

	LS_TRY(ls_backend_choose(NULL, &options.backend));
	LS_TRY(ls_decoder_new(&g->decoder, &options));
	ls_decoder_set_params(g->decoder, t->params, t->buffers);
	return LS_OK;
}

static ls_status take_memory(generation *g)
{
	size_t texts = (size_t)g->options->num_samples, rows = texts > 1 ? texts : 1 + (size_t)g->options->lookup;

	g->context = calloc(texts * (size_t)g->room, sizeof(*g->context));
	g->length = calloc(texts, sizeof(*g->length));
	g->is_over = calloc(texts, 1);
	g->logits = calloc(rows * (size_t)g->vocabulary, sizeof(*g->logits));
	if (g->context && g->length && g->is_over && g->logits)
		return LS_OK;
	return ls_fail(LS_EMEMORY, "no memory for %zu texts", texts);
}

static ls_status run(generation *g)
{
	const ls_generate_options *o = g->options;
	const ls_graph *graph = g->model->trained.graph;

	g->bpe = g->model->tokenizer.bpe;
	g->room = graph->tokens_max;
	g->vocabulary = graph->values[graph->logits].channels;
	/* A model may have more tokens than its vocabulary, which mean nothing. */
	const ls_token_sampler_options sampler = { .vocabulary = (int64_t)ls_bpe_size(g->bpe),
						   .temperature = o->temperature,
						   .top_k = o->top_k,
						   .top_p = o->top_p,
						   .seed = o->seed };
	LS_TRY(take_memory(g));
	LS_TRY(make_decoder(g));
	LS_TRY(ls_token_sampler_new(&g->sampler, &sampler));
	ls_lookup_begin(&g->lookup, o->lookup);
	LS_TRY(begin_texts(g));
	return add_tokens(g);
}

ls_status ls_generate(ls_model *model, const ls_generate_options *options, ls_generate_result *result)
{
	ls_generate_options own = LS_GENERATE_OPTIONS_INIT;
	generation g = { .model = model, .options = &own };

	LS_TRY(LS_OPTIONS_TAKE_FILLED(&own, options, context, "LS_GENERATE_OPTIONS_INIT"));
	LS_TRY(check_options(&own));
	LS_TRY(check_model(model));
	ls_status status = run(&g);
	if (result)
		*result = g.result;
	ls_token_sampler_free(g.sampler);
	ls_decoder_free(g.decoder);
	free(g.context);
	free(g.length);
	free(g.is_over);
	free(g.logits);
	return status;
}
