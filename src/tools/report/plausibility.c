#include "tools/report/plausibility.h"

#include <math.h>
#include <string.h>

#include "base/link_rate.h"
#include "base/names.h"
#include "tools/report/text.h"

/* Tolerance: measured figures vary by this much. */
#define TOLERANCE 1.02

static double fp32_bytes(const ls_claim *claim)
{
	double nodes = (double)claim->nodes, gradient = claim->gradient_bytes;
	if (ls_strategy_has_servers(claim->strategy) && claim->servers > 0)
		return gradient * fmax(1, nodes / (double)claim->servers);
	if (claim->nodes < 2)
		return 0;
	return 2 * gradient * (nodes - 1) / nodes;
}

double ls_wire_bytes(const ls_claim *claim)
{
	return fp32_bytes(claim) * (claim->wire && !strcmp(claim->wire, "bf16") ? 0.5 : 1);
}

static const char *flag_speedup(ls_page *page, const ls_claim *claim)
{
	if (!(claim->speedup > TOLERANCE * (double)claim->devices))
		return NULL;
	return ls_page_text(page, "a speedup of %.2f on %lld device%s is above ideal; likely %s.", claim->speedup,
			    (long long)claim->devices, ls_plural((uint64_t)claim->devices, "s"),
			    claim->reason ? claim->reason
					  : "a slow one-device baseline, more cache with more devices, or cores that "
					    "clock higher or are shared");
}

static const char *flag_wire(ls_page *page, const ls_claim *claim)
{
	double link = claim->link ? ls_link_rate(claim->link) : 0;
	double limit = link * claim->step_s / 8; /* bytes each way in a step */
	char full[LS_NUMBER_TEXT], moved[LS_NUMBER_TEXT];

	if (!(limit > 0) || claim->nodes + claim->servers < 2)
		return NULL;
	ls_bytes_text(full, fp32_bytes(claim));
	ls_bytes_text(moved, claim->moved_bytes);
	if (claim->moved_bytes > TOLERANCE * limit)
		return ls_page_text(
			page,
			"%s each way in a step of %.0f ms are %.2f Gbit/s, more than the %s link carries: the "
			"link was not limited to this rate, or allows bursts.",
			moved, 1e3 * claim->step_s, claim->moved_bytes * 8 / claim->step_s / 1e9, claim->link);
	if (!(fp32_bytes(claim) > TOLERANCE * limit))
		return NULL;
	if (claim->moved_bytes > 0 || ls_wire_bytes(claim) <= TOLERANCE * limit)
		return ls_page_text(
			page,
			"the gradients, %s each way per step in fp32, would need %.2f Gbit/s of a %s link; zeros "
			"left out or bf16 made them less%s%s.",
			full, fp32_bytes(claim) * 8 / claim->step_s / 1e9, claim->link,
			claim->moved_bytes > 0 ? ": " : "", claim->moved_bytes > 0 ? moved : "");
	return ls_page_text(page,
			    "impossible: the gradients, %s each way per step, would need %.2f Gbit/s of a %s link.",
			    full, fp32_bytes(claim) * 8 / claim->step_s / 1e9, claim->link);
}

const char *ls_claim_check(ls_page *page, const ls_claim *claim)
{
	const char *speedup = flag_speedup(page, claim), *wire = flag_wire(page, claim);
	if (speedup && wire)
		return ls_page_text(page, "%s Also, %s", speedup, wire);
	return speedup ? speedup : wire;
}

/* ---- ours -------------------------------------------------------------------------------------------------------- */

int ls_spread_explains(double speedup, int64_t devices, double spread)
{
	return spread > 0.05 && speedup <= TOLERANCE * (double)devices * (1 + spread);
}

/* Only reasons that explain the amount: a baseline that is 11 % off does not explain a speedup of 3.41 on 2 devices. */
static const char *reason_of(ls_page *page, const ls_results *results, const ls_point *base, const ls_claim *claim)
{
	double spread = (base->samples_per_s_max - base->samples_per_s_min) / base->samples_per_s;
	double core = results->machine.gflop_per_s_core * (double)(base->job.threads > 1 ? base->job.threads : 1);

	if (base->repeat_count > 1 && ls_spread_explains(claim->speedup, claim->devices, spread))
		return ls_page_text(page, "an unstable one-device baseline (its repeats differ by %.0f %%)",
				    100 * spread);
	if (core > 0 && base->gflop_per_s > 0 && base->gflop_per_s < 0.4 * core &&
	    claim->speedup * base->gflop_per_s <= (double)claim->devices * core)
		return ls_page_text(page,
				    "a slow one-device baseline (%.0f %% of the core's matrix product), or more cache "
				    "with more devices",
				    100 * base->gflop_per_s / core);
	return NULL;
}

static double busiest_bytes(const ls_point *point)
{
	double most = 0;
	for (size_t i = 0; i < point->node_count; i++)
		most = fmax(most, fmax(point->nodes[i].sent_bytes, point->nodes[i].received_bytes));
	return most;
}

const char *ls_point_check(ls_page *page, const ls_results *results, const ls_point *point, const ls_point *base)
{
	const ls_point_job *job = &point->job;
	ls_claim claim = { .nodes = job->nodes,
			   .devices = job->devices,
			   .servers = job->servers,
			   .step_s = point->step_ms / 1e3,
			   .gradient_bytes = point->gradient_bytes,
			   .moved_bytes = busiest_bytes(point),
			   .strategy = job->strategy,
			   .wire = job->wire,
			   .link = job->rate };
	if (point->state != LS_POINT_DONE)
		return NULL;
	if (base) {
		claim.speedup = point->samples_per_s / base->samples_per_s;
		claim.reason = reason_of(page, results, base, &claim);
	}
	return ls_claim_check(page, &claim);
}
