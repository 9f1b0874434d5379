/* Requests as samples: what an answer would have too much of is refused, and outputs that are no numbers are no answer. */
#include <math.h>
#include <stdlib.h>

#include "tools/serve/call.h"
#include "unit/assert_status.h"
#include "unit/test_main.h"

enum { COUNT = 4000, WIDTH = 25, WIDER = 26 };

static ls_budget budget = { .most = (int64_t)1 << 30 };

static ls_status make(ls_call *call, ls_task task, int64_t outputs, int64_t top, size_t count)
{
	ls_call_context c = { .facts = { .channels = 1, .height = 1, .width = 1, .outputs = outputs, .task = task },
			      .budget = &budget };
	ls_request r = { .kind = LS_REQUEST_NUMBERS, .count = count, .top = top, .is_normalised = 1 };

	r.numbers = calloc(count, sizeof(*r.numbers));
	ls_status status = ls_call_make(call, &c, &r);
	free(r.numbers);
	return status;
}

static void test_numbers_of_an_answer(void **state)
{
	static const ls_task all_outputs[] = { LS_TASK_REGRESSION, LS_TASK_MULTI_LABEL };
	ls_call call;
	(void)state;
	assert_fails(make(&call, LS_TASK_CLASSIFICATION, WIDER, WIDER, COUNT), LS_EINVALID,
		     "\"top\" 26 of 4000 inputs");
	assert_ok(make(&call, LS_TASK_CLASSIFICATION, WIDER, 1, COUNT));
	ls_call_release(&call, &budget);
	for (int i = 0; i < 2; i++) { /* which answer all, whatever "top" is */
		assert_fails(make(&call, all_outputs[i], WIDER, 1, COUNT), LS_EINVALID, "26 outputs of 4000 inputs");
		assert_ok(make(&call, all_outputs[i], WIDTH, WIDER, COUNT));
		ls_call_release(&call, &budget);
		assert_ok(make(&call, all_outputs[i], 200000, 1, 1)); /* less than one input cannot be sent */
		ls_call_release(&call, &budget);
	}
	assert_int_equal(atomic_load(&budget.held), 0);
}

static void test_outputs_are_checked(void **state)
{
	const ls_model_facts facts = { .outputs = WIDTH };
	ls_call call;
	(void)state;
	assert_ok(make(&call, LS_TASK_REGRESSION, WIDTH, 1, 3));
	assert_ok(ls_call_check_outputs(&call, &facts));
	call.chances[2 * WIDTH + 7] = -INFINITY;
	assert_fails(ls_call_check_outputs(&call, &facts), LS_ENUMERIC, "inputs[2]: output 7 of the model");
	call.chances[WIDTH] = NAN;
	assert_fails(ls_call_check_outputs(&call, &facts), LS_ENUMERIC, "inputs[1]: output 0 of the model");
	ls_call_release(&call, &budget);
}

TEST_MAIN(test_numbers_of_an_answer, test_outputs_are_checked)
