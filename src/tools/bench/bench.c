/*
 * bench.c - throughput of training steps on data that is already in memory, or of their exchange alone.
 *
 * Each repeat is `warmup` steps that do not count and `steps` that do. A repeat's rate is its samples over its time;
 * the result is the median of repeats. Input is random and fixed: what is timed is compute, not reading. With a replay
 * nothing is computed at all; exchange, update and messages are those of training in either case.
 */
#include <lockstep/bench.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/log.h"
#include "base/names.h"
#include "base/options.h"
#include "cluster/launched.h"
#include "comm/agree.h"
#include "comm/collectives.h"
#include "comm/init.h"
#include "run/auto_precision.h"
#include "run/handshake.h"
#include "run/memory_plan.h"
#include "run/setup.h"
#include "settings/effects.h"
#include "settings/model.h"
#include "settings/settings.h"
#include "tools/bench/node.h"
#include "tools/bench/state.h"

/* Small enough that no number of steps makes anything overflow. */
static const float REPLAY_GRADIENT = 1e-3f;

typedef ls_bench_state bench;

/* ---- settings ---- */

static ls_status check_counts(const ls_bench_options *o)
{
	int64_t steps, samples;

	if (o->steps < 1 || o->repeat < 1 || o->warmup < 0 || o->warmup > INT64_MAX - o->steps)
		return ls_fail(LS_EINVALID, "bench: steps and repeat must be at least 1, warmup at least 0");
	if (__builtin_mul_overflow(o->steps, o->repeat, &steps) ||
	    __builtin_mul_overflow(steps, o->job.batch + o->job.batch_per_device, &samples) ||
	    steps > INT64_MAX / (int64_t)sizeof(double))
		return ls_fail(LS_EINVALID,
			       "bench: repeat x steps x batch is too large: %lld x %lld steps of %lld samples",
			       (long long)o->repeat, (long long)o->steps, (long long)o->job.batch);
	return LS_OK;
}

static ls_status check(const ls_bench_options *o)
{
	LS_TRY(ls_settings_check(&o->job));
	LS_TRY(check_counts(o));
	if (!(o->replay_speed >= 1e-6 && o->replay_speed <= 1e6))
		return ls_fail(LS_EINVALID, "bench: a replay's speed must be between 1e-6 and 1e6, not %g",
			       o->replay_speed);
	if (o->replay && (o->profile || ls_bench_records(o)))
		return ls_fail(
			LS_EINVALID,
			"options.replay computes no layer that options.profile or options.profile_out could time");
	return ls_layout_check(&o->job);
}

static int is_batch_meant(const ls_train_options *job)
{
	static const ls_train_options defaults = LS_TRAIN_OPTIONS_INIT;
	return job->batch_per_device > 0 || job->micro_batch > 0 || job->batch != defaults.batch ||
	       ls_train_setting_is_given(job, ls_train_setting_of("batch"));
}

/* A replay has the precision of its profile. One that was recorded in another precision than is asked
 * for is no measurement of it. */
static ls_status take_precision(bench *b)
{
	const char *recorded = b->profile.precision[0] != '\0' ? b->profile.precision : "fp32";
	int is_asked = strcmp(b->job.precision, "fp32") != 0 ||
		       ls_train_setting_is_given(&b->options->job, ls_train_setting_of("precision"));

	if (is_asked && strcmp(b->job.precision, "auto") != 0 && strcmp(b->job.precision, recorded) != 0)
		return ls_fail(
			LS_EMISMATCH,
			"%s was recorded in %s, and cannot be replayed as %s; record one with options.precision %s",
			b->options->replay, recorded, b->job.precision, b->job.precision);
	b->job.precision = recorded;
	return LS_OK;
}

/* A replay is of the profile's model; its micro-batch is checked where it is made, for others may have been asked
 * for. */
static ls_status take_profile(bench *b)
{
	if (!b->options->replay)
		return LS_OK;
	LS_TRY(ls_profile_read(&b->profile, b->options->replay));
	LS_TRY(take_precision(b));
	b->job.model = b->profile.model;
	if (!is_batch_meant(&b->options->job))
		b->job.batch_per_device = b->profile.batch;
	else if (b->job.batch_per_device == 0 && b->job.micro_batch == 0)
		b->job.micro_batch = b->profile.batch;
	b->replay = (ls_replay_options){ .profile = &b->profile,
					 .speed = b->options->replay_speed,
					 .value = REPLAY_GRADIENT };
	return LS_OK;
}

/* What each node finds out by itself. */
static ls_status open_layout(bench *b)
{
	b->job = b->options->job;
	b->job.schedule = "constant";
	b->job.devices = b->job.devices > 0 ? b->job.devices : 1;
	b->job.threads = b->job.threads > 0 ? b->job.threads : 1;
	if (!is_batch_meant(&b->job))
		b->job.batch_per_device = LS_BENCH_BATCH_PER_DEVICE;
	LS_TRY(check(b->options));
	LS_TRY(ls_backend_choose(b->options->replay ? "replay" : NULL, &b->backend));
	LS_TRY(take_profile(b));
	LS_TRY(ls_layout_init(&b->layout, &b->job, b->comm));
	ls_layout_fit(&b->layout, 0);
	if (ls_bench_records(b->options) && b->layout.nodes > 1)
		return ls_fail(LS_EINVALID, "options.profile_out records a device of one node; there are %d nodes",
			       b->layout.nodes);
	return b->options->profile_out ? ls_file_check(b->options->profile_out) : LS_OK;
}

/* Once all nodes know how many devices each has. */
static ls_status resolve(bench *b)
{
	ls_train_options resolved;

	LS_TRY(ls_settings_resolve(&b->job, b->layout.all_devices, &resolved));
	resolved.threads = b->layout.threads;
	b->given = b->job;
	b->job = resolved;
	if (b->job.batch % b->job.micro_batch != 0)
		return ls_fail(LS_EINVALID, "bench: micro-batches of %lld samples do not divide the batch of %lld",
			       (long long)b->job.micro_batch, (long long)b->job.batch);
	return LS_OK;
}

/* Options of a bench that are no settings of training, but must be the same on all nodes. */
typedef struct terms {
	int64_t value[8];
} terms;
static const char *const term_names[] = { "options.warmup",  "options.steps",
					  "options.repeat",  "options.channels",
					  "options.size",    "width",
					  "options.classes", "the profile of options.replay" };

static ls_status compare(const bench *b, const terms *all)
{
	for (int i = 1; i < b->layout.nodes; i++)
		for (int k = 0; k < 8; k++)
			if (all[i].value[k] != all[0].value[k])
				return ls_fail(LS_EMISMATCH, "%s is not the same on node 0 (%s) and node %d (%s)",
					       term_names[k], ls_comm_host(b->comm, 0), i, ls_comm_host(b->comm, i));
	return LS_OK;
}

static ls_status agree(const bench *b)
{
	const ls_bench_options *o = b->options;
	terms mine = { { o->warmup, o->steps, o->repeat, o->channels, o->height, o->width, o->classes, 0 } };
	uint64_t hash = 0;
	terms *all = calloc((size_t)b->layout.nodes, sizeof(*all));
	ls_status status = all ? LS_OK : ls_fail(LS_EMEMORY, "no memory for %d nodes", b->layout.nodes);

	if (status == LS_OK && o->replay)
		status = ls_profile_hash(&b->profile, &hash);
	memcpy(&mine.value[7], &hash, sizeof(hash));
	status = ls_comm_agree(b->comm, status);
	if (status == LS_OK)
		status = ls_comm_allgather(b->comm, &mine, sizeof(mine), all, "options of the bench");
	if (status == LS_OK)
		status = compare(b, all);
	free(all);
	return status;
}

/* ---- setup ---- */

static ls_status build_graph(bench *b)
{
	const ls_bench_options *o = b->options;
	ls_dataset_info info;

	if (o->replay)
		info = ls_profile_samples(&b->profile);
	else
		LS_TRY(ls_bench_data_open(&b->data, o, &b->job, &info));
	LS_TRY(ls_train_build_model(&b->graph, &b->job, &info));
	LS_TRY(ls_graph_set_precision(b->graph, b->job.precision));
	LS_TRY(ls_graph_set_conv(b->graph, b->job.conv));
	ls_graph_keep_unreachable(b->graph, 0);
	return o->replay ? ls_replay_fits(&b->profile, b->graph, o->replay) : LS_OK;
}

static void record_span(void *context, int device, const char *node, int is_backward, double begin_s, double end_s)
{
	bench *b = context;
	(void)node;
	if (device == 0)
		ls_profiler_span(&b->profiler, is_backward, begin_s, end_s);
}

static ls_node_trainer_options trainer_options(bench *b, const ls_train_options *job)
{
	const ls_bench_options *o = b->options;
	ls_node_trainer_options t = ls_setup_trainer_options(&b->job, &b->layout, b->graph);

	t.microbatch = job->micro_batch;
	t.microbatches = job->batch / job->micro_batch;
	t.next = ls_bench_data_next;
	t.next_context = &b->data;
	t.profile = o->profile;
	t.backend = b->backend;
	t.backend_options = o->replay ? &b->replay : NULL;
	t.span = ls_bench_records(o) ? record_span : NULL;
	t.trace_context = b;
	return t;
}

static ls_status make_room(bench *b)
{
	size_t steps = (size_t)(b->options->steps * b->options->repeat);

	b->step_s = calloc(steps, sizeof(double));
	b->repeat_rates = calloc((size_t)b->options->repeat, sizeof(double));
	if (!b->step_s || !b->repeat_rates)
		return ls_fail(LS_EMEMORY, "no memory for the times of %zu steps", steps);
	if (ls_bench_records(b->options))
		LS_TRY(ls_profiler_init(&b->profiler, b->graph, (int64_t)steps));
	return LS_OK;
}

/* Warn of options that were given and have no effect. The data is the bench's own, and random unless it is text. */
static void warn_of_idle_options(const bench *b)
{
	static const ls_bench_options usual = LS_BENCH_OPTIONS_INIT;
	const ls_bench_options *o = b->options;
	int is_text = b->data.set != NULL, sized = o->channels != usual.channels || o->height != usual.height;
	ls_train_options given = o->job;
	ls_effects run = { .options = &given,
			   .is_text = is_text,
			   .has_exchange = b->trainer->exchange != NULL,
			   .nodes = b->layout.nodes };

	given.data = o->data;
	ls_effects_warn(&run);
	ls_layout_warn_idle(&b->layout, b->job.batch, b->job.micro_batch, (uint64_t)b->job.batch, 0);
	if (!o->replay && o->replay_speed != usual.replay_speed)
		ls_log_warning("options.replay_speed has no effect without options.replay");
	if (sized && (is_text || o->replay))
		ls_log_warning("options.channels and options.image_size have no effect with %s",
			       is_text ? "a model of text" : "options.replay");
	if (o->replay && strcmp(o->job.model, usual.job.model) != 0 && strcmp(o->job.model, b->job.model) != 0)
		ls_log_warning("options.model %s has no effect: the profile of options.replay is of %s", o->job.model,
			       b->job.model);
}

static ls_status plan_job(void *context, const ls_train_options *job, ls_memory_plan *plan)
{
	bench *b = context;
	ls_node_trainer_options t = trainer_options(b, job);

	if (job->batch % job->micro_batch != 0)
		return LS_EINVALID;
	LS_TRY(ls_memory_plan_init(plan, &t, &b->layout, 0));
	if (b->options->replay) /* which computes nothing */
		return LS_OK;
	plan->samples = ls_bench_data_bytes(&b->data, job, b->graph, b->layout.devices);
	if (b->data.set) /* text has a reader per device */
		ls_memory_plan_add_threads(plan, b->layout.devices);
	return ls_train_check_norms(b->graph, job->micro_batch, "a micro-batch", "give larger micro-batches");
}

static ls_status build(bench *b)
{
	const ls_bench_options *o = b->options;

	LS_TRY(build_graph(b));
	LS_TRY(make_room(b));
	ls_node_trainer_options t = trainer_options(b, &b->job);
	ls_memory_plan plan;
	ls_memory_advice advice = {
		.given = &b->given, .devices = b->layout.all_devices, .plan = plan_job, .context = b
	};
	LS_TRY(plan_job(b, &b->job, &plan));
	LS_TRY(ls_memory_plan_check(&plan, &advice));
	t.sum_buffers = plan.most;
	LS_TRY(ls_node_trainer_new(&b->trainer, &t));
	LS_TRY(ls_node_trainer_init(b->trainer));
	ls_node_trainer_start_at(b->trainer, 0, 0);
	if (o->replay) /* its contents are not read */
		b->data.microbatch = (ls_microbatch){ .count = b->job.micro_batch, .step_samples = b->job.batch };
	else if (b->layout.devices > 0)
		LS_TRY(ls_bench_data_fill(&b->data, &b->job, b->graph, b->layout.devices));
	b->run = (ls_bench_steps){ .trainer = b->trainer,
				   .layout = &b->layout,
				   .profiler = ls_bench_records(o) ? &b->profiler : NULL,
				   .microbatch = b->job.micro_batch,
				   .microbatches = t.microbatches,
				   .warmup = o->warmup,
				   .steps = o->steps };
	return ls_bench_steps_init(&b->run, b->layout.share == LS_SHARE_AUTO && b->layout.strategy->synchronous);
}

/* After each stage nodes learn whether all got through it, so that all fail for the same reason. */
static ls_status prepare(bench *b)
{
	LS_TRY(ls_handshake_version(b->comm));
	LS_TRY(ls_comm_agree(b->comm, open_layout(b)));
	LS_TRY(ls_auto_precision(&b->job.precision, b->comm));
	LS_TRY(ls_layout_meet(&b->layout));
	LS_TRY(ls_comm_agree(b->comm, resolve(b)));
	LS_TRY(ls_handshake_settings(b->comm, &b->job, NULL, NULL));
	LS_TRY(agree(b));
	LS_TRY(ls_comm_agree(b->comm, build(b)));
	if (b->layout.node == 0)
		warn_of_idle_options(b);
	return LS_OK;
}

/* ---- measuring ---- */

static void pause_layers(const bench *b, int pause)
{
	if (b->layout.devices > 0 && b->backend->pause_profile)
		b->backend->pause_profile(b->trainer->driver[0].executor, pause);
}

/* Time spent in updates so far. On several nodes the communication thread may be at one right now: it is asked in the
 * end only. */
static double update_seconds(const bench *b)
{
	return b->layout.nodes == 1 ? ls_node_trainer_update_s(b->trainer) : 0;
}

/* Steps that are not part of any result (but for update times on several nodes, where they count like others). */
static ls_status warm_up(bench *b)
{
	double before = update_seconds(b), ignored;

	pause_layers(b, 1);
	for (int64_t i = 0; i < b->options->warmup; i++)
		LS_TRY(ls_bench_steps_run(&b->run, &ignored));
	pause_layers(b, 0);
	b->warm_up_s += update_seconds(b) - before;
	return LS_OK;
}

static ls_status timed_repeat(bench *b, double *step_s, double *rate)
{
	ls_traffic before = ls_bench_traffic(&b->layout);
	double total = 0;

	for (int64_t i = 0; i < b->options->steps; i++) {
		LS_TRY(ls_bench_steps_run(&b->run, &step_s[i]));
		total += step_s[i];
	}
	ls_traffic after = ls_bench_traffic(&b->layout);
	b->sent += after.bytes_sent - before.bytes_sent;
	b->received += after.bytes_received - before.bytes_received;
	*rate = (double)(b->job.batch * b->options->steps) / total;
	return LS_OK;
}

static void report_progress(const bench *b, int64_t done)
{
	const ls_bench_options *o = b->options;
	if (o->progress)
		o->progress(o->progress_context, done, o->repeat);
}

static ls_status measure(bench *b)
{
	report_progress(b, 0);
	for (int64_t k = 0; k < b->options->repeat; k++) {
		LS_TRY(warm_up(b));
		LS_TRY(timed_repeat(b, b->step_s + k * b->options->steps, &b->repeat_rates[k]));
		report_progress(b, k + 1);
	}
	LS_TRY(ls_node_trainer_drain(b->trainer));
	if (b->layout.node == 0 && !isfinite(b->run.last_loss))
		ls_log_warning(
			"the loss of the last step is %s: what was timed is not training; choose a smaller options.lr",
			isnan(b->run.last_loss) ? "NaN" : "infinite");
	return ls_comm_barrier(b->comm, "end of the bench"); /* others may still need our messages */
}

static void release(bench *b)
{
	ls_bench_steps_release(&b->run);
	ls_profiler_release(&b->profiler);
	free(b->repeat_rates);
	free(b->step_s);
	ls_node_trainer_free(b->trainer);
	ls_bench_data_close(&b->data);
	ls_graph_free(b->graph);
	ls_profile_release(&b->profile);
	ls_layout_release(&b->layout);
}

ls_status ls_bench_among(const ls_bench_options *options, ls_comm *comm, ls_bench_result *result)
{
	bench b = { .options = options, .comm = comm };
	ls_bench_result r = { 0 };
	ls_status status = prepare(&b);
	int together = status != LS_OK;

	if (status == LS_OK)
		status = measure(&b);
	if (status == LS_OK)
		status = ls_bench_report(&b, &r);
	if (comm)
		status = ls_comm_finalize(comm, status, together);
	release(&b);
	if (status == LS_OK)
		*result = r;
	else
		ls_bench_result_release(&r);
	return status;
}

/* The job inside has a size of its own, and both may grow: what follows it begins where the program's job ends. */
static ls_status take_options(ls_bench_options *own, const ls_bench_options *given)
{
	static const char init[] = "LS_BENCH_OPTIONS_INIT";
	const size_t before = offsetof(ls_bench_options, job), head = before + sizeof(own->job);
	const size_t job_first = LS_OPTIONS_UP_TO(&own->job, given);
	const size_t rest_first = LS_OPTIONS_UP_TO(own, progress_context) - head;
	size_t size = 0, job_size = 0;

	LS_TRY(ls_options_size(given, sizeof(*own), before + job_first + rest_first, init, &size));
	const char *job = (const char *)given + before;
	LS_TRY(ls_options_size(job, sizeof(own->job), job_first, init, &job_size));
	if (size < before + job_size + rest_first)
		return ls_fail(LS_EINVALID, "options.size is %zu, less than its job and the rest: start from %s", size,
			       init);
	LS_TRY(ls_options_take(&own->job, sizeof(own->job), job, job_first, init));
	return ls_options_copy((char *)own + head, sizeof(*own) - head, job + job_size, size - before - job_size);
}

ls_status ls_bench(const ls_bench_options *options, ls_bench_result *result)
{
	ls_bench_options own = LS_BENCH_OPTIONS_INIT;
	int nodes = ls_mpi_launched();
	ls_comm *comm = NULL;

	LS_TRY(take_options(&own, options));
	if (nodes > 1)
		LS_TRY(ls_comm_init(&comm, nodes, (double)own.job.timeout));
	return ls_bench_among(&own, comm, result);
}
