#include "data/readers/measured.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/files.h"
#include "base/log.h"

#define MAGIC "lockstep measured images 1"
enum { SUM_LINE = 17 }; /* 16 digits and the end of the line */

/* "MAGIC KEY", the means, the deviations, and a hash of these lines. The text is changed. */
static ls_status parse_lines(ls_normalisation *out, char *text, uint64_t key, int channels, int *found)
{
	ls_normalisation n = { 0 };
	char wanted[64], *rest = NULL;

	snprintf(wanted, sizeof(wanted), MAGIC " %016" PRIx64, key);
	const char *head = strtok_r(text, "\n", &rest), *mean = strtok_r(NULL, "\n", &rest),
		   *deviation = strtok_r(NULL, "\n", &rest);
	if (!deviation || strcmp(head, wanted) != 0)
		return LS_OK;
	ls_status status = ls_normalisation_from_text(&n, mean, deviation, "measured images");
	if (status == LS_OK && n.channels == channels) {
		*out = n;
		*found = 1;
		return LS_OK;
	}
	ls_normalisation_release(&n);
	return status == LS_EMEMORY ? status : LS_OK;
}

ls_status ls_measured_parse(ls_normalisation *out, const char *text, size_t bytes, uint64_t key, int channels,
			    int *found)
{
	char sum[SUM_LINE + 1];

	*found = 0;
	if (bytes < SUM_LINE || memchr(text, '\0', bytes))
		return LS_OK;
	size_t summed = bytes - SUM_LINE;
	snprintf(sum, sizeof(sum), "%016" PRIx64 "\n", (uint64_t)XXH64(text, summed, 0));
	if (memcmp(text + summed, sum, SUM_LINE) != 0)
		return LS_OK;
	char *copy = strndup(text, summed);
	if (!copy)
		return ls_fail(LS_EMEMORY, "no memory for the mean and deviation of %d channels", channels);
	ls_status status = parse_lines(out, copy, key, channels, found);
	free(copy);
	return status;
}

ls_status ls_measured_load(ls_normalisation *out, const char *path, uint64_t key, int channels, int *found)
{
	ls_normalisation n = { 0 };
	ls_file_map map;

	*found = 0;
	if (!ls_path_exists(path) || ls_file_map_open(&map, path) != LS_OK)
		return LS_OK;
	ls_status status =
		ls_file_map_end(&map, ls_measured_parse(&n, (const char *)map.data, map.bytes, key, channels, found));
	*found = *found && status == LS_OK;
	if (*found)
		*out = n;
	else
		ls_normalisation_release(&n);
	return status == LS_EMEMORY ? status : LS_OK;
}

int ls_measured_lock(const char *path)
{
	char file[4096];
	int fd;

	if ((size_t)snprintf(file, sizeof(file), "%s.lock", path) >= sizeof(file) ||
	    ls_file_open_own(&fd, file, O_RDWR) != LS_OK)
		return -1;
	if (flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
		ls_log_note("waiting for another process that measures the same images");
		while (flock(fd, LOCK_EX) != 0 && errno == EINTR)
			;
	}
	return fd;
}

void ls_measured_save(const ls_normalisation *n, const char *path, uint64_t key)
{
	char *mean = ls_normalisation_to_text(n->mean, n->channels);
	char *deviation = ls_normalisation_to_text(n->deviation, n->channels);
	size_t room = (mean ? strlen(mean) : 0) + (deviation ? strlen(deviation) : 0) + 128;
	char *text = mean && deviation ? malloc(room) : NULL;

	if (text) {
		size_t bytes = (size_t)snprintf(text, room, MAGIC " %016" PRIx64 "\n%s\n%s\n", key, mean, deviation);
		uint64_t sum = XXH64(text, bytes, 0);
		bytes += (size_t)snprintf(text + bytes, room - bytes, "%016" PRIx64 "\n", sum);
		if (ls_file_put(path, text, bytes) != LS_OK) {
			/* they are measured again next time */
		}
	}
	free(text);
	free(mean);
	free(deviation);
}
