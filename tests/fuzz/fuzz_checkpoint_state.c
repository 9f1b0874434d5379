/*
 * Any bytes as a state.json: refused with a message, or a state whose every part may be used.
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint/state.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int holds)
{
	if (!holds)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	ls_ckpt_state state;
	if (ls_ckpt_state_parse(&state, data, size, "fuzz") != LS_OK) {
		require(strncmp(ls_last_error(), "fuzz:", 5) == 0);
		return 0;
	}
	for (size_t i = 0; i < state.slots; i++)
		require(state.slot_names[i] != NULL);
	require(state.settings[0] == '{' && isfinite(state.progress.loss_sum));
	require(state.progress.step <= INT64_MAX && state.progress.batches_tracked >= 0);
	ls_ckpt_state_release(&state);
	return 0;
}
