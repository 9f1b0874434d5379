#include "run/handshake.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/names.h"
#include "comm/agree.h"
#include "comm/collectives.h"
#include "data/dataset.h"
#include "run/sample_hash.h"
#include "settings/settings.h"

enum { VERSION = 64, SETTINGS = 16 * 1024 };

/* What a node has. */
typedef struct hello {
	uint64_t train_samples, train_hash, test_samples, test_hash;
	char settings[SETTINGS];
} hello;

static ls_status compare_versions(const ls_comm *comm, const char *all)
{
	for (int i = 1; i < ls_comm_size(comm); i++) {
		char name[2][LS_COMM_NODE_NAME];
		if (strncmp(all, all + (size_t)i * VERSION, VERSION) == 0)
			continue;
		ls_comm_name_node(name[0], sizeof(name[0]), comm, 0);
		ls_comm_name_node(name[1], sizeof(name[1]), comm, i);
		return ls_fail(LS_EMISMATCH, "%s runs Lockstep %.*s and %s runs %.*s: install the same on all nodes",
			       name[0], VERSION, all, name[1], VERSION, all + (size_t)i * VERSION);
	}
	return LS_OK;
}

ls_status ls_handshake_version(ls_comm *comm)
{
	char mine[VERSION] = "";

	if (!comm)
		return LS_OK;
	char *all = calloc((size_t)ls_comm_size(comm), VERSION);
	if (!all)
		return ls_fail(LS_EMEMORY, "no memory for the versions of all nodes");
	snprintf(mine, sizeof(mine), "%s", ls_version());
	ls_status status = ls_comm_allgather(comm, mine, sizeof(mine), all, "versions");
	if (status == LS_OK)
		status = compare_versions(comm, all);
	free(all);
	return status;
}

static ls_status describe(hello *h, const ls_train_options *settings, const ls_dataset *train_set,
			  const ls_dataset *test_set)
{
	char *text = NULL;

	memset(h, 0, sizeof(*h));
	if (train_set) {
		h->train_samples = ls_dataset_describe(train_set)->samples;
		LS_TRY(ls_sample_hash(train_set, &h->train_hash));
	}
	if (test_set) {
		h->test_samples = ls_dataset_describe(test_set)->samples;
		LS_TRY(ls_sample_hash(test_set, &h->test_hash));
	}
	LS_TRY(ls_settings_to_json(settings, (ls_settings_context){ 0 }, &text));
	size_t length = strlen(text);
	if (length < sizeof(h->settings))
		memcpy(h->settings, text, length + 1);
	free(text);
	return length < sizeof(h->settings) ? LS_OK : ls_fail(LS_EINVALID, "the settings are too long for a message");
}

static ls_status compare_data(const char *what, uint64_t samples_a, uint64_t samples_b, uint64_t hash_a,
			      uint64_t hash_b, char name[2][LS_COMM_NODE_NAME])
{
	if (samples_a != samples_b)
		return ls_fail(LS_EMISMATCH, "the %s set of %s has %llu sample%s, that of %s %llu", what, name[0],
			       (unsigned long long)samples_a, ls_plural(samples_a, "s"), name[1],
			       (unsigned long long)samples_b);
	if (hash_a != hash_b)
		return ls_fail(LS_EMISMATCH, "the %s sets of %s and %s have different samples (%016llx and %016llx)",
			       what, name[0], name[1], (unsigned long long)hash_a, (unsigned long long)hash_b);
	return LS_OK;
}

static ls_status compare(const hello *a, const hello *b, char name[2][LS_COMM_NODE_NAME])
{
	LS_TRY(ls_settings_agree(a->settings, name[0], b->settings, name[1]));
	LS_TRY(compare_data("training", a->train_samples, b->train_samples, a->train_hash, b->train_hash, name));
	return compare_data("test", a->test_samples, b->test_samples, a->test_hash, b->test_hash, name);
}

static ls_status compare_all(ls_comm *comm, const hello *all)
{
	char name[2][LS_COMM_NODE_NAME];

	ls_comm_name_node(name[0], sizeof(name[0]), comm, 0);
	for (int i = 1; i < ls_comm_size(comm); i++) {
		ls_comm_name_node(name[1], sizeof(name[1]), comm, i);
		LS_TRY(compare(&all[0], &all[i], name));
	}
	return LS_OK;
}

ls_status ls_handshake_settings(ls_comm *comm, const ls_train_options *settings, const ls_dataset *train_set,
				const ls_dataset *test_set)
{
	if (!comm)
		return LS_OK;
	hello *mine = calloc((size_t)ls_comm_size(comm) + 1, sizeof(*mine));
	if (!mine)
		return ls_fail(LS_EMEMORY, "no memory for the settings of all nodes");
	ls_status status = describe(mine, settings, train_set, test_set);
	if (status == LS_OK)
		status = ls_comm_allgather(comm, mine, sizeof(*mine), mine + 1, "settings");
	if (status == LS_OK)
		status = compare_all(comm, mine + 1);
	free(mine);
	return status;
}
