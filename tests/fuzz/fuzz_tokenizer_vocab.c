/*
 * Any bytes as a vocab.txt: refused with a message, or a vocabulary in which every piece is found where it is.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tokenizer/vocab.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int holds)
{
	if (!holds)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	ls_vocab *vocab = NULL;
	if (ls_vocab_parse(&vocab, (const char *)data, size, "fuzz") != LS_OK) {
		require(!vocab && strncmp(ls_last_error(), "fuzz:", 5) == 0);
		return 0;
	}
	size_t count = ls_vocab_size(vocab), bytes = 0, used = 0;
	require(count >= 5);
	for (size_t id = 0; id < count; id++) {
		const char *piece = ls_vocab_piece(vocab, (int32_t)id);
		size_t length = strlen(piece);
		require(length > 0 && length <= LS_PIECE_BYTES_MAX && !memchr(piece, '\n', length));
		require(ls_vocab_find(vocab, piece, length) == (int32_t)id);
		require(ls_vocab_longest(vocab, piece, length, 0, &used) == (int32_t)id && used == length);
		if (length > 2 && !memcmp(piece, "##", 2))
			require(ls_vocab_longest(vocab, piece + 2, length - 2, 1, &used) == (int32_t)id);
		bytes += length + 1;
	}
	require(bytes <= size + 1 && !ls_vocab_piece(vocab, (int32_t)count));
	ls_vocab_free(vocab);
	return 0;
}
