#include "run/auto_precision.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "comm/agree.h"
#include "comm/collectives.h"
#include "graph/graph.h"

/* "fp32 85, bf16-amx 540 GFLOP/s": those that the processor has instructions for. */
static void print_choice(const ls_precision_choice *choice)
{
	if (choice->rates[LS_PRECISION_FP32] == 0) {
		ls_log_note("options.precision auto is fp32: this processor has no instructions for bf16");
		return;
	}
	char rates[160] = "";
	size_t used = 0;

	for (int i = 0; i < LS_PRECISION_COUNT; i++)
		if (choice->rates[i] > 0)
			used += (size_t)snprintf(rates + used, sizeof(rates) - used, "%s%s %.0f", used ? ", " : "",
						 ls_precision_name_at((size_t)i), choice->rates[i] / 1e9);
	ls_log_note("options.precision auto is %s: measured %s GFLOP/s on one thread",
		    ls_precision_name_at(choice->precision), rates);
}

static ls_status measure(int32_t *row)
{
	ls_precision_choice choice;

	LS_TRY(ls_precision_choose(&choice));
	print_choice(&choice);
	*row = choice.precision;
	return LS_OK;
}

ls_status ls_auto_precision(const char **precision, ls_comm *comm)
{
	const int is_first = !comm || ls_comm_rank(comm) == 0;
	int32_t is_auto = strcmp(*precision, ls_precision_name_at(LS_PRECISION_COUNT)) == 0, row = LS_PRECISION_FP32;

	LS_TRY(ls_comm_agree(comm, is_first && is_auto ? measure(&row) : LS_OK));
	if (comm)
		LS_TRY(ls_comm_broadcast(comm, 0, &row, sizeof(row), "the measured precision"));
	if (is_auto)
		*precision = ls_precision_name_at((size_t)row);
	return LS_OK;
}
