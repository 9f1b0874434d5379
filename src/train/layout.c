#include "train/layout.h"

#include <stdlib.h>
#include <string.h>

#include "base/names.h"

static const ls_placement placements[] = {
	{ "allreduce", "every node owns a share of the parameters: the traffic of a ring, sharded state" },
	{ "ps", "the last --servers nodes own all parameters and compute nothing" },
};

const ls_placement *ls_placement_at(size_t i)
{
	return i < sizeof placements / sizeof placements[0] ? &placements[i] : NULL;
}

static const char *placement_name(size_t i)
{
	const ls_placement *row = ls_placement_at(i);
	return row != NULL ? row->name : NULL;
}

static const char *wire_name(size_t i)
{
	static const char *const names[] = { "fp32", "bf16", NULL };
	return names[i];
}

static const char *exchange_name(size_t i)
{
	static const char *const names[] = { "lockstep", "mpi", NULL };
	return names[i];
}

static const char *pin_name(size_t i)
{
	static const char *const names[] = { "auto", "on", "off", NULL };
	return names[i];
}

/* Which of the names `typed` is. */
static ls_status choose(const char *kind, const char *typed, const char *(*at)(size_t i), int *out)
{
	for (size_t i = 0; at(i) != NULL; i++)
		if (strcmp(at(i), typed) == 0) {
			*out = (int)i;
			return LS_OK;
		}
	return ls_name_unknown(kind, typed, at);
}

/* One number of "3:2:1"; *text moves behind it. */
static int parse_weight(const char **text, double *out)
{
	char *end;
	*out = strtod(*text, &end);
	int good = end != *text && *out > 0 && *out <= 1e6 && (*end == ':' || *end == '\0');
	*text = *end == ':' ? end + 1 : end;
	return good;
}

/* "auto", "equal" or one positive number a worker; weight may be NULL. */
static ls_status parse_share(const char *text, ls_share *way, double *weight, int workers)
{
	const char *at = text;
	int count = 0;

	*way = strcmp(text, "auto") == 0 ? LS_SHARE_AUTO : strcmp(text, "equal") == 0 ? LS_SHARE_EQUAL : LS_SHARE_GIVEN;
	if (*way != LS_SHARE_GIVEN)
		return LS_OK;
	while (*at != '\0' || count == 0) {
		double number;
		if (!parse_weight(&at, &number))
			return ls_fail(LS_EINVALID,
				       "--share %s: give auto, equal, or one positive number a worker as in 3:2", text);
		if (weight != NULL && count < workers)
			weight[count] = number;
		count++;
	}
	if (weight != NULL && count != workers)
		return ls_fail(LS_EINVALID, "--share %s has %d numbers for %d workers", text, count, workers);
	return LS_OK;
}

typedef struct choices {
	int ps, wire, mpi, pin;
	ls_share share;
} choices;

static ls_status read_choices(const ls_train_options *o, choices *c)
{
	LS_TRY(choose("placement", o->placement, placement_name, &c->ps));
	LS_TRY(choose("wire", o->wire, wire_name, &c->wire));
	LS_TRY(choose("exchange", o->exchange, exchange_name, &c->mpi));
	LS_TRY(choose("way to pin", o->pin, pin_name, &c->pin));
	LS_TRY(parse_share(o->share, &c->share, NULL, 0));
	if (!c->ps && o->staleness > 0)
		return ls_fail(LS_EINVALID, "--staleness %lld needs --placement ps: allreduce waits for everybody",
			       (long long)o->staleness);
	if (!c->ps && o->servers > 0)
		return ls_fail(LS_EINVALID,
			       "--servers %lld needs --placement ps: with allreduce every node owns a share",
			       (long long)o->servers);
	if (c->mpi && c->ps)
		return ls_fail(LS_EINVALID,
			       "--exchange mpi sums on all nodes and has no servers; leave out --placement ps");
	if (c->mpi && c->wire != LS_WIRE_FP32)
		return ls_fail(LS_EINVALID, "--exchange mpi sums fp32; leave out --wire %s", o->wire);
	return LS_OK;
}

ls_status ls_layout_check(const ls_train_options *options)
{
	choices ignored = { 0 };
	return read_choices(options, &ignored);
}
