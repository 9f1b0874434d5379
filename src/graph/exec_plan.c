/*
 * exec_plan.c - bind a graph's nodes to memory.
 *
 * Time runs over 2F + 1 moments for F nodes: node i goes forward at i, the loss is at F, node i goes backward at 2F -
 * i. Every buffer has a first and a last moment; buffers that never live together share addresses (place.h).
 *
 *   value     from its producer to its last reader, forward or (when backward reads it again) backward
 *   gradient  from the first node backward that writes it to its producer's backward
 *   aux       what a node keeps for its own backward
 *   spare     a gradient computed aside, by a kind that cannot add to what is there
 *   again     a convolution's input that its norm makes once more for backward, instead of keeping it
 *   scratch   one region, used by one node at a time
 */
#include "graph/exec_plan.h"

#include <stdlib.h>
#include <string.h>

enum { SPAN_VALUE, SPAN_GRADIENT, SPAN_AUX, SPAN_SPARE, SPAN_AGAIN, SPAN_CLASSES };

/* Spans lie as four tables: values, gradients (by value), aux, spare (by node). */
static ls_span *span_of(const ls_exec *exec, int class, int index)
{
	int values = exec->graph->value_count, nodes = exec->op_count;
	int first[SPAN_CLASSES] = { 0, values, 2 * values, 2 * values + nodes, 2 * values + 2 * nodes };
	return &exec->spans[first[class] + index];
}

static int forward_time(int node)
{
	return node;
}

static int backward_time(const ls_exec *exec, int node)
{
	return 2 * exec->op_count - node;
}

static void extend(ls_span *span, int time)
{
	if (time < span->from)
		span->from = time;
	if (time > span->to)
		span->to = time;
}

static void want(ls_span *span, size_t bytes, int from, int to)
{
	*span = (ls_span){ .bytes = bytes, .from = from, .to = to };
}

/* Images and what is made of them without parameters have no gradient. */
static int has_gradient(const ls_exec *exec, int value)
{
	int producer = ls_graph_producer(exec->graph, value);
	return !exec->inference && producer != LS_NONE && exec->graph->nodes[producer].kind != LS_NODE_PACK;
}

static size_t value_bytes(const ls_exec *exec, int value)
{
	return sizeof(float) * (size_t)(ls_tensor_floats(&exec->graph->values[value]) * exec->largest);
}

/* With values of less than 2^31 floats a sample (graph.c) a span stays below 2^62 bytes: products in int64 are safe. */
#define LEAF_MOST (INT64_C(1) << 28)
/* And thousands of spans of this size can be added up. More than any machine has. */
#define SPAN_MOST ((size_t)1 << 48)

static ls_status check_leaf(const ls_exec *exec)
{
	if (exec->leaf > LEAF_MOST)
		return ls_fail(LS_EMEMORY, "%lld samples in one leaf are too many: at most %lld; use a smaller batch",
			       (long long)exec->leaf, (long long)LEAF_MOST);
	return LS_OK;
}

static ls_status check_spans(const ls_exec *exec)
{
	size_t most = exec->scratch_bytes;
	for (size_t i = 0; i < exec->span_count; i++)
		most = exec->spans[i].bytes > most ? exec->spans[i].bytes : most;
	if (most > SPAN_MOST)
		return ls_fail(LS_EMEMORY,
			       "%lld samples at once need a block of %.1f TB for one layer; use a smaller batch",
			       (long long)exec->largest, (double)most / 1e12);
	return LS_OK;
}

/* Logits of tokens are too large to have twice: the loss leaves their gradient in their place, unless backward reads
 * them again (a relu behind them, say). */
static int is_own_gradient(const ls_exec *exec, int value)
{
	if (value != exec->graph->token_logits)
		return 0;
	const ls_op *maker = &exec->ops[ls_graph_producer(exec->graph, value)];
	return !(maker->kind->keeps(maker->node) & LS_KEEP_OUTPUT);
}

static void plan_output(ls_exec *exec, int i)
{
	const ls_node *node = exec->ops[i].node;
	int training = !exec->inference, kept = training && (exec->ops[i].kind->keeps(node) & LS_KEEP_OUTPUT);

	kept = kept || (training && is_own_gradient(exec, node->output));

	want(span_of(exec, SPAN_VALUE, node->output), value_bytes(exec, node->output), forward_time(i),
	     kept ? backward_time(exec, i) : forward_time(i));
	if (has_gradient(exec, node->output) && !is_own_gradient(exec, node->output))
		want(span_of(exec, SPAN_GRADIENT, node->output), value_bytes(exec, node->output),
		     backward_time(exec, i), backward_time(exec, i));
}

static void plan_read(ls_exec *exec, int i, int value, int again)
{
	if (value == LS_NONE || value == exec->graph->input)
		return;
	extend(span_of(exec, SPAN_VALUE, value), forward_time(i));
	if (again)
		extend(span_of(exec, SPAN_VALUE, value), backward_time(exec, i));
	if (has_gradient(exec, value))
		extend(span_of(exec, SPAN_GRADIENT, value), backward_time(exec, i));
}

static void plan_reads(ls_exec *exec, int i)
{
	const ls_op *op = &exec->ops[i];
	int again = !exec->inference && (op->kind->keeps(op->node) & LS_KEEP_INPUT);
	int others = !exec->inference && (op->kind->keeps(op->node) & LS_KEEP_OTHERS);

	if (op->maker != NULL)
		want(span_of(exec, SPAN_AGAIN, i), value_bytes(exec, op->node->input), backward_time(exec, i),
		     backward_time(exec, i));
	plan_read(exec, i, op->node->input, again && op->maker == NULL);
	plan_read(exec, i, op->node->second, others);
	plan_read(exec, i, op->node->third, others);
}

static void plan_aux(ls_exec *exec, int i)
{
	ls_op *op = &exec->ops[i];
	int last = exec->inference ? forward_time(i) : backward_time(exec, i);
	int first = op->conv != NULL ? (int)(op->conv - exec->ops) : i; /* the convolution fills in the moments */

	if (op->kind->aux_bytes != NULL)
		want(span_of(exec, SPAN_AUX, i), op->kind->aux_bytes(op, exec->largest), forward_time(first), last);
	if (op->kind->scratch_bytes != NULL) {
		size_t bytes = op->kind->scratch_bytes(op, exec->largest);
		exec->scratch_bytes = bytes > exec->scratch_bytes ? bytes : exec->scratch_bytes;
	}
}

/* Who writes a gradient first, and who adds: decided in backward order. A node gives to its second operand first. */
static void plan_adds(ls_exec *exec, char *written)
{
	for (int i = exec->op_count - 1; i >= 0; i--) {
		ls_op *op = &exec->ops[i];
		int input = op->node->input, second = op->node->second, third = op->node->third;
		if (third != LS_NONE) /* attention's, which nobody else reads: ls_graph_check_attention() */
			written[third] = 1;
		if (second != LS_NONE && has_gradient(exec, second)) {
			op->add_dsecond = written[second];
			written[second] = 1;
		}
		if (has_gradient(exec, input)) {
			op->add_dx = written[input];
			written[input] = 1;
			if (op->add_dx && !op->kind->adds_input)
				want(span_of(exec, SPAN_SPARE, i), value_bytes(exec, input), backward_time(exec, i),
				     backward_time(exec, i));
		}
	}
}

static void link_moments(ls_exec *exec)
{
	for (int i = 0; i < exec->op_count; i++) {
		int norm = exec->ops[i].node->norm_consumer;
		if (norm == LS_NONE || exec->inference)
			continue;
		exec->ops[i].norm = &exec->ops[norm];
		exec->ops[norm].conv = &exec->ops[i];
	}
}

/*
 * A norm's input is kept for its own backward; where a convolution alone reads its output, the output can be made again
 * from it, in cache, when the convolution goes backward, and need not be kept.
 */
static void link_makers(ls_exec *exec)
{
	for (int i = 0; i < exec->op_count && !exec->inference; i++) {
		const ls_node *node = exec->ops[i].node;
		int maker = node->kind == LS_NODE_CONV ? ls_graph_producer(exec->graph, node->input) : LS_NONE;
		if (maker == LS_NONE || exec->graph->nodes[maker].kind != LS_NODE_NORM)
			continue;
		if (exec->graph->nodes[maker].second == LS_NONE && ls_graph_consumers(exec->graph, node->input) == 1)
			exec->ops[i].maker = &exec->ops[maker];
	}
}

static ls_status make_ops(ls_exec *exec)
{
	const ls_graph *graph = exec->graph;

	exec->op_count = graph->node_count;
	exec->ops = ls_arena_alloc(&exec->arena, sizeof(*exec->ops) * (size_t)exec->op_count);
	exec->span_count = 2 * (size_t)graph->value_count + 3 * (size_t)exec->op_count;
	exec->spans = ls_arena_alloc(&exec->arena, sizeof(*exec->spans) * exec->span_count);
	if (exec->ops == NULL || exec->spans == NULL)
		return LS_EMEMORY;
	for (int i = 0; i < exec->op_count; i++) {
		const ls_node *node = &graph->nodes[i];
		exec->ops[i] = (ls_op){ .graph = graph,
					.node = node,
					.kind = ls_op_kind_of(node->kind),
					.threads = exec->team != NULL ? ls_team_size(exec->team) : 1,
					.in = &graph->values[node->input],
					.out = &graph->values[node->output] };
	}
	link_moments(exec);
	link_makers(exec);
	return LS_OK;
}

/* The loss reads logits and is the first to write their gradient. */
static void plan_loss(ls_exec *exec, int logits, char *written)
{
	extend(span_of(exec, SPAN_VALUE, logits), exec->op_count);
	if (exec->inference)
		return;
	if (!is_own_gradient(exec, logits))
		extend(span_of(exec, SPAN_GRADIENT, logits), exec->op_count);
	written[logits] = 1;
}

static ls_status plan_memory(ls_exec *exec)
{
	char *written = ls_arena_alloc(&exec->arena, (size_t)exec->graph->value_count);
	if (written == NULL)
		return LS_EMEMORY;
	for (int i = 0; i < exec->op_count; i++)
		plan_output(exec, i);
	for (int i = 0; i < exec->op_count; i++) {
		plan_reads(exec, i);
		plan_aux(exec, i);
	}
	plan_loss(exec, exec->graph->logits, written);
	if (exec->graph->token_logits != LS_NONE)
		plan_loss(exec, exec->graph->token_logits, written);
	if (!exec->inference)
		plan_adds(exec, written);
	LS_TRY(check_spans(exec));
	LS_TRY(ls_place_bound(exec->spans, exec->span_count, &exec->live_bytes));
	return ls_place(exec->spans, exec->span_count, &exec->workspace_bytes);
}

/* Behind the shared part: scratch, then loss and correct of each sample and of each pick, then where things are in the
 * slice under way. */
typedef struct tail {
	size_t leaf, picks;           /* loss and correct of each */
	size_t starts, owners, slice; /* indices: samples + 1, tokens and picks of a slice */
} tail;

static tail tail_of(const ls_exec *exec)
{
	const ls_graph *graph = exec->graph;
	size_t largest = (size_t)exec->largest;
	if (graph->tokens_max == 0)
		return (tail){ .leaf = ls_round_up64((size_t)exec->leaf) };
	return (tail){ .leaf = ls_round_up64((size_t)exec->leaf),
		       .picks = ls_round_up64((size_t)exec->leaf * (size_t)graph->picks_max),
		       .starts = ls_round_up64(largest + 1),
		       .owners = ls_round_up64(largest * (size_t)graph->tokens_max),
		       .slice = ls_round_up64(largest * (size_t)graph->picks_max) };
}

static size_t whole_bytes(const ls_exec *exec)
{
	tail t = tail_of(exec);
	return exec->workspace_bytes + ls_round_up64(exec->scratch_bytes) + (t.leaf + t.picks) * (sizeof(float) + 1) +
	       (t.starts + t.owners + t.slice) * sizeof(int32_t);
}

static void bind_tail(ls_exec *exec)
{
	tail t = tail_of(exec);
	exec->loss = (float *)(exec->workspace + exec->workspace_bytes + ls_round_up64(exec->scratch_bytes));
	exec->token_loss = exec->loss + t.leaf;
	exec->start = (int32_t *)(exec->token_loss + t.picks);
	exec->owner = exec->start + t.starts;
	exec->pick = exec->owner + t.owners;
	exec->correct = (uint8_t *)(exec->pick + t.slice);
	exec->token_correct = exec->correct + t.leaf;
}

static void *place_of(ls_exec *exec, int class, int index)
{
	const ls_span *span = span_of(exec, class, index);
	return span->bytes > 0 ? exec->workspace + span->offset : NULL;
}

static void *gradient_of(ls_exec *exec, int value)
{
	return place_of(exec, is_own_gradient(exec, value) ? SPAN_VALUE : SPAN_GRADIENT, value);
}

static void bind_op(ls_exec *exec, int i)
{
	ls_op *op = &exec->ops[i];
	const ls_node *node = op->node;

	op->x = node->input == exec->graph->input ? NULL : place_of(exec, SPAN_VALUE, node->input);
	op->y = place_of(exec, SPAN_VALUE, node->output);
	op->aux = place_of(exec, SPAN_AUX, i);
	op->x_again = place_of(exec, SPAN_AGAIN, i);
	op->scratch = exec->workspace + exec->workspace_bytes;
	op->dy = gradient_of(exec, node->output);
	op->dx = has_gradient(exec, node->input) ? place_of(exec, SPAN_GRADIENT, node->input) : NULL;
	if (place_of(exec, SPAN_SPARE, i) != NULL) {
		op->spare_dx = op->dx;
		op->dx = place_of(exec, SPAN_SPARE, i);
	}
	if (node->second != LS_NONE) {
		op->second = place_of(exec, SPAN_VALUE, node->second);
		op->dsecond = has_gradient(exec, node->second) ? place_of(exec, SPAN_GRADIENT, node->second) : NULL;
	}
	if (node->third != LS_NONE) {
		op->third = place_of(exec, SPAN_VALUE, node->third);
		op->dthird = has_gradient(exec, node->third) ? place_of(exec, SPAN_GRADIENT, node->third) : NULL;
	}
}

static ls_status bind(ls_exec *exec)
{
	void *memory = NULL;

	LS_TRY(ls_buffer_new(&memory, whole_bytes(exec), "activations and their gradients"));
	exec->workspace = memory;
	bind_tail(exec);
	exec->logits = place_of(exec, SPAN_VALUE, exec->graph->logits);
	exec->dlogits = gradient_of(exec, exec->graph->logits);
	if (exec->graph->token_logits != LS_NONE) {
		exec->token_logits = place_of(exec, SPAN_VALUE, exec->graph->token_logits);
		exec->dtoken_logits = gradient_of(exec, exec->graph->token_logits);
	}
	for (int i = 0; i < exec->op_count; i++)
		bind_op(exec, i);
	return LS_OK;
}

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

/* A leaf runs whole when its samples meet in batch statistics, otherwise in slices. */
static void choose_sizes(ls_exec *exec, const int64_t *leaves)
{
	int whole = exec->graph->coupled && !exec->inference;

	exec->slice = LS_SLICE;
	for (int i = 0; i < LS_SIZES_MAX && leaves[i] > 0; i++) {
		exec->leaf = leaves[i] > exec->leaf ? leaves[i] : exec->leaf;
		if (whole) {
			add_size(exec, leaves[i]);
			continue;
		}
		add_size(exec, leaves[i] < LS_SLICE ? leaves[i] : LS_SLICE);
		add_size(exec, leaves[i] % LS_SLICE);
	}
}

static ls_status plan(ls_exec *exec, const ls_graph *graph, const int64_t *leaves, int inference)
{
	exec->graph = graph;
	exec->inference = inference;
	choose_sizes(exec, leaves);
	LS_TRY(check_leaf(exec));
	LS_TRY(make_ops(exec));
	return plan_memory(exec);
}

ls_status ls_exec_bytes(const ls_graph *graph, int64_t n, int inference, size_t *bytes)
{
	ls_exec exec = { 0 };
	int64_t leaves[LS_SIZES_MAX] = { n };
	ls_status status = plan(&exec, graph, leaves, inference);

	if (status == LS_OK)
		*bytes = whole_bytes(&exec);
	ls_arena_release(&exec.arena);
	return status;
}

static ls_status prepare(ls_exec *exec)
{
	for (int i = 0; i < exec->op_count; i++)
		if (exec->ops[i].kind->prepare != NULL)
			LS_TRY(exec->ops[i].kind->prepare(&exec->ops[i], &exec->arena, exec->sizes, exec->size_count,
							  ls_team_size(exec->team)));
	return LS_OK;
}

ls_status ls_exec_new(ls_exec **out, const ls_graph *graph, const ls_exec_options *options)
{
	ls_status status;
	ls_exec *exec = calloc(1, sizeof(*exec));

	if (exec == NULL)
		return ls_fail(LS_EMEMORY, "no memory for an executor");
	exec->team = options->team;
	exec->profile = options->profile;
	status = plan(exec, graph, options->sizes, options->inference);
	if (status == LS_OK)
		status = bind(exec);
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
	if (exec == NULL)
		return;
	ls_buffer_free(exec->workspace, whole_bytes(exec));
	ls_arena_release(&exec->arena);
	free(exec);
}

size_t ls_exec_workspace(const ls_exec *exec)
{
	return whole_bytes(exec);
}

static size_t class_bytes(const ls_exec *exec, int class, int count)
{
	size_t sum = 0;
	for (int i = 0; i < count; i++)
		sum += span_of(exec, class, i)->bytes;
	return sum;
}

void ls_exec_print_plan(const ls_exec *exec, FILE *to, int layers)
{
	static const char *const names[SPAN_CLASSES] = { "activations", "their gradients", "kept for backward", "spare",
							 "made again" };
	int counts[SPAN_CLASSES] = { exec->graph->value_count, exec->graph->value_count, exec->op_count, exec->op_count,
				     exec->op_count };

	for (int class = 0; class < SPAN_CLASSES; class ++)
		fprintf(to, "  %-24s %10.2f MB\n", names[class], (double)class_bytes(exec, class, counts[class]) / 1e6);
	fprintf(to, "  %-24s %10.2f MB\n", "scratch", (double)exec->scratch_bytes / 1e6);
	fprintf(to, "  %-24s %10.2f MB   (live at once at most %.2f MB)\n", "shared, in all",
		(double)whole_bytes(exec) / 1e6, (double)(exec->live_bytes + exec->scratch_bytes) / 1e6);
	for (int i = 0; layers && i < exec->op_count; i++) {
		const ls_node *node = exec->ops[i].node;
		const ls_tensor *t = exec->ops[i].out;
		fprintf(to, "    %-28s %-9s %5d x %3d x %3d %10.2f MB\n", node->name, ls_node_kind_name(node->kind),
			t->channels, t->height, t->width, (double)span_of(exec, SPAN_VALUE, node->output)->bytes / 1e6);
	}
}
