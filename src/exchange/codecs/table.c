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

static const char *name_at(size_t i)
{
	const ls_codec *codec = ls_codec_at(i);
	return codec ? codec->name : NULL;
}

ls_status ls_codec_find(const char *name, const ls_codec **out)
{
	size_t row;
	LS_TRY(ls_name_find("codec", name, name_at, &row));
	*out = codecs[row];
	return LS_OK;
}
