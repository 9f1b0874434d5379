/*
 * corpus_cache.c - the format of a cache file, and the lookup of a corpus's file.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/log.h"
#include "base/status.h"
#include "data/dataset.h"
#include "data/readers/corpus.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "cache files are mapped, and little-endian"
#endif

static const char magic[8] = "LSTOKENS";
enum { VERSION = 2, WORDS = LS_CORPUS_HEADER / 8 };

/* The header's words, behind the magic; the last is a checksum of all before it. */
enum {
	AT_VERSION = 1,
	AT_KEY,
	AT_WIDE,
	AT_FILES,
	AT_DOCUMENTS,
	AT_SENTENCES,
	AT_TOKENS,
	AT_BYTES,
	AT_UNKNOWN,
	AT_HASH
};

void ls_corpus_encode(uint8_t header[LS_CORPUS_HEADER], uint64_t key, uint64_t hash, int wide,
		      const ls_corpus_counts *counts)
{
	uint64_t words[WORDS] = { [AT_VERSION] = VERSION,
				  [AT_KEY] = key,
				  [AT_WIDE] = (uint64_t)wide,
				  [AT_FILES] = counts->files,
				  [AT_DOCUMENTS] = counts->documents,
				  [AT_SENTENCES] = counts->sentences,
				  [AT_TOKENS] = counts->tokens,
				  [AT_BYTES] = counts->bytes,
				  [AT_UNKNOWN] = counts->unknown,
				  [AT_HASH] = hash };
	memcpy(words, magic, sizeof(magic));
	words[WORDS - 1] = XXH64(words, sizeof(words) - 8, 0);
	memcpy(header, words, LS_CORPUS_HEADER);
}

uint64_t ls_corpus_token_bytes(uint64_t tokens, int wide)
{
	return (tokens * (wide ? 4 : 2) + 7) / 8 * 8;
}

static ls_status header_read(ls_corpus *corpus, const uint8_t *data, size_t bytes, const char *name)
{
	uint64_t words[WORDS];
	if (bytes < LS_CORPUS_HEADER || memcmp(data, magic, sizeof(magic)) != 0)
		return ls_fail(LS_EFORMAT, "%s is not a tokenized corpus", name);
	memcpy(words, data, sizeof(words));
	if (words[WORDS - 1] != XXH64(words, sizeof(words) - 8, 0))
		return ls_fail(LS_EFORMAT, "%s: the header's checksum is wrong", name);
	if (words[AT_VERSION] != VERSION || words[AT_WIDE] > 1)
		return ls_fail(LS_EFORMAT, "%s is of version %llu, expected %d", name,
			       (unsigned long long)words[AT_VERSION], VERSION);
	corpus->key = words[AT_KEY];
	corpus->hash = words[AT_HASH];
	corpus->wide = (int)words[AT_WIDE];
	corpus->counts = (ls_corpus_counts){ .files = words[AT_FILES],
					     .documents = words[AT_DOCUMENTS],
					     .sentences = words[AT_SENTENCES],
					     .tokens = words[AT_TOKENS],
					     .bytes = words[AT_BYTES],
					     .unknown = words[AT_UNKNOWN] };
	return LS_OK;
}

static ls_status size_check(const ls_corpus *corpus, size_t bytes, const char *name)
{
	const ls_corpus_counts *c = &corpus->counts;
	const uint64_t most = (uint64_t)1 << 56; /* so that no sum overflows */
	if (c->tokens > most || c->sentences > most || c->documents > UINT32_MAX ||
	    LS_CORPUS_HEADER + ls_corpus_token_bytes(c->tokens, corpus->wide) + 8 * (c->sentences + 1) +
			    8 * (c->documents + 1) !=
		    bytes)
		return ls_fail(LS_EFORMAT, "%s has %zu bytes, which is not what its header says", name, bytes);
	return LS_OK;
}

/* Offsets rise strictly from 0 to `end`: nothing in a cache file is empty. */
static ls_status offsets_check(const uint64_t *offset, uint64_t count, uint64_t end, const char *what, const char *name)
{
	int right = offset[0] == 0 && offset[count] == end;
	for (uint64_t i = 0; i < count && right; i++)
		right = offset[i] < offset[i + 1];
	return right ? LS_OK : ls_fail(LS_EFORMAT, "%s: where its %s begin is damaged", name, what);
}

ls_status ls_corpus_parse(ls_corpus *corpus, const uint8_t *data, size_t bytes, const char *name)
{
	*corpus = (ls_corpus){ 0 };
	LS_TRY(header_read(corpus, data, bytes, name));
	LS_TRY(size_check(corpus, bytes, name));
	const ls_corpus_counts *c = &corpus->counts;
	const uint8_t *offsets = data + LS_CORPUS_HEADER + ls_corpus_token_bytes(c->tokens, corpus->wide);
	corpus->tokens = data + LS_CORPUS_HEADER;
	corpus->sentence = (const uint64_t *)offsets;
	corpus->document = corpus->sentence + c->sentences + 1;
	if (XXH64(corpus->tokens, (size_t)c->tokens * (corpus->wide ? 4 : 2), 0) != corpus->hash)
		return ls_fail(LS_EFORMAT, "%s: its tokens are damaged", name);
	LS_TRY(offsets_check(corpus->sentence, c->sentences, c->tokens, "sentences", name));
	return offsets_check(corpus->document, c->documents, c->sentences, "documents", name);
}

void ls_corpus_close(ls_corpus *corpus)
{
	ls_file_map_close(&corpus->map);
	*corpus = (ls_corpus){ 0 };
}

static ls_status open_cache(ls_corpus *corpus, const char *path, uint64_t key)
{
	ls_file_map map;
	LS_TRY(ls_file_map_open(&map, path));
	ls_status status = ls_corpus_parse(corpus, map.data, map.bytes, path);
	if (!status && corpus->key != key)
		status = ls_fail(LS_EMISMATCH, "%s is of another corpus", path);
	if (status)
		ls_file_map_close(&map);
	else
		corpus->map = map;
	return status;
}

static uint64_t corpus_key(const ls_corpus_files *files, const ls_tokenizer *tokenizer,
			   const ls_dataset_options *options)
{
	uint64_t hash = XXH64(magic, sizeof(magic), VERSION);
	for (size_t i = 0; i < files->count; i++) {
		const ls_corpus_file *f = &files->file[i];
		char *absolute = realpath(f->path, NULL);
		const char *path = absolute ? absolute : f->path;
		uint64_t facts[4] = { f->bytes, (uint64_t)f->changed, (uint64_t)f->entry_changed, f->inode };
		hash = XXH64(path, strlen(path), hash);
		hash = XXH64(facts, sizeof(facts), hash);
		free(absolute);
	}
	uint64_t how[3] = { ls_tokenizer_hash(tokenizer), options->cased != 0, options->replace_invalid != 0 };
	return XXH64(how, sizeof(how), hash);
}

/* One process makes a cache file; the others wait, also those of other nodes that share the directory. -1: no lock. */
static int lock_directory(const char *dir)
{
	char path[4096];
	if (ls_path_join(path, sizeof(path), dir, ".lock") != LS_OK)
		return -1;
	int fd = -1;
	if (ls_file_open_own(&fd, path, O_RDWR) != LS_OK)
		return -1;
	if (flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
		ls_log_note("waiting for another process that is tokenizing a corpus into %s", dir);
		while (flock(fd, LOCK_EX) != 0 && errno == EINTR)
			;
	}
	return fd;
}

static ls_status make_cache(ls_corpus *corpus, const char *dir, const char *path, const ls_corpus_files *files,
			    const ls_tokenizer *tokenizer, uint64_t key)
{
	LS_TRY(ls_path_make(dir));
	int lock = lock_directory(dir);
	ls_status status = open_cache(corpus, path, key); /* another one may have made it meanwhile */
	if (status) {
		status = ls_corpus_build(path, files, tokenizer, key, 0);
		if (!status)
			status = open_cache(corpus, path, key);
	}
	if (lock >= 0)
		close(lock);
	return status;
}

ls_status ls_corpus_load(ls_corpus *corpus, const char *path, const ls_tokenizer *tokenizer,
			 const ls_dataset_options *options)
{
	char dir[4096], name[64], file[4096];
	ls_corpus_files files;
	LS_TRY(ls_path_join(dir, sizeof(dir), ls_data_cache(), "corpus"));
	LS_TRY(ls_corpus_find(&files, path));
	uint64_t key = corpus_key(&files, tokenizer, options);
	snprintf(name, sizeof(name), "%016llx.tokens", (unsigned long long)key);
	ls_status status = ls_path_join(file, sizeof(file), dir, name);
	if (!status && open_cache(corpus, file, key) != LS_OK)
		status = make_cache(corpus, dir, file, &files, tokenizer, key);
	ls_corpus_files_free(&files);
	return status;
}
