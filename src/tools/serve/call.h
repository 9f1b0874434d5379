/*
 * call.h - a request as samples that the batcher takes, and the memory that all requests of a server may hold.
 */
#ifndef LS_TOOLS_SERVE_CALL_H
#define LS_TOOLS_SERVE_CALL_H

#include <stdatomic.h>

#include "tools/serve/batcher.h"
#include "tools/serve/request.h"

/* Bytes of bodies and samples that are held at a time. */
typedef struct ls_budget {
	atomic_llong held;
	int64_t most;
} ls_budget;
int ls_budget_take(ls_budget *budget, int64_t bytes); /* 0: too many */
void ls_budget_give(ls_budget *budget, int64_t bytes);

typedef struct ls_call {
	ls_batch_job job; /* first: the batcher hands it back */
	float *images;
	ls_text_sample *texts;
	int32_t *tokens;
	float *chances;
	int64_t top;
	int64_t bytes;     /* of the budget */
	const char *field; /* of the request, that has the inputs */
} ls_call;

typedef struct ls_call_context {
	const ls_model *model;
	ls_model_facts facts;
	ls_resize resize;
	ls_budget *budget;
} ls_call_context;

/* Makes the samples. LS_EMEMORY: the budget or the memory is used up at the moment; any other failure is the client's,
 * and says which input is wrong. */
ls_status ls_call_make(ls_call *out, const ls_call_context *context, const ls_request *request);

/* LS_ENUMERIC, with the input: outputs that are NaN or infinite are no answer. */
ls_status ls_call_check_outputs(const ls_call *call, const ls_model_facts *facts);
void ls_call_release(ls_call *call, ls_budget *budget); /* harmless when it is zero */

#endif
