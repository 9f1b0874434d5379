#include "base/options.h"

#include <string.h>

/* No version will add more than this to a struct. */
enum { GROWTH_MAX = 4096 };

int ls_options_are_zero(const void *bytes, size_t count)
{
	const unsigned char *byte = bytes;
	for (size_t i = 0; i < count; i++)
		if (byte[i] != 0)
			return 0;
	return 1;
}

ls_status ls_options_copy(void *own, size_t own_size, const void *given, size_t size)
{
	if (size > own_size && !ls_options_are_zero((const char *)given + own_size, size - own_size))
		return ls_fail(LS_EUNSUPPORTED,
			       "options are of a newer version of Lockstep than this library, %s, and one is set that "
			       "it does not have; install the newer library",
			       ls_version());
	memcpy(own, given, size < own_size ? size : own_size);
	return LS_OK;
}

ls_status ls_options_size(const void *given, size_t own_size, size_t first, const char *init, size_t *size)
{
	if (!given)
		return ls_fail(LS_EINVALID, "options is NULL: start from %s", init);
	memcpy(size, given, sizeof(*size));
	if (*size < first || *size > own_size + GROWTH_MAX)
		return ls_fail(LS_EINVALID, "options.size is %zu: start from %s", *size, init);
	return LS_OK;
}

ls_status ls_options_check_unused(ls_status taken, const int *unused, const char *init)
{
	if (taken != LS_OK || *unused == 0)
		return taken;
	return ls_fail(LS_EINVALID, "options.unused is %d: it must be 0, as %s sets it", *unused, init);
}

ls_status ls_options_take(void *own, size_t own_size, const void *given, size_t first, const char *init)
{
	size_t size = 0;

	LS_TRY(ls_options_size(given, own_size, first, init, &size));
	LS_TRY(ls_options_copy(own, own_size, given, size));
	memcpy(own, &own_size, sizeof(own_size));
	return LS_OK;
}
