/*
 * table.c - the table of strategies between nodes. A new one is a file of this folder and an entry here.
 */
#include "exchange/strategy.h"

#include "base/names.h"

static const ls_strategy *const strategies[] = { &ls_strategy_allreduce, &ls_strategy_ps, &ls_strategy_ps_async,
						 &ls_strategy_mpi };

const ls_strategy *ls_strategy_row(size_t i)
{
	return i < sizeof(strategies) / sizeof(strategies[0]) ? strategies[i] : NULL;
}

const ls_strategy_info *ls_strategy_at(size_t i)
{
	const ls_strategy *row = ls_strategy_row(i);
	return row ? &row->info : NULL;
}

static const char *name_at(size_t i)
{
	const ls_strategy *row = ls_strategy_row(i);
	return row ? row->info.name : NULL;
}

const ls_strategy_info *ls_strategy_of(const char *name)
{
	return ls_strategy_at(ls_name_row(name, name_at));
}

ls_status ls_strategy_find(const char *name, const ls_strategy **out)
{
	size_t row;
	LS_TRY(ls_name_find("strategy", name, name_at, &row));
	*out = strategies[row];
	return LS_OK;
}

int ls_strategy_needs_master(const ls_strategy *strategy, const ls_codec *codec)
{
	return strategy->changes && codec->encode_change != NULL;
}
