/*
 * progress.c - the progress line.
 *
 * The line belongs to the last row of the terminal and is rewritten in place: carriage return, text, erase to the end.
 * Log lines take it away first and put it back after (the hook). One display may begin while another runs (a test
 * inside training): the newest has the line, and gives it back when it ends. Three locks are involved, always taken in
 * the order of the list of displays, log's, a display's; the hook runs inside log's, and nothing here logs.
 */
#include "metrics/progress.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"

#define LS_PROGRESS_DELAY 1.0 /* a run of less shows nothing */
#define LS_PROGRESS_PERIOD 0.1
#define LS_PROGRESS_BAR 20
#define LS_PROGRESS_BAR_MIN 5
#define LS_PROGRESS_WIDTH_MAX 240

struct ls_progress {
	ls_progress *below; /* the display that had the line before */
	pthread_mutex_t lock;
	double begun, drawn;              /* times; drawn = 0 before the first */
	int suspended;                    /* a log line is being printed */
	char line[LS_PROGRESS_WIDTH_MAX]; /* as last composed; "" before the first */
};

static pthread_mutex_t displays = PTHREAD_MUTEX_INITIALIZER;
static ls_progress *newest; /* head of the list, guarded by `displays` */

static void put(const char *text, size_t length)
{
	ssize_t ignored = write(STDERR_FILENO, text, length); /* one call per line, so it cannot be torn */
	(void)ignored;
}

static void erase(const ls_progress *progress)
{
	if (progress->line[0])
		put("\r\033[K", 4);
}

static void draw(const ls_progress *progress)
{
	char text[LS_PROGRESS_WIDTH_MAX + 8];
	int length = snprintf(text, sizeof(text), "\r%s\033[K", progress->line);
	if (progress->line[0])
		put(text, (size_t)length);
}

static void around_log_line(void *context, int show)
{
	ls_progress *progress = context;
	pthread_mutex_lock(&progress->lock);
	progress->suspended = !show;
	if (show)
		draw(progress);
	else
		erase(progress);
	pthread_mutex_unlock(&progress->lock);
}

ls_progress *ls_progress_begin(void)
{
	const char *terminal = getenv("TERM");
	if (!isatty(STDERR_FILENO) || !ls_log_prints() || (terminal && strcmp(terminal, "dumb") == 0))
		return NULL;
	ls_progress *progress = calloc(1, sizeof(*progress));
	if (!progress)
		return NULL;
	if (pthread_mutex_init(&progress->lock, NULL) != 0) {
		free(progress);
		return NULL;
	}
	progress->begun = ls_clock_seconds();
	pthread_mutex_lock(&displays);
	progress->below = newest;
	newest = progress;
	ls_log_set_hook(around_log_line, progress);
	pthread_mutex_unlock(&displays);
	return progress;
}

/* Columns that may be written without touching the last one, where some terminals wrap. */
static int usable_columns(void)
{
	struct winsize size;
	int columns = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
	return columns - 1 < LS_PROGRESS_WIDTH_MAX - 1 ? columns - 1 : LS_PROGRESS_WIDTH_MAX - 1;
}

/* "  0:14 left", "  1:02:03 left"; nothing when it is not known. */
static void format_left(char *out, size_t size, double seconds)
{
	out[0] = '\0';
	if (!(seconds >= 0.0 && seconds < 1e9))
		return;
	long whole = (long)ceil(seconds), hours = whole / 3600, minutes = whole / 60 % 60;
	if (hours > 0)
		snprintf(out, size, "  %ld:%02ld:%02ld left", hours, minutes, whole % 60);
	else
		snprintf(out, size, "  %ld:%02ld left", minutes, whole % 60);
}

/* " |####----|", as wide as `room` allows up to LS_PROGRESS_BAR; nothing when that would be too short to read. */
static void format_bar(char out[LS_PROGRESS_BAR + 4], uint64_t done, uint64_t total, int room)
{
	int width = room - 3 < LS_PROGRESS_BAR ? room - 3 : LS_PROGRESS_BAR;
	out[0] = '\0';
	if (width < LS_PROGRESS_BAR_MIN || total == 0)
		return;
	int filled = done < total ? (int)((double)done / (double)total * width) : width;
	memcpy(out, " |", 2);
	memset(out + 2, '#', (size_t)filled);
	memset(out + 2 + filled, '-', (size_t)(width - filled));
	memcpy(out + 2 + width, "|", 2);
}

/* Too narrow a terminal loses the bar first, then the end of the line. */
static void compose(ls_progress *progress, const char *title, uint64_t done, uint64_t total, const char *detail,
		    double seconds_left)
{
	char left[40], of[24] = "", rest[LS_PROGRESS_WIDTH_MAX], bar[LS_PROGRESS_BAR + 4];
	int columns = usable_columns();
	if (total > 0)
		snprintf(of, sizeof(of), "/%llu", (unsigned long long)total);
	format_left(left, sizeof(left), seconds_left);
	int length = snprintf(rest, sizeof(rest), " %llu%s  %s%s", (unsigned long long)done, of, detail, left);
	format_bar(bar, done, total, columns - length - (int)strlen(title));
	if (snprintf(progress->line, (size_t)columns + 1, "%s%s%s", title, bar, rest) < 0)
		progress->line[0] = '\0';
}

void ls_progress_update(ls_progress *progress, const char *title, uint64_t done, uint64_t total, const char *detail,
			double seconds_left)
{
	if (!progress)
		return;
	double now = ls_clock_seconds();
	if (now - progress->begun < LS_PROGRESS_DELAY || now - progress->drawn < LS_PROGRESS_PERIOD)
		return;
	pthread_mutex_lock(&progress->lock);
	progress->drawn = now;
	compose(progress, title, done, total, detail, seconds_left);
	if (!progress->suspended)
		draw(progress);
	pthread_mutex_unlock(&progress->lock);
}

/* Out of the list; the one below, when `progress` had the line, shows itself again. Changing the hook waits for a log
 * line in the making. */
static void hand_back(ls_progress *progress)
{
	ls_progress **at = &newest;
	pthread_mutex_lock(&displays);
	int had_line = newest == progress;
	while (*at != progress)
		at = &(*at)->below;
	*at = progress->below;
	if (had_line) {
		ls_log_set_hook(newest ? around_log_line : NULL, newest);
		erase(progress);
		if (newest)
			around_log_line(newest, 1);
	}
	pthread_mutex_unlock(&displays);
}

void ls_progress_end(ls_progress *progress)
{
	if (!progress)
		return;
	hand_back(progress);
	pthread_mutex_destroy(&progress->lock);
	free(progress);
}
