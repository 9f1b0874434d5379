/*
 * confusion.h - the confusion matrix and the top-5 accuracy of an evaluation.
 *
 * All are whole numbers, added up by whichever thread has a micro-batch, so they do not depend on the layout.
 */
#ifndef LS_EVALUATION_CONFUSION_H
#define LS_EVALUATION_CONFUSION_H

#include "trainer/evaluate.h"

typedef struct ls_confusion ls_confusion;

/* At most LS_CONFUSION_CLASSES_MAX classes. */
enum { LS_CONFUSION_CLASSES_MAX = 4096, LS_CONFUSION_TOP = 5 };
ls_status ls_confusion_new(ls_confusion **out, int64_t classes);
void ls_confusion_free(ls_confusion *confusion);

/* Count a micro-batch: an ls_evaluator_sink. Micro-batches come in no order and from several threads. */
void ls_confusion_count(void *confusion, const ls_microbatch *microbatch, const float *logits);

/* What was counted; names: (classes), or NULL. `out` is released with ls_class_counts_release(). */
ls_status ls_confusion_take(const ls_confusion *confusion, const char *const *names, ls_class_counts *out);

#endif
