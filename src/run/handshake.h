/*
 * handshake.h - check that all nodes are about to do the same job.
 *
 * Versions first, for nothing else means the same in another version; then settings, instruction set, kernels and data.
 * A difference is refused before anything starts, naming what differs, both values and both nodes.
 *
 * It belongs to runs, not to comm or cluster: what is compared is the table of settings and hashes of datasets, which
 * modules below do not know.
 */
#ifndef LS_RUN_HANDSHAKE_H
#define LS_RUN_HANDSHAKE_H

#include "trainer/layout.h"

/* Before any other message. */
ls_status ls_handshake_version(ls_comm *comm);

/* Settings are resolved; the sets may be NULL. Called by all nodes; all get the same answer. */
ls_status ls_handshake_settings(ls_comm *comm, const ls_train_options *settings, const ls_dataset *train_set,
				const ls_dataset *test_set);

#endif
