#include "train/memory_plan.h"

#include <stdio.h>
#include <sys/resource.h>

#include "base/memory.h"
#include "kernels/gemm.h"

/* What a thread's stack and heap come to when it has done everything once (measured: 60 to 90 KB). */
enum { THREAD_BYTES = 80 << 10 };
/* What the C library maps for the heap of each of the first threads, eight a core. */
#define HEAP_ADDRESSES ((uint64_t)64 << 20)

ls_status ls_memory_plan_init(ls_memory_plan *plan, const ls_trainer_options *trainer, const ls_layout *layout,
			      int64_t last_leaves)
{
	ls_trainer_bytes most;

	LS_TRY(ls_gemm_start());
	*plan = (ls_memory_plan){ .trainer = *trainer, .resident = (size_t)ls_memory_resident() };
	LS_TRY(ls_layout_room(layout, trainer->leaves, last_leaves, &plan->trainer.room, &plan->most));
	LS_TRY(ls_trainer_plan(&plan->trainer, &plan->bytes));
	ls_trainer_options other = *trainer;
	other.room = plan->most;
	LS_TRY(ls_trainer_plan(&other, &most));
	plan->more = most.gradients - plan->bytes.gradients;
	/* teams, their drivers, loaders, and the courier */
	plan->thread_count = trainer->devices * (trainer->threads + 1) + (layout->courier != NULL);
	plan->threads = (size_t)plan->thread_count * THREAD_BYTES;
	return LS_OK;
}

size_t ls_memory_plan_total(const ls_memory_plan *p)
{
	return p->resident + p->bytes.params + p->bytes.gradients + p->bytes.state + p->bytes.workspace + p->samples +
	       p->evaluation + p->checkpoint + p->timeline + p->threads;
}

static void print_part(FILE *to, const char *name, size_t bytes, const char *note)
{
	if (bytes > 0)
		fprintf(to, "  %-32s %10.2f MB%s\n", name, (double)bytes / 1e6, note);
}

ls_status ls_memory_plan_print(const ls_memory_plan *p, FILE *to)
{
	const ls_trainer_options *t = &p->trainer;
	char note[128];

	fprintf(to,
		"memory plan: micro-batch of %lld sample%s, %lld micro-batch%s per step, %d device%s, %d thread%s "
		"each\n",
		(long long)t->leaf, t->leaf == 1 ? "" : "s", (long long)t->leaves, t->leaves == 1 ? "" : "es",
		t->devices, t->devices == 1 ? "" : "s", t->threads, t->threads == 1 ? "" : "s");
	print_part(to, "program and data", p->resident, "   (in memory already)");
	print_part(to, "parameters and statistics", p->bytes.params, "");
	snprintf(note, sizeof(note), "   (the gradient has %.2f MB)", (double)t->graph->params.live * 4e-6);
	print_part(to, "gradient sums", p->bytes.gradients, note);
	snprintf(note, sizeof(note), "   (%s)", t->optimizer);
	print_part(to, "optimizer state", p->bytes.state, note);
	snprintf(note, sizeof(note), "   (%d device%s)", t->devices, t->devices == 1 ? "" : "s");
	print_part(to, "activations", p->bytes.workspace, note);
	if (t->devices > 0 && t->make_work == NULL)
		LS_TRY(ls_exec_print_plan(t->graph, t->leaf, t->threads, to));
	print_part(to, "samples read ahead", p->samples, "");
	print_part(to, "evaluation", p->evaluation, "");
	print_part(to, "checkpoint", p->checkpoint, "");
	print_part(to, "timeline", p->timeline, "");
	snprintf(note, sizeof(note), "   (%d threads)", p->thread_count);
	print_part(to, "threads", p->threads, note);
	print_part(to, "total", ls_memory_plan_total(p), "");
	print_part(to, "at most", p->more > 0 ? ls_memory_plan_total(p) + p->more : 0,
		   "   (when --share auto moves micro-batches between nodes)");
	return LS_OK;
}

/* Addresses that are mapped beside the memory that is used: stacks, and heaps of threads. */
static uint64_t unused_addresses(const ls_memory_plan *p)
{
	struct rlimit stack;
	uint64_t each = HEAP_ADDRESSES;

	if (getrlimit(RLIMIT_STACK, &stack) == 0)
		each += stack.rlim_cur != RLIM_INFINITY ? stack.rlim_cur : (uint64_t)2 << 20;
	return each * (uint64_t)(p->thread_count + 1);
}

/* How much memory there is, in the sense of a plan's total: what the process has, and what it may still take. */
static uint64_t limit_of(const ls_memory_plan *p)
{
	uint64_t available = ls_memory_available(), addresses = ls_memory_address_space();
	uint64_t unused = unused_addresses(p);

	if (addresses != UINT64_MAX) {
		addresses = addresses > unused ? addresses - unused : 0;
		available = available < addresses ? available : addresses;
	}
	return p->resident + available;
}

static uint64_t most_of(const ls_memory_plan *p)
{
	return ls_memory_plan_total(p) + p->more;
}

/* With a margin: what a machine has to give is not the same in the next moment. */
static int fits_well(uint64_t needed, const ls_memory_plan *p)
{
	return needed <= limit_of(p) / 20 * 19;
}

static int batch_fits(const ls_memory_advice *a, int64_t batch)
{
	ls_memory_plan plan;
	return a->plan(a->context, batch, &plan) == LS_OK && fits_well(most_of(&plan), &plan);
}

static int64_t largest_divisor(int64_t whole, int64_t most)
{
	while (whole > 0 && whole % most != 0)
		most--;
	return most;
}

/* The largest batch below the present one whose plan fits; 0: none was found. */
static int64_t largest_fit(const ls_memory_advice *a)
{
	int64_t low = 0, high = a->now;
	while (high - low > 1) {
		int64_t middle = low + (high - low) / 2;
		if (batch_fits(a, largest_divisor(a->whole, middle)))
			low = middle;
		else
			high = middle;
	}
	return low > 0 ? largest_divisor(a->whole, low) : 0;
}

/* What would fit: a choice that keeps the trained bits, else a smaller batch. */
static void advise(const ls_memory_plan *p, const ls_memory_advice *a, char *text, size_t size)
{
	if (p->more > 0 && fits_well(ls_memory_plan_total(p), p)) {
		snprintf(text, size, "--share equal would fit");
		return;
	}
	int64_t fit = largest_fit(a);
	if (fit > 0)
		snprintf(text, size, "%s %lld would fit", a->option, (long long)fit);
	else
		snprintf(text, size, "no %s would fit: use fewer devices or a smaller model", a->option);
}

ls_status ls_memory_plan_check(const ls_memory_plan *p, const ls_memory_advice *advice)
{
	uint64_t needed = most_of(p), limit = limit_of(p);
	int small = needed < 1000000000;
	double unit = small ? 1e6 : 1e9;
	char text[128];

	if (needed <= limit)
		return LS_OK;
	advise(p, advice, text, sizeof(text));
	return ls_fail(
		LS_EMEMORY,
		"micro-batches of %lld samples on %d device%s need %.*f %cB but only %.*f %cB are available; "
		"%s (train --plan-memory prints the parts)",
		(long long)p->trainer.leaf, p->trainer.devices, p->trainer.devices == 1 ? "" : "s", small ? 0 : 2,
		(double)needed / unit, small ? 'M' : 'G', small ? 0 : 2, (double)limit / unit, small ? 'M' : 'G', text);
}
