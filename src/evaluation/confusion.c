#include "evaluation/confusion.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "base/topk.h"

struct ls_confusion {
	int64_t classes, top;
	atomic_ullong samples, top_correct;
	atomic_ullong *count; /* (classes, classes): label, prediction */
};

ls_status ls_confusion_new(ls_confusion **out, int64_t classes)
{
	if (classes > LS_CONFUSION_CLASSES_MAX)
		return ls_fail(LS_EUNSUPPORTED,
			       "counts per class are kept for at most %d classes, and the model has %lld",
			       LS_CONFUSION_CLASSES_MAX, (long long)classes);
	ls_confusion *c = calloc(1, sizeof(*c));
	atomic_ullong *count = calloc((size_t)classes * (size_t)classes, sizeof(*count));
	if (!c || !count) {
		free(c);
		free(count);
		return ls_fail(LS_EMEMORY, "no memory for counts of %lld classes", (long long)classes);
	}
	c->classes = classes;
	c->top = classes < LS_CONFUSION_TOP ? classes : LS_CONFUSION_TOP;
	c->count = count;
	*out = c;
	return LS_OK;
}

void ls_confusion_free(ls_confusion *c)
{
	if (!c)
		return;
	free(c->count);
	free(c);
}

void ls_confusion_count(void *confusion, const ls_microbatch *microbatch, const float *logits)
{
	ls_confusion *c = confusion;
	int64_t best[LS_CONFUSION_TOP];
	unsigned long long among = 0;

	for (int64_t i = 0; i < microbatch->count; i++) {
		int32_t label = microbatch->labels[i];
		ls_topk(logits + i * c->classes, c->classes, c->top, best);
		atomic_fetch_add_explicit(&c->count[label * c->classes + best[0]], 1, memory_order_relaxed);
		for (int64_t k = 0; k < c->top; k++)
			among += best[k] == label;
	}
	atomic_fetch_add_explicit(&c->top_correct, among, memory_order_relaxed);
	atomic_fetch_add_explicit(&c->samples, (unsigned long long)microbatch->count, memory_order_relaxed);
}

static int copy_names(ls_class_counts *counts, const char *const *names)
{
	counts->names = calloc((size_t)counts->classes, sizeof(*counts->names));
	int is_whole = counts->names != NULL;
	for (int64_t i = 0; is_whole && i < counts->classes; i++) {
		counts->names[i] = strdup(names[i]);
		is_whole = counts->names[i] != NULL;
	}
	return is_whole;
}

ls_status ls_confusion_take(const ls_confusion *c, const char *const *names, ls_class_counts *out)
{
	size_t cells = (size_t)c->classes * (size_t)c->classes;
	ls_class_counts counts = { .classes = c->classes,
				   .samples = atomic_load(&c->samples),
				   .top = c->top,
				   .top_correct = atomic_load(&c->top_correct),
				   .confusion = calloc(cells, sizeof(*counts.confusion)) };

	if (!counts.confusion || (names && !copy_names(&counts, names))) {
		ls_class_counts_release(&counts);
		return ls_fail(LS_EMEMORY, "no memory for counts of %lld classes", (long long)c->classes);
	}
	for (size_t i = 0; i < cells; i++)
		counts.confusion[i] = atomic_load(&c->count[i]);
	*out = counts;
	return LS_OK;
}

/* ---- what follows from them -------------------------------------------------------------------------------------- */

void ls_class_counts_release(ls_class_counts *c)
{
	if (!c)
		return;
	for (int64_t i = 0; c->names && i < c->classes; i++)
		free(c->names[i]);
	free(c->names);
	free(c->confusion);
	*c = (ls_class_counts){ .classes = 0 };
}

static double part(uint64_t some, uint64_t all)
{
	return all > 0 ? (double)some / (double)all : 0;
}

int ls_class_counts_at(const ls_class_counts *c, int64_t i, ls_class_score *out)
{
	uint64_t predicted = 0, labelled = 0;

	if (i < 0 || i >= c->classes)
		return 0;
	for (int64_t k = 0; k < c->classes; k++) {
		predicted += c->confusion[k * c->classes + i];
		labelled += c->confusion[i * c->classes + k];
	}
	uint64_t correct = c->confusion[i * c->classes + i];
	*out = (ls_class_score){ .samples = labelled,
				 .predicted = predicted,
				 .correct = correct,
				 .precision = part(correct, predicted),
				 .recall = part(correct, labelled),
				 .f1 = part(2 * correct, predicted + labelled) };
	return 1;
}
