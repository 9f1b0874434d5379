#include "data/readers/numpy_array.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/memory.h"
#include "data/readers/gzip.h"
#include "data/readers/zip.h"

void ls_numpy_array_close(ls_numpy_array *a)
{
	if (a->inflated)
		ls_buffer_free(a->inflated, a->inflated_bytes);
	if (a->map.data)
		ls_file_map_close(&a->map);
	*a = (ls_numpy_array){ .inflated = NULL };
}

int ls_numpy_is_archive(const char *path)
{
	size_t length = strlen(path);
	return length > 4 && !strcasecmp(path + length - 4, ".npz") && !ls_path_is_directory(path);
}

/* A small archive can declare a huge array. */
static ls_status check_room(const ls_zip *zip, const ls_zip_member *m)
{
	ls_memory_limit limit = ls_memory_tightest();
	char limit_name[64];

	if (m->bytes / LS_GZIP_RATIO_MAX > m->packed)
		return ls_fail(LS_EFORMAT, "%s: %s declares %zu bytes, more than %zu compressed ones can hold",
			       zip->name, m->name, m->bytes, m->packed);
	if (limit.left && m->bytes > limit.left)
		return ls_fail(LS_EMEMORY,
			       "%s: %s takes %.2f GB of memory, and %.2f GB are left (%s); write the archive with "
			       "numpy.savez, not savez_compressed: it is then mapped, not loaded",
			       zip->name, m->name, (double)m->bytes * 1e-9, (double)limit.left * 1e-9,
			       ls_memory_limit_name(&limit, limit_name, sizeof(limit_name)));
	return LS_OK;
}

static ls_status open_member(ls_numpy_array *a, const ls_zip *zip, const ls_zip_member *m)
{
	const uint8_t *data = NULL;

	snprintf(a->name, sizeof(a->name), "%.3800s: %.255s", zip->name, m->name);
	if (m->method == 0) {
		LS_TRY(ls_zip_view(zip, m, &data));
	} else {
		LS_TRY(check_room(zip, m));
		LS_TRY(ls_buffer_new(&a->inflated, m->bytes > 0 ? m->bytes : 1, a->name));
		a->inflated_bytes = m->bytes > 0 ? m->bytes : 1;
		LS_TRY(ls_zip_read(zip, m, a->inflated));
		data = a->inflated;
	}
	return ls_npy_parse(&a->npy, data, m->bytes, a->name);
}

static int is_named(const char *file, const char *name)
{
	size_t length = strlen(name);
	return strncmp(file, name, length) == 0 && (!file[length] || !strcmp(file + length, ".npy"));
}

/* The member of that name, if there is one: *found. Of two, another program may take the other one. */
static ls_status find_member(const ls_zip *archive, const char *name, ls_zip_member *out, int *found)
{
	ls_zip zip = *archive; /* from its first member on */
	ls_zip_member member;
	int more = 1;

	for (*found = 0; more;) {
		LS_TRY(ls_zip_next(&zip, &member, &more));
		if (!more || !is_named(member.name, name))
			continue;
		if (*found)
			return ls_fail(LS_EFORMAT, "%s: member '%s' is there twice; write the archive with one of them",
				       archive->name, member.name);
		*out = member;
		*found = 1;
	}
	return LS_OK;
}

static ls_status open_in_archive(ls_numpy_array *a, const char *path, const char *const *names, int *found)
{
	ls_zip zip;
	ls_zip_member member;

	*found = 0;
	LS_TRY(ls_file_map_open(&a->map, path));
	LS_TRY(ls_zip_open(&zip, a->map.data, a->map.bytes, path));
	for (size_t i = 0; names[i] && !*found; i++)
		LS_TRY(find_member(&zip, names[i], &member, found));
	return *found ? open_member(a, &zip, &member) : LS_OK;
}

static ls_status open_in_directory(ls_numpy_array *a, const char *path, const char *const *names, int *found)
{
	*found = 0;
	for (size_t i = 0; names[i] && !*found; i++) {
		char file[64];
		snprintf(file, sizeof(file), "%s.npy", names[i]);
		LS_TRY(ls_path_join(a->name, sizeof(a->name), path, file));
		*found = ls_path_exists(a->name);
	}
	if (!*found)
		return LS_OK;
	LS_TRY(ls_file_map_open(&a->map, a->name));
	return ls_npy_parse(&a->npy, a->map.data, a->map.bytes, a->name);
}

ls_status ls_numpy_array_open(ls_numpy_array *a, const char *path, const char *const *names, int *found)
{
	*a = (ls_numpy_array){ .inflated = NULL };
	ls_status status = ls_numpy_is_archive(path) ? open_in_archive(a, path, names, found)
						     : open_in_directory(a, path, names, found);
	if (status == LS_OK && *found)
		status = ls_file_map_check(&a->map);
	if (status != LS_OK || !*found)
		ls_numpy_array_close(a);
	return status;
}

/* ---- images to predict ------------------------------------------------------------------------------------------- */

/* The one member of an archive; *count is how many there are. */
static ls_status find_only(const ls_zip *archive, ls_zip_member *out, size_t *count)
{
	ls_zip zip = *archive;
	ls_zip_member member;
	int more = 1;

	for (*count = 0; more; *count += (size_t)more) {
		LS_TRY(ls_zip_next(&zip, &member, &more));
		if (more && *count == 0)
			*out = member;
	}
	return LS_OK;
}

static ls_status open_inputs(ls_numpy_array *a, const char *path)
{
	static const char *const names[] = { "x_test", "X_test", "test_images", "test_x", "images_test",
					     "images", "x",      "X",           "data",   NULL };
	ls_zip zip;
	ls_zip_member member;
	size_t count = 0;
	int found = 0;

	LS_TRY(ls_file_map_open(&a->map, path));
	LS_TRY(ls_zip_open(&zip, a->map.data, a->map.bytes, path));
	for (size_t i = 0; names[i] && !found; i++)
		LS_TRY(find_member(&zip, names[i], &member, &found));
	if (!found)
		LS_TRY(find_only(&zip, &member, &count));
	if (!found && count != 1)
		return ls_fail(LS_EFORMAT,
			       "%s has %zu arrays and none of them is named x, images or x_test: which are the images?",
			       path, count);
	LS_TRY(open_member(a, &zip, &member));
	return ls_file_map_check(&a->map);
}

ls_status ls_numpy_array_open_inputs(ls_numpy_array *a, const char *path)
{
	*a = (ls_numpy_array){ .inflated = NULL };
	ls_status status = open_inputs(a, path);
	if (status != LS_OK)
		ls_numpy_array_close(a);
	return status;
}
