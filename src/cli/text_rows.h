/*
 * text_rows.h - the rows of commands that use a trained model of text: how large it is, where neither the run nor the
 * file says it. AT(member) is the place of a field.
 */
#ifndef LS_CLI_TEXT_ROWS_H
#define LS_CLI_TEXT_ROWS_H

#include <lockstep/text.h>
#include <lockstep/train.h>

#define LS_SIZE_ROW(name, group, help, place, most)                                                                    \
	{                                                                                                              \
		name, 0, "N", group, help, LS_SETTING_INT, place, 0, most, LS_SETTING_NOT_0                            \
	}

#define LS_TEXT_SIZE_ROWS(group, AT)                                                                                   \
	LS_SIZE_ROW("seq-len", group, "cut samples to N tokens", AT(seq_len), LS_TOKENS_MAX),                          \
		LS_SIZE_ROW("layers", group, "transformer: number of layers", AT(layers), 1000),                       \
		LS_SIZE_ROW("width", group, "transformer: hidden size", AT(width), 65536),                             \
		LS_SIZE_ROW("heads", group, "transformer: number of attention heads", AT(heads), 4096),                \
		LS_SIZE_ROW("ffn", group, "transformer: feed-forward size", AT(ffn), 1 << 20),                         \
		LS_SIZE_ROW("max-len", group, "transformer: number of positions", AT(max_len), LS_TOKENS_MAX)

#endif
