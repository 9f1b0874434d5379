/*
 * Any bytes as the kept list of a folder, behind its checksum: refused, or a list whose names and numbers are all in
 * range. And as the kept list of bad images, and as the kept mean and deviation, in front of their checksum.
 */
#include <inttypes.h>
#include <xxhash.h>

#include "data/readers/bad_images.h"
#include "data/readers/image_index.h"
#include "data/readers/measured.h"
#include "fuzz/common.h"

static void parse_bad(const uint8_t *data, size_t size)
{
	ls_bad_images bad = { .count = 0 };
	int found = 0;

	(void)ls_bad_images_parse(&bad, (const char *)data, size, 0, 1000, &found);
	for (uint64_t i = 0; found && i < bad.count; i++)
		fuzz_require(bad.image[i].place < 1000 && (i == 0 || bad.image[i - 1].place < bad.image[i].place));
	ls_bad_images_release(&bad);
}

static void parse_measured(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 18);
	ls_normalisation n = { 0 };
	int found = 0;

	fuzz_require(text != NULL);
	if (size)
		memcpy(text, data, size);
	snprintf(text + size, 18, "%016" PRIx64 "\n", (uint64_t)XXH64(text, size, 0));
	(void)ls_measured_parse(&n, text, size + 17, 0, 3, &found);
	for (int c = 0; found && c < 3; c++)
		fuzz_require(n.channels == 3 && n.deviation[c] > 0);
	ls_normalisation_release(&n);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	ls_image_list list = { .folder = "folder" };
	uint8_t *copy = malloc(size + 1);
	size_t sum = 0;

	parse_bad(data, size);
	parse_measured(data, size);
	fuzz_require(copy != NULL);
	if (size)
		memcpy(copy, data, size);
	if (ls_image_index_parse(&list, copy, size) != LS_OK) {
		free(copy);
		return 0;
	}
	for (size_t i = 0; i < list.count; i++) {
		fuzz_require(list.entry[i].label >= 0 && (size_t)list.entry[i].label < list.classes);
		fuzz_require(list.entry[i].shard == LS_NO_SHARD || list.entry[i].shard < list.shards);
		sum += strlen(list.entry[i].path);
	}
	for (size_t i = 0; i < list.stamps; i++)
		sum += strlen(list.stamp[i].path);
	for (size_t i = 0; list.class_name && i < list.classes; i++)
		sum += strlen(list.class_name[i]);
	ls_image_list_release(&list);
	return sum == SIZE_MAX;
}
