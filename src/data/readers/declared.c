#include "data/readers/declared.h"

#include <inttypes.h>

ls_status ls_declared_check(const char *name, size_t bytes, uint64_t declared)
{
	if (bytes < declared)
		return ls_fail(LS_EFORMAT, "%s: truncated: %zu bytes, but its header declares %" PRIu64, name, bytes,
			       declared);
	if (bytes > declared)
		return ls_fail(LS_EFORMAT, "%s: %" PRIu64 " bytes too many: %zu, but its header declares %" PRIu64,
			       name, bytes - declared, bytes, declared);
	return LS_OK;
}
