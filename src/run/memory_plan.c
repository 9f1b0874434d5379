#include "run/memory_plan.h"

#include <stdio.h>

#include "base/memory.h"
#include "base/names.h"
#include "base/thread.h"
#include "checkpoint/memory_file.h"

/* What a thread's stack and heap come to when it has done everything once (measured: 60 to 90 KB). */
enum { THREAD_BYTES = 80 << 10 };
/* Addresses for what is not counted one by one: generated kernels, small objects, files that are read and written. */
#define OTHER_ADDRESSES ((uint64_t)8 << 20)

ls_status ls_memory_plan_init(ls_memory_plan *plan, const ls_node_trainer_options *trainer, const ls_layout *layout,
			      int64_t last_microbatches)
{
	ls_node_trainer_bytes most;
	const ls_backend *backend = trainer->backend;

	if (backend->start)
		LS_TRY(backend->start());
	*plan = (ls_memory_plan){ .trainer = *trainer, .resident = (size_t)ls_memory_resident() };
	LS_TRY(ls_layout_sum_buffers(layout, trainer->microbatches, last_microbatches, &plan->trainer.sum_buffers,
				     &plan->most));
	LS_TRY(ls_node_trainer_plan(&plan->trainer, &plan->bytes));
	ls_node_trainer_options other = *trainer;
	other.sum_buffers = plan->most;
	LS_TRY(ls_node_trainer_plan(&other, &most));
	plan->more = most.gradients - plan->bytes.gradients;
	plan->running = (trainer->devices > 0) + (layout->comm != NULL); /* the caller drives the first device */
	ls_memory_plan_add_threads(plan, trainer->devices * trainer->threads + (layout->comm != NULL));
	return LS_OK;
}

void ls_memory_plan_add_threads(ls_memory_plan *plan, int count)
{
	plan->thread_count += count;
	plan->threads = (size_t)plan->thread_count * THREAD_BYTES;
}

size_t ls_memory_plan_total(const ls_memory_plan *p)
{
	return p->resident + p->bytes.params + p->bytes.gradients + p->bytes.state + p->bytes.average +
	       p->bytes.workspace + p->samples + p->evaluation + p->checkpoint + p->snapshot + p->in_memory +
	       p->timeline + p->threads;
}

/* What a run needs and may have: of memory that is used, or of address space. */
typedef struct need {
	uint64_t bytes, allowed;
	ls_memory_limit limit; /* that allows it */
	const char *kind;
} need;

static uint64_t most_of(const ls_memory_plan *p)
{
	return ls_memory_plan_total(p) + p->more;
}

static need memory_need(const ls_memory_plan *p)
{
	ls_memory_limit limit = ls_memory_physical();
	uint64_t more = p->resident + p->freed;
	uint64_t allowed = limit.left < UINT64_MAX - more ? limit.left + more : UINT64_MAX;
	return (need){ most_of(p), allowed, limit, "" };
}

static need mapped_need(const ls_memory_plan *p, ls_memory_limit limit, uint64_t files)
{
	uint64_t taken = limit.bytes - limit.left;
	uint64_t stacks = (uint64_t)(p->thread_count - p->running) * ls_thread_addresses();
	uint64_t mapped = most_of(p) - p->resident - p->threads + p->unused + files;
	return (need){ taken + mapped + stacks + OTHER_ADDRESSES, limit.bytes, limit, " of address space" };
}

static double left_over(const need *n)
{
	return (double)n->allowed - (double)n->bytes;
}

/* By ulimit -v or by ulimit -d, which does not count files that are only read: whichever leaves less. */
static need address_need(const ls_memory_plan *p)
{
	need all = mapped_need(p, ls_memory_address_space(), p->files), data = mapped_need(p, ls_memory_data(), 0);
	return left_over(&data) < left_over(&all) ? data : all;
}

static int is_limited(const need *n)
{
	return n->limit.left != UINT64_MAX;
}

/* With a margin: what a machine has to give is not the same in the next moment. */
static int fits_well(const ls_memory_plan *p)
{
	need memory = memory_need(p), addresses = address_need(p);
	return memory.bytes <= memory.allowed / 20 * 19 && addresses.bytes <= addresses.allowed / 20 * 19;
}

static void print_part(FILE *to, const char *name, size_t bytes, const char *note)
{
	if (bytes > 0)
		fprintf(to, "  %-32s %10.2f MB%s\n", name, (double)bytes / 1e6, note);
}

ls_status ls_memory_plan_print(const ls_memory_plan *p, FILE *to)
{
	const ls_node_trainer_options *t = &p->trainer;
	const ls_backend *backend = t->backend;
	need addresses = address_need(p);
	char note[128], name[64];

	fprintf(to,
		"memory plan: micro-batch of %lld sample%s, %lld micro-batch%s per step, %d device%s, %d thread%s "
		"each\n",
		(long long)t->microbatch, ls_plural((uint64_t)t->microbatch, "s"), (long long)t->microbatches,
		ls_plural((uint64_t)t->microbatches, "es"), t->devices, ls_plural((uint64_t)t->devices, "s"),
		t->threads, ls_plural((uint64_t)t->threads, "s"));
	print_part(to, "program and data", p->resident, "   (in memory already)");
	print_part(to, "parameters and statistics", p->bytes.params, "");
	snprintf(note, sizeof(note), "   (the gradient has %.2f MB)", (double)t->graph->params.reachable * 4e-6);
	print_part(to, "gradient sums", p->bytes.gradients, note);
	snprintf(note, sizeof(note), "   (%s)", t->optimizer);
	print_part(to, "optimizer state", p->bytes.state, note);
	print_part(to, "moving average", p->bytes.average, "");
	snprintf(note, sizeof(note), "   (%d device%s)", t->devices, ls_plural((uint64_t)t->devices, "s"));
	print_part(to, "activations", p->bytes.workspace, note);
	if (t->devices > 0 && backend->print_plan)
		LS_TRY(backend->print_plan(t->graph, t->microbatch, t->threads, to));
	print_part(to, "samples read ahead", p->samples, "");
	print_part(to, "evaluation", p->evaluation, "");
	print_part(to, "checkpoint", p->checkpoint, "");
	print_part(to, "snapshot", p->snapshot, "   (written as a checkpoint while training goes on)");
	print_part(to, "snapshots in memory", p->in_memory,
		   "   (two in " LS_MEMORY_DIRECTORY ", for when a node is lost)");
	print_part(to, "timeline", p->timeline, "");
	snprintf(note, sizeof(note), "   (%d thread%s)", p->thread_count, ls_plural((uint64_t)p->thread_count, "s"));
	print_part(to, "threads", p->threads, note);
	print_part(to, "total", ls_memory_plan_total(p), "");
	print_part(to, "at most", p->more > 0 ? ls_memory_plan_total(p) + p->more : 0,
		   "   (when faster nodes take over micro-batches)");
	snprintf(note, sizeof(note), "   (%s)", ls_memory_limit_name(&addresses.limit, name, sizeof(name)));
	print_part(to, "address space", is_limited(&addresses) ? addresses.bytes : 0, note);
	return LS_OK;
}

/* What a micro-batch's size follows from, and what it must divide; whole is 0 where it need not. */
typedef struct batch_choice {
	const char *option;
	int64_t now, whole;
} batch_choice;

static batch_choice choice_of(const ls_memory_advice *a)
{
	const ls_train_options *o = a->given;
	ls_settings_batches batches = { 0 };
	if (o->batch_per_device > 0 || ls_settings_get_batches(o, &batches) != LS_OK)
		return (batch_choice){ "options.batch_per_device", o->batch_per_device, 0 };
	return (batch_choice){ "options.micro_batch", batches.microbatch, batches.global };
}

/* Whether the run would fit with another micro_batch or batch_per_device. */
static int batch_fits(const ls_memory_advice *a, int64_t batch)
{
	ls_train_options other = *a->given, resolved;
	ls_memory_plan plan;

	if (other.batch_per_device > 0)
		other.batch_per_device = batch;
	else
		other.micro_batch = batch;
	return ls_settings_resolve(&other, a->devices, &resolved) == LS_OK &&
	       a->plan(a->context, &resolved, &plan) == LS_OK && fits_well(&plan);
}

static int64_t largest_divisor(int64_t whole, int64_t most)
{
	while (whole > 0 && whole % most != 0)
		most--;
	return most;
}

/* The largest batch below the present one whose plan fits; 0: none was found. */
static int64_t largest_fit(const ls_memory_advice *a, const batch_choice *choice)
{
	int64_t low = 0, high = choice->now;
	while (high - low > 1) {
		int64_t middle = low + (high - low) / 2;
		if (batch_fits(a, largest_divisor(choice->whole, middle)))
			low = middle;
		else
			high = middle;
	}
	return low > 0 ? largest_divisor(choice->whole, low) : 0;
}

/* What would fit: a choice that keeps the trained bits, else a smaller batch. */
static void advise(const ls_memory_plan *p, const ls_memory_advice *a, char *text, size_t size)
{
	ls_memory_plan equal = *p;

	equal.more = 0;
	if (p->more > 0 && fits_well(&equal)) {
		snprintf(text, size, "options.share equal would fit");
		return;
	}
	batch_choice choice = choice_of(a);
	int64_t fit = largest_fit(a, &choice);
	if (fit > 0)
		snprintf(text, size, "%s %lld would fit", choice.option, (long long)fit);
	else
		snprintf(text, size, "no %s would fit: use fewer devices or a smaller model", choice.option);
}

static ls_status refuse(const ls_memory_plan *p, const need *n, const ls_memory_advice *advice)
{
	int small = n->bytes < 1000000000;
	double unit = small ? 1e6 : 1e9;
	char text[128], name[64];

	advise(p, advice, text, sizeof(text));
	return ls_fail(LS_EMEMORY,
		       "micro-batches of %lld sample%s on %d device%s need %.*f %cB%s but only %.*f %cB are available "
		       "(%s); %s (train options.plan_memory prints the parts)",
		       (long long)p->trainer.microbatch, ls_plural((uint64_t)p->trainer.microbatch, "s"),
		       p->trainer.devices, ls_plural((uint64_t)p->trainer.devices, "s"), small ? 0 : 2,
		       (double)n->bytes / unit, small ? 'M' : 'G', n->kind, small ? 0 : 2, (double)n->allowed / unit,
		       small ? 'M' : 'G', ls_memory_limit_name(&n->limit, name, sizeof(name)), text);
}

int ls_memory_plan_fits(const ls_memory_plan *p)
{
	need memory = memory_need(p), addresses = address_need(p);

	return memory.bytes <= memory.allowed && addresses.bytes <= addresses.allowed;
}

ls_status ls_memory_plan_check(const ls_memory_plan *p, const ls_memory_advice *advice)
{
	need memory = memory_need(p), addresses = address_need(p);

	if (memory.bytes > memory.allowed)
		return refuse(p, &memory, advice);
	return addresses.bytes > addresses.allowed ? refuse(p, &addresses, advice) : LS_OK;
}
