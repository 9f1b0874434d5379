#include "trained/normalisation.h"

#include <stdlib.h>

#include "checkpoint/checkpoint.h"
#include "comm/agree.h"
#include "comm/collectives.h"
#include "data/normalise.h"
#include "metrics/metrics.h"
#include "settings/settings.h"
#include "trained/weights.h"

ls_status ls_normalisation_of_weights(ls_normalisation *out, const char *file)
{
	ls_st_reader *reader = NULL;
	ls_status status = LS_OK;

	*out = (ls_normalisation){ 0 };
	LS_TRY(ls_st_open(&reader, file));
	const char *mean = ls_st_metadata(reader, LS_WEIGHTS_MEAN);
	const char *deviation = ls_st_metadata(reader, LS_WEIGHTS_DEVIATION);
	if (mean && deviation)
		status = ls_normalisation_from_text(out, mean, deviation, file);
	else if (ls_st_metadata(reader, "lockstep"))
		status = ls_normalisation_copy(out, &ls_mnist_normalisation);
	ls_st_close(reader);
	return status;
}

/* A run without a checkpoint starts again as run.json says it did. */
static ls_status of_beginning(ls_normalisation *out, const char *run)
{
	char *settings = NULL;

	if (ls_run_settings(run, 0, &settings) != LS_OK)
		return LS_OK;
	ls_status status = ls_settings_get_normalisation(settings, run, out);
	free(settings);
	return status;
}

static ls_status look(ls_normalisation *out, const ls_train_options *o)
{
	const char *source = o->resume ? o->run : o->init;
	ls_weights weights;

	if (!source || o->train_set)
		return LS_OK;
	if (ls_weights_find(&weights, source, 0) == LS_OK)
		return ls_normalisation_of_weights(out, weights.file);
	return o->resume ? of_beginning(out, o->run) : LS_OK;
}

static ls_status spread(ls_normalisation *n, ls_comm *comm, int is_first)
{
	int channels = n->channels;

	LS_TRY(ls_comm_broadcast(comm, 0, &channels, sizeof(channels), "normalisation"));
	if (channels == 0)
		return LS_OK;
	if (!is_first)
		LS_TRY(ls_normalisation_new(n, channels));
	LS_TRY(ls_comm_broadcast(comm, 0, n->mean, (size_t)channels * sizeof(double), "normalisation"));
	return ls_comm_broadcast(comm, 0, n->deviation, (size_t)channels * sizeof(double), "normalisation");
}

ls_status ls_normalisation_find(ls_normalisation *out, const ls_train_options *options, ls_comm *comm, int is_first)
{
	*out = (ls_normalisation){ 0 };
	LS_TRY(ls_comm_agree(comm, is_first ? look(out, options) : LS_OK));
	return spread(out, comm, is_first);
}
