#include "train/trainer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"

static ls_status new_floats(float **out, size_t count, const char *what)
{
	void *buffer = NULL;
	LS_TRY(ls_buffer_new(&buffer, (count + 16) * sizeof(float), what));
	*out = buffer;
	return LS_OK;
}

static void free_floats(float *buffer, size_t count)
{
	ls_buffer_free(buffer, (count + 16) * sizeof(float));
}

static ls_status make_stores(ls_trainer *t, int64_t leaves)
{
	const ls_param_table *table = &t->graph->params;

	LS_TRY(new_floats(&t->params, table->total, "parameters"));
	LS_TRY(new_floats(&t->buffers, table->buffers, "running statistics"));
	LS_TRY(new_floats(&t->stats, table->buffers, "leaf statistics"));
	for (int i = 0; i < t->kind->slots; i++)
		LS_TRY(new_floats(&t->slots[i], table->live, "optimizer state"));
	t->stat_sums = calloc(table->buffers + 1, sizeof(double));
	t->norm_sums = calloc(ls_norm_blocks(table->live) + 1, sizeof(double));
	if (t->stat_sums == NULL || t->norm_sums == NULL)
		return ls_fail(LS_EMEMORY, "no memory for the sums of a step");
	t->share_grads = t->update_early && ls_exec_shared_grads(t->graph) > 0;
	return ls_pieces_init(&t->pieces, t->share_grads ? ls_exec_shared_grads(t->graph) : table->live, leaves);
}

/* Coupled weight decay gives dead weights a gradient; only then do they need state. */
static void choose_live(const ls_trainer_options *o, const ls_optimizer_kind *kind)
{
	ls_graph_keep_dead(o->graph, kind->coupled_decay && o->hyper.weight_decay != 0);
}

static ls_status make(ls_trainer *t, const ls_trainer_options *o)
{
	ls_exec_options exec = { .sizes = { o->leaf, o->tails[0], o->tails[1] }, .profile = o->profile };

	LS_TRY(ls_optimizer_find(o->optimizer, &t->kind));
	LS_TRY(ls_schedule_check(&o->schedule));
	choose_live(o, t->kind);
	if (exec.sizes[1] == 0) { /* the list ends at its first zero */
		exec.sizes[1] = exec.sizes[2];
		exec.sizes[2] = 0;
	}
	LS_TRY(ls_team_new(&t->team, o->threads));
	exec.team = t->team;
	LS_TRY(make_stores(t, o->leaves));
	return ls_exec_new(&t->exec, t->graph, &exec);
}

static int updates_early(const ls_trainer_options *o)
{
	return o->leaves == 1 && o->clip_norm == 0;
}

ls_status ls_trainer_new(ls_trainer **out, const ls_trainer_options *o)
{
	ls_trainer *t = calloc(1, sizeof(*t));
	if (t == NULL)
		return ls_fail(LS_EMEMORY, "no memory for a trainer");
	t->graph = o->graph;
	t->hyper = o->hyper;
	t->schedule = o->schedule;
	t->clip_norm = o->clip_norm;
	t->seed = o->seed;
	t->update_early = updates_early(o);
	ls_status status = make(t, o);
	if (status != LS_OK) {
		ls_trainer_free(t);
		return status;
	}
	*out = t;
	return LS_OK;
}

void ls_trainer_free(ls_trainer *t)
{
	if (t == NULL)
		return;
	const ls_param_table *table = &t->graph->params;
	ls_exec_free(t->exec);
	ls_pieces_release(&t->pieces);
	free(t->norm_sums);
	free(t->stat_sums);
	for (int i = 0; i < LS_SLOTS_MAX; i++)
		free_floats(t->slots[i], table->live);
	free_floats(t->stats, table->buffers);
	free_floats(t->buffers, table->buffers);
	free_floats(t->params, table->total);
	ls_team_free(t->team);
	free(t);
}

ls_status ls_trainer_init(ls_trainer *t)
{
	return ls_params_init(&t->graph->params, t->seed, t->params, t->buffers);
}

static ls_optimizer_pass update_pass(ls_trainer *t, const float *grads, double scale)
{
	return (ls_optimizer_pass){ .kind = t->kind,
				    .hyper = &t->hyper,
				    .table = &t->graph->params,
				    .params = t->params,
				    .grads = grads,
				    .slots = { t->slots[0], t->slots[1] },
				    .scale = (float)scale,
				    .step = t->step + 1,
				    .lr = ls_schedule_rate(&t->schedule, t->step) };
}

/* This member's share of [begin, end), in whole cache lines (parameters start on them). */
static void apply_share(const ls_optimizer_pass *pass, size_t begin, size_t end, ls_member member)
{
	int64_t first, last;
	ls_team_range(member, (int64_t)(end - begin + 15) / 16, &first, &last);
	size_t from = begin + (size_t)first * 16, to = begin + (size_t)last * 16;
	if (from < to)
		ls_optimizer_apply(pass, from, to < end ? to : end);
}

typedef struct early {
	ls_trainer *trainer;
	ls_optimizer_pass pass;
} early;

static void update_ready(void *context, size_t begin, size_t end, const float *grads, ls_member member)
{
	early *e = context;
	ls_optimizer_pass pass = e->pass;
	double start = member.rank == 0 ? ls_clock_seconds() : 0;
	pass.grads = grads;
	pass.grads_begin = begin;
	apply_share(&pass, begin, end, member);
	if (member.rank == 0)
		e->trainer->update_s += ls_clock_seconds() - start;
}

static void add_stats(ls_trainer *t, int64_t count)
{
	for (size_t i = 0; i < t->graph->params.buffers; i++)
		t->stat_sums[i] += (double)count * t->stats[i];
}

void ls_trainer_leaf(ls_trainer *t, const ls_leaf *leaf)
{
	ls_exec_leaf job = { .count = leaf->count,
			     .images = leaf->images,
			     .labels = leaf->labels,
			     .samples = leaf->samples,
			     .params = t->params,
			     .buffers = t->buffers,
			     .grads = ls_pieces_next(&t->pieces),
			     .stats = t->stats,
			     .seed = t->seed,
			     .step = t->step };
	early update = { .trainer = t };

	if (t->update_early) {
		update.pass = update_pass(t, job.grads, 1.0 / (double)leaf->step_samples);
		job.share_grads = t->share_grads;
		job.ready = update_ready;
		job.ready_context = &update;
	}
	ls_exec_train(t->exec, &job);
	ls_pieces_push(&t->pieces, t->team);
	add_stats(t, leaf->count);
	t->samples += leaf->count;
	t->correct += job.correct;
	t->loss += job.loss;
}

typedef struct norm_job {
	ls_trainer *trainer;
	const float *grads;
} norm_job;

static void norm_share(void *context, ls_member member)
{
	const norm_job *job = context;
	size_t live = job->trainer->graph->params.live;
	int64_t begin, end;

	ls_team_range(member, (int64_t)ls_norm_blocks(live), &begin, &end);
	ls_norm_block_sums(job->grads, live, (size_t)begin, (size_t)end, job->trainer->norm_sums);
}

/* 1/samples, and less when the mean gradient is longer than the limit: PyTorch's clip_grad_norm_. */
static double gradient_scale(ls_trainer *t, const float *grads)
{
	double mean = 1.0 / (double)t->samples;
	norm_job job = { t, grads };

	if (t->clip_norm == 0)
		return mean;
	ls_team_run(t->team, norm_share, &job);
	t->gradient_norm = mean * sqrt(ls_norm_combine(t->norm_sums, ls_norm_blocks(t->graph->params.live)));
	double factor = t->clip_norm / (t->gradient_norm + 1e-6);
	return factor < 1 ? mean * factor : mean;
}

static void update_share(void *context, ls_member member)
{
	const ls_optimizer_pass *pass = context;
	apply_share(pass, 0, pass->table->live, member);
}

void ls_trainer_update(ls_trainer *t)
{
	double start = ls_clock_seconds();
	const float *grads = ls_pieces_finish(&t->pieces, t->team);
	ls_optimizer_pass pass = update_pass(t, grads, t->update_early ? 1 : gradient_scale(t, grads));

	if (!t->update_early)
		ls_team_run(t->team, update_share, &pass);
	ls_optimizer_decay_dead(&pass);
	ls_graph_update_running(t->graph, t->stat_sums, (double)t->samples, t->buffers);
	memset(t->stat_sums, 0, t->graph->params.buffers * sizeof(double));
	t->step++;
	t->batches_tracked++;
	t->samples = t->correct = 0;
	t->loss = 0;
	t->update_s += ls_clock_seconds() - start;
}

ls_status ls_trainer_fingerprint(const ls_trainer *t, uint64_t *out)
{
	return ls_params_fingerprint(&t->graph->params, t->params, t->buffers, out);
}

/* x - x is 0 for a finite x and NaN for any other; sums of it need no branch. */
static int all_finite(const float *x, size_t count)
{
	float sum = 0;
	for (size_t i = 0; i < count; i++)
		sum += x[i] - x[i];
	return sum == 0;
}

int ls_trainer_finite(const ls_trainer *t)
{
	return all_finite(t->params, t->graph->params.total) && all_finite(t->buffers, t->graph->params.buffers);
}

ls_status ls_trainer_plan(const ls_trainer_options *o, ls_trainer_bytes *out)
{
	const ls_optimizer_kind *kind;
	const ls_param_table *table = &o->graph->params;

	LS_TRY(ls_optimizer_find(o->optimizer, &kind));
	choose_live(o, kind);
	int shared = updates_early(o) && ls_exec_shared_grads(o->graph) > 0;
	*out = (ls_trainer_bytes){ .params = (table->total + 2 * table->buffers) * sizeof(float),
				   .gradients = ls_pieces_bytes(shared ? ls_exec_shared_grads(o->graph) : table->live,
								o->leaves),
				   .state = (size_t)kind->slots * table->live * sizeof(float) };
	return ls_exec_bytes(o->graph, o->leaf, 0, &out->workspace);
}
