/*
 * mask.h - masked language modelling: which tokens of a sentence pair the model must predict, and what it sees there.
 *
 * BERT's rule (Devlin et al. 2018): 15 % of the tokens, at least one and at most 20; of those 80 % are shown as [MASK],
 * 10 % as a random word, 10 % as they are. Masks are drawn by (seed, epoch, sample): every epoch has new masks, and
 * every node draws the same ones. Their number depends on the length alone, so it is known without drawing.
 */
#ifndef LS_DATA_MASK_H
#define LS_DATA_MASK_H

#include <lockstep/data.h>

#include "tokenizer/vocab.h"

enum { LS_MASKED_MAX = 20 };

/* Number of masked positions in a sample of `length` tokens, [CLS] a [SEP] b [SEP]; length >= 5. Never decreases with
 * the length. */
int ls_mask_tokens(int length);

/* Draw masked positions of the sample, whose first [SEP] is at place `middle`, and change its tokens. [CLS] and [SEP]
 * are never masked; [UNK] is a word like any other. */
void ls_mask_draw(uint64_t seed, uint64_t epoch, uint64_t index, const ls_special *special, int vocabulary, int middle,
		  ls_text_sample *sample);

#endif
