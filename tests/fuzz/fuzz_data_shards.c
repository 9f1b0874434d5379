/*
 * Any bytes as a tar shard: refused, or samples that lie inside of it.
 */
#include "base/log.h"
#include "data/readers/image_list.h"
#include "data/readers/tar_members.h"
#include "fuzz/common.h"

static void walk(const uint8_t *data, size_t size)
{
	ls_tar_walk w = { .data = data, .bytes = size, .path = "input" };
	ls_tar_member m;
	int more = 1;

	while (ls_tar_walk_next(&w, &m, &more) == LS_OK && more)
		fuzz_require(m.offset <= size && m.bytes <= size - m.offset && memchr(m.name, 0, sizeof(m.name)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char path[4200];
	ls_image_list list = { .root = NULL };

	walk(data, size);
	ls_log_set_level(LS_LOG_ERROR);
	snprintf(path, sizeof(path), "%s", fuzz_path("train.tar"));
	fuzz_write(path, data, size);
	const ls_image_list_options options = { .path = path, .skip_bad = UINT64_MAX };
	if (ls_image_list_read(&list, &options) == LS_OK) {
		for (size_t i = 0; i < list.count; i++) {
			const ls_image_entry *e = &list.entry[i];
			fuzz_require(e->label >= 0 && (size_t)e->label < list.classes && e->shard == 0);
			fuzz_require(e->offset <= size && (uint64_t)e->bytes <= size - e->offset);
		}
		ls_image_list_release(&list);
	}
	return 0;
}
