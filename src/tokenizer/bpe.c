/*
 * bpe.c - pieces in one block of bytes with a hash table over them, and merges with another.
 */
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/array.h"
#include "base/rng.h"
#include "tokenizer/bpe_state.h"

/* ---- bytes that are not visible ---------------------------------------------------------------------------------- */

int ls_bpe_is_visible(int32_t c)
{
	return (c >= '!' && c <= '~') || (c >= 0xA1 && c <= 0xAC) || (c >= 0xAE && c <= 0xFF);
}

void ls_bpe_byte_order(uint8_t order[LS_BPE_BYTE_COUNT])
{
	int count = 0;
	for (int pass = 1; pass >= 0; pass--)
		for (int byte = 0; byte < LS_BPE_BYTE_COUNT; byte++)
			if (ls_bpe_is_visible(byte) == pass)
				order[count++] = (uint8_t)byte;
}

/* ---- pieces ------------------------------------------------------------------------------------------------------ */

size_t ls_bpe_piece_bytes(const ls_bpe *bpe, size_t id)
{
	return bpe->begin[id + 1] - bpe->begin[id];
}

static size_t text_slot(const ls_bpe *bpe, const char *text, size_t bytes)
{
	for (size_t i = XXH64(text, bytes, 0) & (bpe->slots - 1);; i = (i + 1) & (bpe->slots - 1)) {
		uint32_t number = bpe->table[i];
		if (!number)
			return i;
		size_t id = number - 1;
		if (ls_bpe_piece_bytes(bpe, id) == bytes && memcmp(bpe->text + bpe->begin[id], text, bytes) == 0)
			return i;
	}
}

int32_t ls_bpe_find(const ls_bpe *bpe, const char *piece, size_t bytes)
{
	return bpe->slots ? (int32_t)bpe->table[text_slot(bpe, piece, bytes)] - 1 : -1;
}

const char *ls_bpe_piece(const ls_bpe *bpe, int32_t id, size_t *bytes)
{
	if (id < 0 || (size_t)id >= bpe->count)
		return NULL;
	*bytes = ls_bpe_piece_bytes(bpe, (size_t)id);
	return bpe->text + bpe->begin[id];
}

ls_status ls_bpe_add_piece(ls_bpe *bpe, const char *text, size_t bytes)
{
	if (bytes == 0 || bytes > LS_BPE_PIECE_BYTES_MAX)
		return ls_fail(LS_EINVALID, "piece %zu of the vocabulary has %zu bytes, not 1 to %d", bpe->count, bytes,
			       LS_BPE_PIECE_BYTES_MAX);
	LS_TRY(ls_array_grow(&bpe->begin, &bpe->begin_room, bpe->count + 2, sizeof(*bpe->begin)));
	LS_TRY(ls_array_grow(&bpe->text, &bpe->text_room, bpe->text_bytes + bytes + 1, 1));
	memcpy(bpe->text + bpe->text_bytes, text, bytes);
	bpe->begin[0] = 0;
	bpe->text_bytes += bytes;
	bpe->begin[++bpe->count] = bpe->text_bytes;
	return LS_OK;
}

static size_t slots_for(size_t count)
{
	size_t slots = 16;
	while (slots < count * 2)
		slots *= 2;
	return slots;
}

/* The table of all pieces; `name` is the file they are from. */
ls_status ls_bpe_index_pieces(ls_bpe *bpe, const char *name)
{
	bpe->slots = slots_for(bpe->count);
	bpe->table = calloc(bpe->slots, sizeof(*bpe->table));
	if (!bpe->table)
		return ls_fail(LS_EMEMORY, "no memory for a vocabulary of %zu pieces", bpe->count);
	for (int i = 0; i < LS_BPE_BYTE_COUNT; i++)
		bpe->byte[i] = -1;
	for (size_t id = 0; id < bpe->count; id++) {
		const char *text = bpe->text + bpe->begin[id];
		size_t slot = text_slot(bpe, text, ls_bpe_piece_bytes(bpe, id));
		if (bpe->table[slot])
			return ls_fail(LS_EFORMAT, "%s: pieces %u and %zu are the same", name, bpe->table[slot] - 1,
				       id);
		bpe->table[slot] = (uint32_t)id + 1;
		if (ls_bpe_piece_bytes(bpe, id) == 1)
			bpe->byte[(uint8_t)*text] = (int32_t)id;
	}
	bpe->end = ls_bpe_find(bpe, LS_BPE_END, strlen(LS_BPE_END));
	return LS_OK;
}

/* ---- merges ------------------------------------------------------------------------------------------------------ */

static size_t pair_slot(const ls_bpe *bpe, int32_t left, int32_t right)
{
	uint64_t hash = ls_mix64((uint64_t)(uint32_t)left << 32 | (uint32_t)right);
	for (size_t i = hash & (bpe->pair_slots - 1);; i = (i + 1) & (bpe->pair_slots - 1)) {
		uint32_t number = bpe->pairs[i];
		if (!number || (bpe->merges[number - 1].left == left && bpe->merges[number - 1].right == right))
			return i;
	}
}

int ls_bpe_merge_of(const ls_bpe *bpe, int32_t left, int32_t right, int32_t *rank, int32_t *joined)
{
	uint32_t number = bpe->pair_slots ? bpe->pairs[pair_slot(bpe, left, right)] : 0;
	if (!number)
		return 0;
	*rank = (int32_t)number - 1;
	*joined = bpe->merges[number - 1].joined;
	return 1;
}

/* `where` is the line, for errors. */
ls_status ls_bpe_add_merge(ls_bpe *bpe, int32_t left, int32_t right, const char *name, size_t where)
{
	char joined[2 * LS_BPE_PIECE_BYTES_MAX];
	size_t left_bytes = ls_bpe_piece_bytes(bpe, (size_t)left), right_bytes = ls_bpe_piece_bytes(bpe, (size_t)right);

	memcpy(joined, bpe->text + bpe->begin[left], left_bytes);
	memcpy(joined + left_bytes, bpe->text + bpe->begin[right], right_bytes);
	int32_t id = ls_bpe_find(bpe, joined, left_bytes + right_bytes);
	if (id < 0)
		return ls_fail(LS_EFORMAT, "%s:%zu: the two pieces together are not in the vocabulary", name, where);
	LS_TRY(ls_array_grow(&bpe->merges, &bpe->merge_room, bpe->merge_count + 1, sizeof(*bpe->merges)));
	bpe->merges[bpe->merge_count++] = (ls_bpe_merge){ left, right, id, (uint32_t)where };
	return LS_OK;
}

ls_status ls_bpe_index_merges(ls_bpe *bpe, const char *name)
{
	bpe->pair_slots = slots_for(bpe->merge_count);
	bpe->pairs = calloc(bpe->pair_slots, sizeof(*bpe->pairs));
	if (!bpe->pairs)
		return ls_fail(LS_EMEMORY, "no memory for %zu merges", bpe->merge_count);
	for (size_t i = 0; i < bpe->merge_count; i++) {
		size_t slot = pair_slot(bpe, bpe->merges[i].left, bpe->merges[i].right);
		if (bpe->pairs[slot])
			return ls_fail(LS_EFORMAT, "%s:%u: the same pair is on line %u", name, bpe->merges[i].line,
				       bpe->merges[bpe->pairs[slot] - 1].line);
		bpe->pairs[slot] = (uint32_t)i + 1;
	}
	return LS_OK;
}

/* ---- making one -------------------------------------------------------------------------------------------------- */

ls_bpe *ls_bpe_alloc(void)
{
	ls_bpe *bpe = calloc(1, sizeof(*bpe));
	if (!bpe)
		ls_fail(LS_EMEMORY, "no memory for a vocabulary");
	return bpe;
}

void ls_bpe_free(ls_bpe *bpe)
{
	if (!bpe)
		return;
	free(bpe->text);
	free(bpe->begin);
	free(bpe->table);
	free(bpe->merges);
	free(bpe->pairs);
	free(bpe);
}

ls_status ls_bpe_finish(ls_bpe **out, ls_bpe *bpe, ls_status status)
{
	if (status != LS_OK) {
		ls_bpe_free(bpe);
		return status;
	}
	bpe->hash = XXH64(bpe->begin, (bpe->count + 1) * sizeof(*bpe->begin), bpe->count);
	bpe->hash = XXH64(bpe->text, bpe->text_bytes, bpe->hash);
	for (size_t i = 0; i < bpe->merge_count; i++) {
		const int32_t pair[2] = { bpe->merges[i].left, bpe->merges[i].right };
		bpe->hash = XXH64(pair, sizeof(pair), bpe->hash);
	}
	*out = bpe;
	return LS_OK;
}

/* With merges a text begins as its bytes, so each must be a piece. */
ls_status ls_bpe_check_bytes(const ls_bpe *bpe, const char *name)
{
	for (int i = 0; i < LS_BPE_BYTE_COUNT; i++)
		if (bpe->byte[i] < 0)
			return ls_fail(LS_EFORMAT, "%s: no piece is byte 0x%02x; with merges every byte must be one",
				       name, i);
	return LS_OK;
}

static ls_status fill(ls_bpe *bpe, const char *const *pieces, const size_t *bytes, size_t count,
		      const int32_t (*merges)[2], size_t merge_count)
{
	for (size_t i = 0; i < count; i++)
		LS_TRY(ls_bpe_add_piece(bpe, pieces[i], bytes[i]));
	LS_TRY(ls_bpe_index_pieces(bpe, "the vocabulary"));
	for (size_t i = 0; i < merge_count; i++)
		LS_TRY(ls_bpe_add_merge(bpe, merges[i][0], merges[i][1], "the merges", i + 1));
	LS_TRY(ls_bpe_index_merges(bpe, "the merges"));
	return merge_count ? ls_bpe_check_bytes(bpe, "the vocabulary") : LS_OK;
}

ls_status ls_bpe_new(ls_bpe **out, const char *const *pieces, const size_t *bytes, size_t count,
		     const int32_t (*merges)[2], size_t merge_count)
{
	ls_bpe *bpe = ls_bpe_alloc();
	return bpe ? ls_bpe_finish(out, bpe, fill(bpe, pieces, bytes, count, merges, merge_count)) : LS_EMEMORY;
}

ls_status ls_bpe_new_bytes(ls_bpe **out)
{
	uint8_t order[LS_BPE_BYTE_COUNT];
	const char *pieces[LS_BPE_BYTE_COUNT + 1];
	size_t bytes[LS_BPE_BYTE_COUNT + 1];

	ls_bpe_byte_order(order);
	for (int i = 0; i < LS_BPE_BYTE_COUNT; i++) {
		pieces[i] = (const char *)&order[i];
		bytes[i] = 1;
	}
	pieces[LS_BPE_BYTE_COUNT] = LS_BPE_END;
	bytes[LS_BPE_BYTE_COUNT] = strlen(LS_BPE_END);
	return ls_bpe_new(out, pieces, bytes, LS_BPE_BYTE_COUNT + 1, NULL, 0);
}

size_t ls_bpe_size(const ls_bpe *bpe)
{
	return bpe->count;
}

int32_t ls_bpe_end(const ls_bpe *bpe)
{
	return bpe->end;
}

/* A vocabulary of single bytes takes any text, as one with merges does. */
int ls_bpe_has_characters(const ls_bpe *bpe)
{
	for (int i = 0; i < LS_BPE_BYTE_COUNT; i++)
		if (bpe->byte[i] < 0)
			return 1;
	return 0;
}

int32_t ls_bpe_byte(const ls_bpe *bpe, uint8_t byte)
{
	return bpe->byte[byte];
}

uint64_t ls_bpe_hash(const ls_bpe *bpe)
{
	return bpe->hash;
}
