#include "trainer/sample_log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/status.h"

enum { DIGITS = 21 }; /* of a 64-bit number, and the space behind it */

ls_status ls_sample_log_open(ls_sample_log *log, const char *directory, uint64_t generation, int node, int devices,
			     int64_t most)
{
	char path[4096];
	int length = snprintf(path, sizeof(path), "%s/start-%llu-node-%d-%d", directory, (unsigned long long)generation,
			      node, (int)getpid());

	*log = (ls_sample_log){ .fd = -1 };
	if ((size_t)length >= sizeof(path))
		return ls_fail(LS_EINVALID, "LOCKSTEP_SAMPLE_LOG: the path is longer than %zu characters",
			       sizeof(path));
	log->room = ((size_t)most + 4) * DIGITS;
	log->lines = malloc((size_t)devices * log->room + 1);
	if (!log->lines)
		return ls_fail(LS_EMEMORY, "no memory for lines of %lld samples", (long long)most);
	log->fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	if (log->fd >= 0)
		return LS_OK;
	ls_status status = ls_fail_errno(LS_EIO, "LOCKSTEP_SAMPLE_LOG: cannot write %s", path);
	ls_sample_log_close(log);
	return status;
}

void ls_sample_log_close(ls_sample_log *log)
{
	if (log->lines && log->fd >= 0)
		close(log->fd);
	free(log->lines);
	*log = (ls_sample_log){ 0 };
}

ls_status ls_sample_log_add(ls_sample_log *log, int device, const ls_microbatch *m)
{
	char *line = log->lines + (size_t)device * log->room;
	size_t used = (size_t)snprintf(line, log->room, "%llu %llu %lld", (unsigned long long)m->epoch,
				       (unsigned long long)m->step, (long long)m->microbatch);

	for (int64_t i = 0; i < m->count && used < log->room; i++)
		used += (size_t)snprintf(line + used, log->room - used, " %llu", (unsigned long long)m->samples[i]);
	line[used++] = '\n';
	ssize_t written = write(log->fd, line, used);
	if (written == (ssize_t)used)
		return LS_OK;
	errno = written < 0 ? errno : ENOSPC;
	return ls_fail_errno(LS_EIO, "LOCKSTEP_SAMPLE_LOG: cannot write a line");
}
