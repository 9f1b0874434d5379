#include "cluster/look.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/status.h"
#include "cluster/host_list.h"

ls_status ls_look_start(ls_look *k, const ls_elastic_options *options, int asks)
{
	*k = (ls_look){ .hosts = options->hosts, .discover = options->discover, .asks = asks };
	return ls_background_begin(&k->beside, "the list of hosts");
}

static int is_known(const ls_look *k, const char *name)
{
	for (size_t i = 0; i < k->known_count; i++)
		if (!strcmp(k->known[i].name, name))
			return 1;
	return 0;
}

static ls_status ask(ls_look *k)
{
	k->reaches = calloc(k->count, sizeof(*k->reaches));
	if (!k->reaches)
		return ls_fail(LS_EMEMORY, "no memory for %zu hosts", k->count);
	for (size_t i = 0; i < k->count; i++)
		k->reaches[i] =
			(ls_reach){ .host = k->found[i].name, .is_asked = k->asks && !is_known(k, k->found[i].name) };
	ls_reach_ask(k->reaches, k->count, LS_REACH_ANSWER_S, &k->is_cancelled);
	return LS_OK;
}

static void look(void *context)
{
	ls_look *k = context;
	double began = ls_clock_seconds();

	k->status = ls_host_list_read(&k->found, &k->count, k->hosts, k->discover, LS_DISCOVER_S, &k->is_cancelled);
	if (k->status == LS_OK)
		k->status = ask(k);
	if (k->status != LS_OK)
		snprintf(k->why, sizeof(k->why), "%s", ls_last_error());
	k->lasted = ls_clock_seconds() - began;
}

void ls_look_begin(ls_look *k, ls_host *known, size_t count)
{
	k->known = known;
	k->known_count = count;
	k->is_pending = 1;
	ls_background_do(&k->beside, look, k);
}

int ls_look_is_done(ls_look *k)
{
	return k->is_pending && !ls_background_is_busy(&k->beside);
}

void ls_look_release(ls_look *k)
{
	k->took = k->lasted;
	ls_hosts_free(k->found);
	free(k->reaches);
	free(k->known);
	k->found = NULL;
	k->reaches = NULL;
	k->known = NULL;
	k->count = k->known_count = 0;
	k->is_pending = 0;
}

void ls_look_end(ls_look *k)
{
	atomic_store(&k->is_cancelled, 1);
	ls_background_end(&k->beside);
	ls_look_release(k);
}
