/*
 * exec.c - run a planned graph: forward in node order, the loss, backward in reverse.
 */
#include <assert.h>
#include <string.h>

#include "backends/cpu/exec_plan.h"
#include "base/clock.h"
#include "kernels/simd.h"

/* One call: shared by all threads of the team. */
typedef struct job {
	ls_exec *exec;
	ls_exec_microbatch *microbatch;
	float *logits;
	int training;
} job;

static int is_timed(const job *j, ls_member member)
{
	return member.rank == 0 && (j->exec->profile || j->microbatch->span);
}

/* A barrier; where layers are timed, thread 0 adds the time since `*since` to the layer's. */
static void end_layer(const job *j, ls_op *op, int is_backward, double *since, ls_member member)
{
	ls_team_barrier(member);
	if (!is_timed(j, member))
		return;
	double now = ls_clock_seconds();
	if (!j->exec->paused)
		*(is_backward ? &op->backward_s : &op->forward_s) += now - *since;
	if (j->microbatch->span)
		j->microbatch->span(j->microbatch->span_context, op->node->name, is_backward, *since, now);
	*since = now;
}

/* The time since `*since` belongs to no layer. */
static void skip_time(const job *j, double *since, ls_member member)
{
	if (is_timed(j, member))
		*since = ls_clock_seconds();
}

/* Wait for parameters before they are read. */
static void need_params(const ls_op *op, const ls_exec_microbatch *microbatch, ls_member member)
{
	for (int slot = 0; slot < LS_PARAMS_MAX; slot++) {
		const ls_param *param = op->params[slot];
		if (!ls_op_trains(op, slot))
			continue;
		microbatch->need(microbatch->need_context, param->offset, param->offset + param->count, member);
	}
}

static void run_forward(const job *j, const ls_pass *pass, double *since, ls_member member)
{
	for (int i = 0; i < j->exec->op_count; i++) {
		ls_op *op = &j->exec->ops[i];
		if (j->microbatch->need) {
			need_params(op, j->microbatch, member);
			skip_time(j, since, member);
		}
		op->type->forward(op, pass, member);
		end_layer(j, op, 0, since, member);
	}
}

static void run_losses(const job *j, const ls_pass *pass, ls_member member)
{
	for (int i = 0; i < j->exec->loss_count; i++) {
		j->exec->losses[i].type->forward(&j->exec->losses[i], pass, member);
		ls_team_barrier(member); /* they share scratch */
	}
}

static void deliver_gradient(const ls_op *op, const ls_exec_microbatch *microbatch, const ls_pass *pass,
			     ls_member member)
{
	for (int slot = 0; slot < LS_PARAMS_MAX; slot++) {
		const ls_param *param = op->params[slot];
		if (!ls_op_trains(op, slot))
			continue;
		microbatch->ready(microbatch->ready_context, param->offset, param->offset + param->count,
				  ls_op_grad(op, pass, slot), member);
	}
}

/* Add what an operator that cannot add has computed into spare buffers. */
static void add_spares(const ls_op *op, const ls_pass *pass, ls_member member)
{
	for (int k = LS_INPUTS_MAX - 1; k >= 0; k--) {
		int64_t begin, count;
		if (!op->dx_target[k])
			continue;
		ls_team_barrier(member);
		ls_pass_share(pass, op->in[k], member, &begin, &count);
		ls_simd_get()->accumulate(op->dx_target[k] + begin, op->dx[k] + begin, count);
	}
}

static void run_backward(const job *j, const ls_pass *pass, int last, double *since, ls_member member)
{
	const ls_exec_microbatch *microbatch = j->microbatch;
	for (int i = j->exec->op_count - 1; i >= 0; i--) {
		ls_op *op = &j->exec->ops[i];
		if (!op->out->needs_gradient)
			continue;
		op->type->backward(op, pass, member);
		add_spares(op, pass, member);
		end_layer(j, op, 1, since, member);
		if (last && microbatch->ready) {
			deliver_gradient(op, microbatch, pass, member);
			if (microbatch->share_grads) /* the next node writes where this one's gradient is read */
				ls_team_barrier(member);
			skip_time(j, since, member);
		}
	}
}

static void copy_logits(const ls_exec *exec, const ls_pass *pass, float *out, ls_member member)
{
	const ls_tensor *t = &exec->graph->values[exec->graph->logits];
	int64_t rows = t->domain == LS_MASKED ? pass->rows[LS_MASKED] : pass->n, begin, end;

	out += pass->first_row[t->domain] * t->channels;
	ls_team_range(member, rows, &begin, &end);
	for (int64_t i = begin; i < end; i++)
		for (int64_t c = 0; c < t->channels; c += t->panel) {
			int64_t left = t->channels - c, count = left < t->panel ? left : t->panel;
			memcpy(out + i * t->channels + c, exec->logits + (c / t->panel * rows + i) * t->panel,
			       (size_t)count * sizeof(*out));
		}
	ls_team_barrier(member);
}

static int size_index(const ls_exec *exec, int64_t n)
{
	for (int i = 0; i < exec->size_count; i++)
		if (exec->sizes[i] == n)
			return i;
	return LS_NONE;
}

/* Where the samples, tokens and masked positions of samples [first, first + n) lie in the tile; the others wait. */
static void locate(const job *j, int64_t first, int64_t n, ls_member member)
{
	ls_exec *exec = j->exec;
	const ls_packed *text = j->microbatch->text;

	if (!text)
		return;
	for (int64_t i = 0; i <= n && member.rank == 0; i++)
		exec->start[i] = text->start[first + i] - text->start[first];
	for (int64_t i = 0; i < n && member.rank == 0; i++)
		for (int32_t t = exec->start[i]; t < exec->start[i + 1]; t++)
			exec->owner[t] = (int32_t)i;
	int32_t begin = text->masked_start[first], end = text->masked_start[first + n];
	for (int32_t p = begin; p < end && member.rank == 0; p++)
		exec->masked_at[p - begin] = text->masked_at[p] - text->start[first];
	ls_team_barrier(member);
}

static void add_text(const job *j, int64_t first, int64_t n, ls_pass *pass)
{
	const ls_packed *text = j->microbatch->text;
	pass->rows[LS_TOKENS] = text->start[first + n] - text->start[first];
	pass->rows[LS_MASKED] = text->masked_start[first + n] - text->masked_start[first];
	pass->start = j->exec->start;
	pass->owner = j->exec->owner;
	pass->masked_at = j->exec->masked_at;
	pass->token = text->token + text->start[first];
	pass->segment = text->segment + text->start[first];
	pass->target = text->target + text->masked_start[first];
	pass->first_row[LS_MASKED] = text->masked_start[first];
	pass->past = text->past ? text->past + first : NULL;
	pass->cache = text->cache;
	pass->cache_first = first;
	pass->images = NULL;
}

static ls_pass tile_pass(const job *j, int64_t first, int64_t n)
{
	const ls_exec_microbatch *microbatch = j->microbatch;
	const ls_tensor *in = &j->exec->graph->values[j->exec->graph->input];
	int64_t image = (int64_t)in->channels * in->height * in->width;
	int size = size_index(j->exec, n);

	assert(size >= 0); /* one of ls_exec_options.sizes, or a tile of one */
	assert(j->training ? !j->exec->inference : j->exec->inference || !j->exec->graph->coupled);
	ls_pass pass = { .n = n,
			 .size = size,
			 .training = j->training,
			 .accumulate = first > 0,
			 .images = microbatch->images ? microbatch->images + first * image : NULL,
			 .labels = microbatch->labels + first,
			 .targets = microbatch->targets ? microbatch->targets + first * microbatch->target_count : NULL,
			 .target_count = microbatch->target_count,
			 .samples = microbatch->samples ? microbatch->samples + first : NULL,
			 .params = j->exec->params,
			 .buffers = j->exec->buffers,
			 .grads = microbatch->grads,
			 .stats = microbatch->stats,
			 .seed = microbatch->seed,
			 .step = microbatch->step,
			 .share_grads = microbatch->share_grads,
			 .first_row = { [LS_SAMPLES] = first },
			 .row_weight = { [LS_SAMPLES] = 1, [LS_MASKED] = (float)microbatch->token_weight } };
	if (microbatch->text)
		add_text(j, first, n, &pass);
	return pass;
}

static void work(void *context, ls_member member)
{
	const job *j = context;
	ls_exec *exec = j->exec;
	int64_t tile = exec->graph->coupled && j->training ? j->microbatch->count : exec->tile;
	double since = 0;

	skip_time(j, &since, member);

	for (int64_t first = 0; first < j->microbatch->count; first += tile) {
		int64_t left = j->microbatch->count - first, n = left < tile ? left : tile;
		locate(j, first, n, member);
		ls_pass pass = tile_pass(j, first, n);
		run_forward(j, &pass, &since, member);
		run_losses(j, &pass, member);
		if (j->logits)
			copy_logits(exec, &pass, j->logits, member);
		skip_time(j, &since, member);
		if (j->training)
			run_backward(j, &pass, left <= tile, &since, member);
	}
}

/* The sum over the rows of a loss, in order. Predictions are counted where they are the graph's own: other losses on
 * samples are of other values. */
static void add_loss(const ls_op *op, int64_t rows, int counts, double *loss, int64_t *correct)
{
	for (int64_t i = 0; i < rows; i++) {
		*loss += op->loss[i];
		*correct += counts && op->correct[i];
	}
}

static void run(ls_exec *exec, ls_exec_microbatch *microbatch, float *logits, int training)
{
	job j = { .exec = exec, .microbatch = microbatch, .logits = logits, .training = training };

	ls_team_run(exec->team, work, &j);
	microbatch->loss = microbatch->token_loss = 0;
	microbatch->correct = microbatch->token_correct = 0;
	for (int i = 0; i < exec->loss_count; i++) {
		const ls_op *op = &exec->losses[i];
		if (op->in[0]->domain == LS_MASKED)
			add_loss(op, microbatch->text->masked_start[microbatch->count], 1, &microbatch->token_loss,
				 &microbatch->token_correct);
		else
			add_loss(op, microbatch->count, op->node->inputs[0] == exec->graph->logits, &microbatch->loss,
				 &microbatch->correct);
	}
	microbatch->loss += microbatch->token_weight * microbatch->token_loss;
}

void ls_exec_set_params(ls_exec *exec, const float *params, const float *buffers)
{
	exec->params = params;
	exec->buffers = buffers;
}

void ls_exec_train(ls_exec *exec, ls_exec_microbatch *microbatch)
{
	run(exec, microbatch, NULL, 1);
}

void ls_exec_infer(ls_exec *exec, ls_exec_microbatch *microbatch, float *logits)
{
	run(exec, microbatch, logits, 0);
}

int ls_exec_layer_times(const ls_exec *exec, int i, ls_layer_times *out)
{
	if (i >= exec->op_count)
		return 0;
	*out = (ls_layer_times){ .name = exec->ops[i].node->name,
				 .forward_s = exec->ops[i].forward_s,
				 .backward_s = exec->ops[i].backward_s,
				 .macs_per_sample = ls_node_macs(exec->graph, exec->ops[i].node, 0) };
	return 1;
}

void ls_exec_pause_profile(ls_exec *exec, int pause)
{
	exec->paused = pause;
}
