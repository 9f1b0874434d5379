/*
 * result.c - the results of a bench: rates, layers, nodes, and the profile that is written.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/isa.h"
#include "base/median.h"
#include "base/memory.h"
#include "comm/collectives.h"
#include "tools/bench/state.h"

typedef ls_bench_state bench;

static double timed_steps(const bench *b)
{
	return (double)(b->options->steps * b->options->repeat);
}

/* Layer times of all timed steps, as a mean per step. */
static ls_status keep_layers(const bench *b, ls_bench_result *r)
{
	const ls_executor *executor = b->trainer->driver[0].executor;
	ls_layer_times times;

	while (b->backend->layer_times(executor, (int)r->layer_count, &times))
		r->layer_count++;
	r->layers = calloc(r->layer_count + 1, sizeof(*r->layers));
	if (!r->layers)
		return ls_fail(LS_EMEMORY, "no memory for the profile");
	for (size_t i = 0; i < r->layer_count; i++) {
		ls_bench_layer *layer = &r->layers[i];
		b->backend->layer_times(executor, (int)i, &times);
		snprintf(layer->name, sizeof(layer->name), "%s", times.name);
		layer->forward_ms = 1e3 * times.forward_s / timed_steps(b);
		layer->backward_ms = 1e3 * times.backward_s / timed_steps(b);
		layer->flop = 2 * times.macs_per_sample * (double)b->job.micro_batch;
		if (r->tokens > 0) /* not of the longest sentences, but of those that were there */
			layer->flop =
				ls_node_text_flop(b->graph, (int)i, r->tokens, r->masked) * (double)b->job.micro_batch;
	}
	return LS_OK;
}

/* Before the medians over all of them, which reorder the times. */
static ls_status keep_repeats(bench *b, ls_bench_result *r)
{
	size_t steps = (size_t)b->options->steps;

	r->repeat_count = (size_t)b->options->repeat;
	r->repeats = calloc(r->repeat_count, sizeof(*r->repeats));
	if (!r->repeats)
		return ls_fail(LS_EMEMORY, "no memory for the results of %zu repeats", r->repeat_count);
	for (size_t k = 0; k < r->repeat_count; k++) {
		r->repeats[k].samples_per_s = b->repeat_rates[k];
		r->repeats[k].step_ms = 1e3 * ls_median(b->step_s + k * steps, steps);
	}
	return LS_OK;
}

static void keep_rates(bench *b, ls_bench_result *r)
{
	r->samples_per_s_min = r->samples_per_s_max = b->repeat_rates[0];
	for (int64_t k = 0; k < b->options->repeat; k++) {
		if (b->repeat_rates[k] < r->samples_per_s_min)
			r->samples_per_s_min = b->repeat_rates[k];
		if (b->repeat_rates[k] > r->samples_per_s_max)
			r->samples_per_s_max = b->repeat_rates[k];
	}
	r->samples_per_s = ls_median(b->repeat_rates, (size_t)b->options->repeat);
	r->step_ms = 1e3 * ls_median(b->step_s, (size_t)timed_steps(b));
	double updates = b->layout.nodes == 1 ? timed_steps(b) : (double)b->trainer->step;
	r->update_ms = 1e3 * (ls_node_trainer_update_s(b->trainer) - b->warm_up_s) / updates;
	r->tokens = ls_bench_data_tokens(&b->data, &r->masked);
	r->flop_per_sample = r->tokens > 0 ? ls_graph_text_flop(b->graph, r->tokens, r->masked)
					   : ls_graph_describe(b->graph).flop_per_sample;
	r->gradient_bytes = (double)ls_graph_describe(b->graph).gradient_bytes;
	r->gflop_per_s = b->options->replay ? 0 : r->samples_per_s * r->flop_per_sample / 1e9;
}

static void keep_job(const bench *b, ls_bench_result *r)
{
	const ls_tensor *in = &b->graph->values[b->graph->input];

	snprintf(r->model, sizeof(r->model), "%s", b->job.model);
	r->channels = in->channels;
	r->height = in->height;
	r->width = in->width;
	r->classes = b->graph->values[b->graph->logits].channels;
	r->tokens_max = b->graph->tokens_max;
	r->vocabulary = ls_graph_vocabulary(b->graph);
	r->microbatch = b->job.micro_batch;
	r->global_batch = b->job.batch;
	r->peak_rss_bytes = ls_memory_peak();
	snprintf(r->kernels, sizeof(r->kernels), "%.31s",
		 b->options->replay ? b->profile.kernels : b->backend->kernels());
	snprintf(r->isa, sizeof(r->isa), "%s", ls_isa_name(ls_isa_get()));
	snprintf(r->precision, sizeof(r->precision), "%s",
		 ls_precision_name_at(b->graph->precision)); /* a profile's, too */
}

static ls_bench_node describe_node(const bench *b)
{
	double counted = b->run.counted > 0 ? (double)b->run.counted : 1;
	ls_bench_node own = { .devices = b->layout.devices,
			      .compute_ms = 1e3 * b->run.compute_s / counted,
			      .exposed_ms = 1e3 * b->run.exposed_s / counted,
			      .wait_ms = 1e3 * b->run.wait_s / counted,
			      .sent_bytes = (double)b->sent / timed_steps(b),
			      .received_bytes = (double)b->received / timed_steps(b) };

	if (b->comm)
		snprintf(own.host, sizeof(own.host), "%s", ls_comm_host(b->comm, b->layout.node));
	else
		gethostname(own.host, sizeof(own.host) - 1);
	return own;
}

static ls_status keep_nodes(const bench *b, ls_bench_result *r)
{
	ls_bench_node own = describe_node(b);
	double devices = (double)b->layout.all_devices;

	r->node_count = (size_t)b->layout.nodes;
	r->nodes = calloc(r->node_count, sizeof(*r->nodes));
	if (!r->nodes)
		return ls_fail(LS_EMEMORY, "no memory for the results of %d nodes", b->layout.nodes);
	LS_TRY(ls_comm_gather(b->comm, 0, &own, sizeof(own), r->nodes, "results of the bench"));
	for (size_t i = 0; i < r->node_count; i++) {
		r->compute_ms += r->nodes[i].compute_ms * r->nodes[i].devices / devices;
		r->exposed_ms += r->nodes[i].exposed_ms * r->nodes[i].devices / devices;
		r->wait_ms += r->nodes[i].wait_ms * r->nodes[i].devices / devices;
	}
	return LS_OK;
}

/* Relative standard deviation of the time of a step between repeats; 0: there is one repeat. */
static double step_spread(const ls_bench_result *r)
{
	double mean = 0, squares = 0, n = (double)r->repeat_count;

	for (size_t k = 0; k < r->repeat_count; k++)
		mean += 1 / r->repeats[k].samples_per_s / n;
	for (size_t k = 0; k < r->repeat_count; k++)
		squares += (1 / r->repeats[k].samples_per_s / mean - 1) * (1 / r->repeats[k].samples_per_s / mean - 1);
	return n > 1 ? sqrt(squares / (n - 1)) : 0;
}

static ls_status keep_profile(bench *b, ls_bench_result *r)
{
	ls_profile p = { .channels = r->channels,
			 .height = r->height,
			 .width = r->width,
			 .classes = r->classes,
			 .tokens = b->graph->tokens_max,
			 .masked = b->graph->masked_max,
			 .vocabulary = r->vocabulary,
			 .batch = b->job.micro_batch,
			 .threads = b->layout.threads,
			 .devices = b->layout.devices,
			 .repeats = b->options->repeat,
			 .step_spread = step_spread(r),
			 .gflop_a_sample = r->flop_per_sample / 1e9,
			 .reachable = (int64_t)b->graph->params.reachable,
			 .extra = (int64_t)b->trainer->stats_floats - b->layout.nodes };

	snprintf(p.model, sizeof(p.model), "%s", r->model);
	snprintf(p.optimizer, sizeof(p.optimizer), "%s", b->job.optimizer);
	snprintf(p.isa, sizeof(p.isa), "%s", r->isa);
	snprintf(p.kernels, sizeof(p.kernels), "%s", r->kernels);
	snprintf(p.precision, sizeof(p.precision), "%s", r->precision);
	snprintf(p.lockstep, sizeof(p.lockstep), "%s", ls_version());
	ls_status status = ls_profiler_take(&b->profiler, &p);
	p.update_s *= b->layout.devices; /* they share it */
	if (status == LS_OK && b->options->profile_out)
		status = ls_profile_write(&p, b->options->profile_out);
	if (status == LS_OK && b->options->profile_text)
		status = ls_profile_to_text(&p, &r->profile_text);
	ls_profile_release(&p);
	return status;
}

ls_status ls_bench_report(bench *b, ls_bench_result *r)
{
	r->node = b->layout.node;
	LS_TRY(keep_repeats(b, r));
	keep_rates(b, r);
	keep_job(b, r);
	LS_TRY(keep_nodes(b, r));
	if (r->node == 0 && b->options->profile)
		LS_TRY(keep_layers(b, r));
	return ls_bench_records(b->options) ? keep_profile(b, r) : LS_OK;
}

void ls_bench_result_release(ls_bench_result *result)
{
	free(result->repeats);
	free(result->nodes);
	free(result->layers);
	free(result->profile_text);
	*result = (ls_bench_result){ 0 };
}
