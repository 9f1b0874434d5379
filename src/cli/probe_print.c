/*
 * probe_print.c - see probe_print.h. Most tables are followed by a line that defines their figures.
 */
#include "probe_print.h"

#include <jansson.h>

#include "text_table.h"

/* ---- Markdown ---- */

static int finish_table(ls_text_table *table, FILE *to)
{
	int failed = ls_text_table_print_markdown(table, to);
	ls_text_table_release(table);
	return failed;
}

static void add_bandwidth(ls_text_table *table, const ls_probe_result *result, int node)
{
	if (node == 0) /* links are measured from the first node to each of the others */
		ls_text_table_add(table, "-");
	else if (result->nodes[node].link.both_gbit_per_s < 0.995)
		ls_text_table_add(table, "%.0f Mbit/s", result->nodes[node].link.both_gbit_per_s * 1e3);
	else
		ls_text_table_add(table, "%.2f Gbit/s", result->nodes[node].link.both_gbit_per_s);
}

/* Warnings about the figures of a node. */
static void print_doubts(const ls_probe_node *node, FILE *to)
{
	int alone = node->cores == 1; /* measured twice, with nothing to compare */
	double part = node->gflop_per_s / (node->cores * node->gflop_per_s_core);
	if (node->unsteady > 0)
		fprintf(to, "\n%s: repeats differ by %.0f %%; is the machine busy? Measure again when it is idle.\n",
			node->host, 100 * node->unsteady);
	if (!alone && part < 0.75)
		fprintf(to,
			"\n%s: all %d cores together reach %.0f %% of %d times one core; other programs use them, or "
			"they "
			"share a clock\nor arithmetic units.\n",
			node->host, node->cores, 100 * part, node->cores);
	if (!alone && part > 1.25)
		fprintf(to,
			"\n%s: all %d cores together reach %.0f %% of %d times one core: the measurement of one core "
			"was disturbed. "
			"Measure again.\n",
			node->host, node->cores, 100 * part, node->cores);
}

static int print_test_bed(const ls_probe_result *result, FILE *to)
{
	ls_text_table table = { .columns = 8,
				.heads = { "<Name", "<CPU", "Cores", "NUMA domains", "GFLOP/s per core",
					   "GFLOP/s all cores", "Memory GB/s", "<Bandwidth to node 0" } };
	for (int i = 0; i < result->node_count; i++) {
		const ls_probe_node *node = &result->nodes[i];
		ls_text_table_add(&table, "%s", node->host);
		ls_text_table_add(&table, "%s", node->cpu);
		ls_text_table_add(&table, "%d", node->cores);
		ls_text_table_add(&table, "%d", node->numa_domains);
		ls_text_table_add(&table, "%.1f", node->gflop_per_s_core);
		ls_text_table_add(&table, "%.1f", node->gflop_per_s);
		ls_text_table_add(&table, "%.1f", node->memory.copy_gb_per_s);
		add_bandwidth(&table, result, i);
	}
	fputs("## Test bed\n\n", to);
	int failed = finish_table(&table, to);
	for (int i = 0; i < result->node_count; i++)
		print_doubts(&result->nodes[i], to);
	return failed;
}

/* Nodes with the same software share one line. */
static int is_same_software(const ls_probe_node *a, const ls_probe_node *b)
{
	char one[512], other[512];
	snprintf(one, sizeof(one), "%s|%s|%s|%s|%s", a->version, a->kernels, a->isa, a->mpi, a->system);
	snprintf(other, sizeof(other), "%s|%s|%s|%s|%s", b->version, b->kernels, b->isa, b->mpi, b->system);
	for (size_t i = 0; i < sizeof(one); i++)
		if (one[i] != other[i] || !one[i])
			return one[i] == other[i];
	return 1;
}

static int print_software(const ls_probe_result *result, FILE *to)
{
	ls_text_table table = { .columns = 6, .heads = { "<", "<lockstep", "<kernels", "<isa", "<MPI", "<system" } };
	for (int i = 0; i < result->node_count; i++) {
		const ls_probe_node *node = &result->nodes[i];
		if (i && is_same_software(node, &result->nodes[i - 1]))
			continue;
		ls_text_table_add(&table, i ? "%s on" : "Version", node->host);
		ls_text_table_add(&table, "%s", node->version);
		ls_text_table_add(&table, "%s", node->kernels);
		ls_text_table_add(&table, "%s", node->isa);
		ls_text_table_add(&table, "%s", node->mpi[0] ? node->mpi : "none");
		ls_text_table_add(&table, "%s", node->system);
	}
	fputs("\n", to);
	return finish_table(&table, to);
}

static int print_memory(const ls_probe_result *result, FILE *to)
{
	ls_text_table table = { .columns = 6,
				.heads = { "<Name", "read per core", "read all cores", "copy per core",
					   "copy all cores", "MB per core" } };
	for (int i = 0; i < result->node_count; i++) {
		const ls_probe_node *node = &result->nodes[i];
		ls_text_table_add(&table, "%s", node->host);
		ls_text_table_add(&table, "%.1f", node->memory_core.read_gb_per_s);
		ls_text_table_add(&table, "%.1f", node->memory.read_gb_per_s);
		ls_text_table_add(&table, "%.1f", node->memory_core.copy_gb_per_s);
		ls_text_table_add(&table, "%.1f", node->memory.copy_gb_per_s);
		ls_text_table_add(&table, "%.0f", (double)node->memory_bytes / 1e6);
	}
	fputs("\n## Memory, GB/s\n\n", to);
	int failed = finish_table(&table, to);
	fputs("\nA copy counts the bytes read and the bytes written.\n", to);
	return failed;
}

static int print_inside(const ls_probe_result *result, FILE *to)
{
	ls_text_table table = { .columns = 4, .heads = { "<Name", "devices", "ms", "GB/s" } };
	for (int i = 0; i < result->node_count; i++)
		for (int k = 0; k < 2; k++) {
			const ls_probe_inside *inside = &result->nodes[i].inside[k];
			if (!inside->devices)
				continue;
			ls_text_table_add(&table, "%s", result->nodes[i].host);
			ls_text_table_add(&table, "%d", inside->devices);
			ls_text_table_add(&table, "%.2f", inside->seconds * 1e3);
			ls_text_table_add(&table, "%.2f", inside->gb_per_s);
		}
	if (!table.cells)
		return 0;
	fputs("\n## Exchange within a node\n\n", to);
	int failed = finish_table(&table, to);
	fprintf(to,
		"\nEvery device has a gradient of %.1f MB. Timed from when the gradients are ready until their sum is "
		"in the\n"
		"parameters that all devices read; GB/s is one device's gradient divided by that time.\n",
		(double)result->bytes / 1e6);
	return failed;
}

static int print_links(const ls_probe_result *result, FILE *to)
{
	ls_text_table table = {
		.columns = 5, .heads = { "<Node 0 and", "to Gbit/s", "from Gbit/s", "both, each way", "round trip us" }
	};
	for (int i = 1; i < result->node_count; i++) {
		const ls_probe_link *link = &result->nodes[i].link;
		ls_text_table_add(&table, "%d (%s)", i, result->nodes[i].host);
		ls_text_table_add(&table, "%.3f", link->to_gbit_per_s);
		ls_text_table_add(&table, "%.3f", link->from_gbit_per_s);
		ls_text_table_add(&table, "%.3f", link->both_gbit_per_s);
		ls_text_table_add(&table, "%.0f", link->round_trip_us);
	}
	fputs("\n## Links\n\n", to);
	return finish_table(&table, to);
}

static int print_between(const ls_probe_result *result, FILE *to)
{
	ls_text_table table = { .columns = 8,
				.heads = { "<Strategy", "<wire", "ms", "GB/s", "Gbit/s", "of the link", "MPI's sum ms",
					   "GB/s" } };
	for (int i = 0; i < result->between_count; i++) {
		const ls_probe_between *b = &result->between[i];
		ls_text_table_add(&table, "%s", b->strategy);
		ls_text_table_add(&table, "%s", b->wire);
		ls_text_table_add(&table, "%.2f", b->seconds * 1e3);
		ls_text_table_add(&table, "%.3f", b->gb_per_s);
		ls_text_table_add(&table, "%.3f", b->gbit_per_s);
		ls_text_table_add(&table, "%.1f %%", 100 * b->gbit_per_s / b->limit_gbit_per_s);
		ls_text_table_add(&table, "%.2f", b->library_seconds * 1e3);
		ls_text_table_add(&table, "%.3f", b->library_gb_per_s);
	}
	fputs("\n## Exchange between nodes\n\n", to);
	int failed = finish_table(&table, to);
	fprintf(to,
		"\nA gradient of %.1f MB, timed from when it is ready on all nodes until all have the new parameters. "
		"GB/s is\nthe gradient divided by that time, Gbit/s the traffic in the busier direction of the busiest "
		"node. MPI's\nown all-reduce has the same number of bytes in fp32, measured in turns with the "
		"exchange.\n",
		(double)result->between[0].bytes / 1e6);
	return failed;
}

int ls_probe_print_text(const ls_probe_result *result, FILE *to)
{
	int failed = print_test_bed(result, to) | print_software(result, to) | print_memory(result, to) |
		     print_inside(result, to);
	if (result->node_count > 1)
		failed |= print_links(result, to) | print_between(result, to);
	return failed ? -1 : 0;
}

/* ---- JSON ---- */

static json_t *memory_to_json(const ls_probe_memory *memory)
{
	return json_pack("{s:f, s:f}", "read_gb_per_s", memory->read_gb_per_s, "copy_gb_per_s", memory->copy_gb_per_s);
}

static json_t *inside_to_json(const ls_probe_node *node)
{
	json_t *list = json_array();
	for (int k = 0; k < 2; k++)
		if (node->inside[k].devices)
			json_array_append_new(list, json_pack("{s:i, s:f, s:f}", "devices", node->inside[k].devices,
							      "seconds", node->inside[k].seconds, "gb_per_s",
							      node->inside[k].gb_per_s));
	return list;
}

static json_t *link_to_json(const ls_probe_link *link)
{
	return json_pack("{s:f, s:f, s:f, s:f}", "to_gbit_per_s", link->to_gbit_per_s, "from_gbit_per_s",
			 link->from_gbit_per_s, "both_gbit_per_s", link->both_gbit_per_s, "round_trip_us",
			 link->round_trip_us);
}

/* Names come from the machine: null where they are not UTF-8. */
static json_t *text_to_json(const char *text)
{
	json_t *string = json_string(text);
	return string ? string : json_null();
}

static json_t *node_to_json(const ls_probe_node *node, int is_first)
{
	return json_pack(
		"{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:i, s:i, s:i, s:f, s:f, s:f, s:o, s:o, s:I, s:o, s:o}", "host",
		text_to_json(node->host), "cpu", text_to_json(node->cpu), "system", text_to_json(node->system),
		"version", text_to_json(node->version), "kernels", text_to_json(node->kernels), "isa",
		text_to_json(node->isa), "mpi", text_to_json(node->mpi), "cores", node->cores, "numa_domains",
		node->numa_domains, "devices", node->devices, "gflop_per_s_core", node->gflop_per_s_core, "gflop_per_s",
		node->gflop_per_s, "unsteady", node->unsteady, "memory_core", memory_to_json(&node->memory_core),
		"memory", memory_to_json(&node->memory), "memory_bytes", (json_int_t)node->memory_bytes,
		"exchange_in_node", inside_to_json(node), "link", is_first ? json_null() : link_to_json(&node->link));
}

static json_t *between_to_json(const ls_probe_between *b)
{
	return json_pack("{s:s, s:I, s:s, s:I, s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "strategy", b->strategy, "servers",
			 (json_int_t)b->servers, "wire", b->wire, "bytes", (json_int_t)b->bytes, "seconds", b->seconds,
			 "gb_per_s", b->gb_per_s, "wire_bytes", b->wire_bytes, "gbit_per_s", b->gbit_per_s,
			 "limit_gbit_per_s", b->limit_gbit_per_s, "library_seconds", b->library_seconds,
			 "library_gb_per_s", b->library_gb_per_s);
}

int ls_probe_print_json(const ls_probe_result *result, FILE *to)
{
	json_t *nodes = json_array(), *between = json_array();
	for (int i = 0; i < result->node_count; i++)
		json_array_append_new(nodes, node_to_json(&result->nodes[i], i == 0));
	for (int i = 0; i < result->between_count; i++)
		json_array_append_new(between, between_to_json(&result->between[i]));
	json_t *all = json_pack("{s:s, s:i, s:I, s:I, s:o, s:o}", "format", "lockstep probe", "version", 2, "bytes",
				(json_int_t)result->bytes, "repeat", (json_int_t)result->repeat, "nodes", nodes,
				"exchange_between_nodes", between);
	int failed = !all || json_dumpf(all, to, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
	fputc('\n', to);
	json_decref(all);
	return failed ? -1 : 0;
}
