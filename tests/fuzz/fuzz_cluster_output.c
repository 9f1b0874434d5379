/*
 * Any bytes from mpirun, in two portions: understood, passed on or kept back, and the outcome does not depend on where
 * the portions meet. The first byte says where.
 */
#include "cluster/output.h"
#include "fuzz/common.h"

typedef struct heard {
	char *text; /* what was passed on */
	size_t bytes;
	ls_launch_end end;
	int told;
	char reason[1024], held[2048];
} heard;

static heard listen(const char *bytes, size_t size, size_t cut)
{
	heard h = { 0 };
	ls_launch_output *output = calloc(1, sizeof(*output));
	fuzz_require(output && (output->to = open_memstream(&h.text, &h.bytes)));
	ls_launch_output_take(output, bytes, cut, 0);
	ls_launch_output_flush(output, 0, 0);
	ls_launch_output_take(output, bytes + cut, size - cut, 0);
	if (size % 2)
		ls_launch_output_explain(output, h.held, sizeof(h.held));
	ls_launch_output_flush(output, 10, 1);
	fuzz_require(fclose(output->to) == 0 && output->held_count == 0);
	fuzz_require((output->end == LS_LAUNCH_REASON) == (output->reason[0] != '\0'));
	fuzz_require(memchr(output->reason, '\0', sizeof(output->reason)) != NULL);
	h.end = output->end;
	h.told = output->nodes_reported;
	memcpy(h.reason, output->reason, sizeof(h.reason));
	free(output);
	return h;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 1)
		return 0;
	const char *bytes = (const char *)data + 1;
	heard whole = listen(bytes, size - 1, 0), parts = listen(bytes, size - 1, data[0] * (size - 1) / 256);
	fuzz_require(whole.end == parts.end && whole.told == parts.told && strcmp(whole.reason, parts.reason) == 0);
	fuzz_require(strcmp(whole.held, parts.held) == 0 && whole.bytes == parts.bytes);
	fuzz_require(memcmp(whole.text, parts.text, whole.bytes) == 0);
	free(whole.text);
	free(parts.text);
	return 0;
}
