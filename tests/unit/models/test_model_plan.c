/* The memory plans of whole models are those of the plain greedy placement, offset by offset. */
#include <stddef.h>
#include <stdint.h>

#include <lockstep/models.h>

#include "backends/cpu/exec_plan.h"
#include "base/team.h"
#include "unit/backends/place_reference.h"
#include "unit/test_main.h"

static void check_model(const ls_model_options *options, int inference)
{
	ls_graph *graph = NULL;
	ls_team *team = NULL;
	ls_exec *exec = NULL;
	if (ls_model_build(&graph, options) != LS_OK)
		fail_msg("%s: %s", options->name, ls_last_error());
	assert_int_equal(ls_team_new(&team, 1), LS_OK);
	ls_exec_options how = { .team = team, .sizes = { 2 }, .inference = inference };
	if (ls_exec_new(&exec, graph, &how) != LS_OK)
		fail_msg("%s: %s", options->name, ls_last_error());
	assert_true(exec->span_count > 100);
	assert_int_equal(reference_differs(exec->spans, exec->span_count), exec->span_count);
	ls_exec_free(exec);
	ls_team_free(team);
	ls_graph_free(graph);
}

static void plans_are_the_greedy_ones(void **state)
{
	(void)state;
	const ls_model_options resnet = { .size = sizeof(ls_model_options),
					  .name = "resnet101",
					  .channels = 1,
					  .height = 28,
					  .width = 28,
					  .classes = 10 };
	const ls_model_options bert = { .size = sizeof(ls_model_options),
					.name = "bert-large",
					.classes = 2,
					.text = { .tokens = 128, .masked = 20, .vocabulary = 1000 } };
	for (int inference = 0; inference < 2; inference++) {
		check_model(&resnet, inference);
		check_model(&bert, inference);
	}
}

TEST_MAIN(plans_are_the_greedy_ones)
