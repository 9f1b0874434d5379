/*
 * generate.h - text from a language model.
 *
 *     ls_generate_options options = LS_GENERATE_OPTIONS_INIT;
 *     options.prompt = "To be, or";
 *     options.write = print;          // void print(void *context, int64_t sample, const char *bytes, size_t count)
 *     if (ls_generate(model, &options, NULL) != LS_OK)
 *             puts(ls_last_error());
 *
 * A token is sampled from what the model predicts after the text so far, and appended to it. Which one depends on the
 * weights, the prompt, the seed and the number of the sample alone: not on how many samples there are, nor on threads,
 * nor on whether tokens are guessed ahead.
 */
#ifndef LOCKSTEP_GENERATE_H
#define LOCKSTEP_GENERATE_H

#include <lockstep/model.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ls_generate_options {
	size_t size;            /* set by LS_GENERATE_OPTIONS_INIT */
	const char *prompt;     /* what all samples begin with; NULL: nothing */
	int64_t prompt_bytes;   /* of it; -1: up to its 0 */
	int64_t max_new_tokens; /* for each sample */
	int64_t num_samples;    /* texts to generate from the prompt */
	double temperature;     /* divides the logits; 0: always the most probable token */
	int64_t top_k;          /* sample from the k most probable tokens; 0: from all */
	double top_p; /* sample from the most probable tokens whose probabilities add up to this; 1: from all */
	uint64_t seed;
	int64_t threads; /* 0: all cores */
	int ignore_eos;  /* 0: the end-of-text token ends a sample; 1: it continues */
	int unused;      /* fills the struct up; stays 0 */
	/* Called with the bytes of every new token, which may end inside a character; NULL: nobody wants them. A call
	 * with 0 bytes ends the sample. */
	void (*write)(void *context, int64_t sample, const char *bytes, size_t count);
	/* Asked between tokens: not 0 ends all samples here, with LS_EINTERRUPTED; may be NULL. */
	int (*stop)(void *context);
	void *context; /* of both */
	/* Guess at most this many tokens ahead, up to 31, where the text repeats itself, and check them all at once:
	 * faster, the same text. For a single sample only; 0: no guesses. */
	int64_t lookup;
} ls_generate_options;
#define LS_GENERATE_OPTIONS_INIT                                                                                       \
	{                                                                                                              \
		.size = sizeof(ls_generate_options), .prompt_bytes = -1, .max_new_tokens = 200, .num_samples = 1,      \
		.temperature = 1, .top_p = 1, .seed = 1, .lookup = 15                                                  \
	}

typedef struct ls_generate_result {
	int64_t prompt_tokens;
	int64_t tokens; /* new ones, of all samples together */
	double prompt_s, tokens_s;
	int64_t guesses, right_guesses; /* tokens that were guessed ahead, and those of them that came */
	uint64_t reserved[6];           /* 0 */
} ls_generate_result;

/* The model must have a vocabulary: one that was trained on text from files. The result may be NULL. */
LS_API ls_status ls_generate(ls_model *model, const ls_generate_options *options, ls_generate_result *result);

#ifdef __cplusplus
}
#endif
#endif
