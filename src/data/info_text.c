#include "data/info_text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/names.h"
#include "base/status.h"
#include "data/dataset.h"
#include "data/readers/corpus.h"
#include "data/readers/sst.h"

#define SAMPLES_MAX 100000 /* looked at */

typedef struct summary {
	uint64_t looked, tokens, masked, hash;
	uint64_t *lengths; /* (tokens_max + 1) number of samples per length */
	uint64_t *labels;  /* (classes) */
} summary;

/* The arrays of a sample and of a summary, in one allocation. */
static ls_status take_memory(const ls_dataset_info *info, summary *s, ls_text_sample *sample, void **memory)
{
	size_t lengths = (size_t)info->tokens_max + 1, labels = (size_t)info->classes;
	size_t tokens = (size_t)info->tokens_max, masked = (size_t)info->masked_max;
	char *base = calloc(1, (lengths + labels) * sizeof(uint64_t) + 2 * (tokens + masked) * sizeof(int32_t));
	if (!base)
		return ls_fail(LS_EMEMORY, "no memory to look at dataset '%s'", info->name);
	*memory = base;
	s->lengths = (uint64_t *)base;
	s->labels = s->lengths + lengths;
	sample->tokens = (int32_t *)(s->labels + labels);
	sample->segments = sample->tokens + tokens;
	sample->places = sample->segments + tokens;
	sample->targets = sample->places + masked;
	return LS_OK;
}

static ls_status look(const ls_dataset *set, summary *s, ls_text_sample *sample)
{
	s->looked = set->info.samples < SAMPLES_MAX ? set->info.samples : SAMPLES_MAX;
	for (uint64_t i = 0; i < s->looked; i++) {
		LS_TRY(ls_dataset_sample_text(set, i, 0, sample));
		s->lengths[sample->length]++;
		s->labels[sample->label]++;
		s->tokens += (uint64_t)sample->length;
		s->masked += (uint64_t)sample->masked;
		s->hash = XXH64(sample->tokens, (size_t)sample->length * sizeof(int32_t), s->hash);
		s->hash = XXH64(&sample->label, sizeof(sample->label), s->hash);
	}
	return LS_OK;
}

/* The length that a given share of the samples does not exceed; 0: the shortest. */
static int quantile(const summary *s, double share)
{
	uint64_t want = (uint64_t)(share * (double)(s->looked - 1)) + 1, seen = 0;
	int length = 0;
	while ((seen += s->lengths[length]) < want)
		length++;
	return length;
}

static void print_counts(const ls_corpus_counts *c, FILE *to)
{
	double tokens = c->tokens ? (double)c->tokens : 1;
	fprintf(to,
		"  %" PRIu64 " sentence%s, %" PRIu64 " token%s, %.2f bytes per token, [UNK] %.3f %% of the tokens\n",
		c->sentences, ls_plural(c->sentences, "s"), c->tokens, ls_plural(c->tokens, "s"),
		(double)c->bytes / tokens, 100.0 * (double)c->unknown / tokens);
}

/* Summary of the whole corpus, printed once. */
static void print_corpus(const ls_corpus *corpus, FILE *to)
{
	const ls_corpus_counts *c = &corpus->counts;
	fprintf(to, "corpus: %" PRIu64 " file%s, %" PRIu64 " document%s\n", c->files, ls_plural(c->files, "s"),
		c->documents, ls_plural(c->documents, "s"));
	print_counts(c, to);
}

static void print_labels(const ls_dataset_info *info, const summary *s, FILE *to)
{
	fprintf(to, "  labels");
	for (int i = 0; i < info->classes; i++)
		fprintf(to, "%s %d: %" PRIu64, i % 10 || !i ? "" : "\n        ", i, s->labels[i]);
	fprintf(to, "\n");
}

static void print_summary(const ls_dataset *set, const summary *s, FILE *to)
{
	const ls_dataset_info *info = &set->info;
	if (s->looked < info->samples)
		fprintf(to, "  of the first %" PRIu64 " sample%s:\n", s->looked, ls_plural(s->looked, "s"));
	fprintf(to, "  lengths %d to %d: 10 %% up to %d, half up to %d, 90 %% up to %d; mean %.1f\n", quantile(s, 0),
		quantile(s, 1), quantile(s, 0.1), quantile(s, 0.5), quantile(s, 0.9),
		(double)s->tokens / (double)s->looked);
	if (info->masked_max && info->classes > 1)
		fprintf(to, "  masked tokens: %.1f per sample, at most %d\n", (double)s->masked / (double)s->looked,
			info->masked_max);
	if (info->classes > 1)
		print_labels(info, s, to);
	fprintf(to, "  xxh64 %016" PRIx64 "\n", s->hash);
}

ls_status ls_info_text(const ls_dataset *set, const char *title, FILE *to)
{
	const ls_dataset_info *info = &set->info;
	summary s = { 0 };
	ls_text_sample sample = { 0 };
	void *memory = NULL;
	LS_TRY(take_memory(info, &s, &sample, &memory));
	ls_status status = look(set, &s, &sample);
	if (!status) {
		const ls_corpus *corpus = ls_corpus_of(set);
		ls_corpus_counts counts;
		if (corpus && strcmp(title, "train") == 0)
			print_corpus(corpus, to);
		fprintf(to, "%s: %" PRIu64 " sample%s of up to %d token%s, %d class%s, a vocabulary of %d\n", title,
			info->samples, ls_plural(info->samples, "s"), info->tokens_max,
			ls_plural((uint64_t)info->tokens_max, "s"), info->classes,
			ls_plural((uint64_t)info->classes, "es"), info->vocabulary);
		if (ls_sst_counts(set, &counts))
			print_counts(&counts, to);
		print_summary(set, &s, to);
	}
	free(memory);
	return status;
}
