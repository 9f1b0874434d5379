/*
 * point.c - shapes, keys and labels of points.
 */
#include "tools/sweep/point.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lockstep/train.h>

#include "base/array.h"
#include "base/link_rate.h"
#include "base/names.h"
#include "exchange/codec.h"
#include "exchange/strategy.h"

enum { DEVICES_MAX = 4096, KEY_JOB = 4096 };

uint64_t ls_text_hash(const char *text)
{
	uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a */
	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * 0x100000001b3u;
	return hash;
}

/* ---- shapes ------------------------------------------------------------------------------------------------------ */

int64_t ls_shape_devices(const char *shape, size_t i)
{
	for (; i > 0 && shape; i--) {
		shape = strchr(shape, '+');
		shape = shape ? shape + 1 : NULL;
	}
	return shape ? strtoll(shape, NULL, 10) : 0;
}

/* Read the number at the beginning of a part of "3+2" and advance past it. */
static ls_status take_part(const char **at, const char *whole, int64_t *out)
{
	char digits[8] = "";
	size_t length = strcspn(*at, "+");

	if (length < sizeof(digits))
		memcpy(digits, *at, length);
	if (length == 0 || strspn(digits, "0123456789") != length || atoi(digits) < 1 || atoi(digits) > DEVICES_MAX)
		return ls_fail(LS_EINVALID,
			       "devices '%s': expected a number of 1 to %d, or one for each node as in 3+2", whole,
			       DEVICES_MAX);
	*out = atoi(digits);
	*at += length;
	*at += **at == '+' && (*at)[1] != '\0';
	return LS_OK;
}

static ls_status append_part(ls_point_job *job, int64_t devices)
{
	size_t used = strlen(job->shape);
	int more = snprintf(job->shape + used, sizeof(job->shape) - used, "%s%" PRId64, used > 0 ? "+" : "", devices);

	if ((size_t)more >= sizeof(job->shape) - used)
		return ls_fail(LS_EINVALID, "%" PRId64 " nodes of %" PRId64 " devices are too many for a point",
			       job->nodes, devices);
	job->devices += devices;
	return LS_OK;
}

ls_status ls_sweep_point_shape(ls_sweep_point *point, const char *devices, int64_t nodes)
{
	ls_point_job *job = &point->job;
	const char *at = devices;
	int64_t part = 0;
	int parts = 0, mixed = strchr(devices, '+') != NULL;

	if (nodes < 1 || nodes > LS_SWEEP_NODES)
		return ls_fail(LS_EINVALID, "nodes %" PRId64 ": expected 1 to %d", nodes, LS_SWEEP_NODES);
	job->shape[0] = '\0';
	job->devices = 0;
	job->nodes = nodes;
	do {
		LS_TRY(take_part(&at, devices, &part));
		if (mixed)
			LS_TRY(append_part(job, part));
		parts++;
	} while (*at != '\0' && *at != '+');
	if (*at == '+')
		return ls_fail(LS_EINVALID, "devices '%s' end with a '+'", devices);
	if (mixed)
		job->nodes = parts;
	for (int64_t i = 0; !mixed && i < nodes; i++)
		LS_TRY(append_part(job, part));
	return LS_OK;
}

int64_t ls_sweep_point_node(const ls_sweep_point *point, int64_t i)
{
	const char *at = point->on;

	if (at[0] == '\0')
		return i + 1;
	for (; i > 0 && at; i--) {
		at = strchr(at, ',');
		at = at ? at + 1 : NULL;
	}
	return at ? strtoll(at, NULL, 10) : 0;
}

int64_t ls_sweep_point_highest(const ls_sweep_point *point)
{
	int64_t highest = 0;

	for (int64_t i = 0; i < ls_sweep_point_processes(point); i++) {
		int64_t node = ls_sweep_point_node(point, i);
		highest = node > highest ? node : highest;
	}
	return highest;
}

int64_t ls_point_job_passes(const ls_point_job *job)
{
	return !strcmp(job->epoch, "worker") ? job->devices : 1;
}

ls_status ls_sweep_point_servers_inside(ls_sweep_point *point)
{
	ls_point_job *job = &point->job;
	char shape[LS_RESULTS_NAME] = "";
	int64_t servers = job->servers > 0 ? job->servers : 1, workers = job->devices - servers, left = workers;
	size_t used = 0;

	if (workers < 1)
		return ls_fail(LS_EINVALID,
			       "devices '%s' with %" PRId64 " server%s inside leave no worker: at least %" PRId64
			       " devices are needed",
			       job->shape, servers, ls_plural((uint64_t)servers, "s"), servers + 1);
	for (int64_t i = 0; i < job->nodes && left > 0; i++) {
		int64_t devices = ls_shape_devices(job->shape, (size_t)i), kept = devices < left ? devices : left;
		used += (size_t)snprintf(shape + used, sizeof(shape) - used, "%s%" PRId64, used > 0 ? "+" : "", kept);
		left -= kept;
	}
	return ls_sweep_point_shape(point, shape, 1);
}

/* ---- checks ------------------------------------------------------------------------------------------------------ */

/* As tools/lab takes it: "100mbit", "2.5gbit". */
static ls_status check_rate(const char *rate)
{
	double bits = ls_link_rate(rate);
	const char *unit = rate + strspn(rate, "0123456789.");

	unit += *unit != '\0' && strchr("kmg", *unit);
	if (bits >= 1e5 && bits <= 1e12 && rate[0] != '.' && !strcmp(unit, "bit"))
		return LS_OK;
	return ls_fail(LS_EINVALID, "rate '%s': expected 100kbit to 1000gbit, as in 100mbit, 1gbit or 2.5gbit", rate);
}

static int64_t count_nodes(const char *on)
{
	int64_t count = 1;
	for (; *on != '\0'; on++)
		count += *on == ',';
	return count;
}

static ls_status check_job(const ls_sweep_point *p)
{
	const ls_point_job *job = &p->job;
	const ls_strategy *strategy = NULL;
	const ls_codec *codec = NULL;

	if (strcmp(job->kind, "bench") != 0 && strcmp(job->kind, "train") != 0)
		return ls_fail(LS_EINVALID, "kind '%s': expected bench or train", job->kind);
	if (strcmp(job->strategy, "local") != 0)
		LS_TRY(ls_strategy_find(job->strategy, &strategy));
	LS_TRY(ls_wire_find(job->wire, &codec));
	if (strategy && !strategy->encodes && !codec->exact)
		return ls_fail(LS_EINVALID, "strategy %s sums fp32: leave out wire %s", job->strategy, job->wire);
	if (job->rate[0] != '\0')
		LS_TRY(check_rate(job->rate));
	if (job->model[0] == '\0')
		return ls_fail(LS_EINVALID, "a point has no model");
	if (!strcmp(job->kind, "train") && job->data[0] == '\0')
		return ls_fail(LS_EINVALID, "training needs data; add it, as in \"data\": \"mnist\"");
	if (job->batch < 1)
		return ls_fail(LS_EINVALID, "batch %" PRId64 ": expected at least 1", job->batch);
	if (ls_sweep_point_processes(p) > LS_SWEEP_NODES)
		return ls_fail(LS_EINVALID, "%" PRId64 " nodes and %" PRId64 " servers: at most %d can be started",
			       job->nodes, job->servers, LS_SWEEP_NODES);
	if (p->on[0] != '\0' && count_nodes(p->on) != ls_sweep_point_processes(p))
		return ls_fail(LS_EINVALID, "\"on\" names %" PRId64 " node%s (%s), but the point has %" PRId64,
			       count_nodes(p->on), ls_plural((uint64_t)count_nodes(p->on), "s"), p->on,
			       ls_sweep_point_processes(p));
	if (job->epoch[0] != '\0' && strcmp(job->epoch, "data") != 0 && strcmp(job->epoch, "worker") != 0)
		return ls_fail(LS_EINVALID, "epoch '%s': expected data or worker", job->epoch);
	if (job->servers_count[0] != '\0' && strcmp(job->servers_count, "beside") != 0 &&
	    strcmp(job->servers_count, "inside") != 0)
		return ls_fail(LS_EINVALID, "servers_count '%s': expected beside or inside", job->servers_count);
	return LS_OK;
}

ls_status ls_point_job_add_arguments(ls_point_job *job, const char *more)
{
	size_t used = strlen(job->arguments);

	if (!more || more[0] == '\0')
		return LS_OK;
	int added = snprintf(job->arguments + used, sizeof(job->arguments) - used, "%s%s", used > 0 ? " " : "", more);
	if ((size_t)added >= sizeof(job->arguments) - used)
		return ls_fail(LS_EINVALID, "the arguments of a point are longer than %zu bytes",
			       sizeof(job->arguments) - 1);
	return LS_OK;
}

static const char *precision_at(size_t i)
{
	ls_setting_value value;
	return ls_setting_value_at(ls_train_setting_of("precision"), i, &value) ? value.name : NULL;
}

ls_status ls_sweep_point_precision(ls_sweep_point *p, const char *precision)
{
	static const char usual[] = "fp32";
	char argument[32];
	size_t row;

	LS_TRY(ls_name_find("precision", precision, precision_at, &row));
	const char *before = p->job.precision[0] ? p->job.precision : usual;
	int is_same = !strcmp(before, precision);
	snprintf(p->job.precision, sizeof(p->job.precision), "%s", precision);
	snprintf(argument, sizeof(argument), "--precision %s", p->job.precision);
	return is_same ? LS_OK : ls_point_job_add_arguments(&p->job, argument);
}

/* All fields in which jobs can differ. */
static void write_key(ls_sweep_point *p)
{
	const ls_point_job *j = &p->job;
	char all[KEY_JOB];
	int worker = !strcmp(j->kind, "train") && !strcmp(j->epoch, "worker"),
	    inside = !strcmp(j->servers_count, "inside");
	char target[32] = "";

	if (j->target > 0)
		snprintf(target, sizeof(target), "|to %.9g", j->target);
	snprintf(all, sizeof(all),
		 "%s|%s|%s|%s|%s|%" PRId64 "|%" PRId64 "|%" PRId64 "|%s|%s|%s|%" PRId64 "|%" PRId64 "|%" PRId64
		 "|%" PRId64 "|%s|%s|%s%s%s%s",
		 j->kind, j->model, j->data, j->optimizer, j->shape, j->threads, j->servers, j->batch, j->strategy,
		 j->wire, j->rate, j->warmup, j->steps, j->epochs, j->samples, j->arguments, p->on[0] ? p->on : "0",
		 p->speeds, worker ? "|worker" : "", inside ? "|inside" : "", target);
	snprintf(p->key, sizeof(p->key), "%s/%s/%s/b%" PRId64 "/%s%s%s%s/%08" PRIx32, j->kind, j->model, j->shape,
		 j->batch, j->strategy, j->rate[0] ? "/" : "", j->rate, p->replayed ? "/replayed" : "",
		 (uint32_t)ls_text_hash(all));
}

static int runs_on(const ls_sweep_point *p, int64_t node)
{
	for (int64_t i = 0; i < ls_sweep_point_processes(p); i++)
		if (ls_sweep_point_node(p, i) == node)
			return 1;
	return 0;
}

/* Speed of the slowest of its nodes; 0: all are at full speed. */
static double speed_of(const ls_sweep_point *p)
{
	double slowest = 1;
	int64_t node = 1;

	for (const char *at = p->speeds; *at != '\0'; node++) {
		double speed = strtod(at, NULL);
		if (runs_on(p, node) && speed < slowest)
			slowest = speed;
		at += strcspn(at, ",");
		at += *at == ',';
	}
	return slowest < 1 ? slowest : 0;
}

ls_status ls_sweep_point_baseline(const ls_sweep_point *point, ls_sweep_point *out)
{
	ls_sweep_point base = *point;

	base.on[0] = base.job.servers_count[0] = '\0';
	base.speeds[0] = '\0';
	base.replayed = 1;
	snprintf(base.job.strategy, sizeof(base.job.strategy), "local");
	LS_TRY(ls_sweep_point_shape(&base, "1", 1));
	LS_TRY(ls_sweep_point_normalise(&base));
	*out = base;
	return LS_OK;
}

ls_status ls_sweep_point_normalise(ls_sweep_point *p)
{
	ls_point_job *job = &p->job;

	if (!ls_strategy_has_servers(job->strategy)) {
		job->servers = 0;
		job->servers_count[0] = '\0';
	}
	if (ls_strategy_has_servers(job->strategy) && job->servers == 0)
		job->servers = 1;
	LS_TRY(check_job(p));
	if (ls_sweep_point_processes(p) == 1) {
		snprintf(job->strategy, sizeof(job->strategy), "local");
		snprintf(job->wire, sizeof(job->wire), "fp32");
		job->rate[0] = '\0';
	}
	job->speed = speed_of(p);
	write_key(p);
	return LS_OK;
}

/* "2x4" where all nodes are alike, else "3+2". */
static void write_layout(const ls_point_job *j, char *out, size_t size)
{
	int64_t first = ls_shape_devices(j->shape, 0);
	int alike = 1;

	for (int64_t i = 1; i < j->nodes; i++)
		alike &= ls_shape_devices(j->shape, (size_t)i) == first;
	if (alike)
		snprintf(out, size, "%" PRId64 "x%" PRId64, j->nodes, first);
	else
		snprintf(out, size, "%s", j->shape);
}

const char *ls_sweep_point_label(const ls_sweep_point *p, char *out, size_t size)
{
	const ls_point_job *j = &p->job;
	const char *wire = strcmp(j->wire, "fp32") ? j->wire : "";
	char where[2 * LS_RESULTS_NAME] = "", layout[LS_RESULTS_NAME];

	if (ls_sweep_point_processes(p) > 1)
		snprintf(where, sizeof(where), " %s%s%s%s%s", j->strategy, wire[0] ? " " : "", wire,
			 j->rate[0] ? " " : "", j->rate);
	if (p->on[0] != '\0')
		snprintf(where, sizeof(where), " on node%s %s", strchr(p->on, ',') ? "s" : "", p->on);
	if (p->replayed)
		snprintf(where, sizeof(where), ", simulated compute, as baseline");
	write_layout(j, layout, sizeof(layout));
	snprintf(out, size, "%s%s batch %" PRId64 ", %s%s", strcmp(j->kind, "train") ? "" : "train ", j->model,
		 j->batch, layout, where);
	return out;
}
