/*
 * Texts that go on token by token have the bits of whole texts: however they are cut, beside whatever, on any threads.
 */
#include "trainer/decode.h"

#include <lockstep/models.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/rng.h"
#include "trainer/predict.h"
#include "unit/assert_status.h"
#include "unit/test_main.h"
#include "unit/test_seed.h"

enum { ROOM = 150, WORDS = 67, TEXTS = 3 };

typedef struct fixture {
	ls_graph *graph;
	float *params;
	const ls_backend *backend;
	int32_t text[TEXTS][ROOM];
	float *whole; /* (TEXTS, ROOM, WORDS) logits behind every token, by whole texts */
	uint64_t seed;
} fixture;

static uint32_t draw(const fixture *f, uint64_t stream, uint64_t i)
{
	uint32_t words[4];
	ls_rng_words(ls_rng_make(f->seed, LS_RNG_TEST, stream), 0, i, words);
	return words[0];
}

/* Weights that make attention look at something. */
static void fill_params(fixture *f)
{
	assert_ok(ls_floats_new(&f->params, f->graph->params.total, "parameters"));
	assert_ok(ls_params_init(&f->graph->params, f->seed, f->params, NULL));
	for (size_t i = 0; i < f->graph->params.total; i++)
		f->params[i] *= 12;
}

static void predict_whole(fixture *f)
{
	ls_predictor *predictor;
	ls_predictor_options options = { .graph = f->graph, .backend = f->backend, .devices = 1, .threads = 2 };
	assert_ok(ls_predictor_new(&predictor, &options));
	ls_predictor_set_params(predictor, f->params, NULL);
	for (int t = 0; t < TEXTS; t++)
		for (int length = 1; length <= ROOM; length++) {
			ls_text_sample sample = { .length = length, .tokens = f->text[t] };
			assert_ok(ls_predictor_run_text(predictor, &sample, 1,
							f->whole + ((t * ROOM) + length - 1) * WORDS));
		}
	ls_predictor_free(predictor);
}

static int make_in(void **state, const char *precision)
{
	fixture *f = calloc(1, sizeof(*f));
	ls_model_options o = LS_MODEL_OPTIONS_INIT;

	o.name = "gpt-nano";
	o.text = (ls_text_model){ .tokens = ROOM, .vocabulary = WORDS };
	f->seed = test_seed();
	assert_ok(ls_model_build(&f->graph, &o));
	assert_ok(ls_graph_set_precision(f->graph, precision));
	assert_ok(ls_backend_choose(NULL, &f->backend));
	fill_params(f);
	for (int t = 0; t < TEXTS; t++)
		for (int i = 0; i < ROOM; i++)
			f->text[t][i] = (int32_t)(draw(f, 1, (uint64_t)(t * ROOM + i)) % WORDS);
	f->whole = calloc(TEXTS * ROOM * WORDS, sizeof(float));
	predict_whole(f);
	*state = f;
	return 0;
}

static int make(void **state)
{
	return make_in(state, "fp32");
}

static int clear(void **state)
{
	fixture *f = *state;
	ls_floats_free(f->params, f->graph->params.total);
	ls_graph_free(f->graph);
	free(f->whole);
	free(f);
	return 0;
}

static void assert_logits(const fixture *f, int text, int length, const float *logits)
{
	const float *whole = f->whole + (text * ROOM + length - 1) * WORDS;
	for (int i = 0; i < WORDS; i++)
		if (memcmp(&logits[i], &whole[i], sizeof(float)) != 0)
			fail_msg("text %d, %d tokens, logit %d: %a, of the whole text %a", text, length, i,
				 (double)logits[i], (double)whole[i]);
}

static ls_decoder *make_decoder(const fixture *f, int texts, int threads)
{
	ls_decoder *d;
	ls_decoder_options o = { .graph = f->graph, .backend = f->backend, .threads = threads, .texts = texts };
	assert_ok(ls_decoder_new(&d, &o));
	ls_decoder_set_params(d, f->params, NULL);
	assert_int_equal(ls_decoder_room(d), ROOM);
	return d;
}

/* All texts to their ends in pieces of random lengths, up to `most` tokens. */
static void go_on(const fixture *f, int texts, int threads, int most)
{
	ls_decoder *d = make_decoder(f, texts, threads);
	float logits[TEXTS * WORDS];
	int at[TEXTS] = { 0 }, is_fed[TEXTS];
	uint64_t draws = 0;

	for (int open = texts; open > 0;) {
		open = 0;
		for (int t = 0; t < texts; t++) {
			int count = 1 + (int)(draw(f, 2 + (uint64_t)most, draws++) % (uint32_t)most);
			count = count < ROOM - at[t] ? count : ROOM - at[t];
			is_fed[t] = count > 0;
			if (count == 0) {
				ls_decoder_rest(d, t);
				continue;
			}
			ls_decoder_feed(d, t, f->text[t] + at[t], count);
			at[t] += count;
			open += at[t] < ROOM;
		}
		ls_decoder_run(d, logits);
		for (int t = 0; t < texts; t++) {
			if (!is_fed[t])
				continue;
			assert_int_equal(ls_decoder_length(d, t), at[t]);
			assert_logits(f, t, at[t], logits + t * WORDS);
		}
	}
	ls_decoder_free(d);
}

static void token_by_token(void **state)
{
	go_on(*state, 1, 1, 1);
}

static void in_pieces_beside_others(void **state)
{
	for (int threads = 1; threads <= 3; threads++) {
		go_on(*state, TEXTS, threads, 1);
		go_on(*state, TEXTS, threads, 7);
		go_on(*state, 2, threads, 90);
	}
}

/* Text t goes on by `right` of its tokens and `wrong` others, of which all logits are asked for. */
static void feed_with_wrong_ones(const fixture *f, ls_decoder *d, int t, int at, int right, int wrong)
{
	int32_t fed[ROOM];

	for (int i = 0; i < right + wrong; i++)
		fed[i] = i < right ? f->text[t][at + i] : (f->text[t][at + i] + 1) % WORDS;
	ls_decoder_feed(d, t, fed, right + wrong);
	ls_decoder_ask(d, t, right + wrong);
}

static void logits_behind_several_tokens_and_back(void **state)
{
	fixture *f = *state;
	ls_decoder *d = make_decoder(f, TEXTS, 2);
	static float logits[TEXTS * ROOM * WORDS];
	uint64_t draws = 0;

	for (int at = 0; at < ROOM - 16;) {
		int right = 1 + (int)(draw(f, 99, draws++) % 8), row = 0, wrong[TEXTS];
		for (int t = 0; t < TEXTS; t++) {
			wrong[t] = (int)(draw(f, 99, draws++) % 8);
			feed_with_wrong_ones(f, d, t, at, right, wrong[t]);
		}
		ls_decoder_run(d, logits);
		for (int t = 0; t < TEXTS; t++) {
			for (int i = 0; i < right; i++)
				assert_logits(f, t, at + i + 1, logits + (row + i) * WORDS);
			row += right + wrong[t];
			ls_decoder_take_back(d, t, wrong[t]);
			assert_int_equal(ls_decoder_length(d, t), at + right);
		}
		at += right;
	}
	ls_decoder_free(d);
}

static void a_text_can_begin_anew(void **state)
{
	fixture *f = *state;
	ls_decoder *d = make_decoder(f, 1, 1);
	float logits[WORDS];

	ls_decoder_feed(d, 0, f->text[0], ROOM);
	ls_decoder_run(d, logits);
	assert_logits(f, 0, ROOM, logits);
	ls_decoder_restart(d, 0);
	assert_int_equal(ls_decoder_length(d, 0), 0);
	ls_decoder_feed(d, 0, f->text[1], 5);
	ls_decoder_run(d, logits);
	assert_logits(f, 1, 5, logits);
	ls_decoder_free(d);
}

/* A text's last key may be the first half of a pair, beside one that a whole text has there. */
static void in_bf16(void **ignored)
{
	void *state = NULL;
	(void)ignored;
	make_in(&state, "bf16");
	go_on(state, 1, 1, 1);
	go_on(state, TEXTS, 2, 7);
	clear(&state);
}

static void only_models_of_language(void **state)
{
	fixture *f = *state;
	ls_model_options o = LS_MODEL_OPTIONS_INIT;
	ls_graph *graph = NULL;
	ls_decoder *d = NULL;

	o.name = "bert-tiny";
	assert_ok(ls_model_build(&graph, &o));
	ls_decoder_options options = { .graph = graph, .backend = f->backend, .threads = 1, .texts = 1 };
	assert_fails(ls_decoder_new(&d, &options), LS_EUNSUPPORTED, "does not predict the next token");
	ls_graph_free(graph);
}

TEST_MAIN_GROUP(make, clear, token_by_token, in_pieces_beside_others, logits_behind_several_tokens_and_back,
		a_text_can_begin_anew, in_bf16, only_models_of_language)
