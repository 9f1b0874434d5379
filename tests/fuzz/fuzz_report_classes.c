/*
 * Any bytes as eval.json: refused with a message that names it, or counts and scores that can be drawn.
 */
#include "fuzz/common.h"
#include "tools/report/class_metrics.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	ls_class_metrics m = { 0 };
	if (ls_class_metrics_parse(&m, data, size, "fuzz") != LS_OK) {
		fuzz_require(strncmp(ls_last_error(), "fuzz:", 5) == 0);
		return 0;
	}
	fuzz_require(m.samples > 0 && m.count <= LS_CLASSES_MAX);
	for (size_t i = 0; i < m.count; i++) {
		fuzz_require(m.classes[i].name[0] != '\0' && memchr(m.classes[i].name, '\0', LS_CLASS_NAME));
		fuzz_require(m.classes[i].f1 >= 0 && m.classes[i].f1 <= 1 && m.classes[i].support >= 0);
	}
	for (size_t i = 0; i < m.count * m.count; i++)
		fuzz_require(m.confusion[i] >= 0 && m.confusion[i] <= m.samples);
	ls_class_metrics_release(&m);
	return 0;
}
