/*
 * command.c - command lines: where a point runs, then its options.
 */
#include "tools/sweep/command.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lockstep/data.h>
#include <lockstep/launch.h>

#include "tools/sweep/arguments.h"

enum { PROFILE_STEPS = 50 };

/* ---- words ------------------------------------------------------------------------------------------------------- */

void ls_argv_add(ls_argv *w, const char *word)
{
	if (w->count + 2 > w->room) {
		size_t room = w->room > 0 ? 2 * w->room : 64;
		char **grown = ls_arena_alloc(w->arena, room * sizeof(*grown));
		if (!grown) {
			w->failed = 1;
			return;
		}
		if (w->count > 0)
			memcpy(grown, w->word, w->count * sizeof(*grown));
		w->word = grown;
		w->room = room;
	}
	char *copy = ls_arena_copy(w->arena, word);
	w->failed |= !copy;
	w->word[w->count++] = copy;
	w->word[w->count] = NULL;
}

void ls_argv_addf(ls_argv *w, const char *option, const char *format, ...)
{
	char text[4096];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	ls_argv_add(w, option);
	ls_argv_add(w, text);
}

ls_status ls_argv_split(ls_argv *w, const char *text)
{
	char word[4 * LS_RESULTS_TEXT];

	for (const char *at = text; *at != '\0';) {
		size_t used = 0;
		at += strspn(at, " \t\n");
		if (*at == '\0')
			break;
		for (int quoted = 0; *at != '\0' && (quoted || !strchr(" \t\n", *at)); at++) {
			if (*at == '\'')
				quoted = !quoted;
			else if (used + 1 < sizeof(word))
				word[used++] = *at;
			if (quoted && at[1] == '\0')
				return ls_fail(LS_EINVALID, "arguments \"%s\" end within a quotation", text);
		}
		word[used] = '\0';
		ls_argv_add(w, word);
	}
	return LS_OK;
}

ls_status ls_argv_end(ls_argv *w, char ***out)
{
	if (w->failed)
		return ls_fail(LS_EMEMORY, "no memory for a command line");
	*out = w->word;
	return LS_OK;
}

/* ---- where it runs ----------------------------------------------------------------------------------------------- */

static void enter_lab(ls_argv *w, const ls_sweep_point *p, const ls_lab *lab)
{
	ls_argv_add(w, lab->tool);
	ls_argv_add(w, "run");
	ls_argv_addf(w, "--name", "%s", lab->name);
	if (p->on[0] != '\0')
		ls_argv_addf(w, "--on", LS_LAB_HOST "%" PRId64, ls_sweep_point_node(p, 0));
}

/* Devices of process i; servers, the last ones, get 1, because an entry must have a number. */
static int64_t devices_of(const ls_sweep_point *p, int64_t i)
{
	return i < p->job.nodes ? ls_shape_devices(p->job.shape, (size_t)i) : 1;
}

/* "node1:3,node2:2", or with the first names of --hosts. */
static ls_status write_hosts(const ls_sweep_point *p, const char *hosts, char *out, size_t size)
{
	size_t used = 0, count = 0;
	ls_host *named = NULL;

	if (hosts)
		LS_TRY(ls_hosts_parse(&named, &count, hosts));
	for (int64_t i = 0; i < ls_sweep_point_processes(p) && used < size; i++) {
		int64_t at = ls_sweep_point_node(p, i) - 1;
		used += (size_t)snprintf(out + used, size - used, "%s", used > 0 ? "," : "");
		if (used < size && named)
			used += (size_t)snprintf(out + used, size - used, "%s:%" PRId64, named[at].name,
						 devices_of(p, i));
		else if (used < size)
			used += (size_t)snprintf(out + used, size - used, LS_LAB_HOST "%" PRId64 ":%" PRId64, at + 1,
						 devices_of(p, i));
	}
	ls_hosts_free(named);
	return used < size ? LS_OK : ls_fail(LS_EINVALID, "the names of %" PRId64 " hosts are too long", p->job.nodes);
}

static ls_status add_nodes(ls_argv *w, const ls_sweep_point *p, const ls_sweep_target *target)
{
	char hosts[4096];
	const ls_point_job *job = &p->job;
	int64_t processes = ls_sweep_point_processes(p);

	ls_argv_addf(w, "--threads", "%" PRId64, job->threads);
	if (processes == 1 && (!target->hosts || target->lab)) {
		ls_argv_addf(w, "--devices", "%" PRId64, job->devices);
		return LS_OK;
	}
	LS_TRY(write_hosts(p, target->lab ? NULL : target->hosts, hosts, sizeof(hosts)));
	ls_argv_addf(w, "--hosts", "%s", hosts);
	ls_argv_addf(w, "--timeout", "%" PRId64, 30 + 5 * processes); /* on shared cores, processes start more slowly */
	if (processes == 1)
		return LS_OK;
	ls_argv_addf(w, "--strategy", "%s", job->strategy);
	ls_argv_addf(w, "--wire", "%s", job->wire);
	if (job->servers > 0)
		ls_argv_addf(w, "--servers", "%" PRId64, job->servers);
	return LS_OK;
}

static ls_argv begin(ls_arena *arena, const ls_sweep_point *p, const ls_sweep_target *target, const char *command)
{
	ls_argv w = { .arena = arena };

	if (target->lab)
		enter_lab(&w, p, target->lab);
	ls_argv_add(&w, target->program);
	ls_argv_add(&w, command);
	return w;
}

static void add_model(ls_argv *w, const ls_point_job *job)
{
	ls_argv_addf(w, "--model", "%s", job->model);
	if (!strstr(job->arguments, "--batch") && !strstr(job->arguments, "--micro-batch")) /* which exclude it */
		ls_argv_addf(w, "--batch-per-device", "%" PRId64, job->batch);
	if (job->data[0] != '\0')
		ls_argv_addf(w, "--data", "%s", job->data);
}

/* ---- commands ---------------------------------------------------------------------------------------------------- */

ls_status ls_sweep_bench_command(ls_arena *arena, const ls_sweep_point *p, const ls_sweep_target *target, char ***out)
{
	const ls_point_job *job = &p->job;
	ls_argv w = begin(arena, p, target, "bench");

	ls_argv_add(&w, "--json");
	if (target->profile && !target->records)
		ls_argv_addf(&w, "--replay", "%s", target->profile);
	else
		add_model(&w, job);
	if (target->profile && target->records)
		ls_argv_addf(&w, "--profile-out", "%s", target->profile);
	ls_argv_addf(&w, "--optimizer", "%s", job->optimizer);
	LS_TRY(add_nodes(&w, p, target));
	ls_argv_addf(&w, "--warmup", "%" PRId64, job->warmup);
	ls_argv_addf(&w, "--steps", "%" PRId64, job->steps);
	ls_argv_addf(&w, "--repeat", "%" PRId64, target->repeat);
	LS_TRY(ls_argv_split(&w, job->arguments));
	return ls_argv_end(&w, out);
}

ls_status ls_sweep_record_command(ls_arena *arena, const ls_sweep_point *p, const ls_sweep_target *target, char ***out)
{
	const ls_point_job *job = &p->job;
	ls_argv w = { .arena = arena };

	ls_argv_add(&w, target->program);
	ls_argv_add(&w, "bench");
	ls_argv_add(&w, "--json");
	add_model(&w, job);
	ls_argv_addf(&w, "--profile-out", "%s", target->profile);
	ls_argv_addf(&w, "--optimizer", "%s", job->optimizer);
	ls_argv_addf(&w, "--threads", "%" PRId64, job->threads);
	ls_argv_addf(&w, "--warmup", "%" PRId64, job->warmup);
	ls_argv_addf(&w, "--steps", "%" PRId64, job->steps < PROFILE_STEPS ? job->steps : PROFILE_STEPS);
	ls_argv_addf(&w, "--repeat", "%d", 1);
	LS_TRY(ls_argv_split(&w, job->arguments));
	return ls_argv_end(&w, out);
}

/* Those of a point that is trained which a bench has as well. */
static ls_status add_bench_arguments(ls_argv *w, const ls_point_job *job)
{
	ls_argv all = { .arena = w->arena };
	int words = 1;

	LS_TRY(ls_argv_split(&all, job->arguments));
	for (size_t i = 0; i < all.count; i += (size_t)words) {
		int is_kept = ls_recipe_argument_is_of_bench(all.word[i], &words);
		for (size_t k = i; is_kept && k < i + (size_t)words && k < all.count; k++)
			ls_argv_add(w, all.word[k]);
	}
	w->failed |= all.failed;
	return LS_OK;
}

/* Steps on text take as long as its sentences; those on images are all alike, and need not be read. */
static int is_text(const char *data)
{
	const ls_dataset_row *row = ls_dataset_row_of(data);
	return row && row->is_text;
}

ls_status ls_sweep_time_command(ls_arena *arena, const ls_sweep_point *p, const ls_sweep_target *target, char ***out)
{
	ls_point_job job = p->job;
	ls_argv w = { .arena = arena };

	int is_trained = !strcmp(job.kind, "train");
	if (is_trained && !is_text(job.data))
		job.data[0] = '\0';
	ls_argv_add(&w, target->program);
	ls_argv_add(&w, "bench");
	ls_argv_add(&w, "--json");
	add_model(&w, &job);
	ls_argv_addf(&w, "--optimizer", "%s", job.optimizer);
	ls_argv_addf(&w, "--threads", "%" PRId64, job.threads);
	ls_argv_addf(&w, "--warmup", "%d", 1);
	ls_argv_addf(&w, "--steps", "%d", 1);
	ls_argv_addf(&w, "--repeat", "%d", 1);
	LS_TRY(is_trained ? add_bench_arguments(&w, &job) : ls_argv_split(&w, job.arguments));
	return ls_argv_end(&w, out);
}

/* An epoch of a worker is several of the data: evaluate after its last. */
static ls_status add_evaluations(ls_argv *w, const ls_point_job *job)
{
	char every[32] = "";
	int found = 0;

	LS_TRY(ls_recipe_argument_of(job->arguments, "eval-every", every, sizeof(every), &found));
	ls_argv_addf(w, "--eval-every", "%" PRId64, (found ? (int64_t)atoll(every) : 1) * ls_point_job_passes(job));
	return LS_OK;
}

ls_status ls_sweep_train_command(ls_arena *arena, const ls_sweep_point *p, const ls_sweep_target *target, char ***out)
{
	const ls_point_job *job = &p->job;
	ls_argv w = begin(arena, p, target, "train");

	add_model(&w, job);
	ls_argv_addf(&w, "--optimizer", "%s", job->optimizer);
	ls_argv_addf(&w, "--run", "%s", target->run);
	if (job->epochs > 0)
		ls_argv_addf(&w, "--epochs", "%" PRId64, job->epochs * ls_point_job_passes(job));
	if (job->steps > 0)
		ls_argv_addf(&w, "--steps", "%" PRId64, job->steps);
	if (job->samples > 0)
		ls_argv_addf(&w, "--samples", "%" PRId64, job->samples);
	LS_TRY(add_nodes(&w, p, target));
	LS_TRY(ls_argv_split(&w, job->arguments));
	if (job->target > 0) {
		ls_argv_addf(&w, "--to-accuracy", "%.9g", job->target);
		ls_argv_addf(&w, "--seed", "%" PRId64, target->seed);
	}
	if (ls_point_job_passes(job) > 1)
		LS_TRY(add_evaluations(&w, job));
	return ls_argv_end(&w, out);
}
