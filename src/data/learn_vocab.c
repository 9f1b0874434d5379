#include "data/learn_vocab.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/files.h"
#include "base/log.h"
#include "base/status.h"
#include "data/corpus.h"
#include "data/dataset.h"
#include "data/meter.h"
#include "data/sst.h"
#include "text/learn.h"

#define PATIENCE 2.0 /* seconds before progress is shown */

typedef struct learning {
	ls_meter meter;
	double begun;
} learning;

static void on_pieces(void *context, size_t pieces)
{
	learning *l = context;
	if (ls_clock_seconds() - l->begun > PATIENCE)
		ls_meter_update(&l->meter, pieces);
}

static ls_status add_file(ls_learner *learner, const char *path)
{
	ls_file_map map;
	LS_TRY(ls_file_map_open(&map, path));
	ls_status status = ls_learner_add(learner, (const char *)map.data, map.bytes);
	ls_file_map_close(&map);
	return status ? ls_fail_context(status, "%s", path) : LS_OK;
}

static ls_status add_corpus(ls_learner *learner, const char *path)
{
	ls_corpus_files files;
	LS_TRY(ls_corpus_find(&files, path));
	ls_status status = LS_OK;
	for (size_t i = 0; i < files.count && !status; i++)
		status = add_file(learner, files.file[i].path);
	ls_corpus_files_free(&files);
	return status;
}

/* The sentences of train.txt, as text. */
static ls_status add_trees(ls_learner *learner, const char *dir)
{
	char path[4096], *text = NULL;
	size_t bytes = 0;
	uint64_t count;
	ls_file_map map;
	LS_TRY(ls_path_join(path, sizeof(path), dir, ls_sst_files[LS_SST_TRAIN].name));
	LS_TRY(ls_file_map_open(&map, path));
	FILE *to = open_memstream(&text, &bytes);
	ls_status status = to ? ls_sst_check((const char *)map.data, map.bytes, path, to, &count) : LS_OK;
	if ((!to || fclose(to) != 0) && !status)
		status = ls_fail(LS_EMEMORY, "no memory for the sentences of %s", path);
	ls_file_map_close(&map);
	if (!status)
		status = ls_learner_add(learner, text, bytes);
	free(text);
	return status;
}

static ls_status finish(const ls_learn_job *job, ls_learner *learner)
{
	ls_vocab *vocab;
	uint64_t words = ls_learner_words(learner);
	LS_TRY(ls_learner_finish(learner, &vocab));
	ls_status status = ls_vocab_save(vocab, job->out);
	if (!status && !job->quiet)
		ls_log_line("learned a vocabulary of %zu pieces from %llu words: %s", ls_vocab_size(vocab),
			    (unsigned long long)words, job->out);
	ls_vocab_free(vocab);
	return status;
}

ls_status ls_learn_vocab(const ls_learn_job *job, const char *path)
{
	ls_learner *learner;
	learning progress = { .begun = ls_clock_seconds() };
	ls_learn_options options = { .size = job->pieces,
				     .cased = job->cased,
				     .replace_invalid = job->replace_invalid,
				     .progress = on_pieces,
				     .context = &progress };
	LS_TRY(ls_learner_new(&learner, &options));
	ls_meter_begin(&progress.meter, "learning a vocabulary", "k pieces", 1e3, 0, job->pieces, job->quiet);
	ls_status status = ls_sst_is(path) ? add_trees(learner, path) : add_corpus(learner, path);
	if (!status)
		status = finish(job, learner);
	ls_meter_end(&progress.meter);
	ls_learner_free(learner);
	return status;
}
