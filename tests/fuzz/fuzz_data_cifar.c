/*
 * Any bytes as a file of CIFAR-10 or CIFAR-100, by the first byte: refused, or whole records with labels that there
 * are.
 */
#include "data/readers/cifar.h"
#include "fuzz/common.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 1)
		return 0;
	const ls_cifar *kind = data[0] & 1 ? &ls_cifar100 : &ls_cifar10;
	const uint8_t *records = data + 1;
	size_t record = ls_cifar_record(kind);

	if (ls_cifar_check_file(kind, records, size - 1, "input") != LS_OK)
		return 0;
	fuzz_require((size - 1) % record == 0 && size > 1);
	for (size_t at = (size_t)kind->labels - 1; at < size - 1; at += record)
		fuzz_require(records[at] < kind->classes);
	return 0;
}
