#include "bench_print.h"

#include <inttypes.h>
#include <jansson.h>

#include <lockstep/names.h>

#include "text_table.h"

/* ---- JSON ---- */

static json_t *layers_to_json(const ls_bench_result *result)
{
	json_t *list = json_array();
	for (size_t i = 0; i < result->layer_count; i++) {
		const ls_bench_layer *layer = &result->layers[i];
		json_array_append_new(list, json_pack("{s:s, s:f, s:f, s:f}", "name", layer->name, "forward_ms",
						      layer->forward_ms, "backward_ms", layer->backward_ms, "flop",
						      layer->flop));
	}
	return list;
}

static json_t *nodes_to_json(const ls_bench_result *result)
{
	json_t *list = json_array();
	for (size_t i = 0; i < result->node_count; i++) {
		const ls_bench_node *node = &result->nodes[i];
		json_array_append_new(list,
				      json_pack("{s:s, s:i, s:f, s:f, s:f, s:f, s:f}", "host", node->host, "devices",
						node->devices, "compute_ms", node->compute_ms, "exposed_ms",
						node->exposed_ms, "wait_ms", node->wait_ms, "sent_bytes",
						node->sent_bytes, "received_bytes", node->received_bytes));
	}
	return list;
}

static json_t *repeats_to_json(const ls_bench_result *result)
{
	json_t *list = json_array();
	for (size_t i = 0; i < result->repeat_count; i++)
		json_array_append_new(list, json_pack("{s:f, s:f}", "samples_per_s", result->repeats[i].samples_per_s,
						      "step_ms", result->repeats[i].step_ms));
	return list;
}

/* What else of the settings changes the cost of a step. */
static json_t *update_to_json(const ls_train_options *job)
{
	return json_pack("{s:s, s:f, s:f, s:f, s:f}", "optimizer", job->optimizer, "lr", job->lr, "weight_decay",
			 job->weight_decay, "clip_norm", job->clip_norm, "dropout", (double)job->dropout);
}

static json_t *job_to_json(const ls_bench_options *o, const ls_bench_result *r)
{
	const ls_train_options *job = &o->job;
	return json_pack("{s:s, s:i, s:i, s:i, s:i, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:s, s:s, s:s, s:s?, "
			 "s:f, s:s?, s:f, s:f, s:i, s:i, s:f, s:f}",
			 "model", r->model, "channels", r->channels, "height", r->height, "width", r->width, "classes",
			 r->classes, "micro_batch", (json_int_t)r->microbatch, "batch", (json_int_t)r->global_batch,
			 "devices", (json_int_t)job->devices, "threads", (json_int_t)job->threads, "warmup",
			 (json_int_t)o->warmup, "steps", (json_int_t)o->steps, "repeat", (json_int_t)o->repeat, "seed",
			 (json_int_t)job->seed, "strategy", job->strategy, "wire", job->wire, "share", job->share,
			 "replay", o->replay, "replay_speed", o->replay_speed, "data", o->data, "tokens", r->tokens,
			 "masked", r->masked, "tokens_max", r->tokens_max, "vocabulary", r->vocabulary, "tokens_per_s",
			 r->tokens * r->samples_per_s, "padded_tokens_per_s", (double)r->tokens_max * r->samples_per_s);
}

static json_t *result_to_json(const ls_bench_result *r)
{
	return json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:I, s:s, s:s, s:s, s:s}",
			 "samples_per_s", r->samples_per_s, "samples_per_s_min", r->samples_per_s_min,
			 "samples_per_s_max", r->samples_per_s_max, "step_ms", r->step_ms, "update_ms", r->update_ms,
			 "compute_ms", r->compute_ms, "exposed_ms", r->exposed_ms, "wait_ms", r->wait_ms,
			 "flop_per_sample", r->flop_per_sample, "gflop_per_s", r->gflop_per_s, "gradient_bytes",
			 r->gradient_bytes, "peak_rss_bytes", (json_int_t)r->peak_rss_bytes, "kernels", r->kernels,
			 "isa", r->isa, "precision", r->precision, "version", ls_version());
}

int ls_bench_print_json(const ls_bench_options *job, const ls_bench_result *result, FILE *to)
{
	json_t *object = job_to_json(job, result), *update = update_to_json(&job->job),
	       *numbers = result_to_json(result);
	int bad = !object || !update || !numbers || json_object_update(object, update) ||
		  json_object_update(object, numbers);
	if (!bad)
		bad = json_object_set_new(object, "nodes", nodes_to_json(result));
	if (!bad)
		bad = json_object_set_new(object, "repeats", repeats_to_json(result));
	if (!bad && job->profile)
		bad = json_object_set_new(object, "layers", layers_to_json(result));
	if (!bad)
		bad = json_dumpf(object, to, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
	bad |= fputc('\n', to) == EOF;
	json_decref(object);
	json_decref(update);
	json_decref(numbers);
	return bad || fflush(to) != 0;
}

/* ---- text ---- */

static int print_layers(const ls_bench_result *result, FILE *to)
{
	ls_text_table table = { .columns = 4, .heads = { "<layer", "forward ms", "backward ms", "GFLOP/s" } };
	for (size_t i = 0; i < result->layer_count; i++) {
		const ls_bench_layer *layer = &result->layers[i];
		double ms = layer->forward_ms + layer->backward_ms;
		ls_text_table_add(&table, "%s", layer->name);
		ls_text_table_add(&table, "%.3f", layer->forward_ms);
		ls_text_table_add(&table, "%.3f", layer->backward_ms);
		ls_text_table_add(&table, "%.1f", ms > 0 ? layer->flop / ms / 1e6 : 0.0);
	}
	fputc('\n', to);
	int failed = ls_text_table_print(&table, to);
	ls_text_table_release(&table);
	return failed != 0;
}

static int print_nodes(const ls_bench_result *result, FILE *to)
{
	ls_text_table table = { .columns = 8,
				.heads = { "node", "<host", "devices", "compute ms", "exposed ms", "wait ms", "sent MB",
					   "received MB" } };
	for (size_t i = 0; i < result->node_count; i++) {
		const ls_bench_node *node = &result->nodes[i];
		ls_text_table_add(&table, "%zu", i);
		ls_text_table_add(&table, "%s", node->host);
		if (node->devices)
			ls_text_table_add(&table, "%d", node->devices);
		else
			ls_text_table_add(&table, "server");
		ls_text_table_add(&table, "%.2f", node->compute_ms);
		ls_text_table_add(&table, "%.2f", node->exposed_ms);
		ls_text_table_add(&table, "%.2f", node->wait_ms);
		ls_text_table_add(&table, "%.3f", node->sent_bytes / 1e6);
		ls_text_table_add(&table, "%.3f", node->received_bytes / 1e6);
	}
	fputc('\n', to);
	int failed = ls_text_table_print(&table, to);
	ls_text_table_release(&table);
	return failed != 0;
}

static void print_job(const ls_bench_options *o, const ls_bench_result *r, FILE *to)
{
	const ls_train_options *job = &o->job;
	if (r->tokens_max > 0)
		fprintf(to, "%s, %.1f tokens per sample (at most %d)", r->model, r->tokens, r->tokens_max);
	else
		fprintf(to, "%s, %d x %d x %d", r->model, r->channels, r->height, r->width);
	if (r->masked > 0)
		fprintf(to, ", %.1f of them masked", r->masked);
	fprintf(to, ", micro-batch %" PRId64 ", %s, %" PRId64 " device%s with %" PRId64 " thread%s", r->microbatch,
		job->optimizer, job->devices, ls_plural((uint64_t)job->devices, "s"), job->threads,
		ls_plural((uint64_t)job->threads, "s"));
	if (job->weight_decay > 0)
		fprintf(to, ", weight decay %g", job->weight_decay);
	if (job->clip_norm > 0)
		fprintf(to, ", gradient norm clipped to %g", job->clip_norm);
	if (job->dropout > 0)
		fprintf(to, ", dropout %g", (double)job->dropout);
	if (o->replay)
		fprintf(to, ", simulated compute (%s at speed %g)", o->replay, o->replay_speed);
	else
		fprintf(to, ", %s, %s kernels (%s)", r->precision, r->kernels, r->isa);
	fputc('\n', to);
	if (r->node_count > 1)
		fprintf(to, "%zu nodes, %s, %s on the wire, share %s, batch %" PRId64 "\n", r->node_count,
			job->strategy, job->wire, job->share, r->global_batch);
}

int ls_bench_print_text(const ls_bench_options *job, const ls_bench_result *result, FILE *to)
{
	print_job(job, result, to);
	fprintf(to, "samples/s  %.1f, median of %" PRId64 " (%.1f to %.1f)\n", result->samples_per_s, job->repeat,
		result->samples_per_s_min, result->samples_per_s_max);
	if (result->tokens > 0)
		fprintf(to, "tokens/s   %.1f real, %.1f padded (as most papers count)\n",
			result->samples_per_s * result->tokens, result->samples_per_s * result->tokens_max);
	fprintf(to, "step       %.2f ms; optimizer %.2f ms of processor time per thread\n", result->step_ms,
		result->update_ms);
	if (result->node_count > 1)
		fprintf(to, "per device %.2f ms compute, %.2f ms exposed communication, %.2f ms waiting\n",
			result->compute_ms, result->exposed_ms, result->wait_ms);
	if (!job->replay)
		fprintf(to, "GFLOP/s    %.1f, with %.4f GFLOP per sample\n", result->gflop_per_s,
			result->flop_per_sample / 1e9);
	fprintf(to, "peak RSS   %.0f MB\n", (double)result->peak_rss_bytes / 1e6);
	int failed = result->node_count > 1 && print_nodes(result, to);
	failed |= job->profile && print_layers(result, to);
	return failed || fflush(to) != 0 || ferror(to);
}
