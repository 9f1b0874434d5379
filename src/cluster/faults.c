#include "cluster/faults.h"

#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/rng.h"

static ls_status refuse(const char *text)
{
	return ls_fail(LS_EINVALID, LS_FAULTS "='%.100s': it must be SECONDS:SEED:COUNT, as in 30:7:5", text);
}

ls_status ls_faults_parse(ls_faults *out, const char *text)
{
	ls_faults faults = { 0 };
	int length = 0;

	if (text && strchr(text, '-'))
		return refuse(text); /* sscanf() would take -1 for the largest number */
	if (text &&
	    (sscanf(text, "%lf:%" SCNu64 ":%" SCNu64 "%n", &faults.every, &faults.seed, &faults.count, &length) != 3 ||
	     text[length] != '\0' || !(faults.every > 0) || !isfinite(faults.every)))
		return refuse(text);
	*out = faults;
	return LS_OK;
}

ls_status ls_faults_given(ls_faults *out)
{
	return ls_faults_parse(out, getenv(LS_FAULTS));
}

/* The unit is of (0, 1]: its logarithm is finite. */
ls_fault ls_faults_draw(const ls_faults *faults, uint64_t start, int nodes)
{
	uint32_t words[4];

	if (!(faults->every > 0) || start == 0 || start > faults->count)
		return (ls_fault){ .node = -1 };
	ls_rng_words(ls_rng_make(faults->seed, LS_RNG_FAULT, 0), 0, start, words);
	double unit = ((double)words[0] + 1) * 0x1p-32;
	return (ls_fault){ .node = (int)ls_rng_below(words[1], (uint32_t)nodes), .after = -log(unit) * faults->every };
}

ls_status ls_fault_arm(double seconds)
{
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL };
	struct itimerspec when = { .it_value = { .tv_sec = (time_t)seconds,
						 .tv_nsec = 1 + (long)((seconds - floor(seconds)) * 999999998) } };
	timer_t timer;

	if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0 || timer_settime(timer, 0, &when, NULL) != 0)
		return ls_fail_errno(LS_EIO, LS_FAULTS ": cannot set a timer");
	return LS_OK;
}
