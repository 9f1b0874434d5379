#include "evaluation/class_tally.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/topk.h"
#include "comm/collectives.h"

enum { TOP = 5 };

/* Of each class, and behind them of all samples together. */
enum { LABELLED, PREDICTED, CORRECT, PER_CLASS };
enum { SAMPLES, AMONG_TOP, OF_ALL };

struct ls_class_tally {
	int64_t classes, top;
	size_t counts;
	atomic_ullong *count; /* (classes, PER_CLASS), then (OF_ALL) */
};

ls_status ls_class_tally_new(ls_class_tally **out, int64_t classes)
{
	ls_class_tally *t = calloc(1, sizeof(*t));
	size_t counts = (size_t)classes * PER_CLASS + OF_ALL;
	atomic_ullong *count = calloc(counts, sizeof(*count));

	if (!t || !count) {
		free(count);
		free(t);
		return ls_fail(LS_EMEMORY, "no memory for counts of %lld classes", (long long)classes);
	}
	*t = (ls_class_tally){
		.classes = classes, .top = classes < TOP ? classes : TOP, .counts = counts, .count = count
	};
	*out = t;
	return LS_OK;
}

void ls_class_tally_free(ls_class_tally *t)
{
	if (!t)
		return;
	free(t->count);
	free(t);
}

static void add(atomic_ullong *count, unsigned long long by)
{
	atomic_fetch_add_explicit(count, by, memory_order_relaxed);
}

static atomic_ullong *of_class(const ls_class_tally *t, int64_t class)
{
	return t->count + class * PER_CLASS;
}

static atomic_ullong *of_all(const ls_class_tally *t)
{
	return of_class(t, t->classes);
}

void ls_class_tally_clear(ls_class_tally *t)
{
	for (size_t i = 0; i < t->counts; i++)
		atomic_store(&t->count[i], 0);
}

void ls_class_tally_count(void *tally, const ls_microbatch *microbatch, const float *logits)
{
	const ls_class_tally *t = tally;
	int64_t best[TOP];
	unsigned long long among = 0;

	for (int64_t i = 0; i < microbatch->count; i++) {
		int32_t label = microbatch->labels[i];
		ls_topk(logits + i * t->classes, t->classes, t->top, best);
		add(of_class(t, label) + LABELLED, 1);
		add(of_class(t, best[0]) + PREDICTED, 1);
		if (best[0] == label)
			add(of_class(t, label) + CORRECT, 1);
		for (int64_t k = 0; k < t->top; k++)
			among += best[k] == label;
	}
	add(of_all(t) + SAMPLES, (unsigned long long)microbatch->count);
	add(of_all(t) + AMONG_TOP, among);
}

ls_status ls_class_tally_share(ls_class_tally *t, ls_comm *comm)
{
	size_t nodes = comm ? (size_t)ls_comm_size(comm) : 1;
	unsigned long long *all = nodes > 1 ? calloc((nodes + 1) * t->counts, sizeof(*all)) : NULL,
			   *mine = all ? all + nodes * t->counts : NULL;

	if (nodes == 1)
		return LS_OK;
	if (!all)
		return ls_fail(LS_EMEMORY, "no memory for the counts of %zu nodes", nodes);
	for (size_t i = 0; i < t->counts; i++)
		mine[i] = atomic_load(&t->count[i]);
	ls_status status = ls_comm_allgather(comm, mine, t->counts * sizeof(*mine), all, "counts of classes");
	ls_class_tally_clear(t);
	for (size_t i = 0; status == LS_OK && i < nodes * t->counts; i++)
		add(&t->count[i % t->counts], all[i]);
	free(all);
	return status;
}

/* As in scikit-learn, a class that nothing is labelled or predicted as does not count. */
double ls_class_tally_f1(const ls_class_tally *t)
{
	double sum = 0;
	int64_t met = 0;

	for (int64_t i = 0; i < t->classes; i++) {
		const atomic_ullong *c = of_class(t, i);
		unsigned long long both = atomic_load(&c[LABELLED]) + atomic_load(&c[PREDICTED]);
		sum += both > 0 ? 2 * (double)atomic_load(&c[CORRECT]) / (double)both : 0;
		met += both > 0;
	}
	return met > 0 ? sum / (double)met : 0;
}

double ls_class_tally_top5(const ls_class_tally *t)
{
	unsigned long long samples = atomic_load(&of_all(t)[SAMPLES]);
	return samples > 0 ? (double)atomic_load(&of_all(t)[AMONG_TOP]) / (double)samples : 0;
}
