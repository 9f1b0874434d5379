/*
 * table.c - the table of codecs. A new one is a file of this folder and an entry here.
 */
#include "exchange/codec.h"

#include "base/names.h"

static const ls_codec *const codecs[] = { &ls_codec_fp32, &ls_codec_bf16, &ls_codec_sparse_fp32,
					  &ls_codec_sparse_bf16 };

const ls_codec *ls_codec_at(size_t i)
{
	return i < sizeof(codecs) / sizeof(codecs[0]) ? codecs[i] : NULL;
}

const ls_codec *ls_wire_at(size_t i)
{
	const ls_codec *codec = NULL;
	for (size_t row = 0; (codec = ls_codec_at(row)); row++)
		if (codec->wire && i-- == 0)
			return codec;
	return NULL;
}

static const char *name_at(size_t i)
{
	const ls_codec *codec = ls_wire_at(i);
	return codec ? codec->wire : NULL;
}

ls_status ls_wire_find(const char *wire, const ls_codec **out)
{
	size_t i;
	LS_TRY(ls_name_find("wire", wire, name_at, &i));
	*out = ls_wire_at(i);
	return LS_OK;
}
