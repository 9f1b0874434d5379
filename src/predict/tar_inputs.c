#include "predict/tar_inputs.h"

#include <stdio.h>
#include <string.h>

#include "data/readers/image_list.h"

static ls_status begin(ls_tar_inputs *in, const char *path)
{
	if (strcmp(path, "-") == 0)
		return ls_fail(LS_EFORMAT, "standard input is a tar archive, which is not read from a pipe; give the "
					   "name of its file");
	LS_TRY(ls_file_map_open(&in->map, path));
	in->is_open = 1;
	if (!ls_tar_is(in->map.data, in->map.bytes))
		return ls_fail(LS_EFORMAT, "%s is a compressed tar archive; decompress it first (gunzip)", path);
	in->walk = (ls_tar_walk){ .data = in->map.data, .bytes = in->map.bytes, .path = path };
	return LS_OK;
}

ls_status ls_tar_inputs_open(ls_tar_inputs *out, const char *path)
{
	*out = (ls_tar_inputs){ .images = 0 };
	ls_status status = begin(out, path);
	if (status != LS_OK)
		ls_tar_inputs_close(out);
	return status;
}

void ls_tar_inputs_close(ls_tar_inputs *in)
{
	if (in->is_open)
		ls_file_map_close(&in->map);
	*in = (ls_tar_inputs){ .images = 0 };
}

ls_status ls_tar_inputs_next(ls_tar_inputs *in, ls_tar_image *out, int *found)
{
	ls_tar_member member;
	int more = 1;

	for (*found = 0; !*found;) {
		ls_status status = ls_tar_walk_next(&in->walk, &member, &more);
		if (status != LS_OK)
			in->walk.at = in->walk.bytes;
		LS_TRY(status);
		if (!more && in->images == 0)
			return ls_fail(LS_EFORMAT,
				       "%s has no images: none of its members ends with .png, .jpg or .jpeg",
				       in->walk.path);
		if (!more)
			return LS_OK;
		*found = member.is_file && ls_image_name_is(member.name);
	}
	in->images++;
	snprintf(out->name, sizeof(out->name), "%s/%s", in->walk.path, member.name);
	out->bytes = in->map.data + member.offset;
	out->size = member.bytes;
	return LS_OK;
}
