#include "data/mask.h"

#include "data/sample_rng.h"

int ls_mask_tokens(int length)
{
	int masked = (15 * length + 50) / 100;
	masked = masked < 1 ? 1 : masked;
	return masked < LS_MASKED_MAX ? masked : LS_MASKED_MAX;
}

static int is_special(const ls_special *s, int32_t id)
{
	return id == s->pad || id == s->unk || id == s->cls || id == s->sep || id == s->mask;
}

/* The token shown in place of `word`. If the random word is a special id, the word stays as it is. */
static int32_t shown(ls_sample_rng *draw, const ls_special *special, int vocabulary, int32_t word)
{
	uint32_t tenth = ls_rng_below(ls_sample_rng_word(draw), 10);
	int32_t other = (int32_t)ls_rng_below(ls_sample_rng_word(draw), (uint32_t)vocabulary);
	if (tenth < 8)
		return special->mask;
	return tenth == 8 && !is_special(special, other) ? other : word;
}

/* Selection sampling: a token is masked with probability (masked positions still wanted) / (tokens still to come),
 * which makes every choice of tokens equally likely, in rising order. */
void ls_mask_draw(uint64_t seed, uint64_t epoch, uint64_t index, const ls_special *special, int vocabulary, int middle,
		  ls_text_sample *sample)
{
	ls_sample_rng draw = ls_sample_rng_begin(ls_rng_make(seed, LS_RNG_MASK, epoch), index);
	int wanted = ls_mask_tokens(sample->length), left = sample->length - 3;
	sample->masked = 0;
	for (int place = 1; place < sample->length - 1 && wanted; place++) {
		if (place == middle)
			continue;
		if (ls_rng_below(ls_sample_rng_word(&draw), (uint32_t)left--) >= (uint32_t)wanted)
			continue;
		int32_t word = sample->tokens[place];
		sample->places[sample->masked] = place;
		sample->targets[sample->masked++] = word;
		sample->tokens[place] = shown(&draw, special, vocabulary, word);
		wanted--;
	}
}
