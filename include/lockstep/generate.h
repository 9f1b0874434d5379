/*
 * generate.h - text from a model of language.
 *
 *     ls_generate_options options = LS_GENERATE_OPTIONS_INIT;
 *     options.prompt = "To be, or";
 *     options.write = print;          // void print(void *context, int64_t text, const char *bytes, size_t count)
 *     if (ls_generate(model, &options, NULL) != LS_OK)
 *             puts(ls_last_error());
 *
 * A token is drawn from what the model predicts behind the text so far, and the text goes on with it. Which one depends on
 * the weights, the prompt, the seed and the number of the text alone: not on how many texts there are, nor on threads.
 */
#ifndef LOCKSTEP_GENERATE_H
#define LOCKSTEP_GENERATE_H

#include <lockstep/model.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ls_generate_options {
	size_t size;          /* set by LS_GENERATE_OPTIONS_INIT */
	const char *prompt;   /* what all texts begin with; NULL: nothing */
	int64_t prompt_bytes; /* of it; -1: up to its 0 */
	int64_t tokens;       /* that are added to each text, at most */
	int64_t texts;        /* how many */
	double temperature;   /* divides the logits; 0: always the most probable token */
	int64_t top_k;        /* draw from the k most probable tokens; 0: from all */
	double top_p;         /* draw from the most probable tokens that have this share together; 1: from all */
	uint64_t seed;
	int64_t threads; /* 0: all cores */
	int goes_on;     /* 0: the piece that ends a text ends it; 1: the text goes on behind it */
	int unused;      /* fills the struct up; stays 0 */
	/* Called with the bytes of every token that was added to a text, which may end inside a character; NULL: nobody
	 * wants them. A text that ended is told with 0 bytes. */
	void (*write)(void *context, int64_t text, const char *bytes, size_t count);
	int (*stop)(void *context); /* asked between tokens: not 0 ends all texts here; NULL: nobody stops it */
	void *context;              /* of both */
} ls_generate_options;
#define LS_GENERATE_OPTIONS_INIT                                                                                       \
	{                                                                                                              \
		.size = sizeof(ls_generate_options), .prompt_bytes = -1, .tokens = 200, .texts = 1, .temperature = 1,  \
		.top_p = 1, .seed = 1                                                                                  \
	}

typedef struct ls_generate_result {
	int64_t prompt_tokens;
	int64_t tokens; /* that were added, to all texts together */
	double prompt_s, tokens_s;
	uint64_t reserved[8]; /* 0 */
} ls_generate_result;

/* The model must have a vocabulary: one that was trained on text from files. The result may be NULL. */
LS_API ls_status ls_generate(ls_model *model, const ls_generate_options *options, ls_generate_result *result);

#ifdef __cplusplus
}
#endif
#endif
