/*
 * exec_plan.c - make and free an executor: its sizes are chosen, its buffers planned (exec_spans.c) and bound
 * (exec_bind.c), and the plan can be shown.
 */
#include "backends/cpu/exec_plan.h"

#include <stdlib.h>

static void add_size(ls_exec *exec, int64_t n)
{
	for (int i = 0; i < exec->size_count; i++)
		if (exec->sizes[i] == n)
			n = 0;
	if (n <= 0)
		return;
	exec->sizes[exec->size_count++] = n;
	exec->largest = n > exec->largest ? n : exec->largest;
}

/* A micro-batch runs whole where batch statistics couple its samples, otherwise in tiles. */
static void choose_sizes(ls_exec *exec, const int64_t *microbatches)
{
	int whole = exec->graph->coupled && !exec->inference;

	exec->tile = LS_TILE;
	for (int i = 0; i < LS_SIZES_MAX && microbatches[i] > 0; i++) {
		exec->microbatch = microbatches[i] > exec->microbatch ? microbatches[i] : exec->microbatch;
		if (whole) {
			add_size(exec, microbatches[i]);
			continue;
		}
		add_size(exec, microbatches[i] < LS_TILE ? microbatches[i] : LS_TILE);
		add_size(exec, microbatches[i] % LS_TILE);
	}
}

static ls_status plan(ls_exec *exec, const ls_graph *graph, const int64_t *microbatches, int inference)
{
	exec->graph = graph;
	exec->inference = inference;
	choose_sizes(exec, microbatches);
	LS_TRY(ls_exec_check_microbatch(exec));
	LS_TRY(ls_exec_make_ops(exec));
	return ls_exec_plan_memory(exec);
}

ls_status ls_exec_bytes(const ls_graph *graph, int64_t n, int threads, int inference, size_t *bytes)
{
	ls_exec exec = { .threads = threads };
	int64_t microbatches[LS_SIZES_MAX] = { n };
	ls_status status = plan(&exec, graph, microbatches, inference);

	if (status == LS_OK)
		*bytes = ls_exec_whole_bytes(&exec);
	ls_arena_release(&exec.arena);
	return status;
}

static ls_status prepare(ls_exec *exec)
{
	for (int i = 0; i < exec->op_count; i++)
		if (exec->ops[i].type->prepare)
			LS_TRY(exec->ops[i].type->prepare(&exec->ops[i], &exec->arena, exec->sizes, exec->size_count,
							  exec->threads));
	return LS_OK;
}

ls_status ls_exec_new(ls_exec **out, const ls_graph *graph, const ls_exec_options *options)
{
	ls_status status;
	ls_exec *exec = calloc(1, sizeof(*exec));

	if (!exec)
		return ls_fail(LS_EMEMORY, "no memory for an executor");
	exec->team = options->team;
	exec->threads = ls_team_size(options->team);
	exec->profile = options->profile;
	status = plan(exec, graph, options->sizes, options->inference);
	if (status == LS_OK)
		status = ls_exec_bind(exec);
	if (status == LS_OK)
		status = prepare(exec);
	if (status != LS_OK) {
		ls_exec_free(exec);
		return status;
	}
	*out = exec;
	return LS_OK;
}

void ls_exec_free(ls_exec *exec)
{
	if (!exec)
		return;
	ls_buffer_free(exec->workspace, ls_exec_whole_bytes(exec));
	ls_arena_release(&exec->arena);
	free(exec);
}

size_t ls_exec_workspace(const ls_exec *exec)
{
	return ls_exec_whole_bytes(exec);
}

static size_t class_bytes(const ls_exec *exec, int class, int count)
{
	size_t sum = 0;
	for (int i = 0; i < count; i++)
		sum += ls_exec_span(exec, class, i)->bytes;
	return sum;
}

static void print_part(FILE *to, const char *name, size_t bytes, const char *note)
{
	if (bytes == 0)
		return;
	fprintf(to, "      %-28s %10.2f MB%s\n", name, (double)bytes / 1e6, note);
}

static void print_parts(const ls_exec *exec, FILE *to)
{
	static const char *const names[LS_SPAN_CLASSES] = { "outputs of layers", "their gradients", "kept for backward",
							    "temporary gradients", "recomputed" };
	int counts[LS_SPAN_CLASSES] = { exec->graph->value_count, exec->graph->value_count, exec->op_count,
					LS_INPUTS_MAX * exec->op_count, exec->op_count };

	for (int class = 0; class < LS_SPAN_CLASSES; class ++)
		print_part(to, names[class], class_bytes(exec, class, counts[class]), "");
	print_part(to, "scratch", exec->scratch_bytes, "");
	print_part(to, "after reuse", ls_exec_whole_bytes(exec),
		   "   (memory that is not needed at the same time is shared)");
	print_part(to, "unused", exec->workspace_bytes - exec->live_bytes, "   (gaps between buffers)");
}

static void print_layers(const ls_exec *exec, FILE *to)
{
	fprintf(to, "    outputs, per layer:\n");
	for (int i = 0; i < exec->op_count; i++) {
		const ls_node *node = exec->ops[i].node;
		const ls_tensor *t = exec->ops[i].out;
		fprintf(to, "      %-28s %10.2f MB   %s, %d x %d x %d\n", node->name,
			(double)ls_exec_span(exec, LS_SPAN_VALUE, node->output)->bytes / 1e6, node->type->name,
			t->channels, t->height, t->width);
	}
}

ls_status ls_exec_print_plan(const ls_graph *graph, int64_t n, int threads, FILE *to)
{
	ls_exec exec = { .threads = threads };
	int64_t microbatches[LS_SIZES_MAX] = { n };
	ls_status status = plan(&exec, graph, microbatches, 0);

	if (status == LS_OK) {
		fprintf(to, "    activations, per device:\n");
		print_parts(&exec, to);
		print_layers(&exec, to);
	}
	ls_arena_release(&exec.arena);
	return status;
}
