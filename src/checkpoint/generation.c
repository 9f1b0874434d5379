#include "checkpoint/generation.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/files.h"
#include "base/log.h"

#define GENERATION_FILE ".generation"

/* A number and a line end; 0: anything else. */
static uint64_t parse(const char *text)
{
	char *end;
	if (*text < '1' || *text > '9')
		return 0;
	uint64_t number = strtoull(text, &end, 10);
	return *end == '\n' && end[1] == '\0' && number < INT64_MAX ? number : 0;
}

/* -1: there is no file, or it cannot be read. */
static int read_number(const char *run, uint64_t *out)
{
	char path[4096], text[32];
	*out = 0;
	if (ls_path_join(path, sizeof(path), run, GENERATION_FILE) != LS_OK)
		return -1;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return -1;
	ssize_t length = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[length > 0 ? length : 0] = '\0';
	*out = parse(text);
	return length < 0 ? -1 : 0;
}

uint64_t ls_generation_newest(const char *run)
{
	uint64_t number;
	return read_number(run, &number) == 0 ? number : 0;
}

ls_status ls_generation_restore(const char *run, uint64_t mine)
{
	char path[4096], text[32];
	LS_TRY(ls_path_join(path, sizeof(path), run, GENERATION_FILE));
	snprintf(text, sizeof(text), "%" PRIu64, mine);
	return ls_file_put_text(path, text);
}

/* A file that says nothing may have had any number: the seconds since 1970 are more than anybody has started a run. */
ls_status ls_generation_begin(const char *run, uint64_t *out)
{
	uint64_t before;
	int is_there = read_number(run, &before) == 0;
	if (is_there && before == 0) {
		before = (uint64_t)time(NULL);
		ls_log_warning("%s/" GENERATION_FILE " is damaged: this start of the run has number %" PRIu64, run,
			       before + 1);
	}
	LS_TRY(ls_generation_restore(run, before + 1));
	*out = before + 1;
	return LS_OK;
}

void ls_generation_withdraw(const char *run)
{
	char path[4096];
	if (ls_path_join(path, sizeof(path), run, GENERATION_FILE) == LS_OK)
		unlink(path);
}

ls_status ls_generation_check(const char *run, uint64_t mine)
{
	uint64_t newest = mine > 0 ? ls_generation_newest(run) : 0;
	if (newest <= mine)
		return LS_OK;
	return ls_fail(LS_EIO,
		       "%s was started again meanwhile (start %" PRIu64 ", this process belongs to start %" PRIu64
		       "): nothing of this process is saved any more",
		       run, newest, mine);
}
