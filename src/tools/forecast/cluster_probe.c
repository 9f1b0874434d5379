#include "tools/forecast/cluster_probe.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Figures of a probed node and its link that are used here. */
typedef struct probed {
	char host[LS_CLUSTER_NAME];
	int64_t cores, devices;
	double gflop_per_s_core;
	double replay_speed; /* of devices with simulated compute, where somebody has added it to the file */
	double to_gbit_per_s, from_gbit_per_s, both_gbit_per_s, round_trip_us;
	double copy_gb_per_s;
} probed;

#define OF probed
static const ls_field probed_fields[] = {
	LS_FIELD_TEXT_OF(OF, host),
	LS_FIELD_WHOLE_OF(OF, cores, 1, 1e6),
	LS_FIELD_WHOLE_IF_OF(OF, devices, 1, 100000), /* older probes have none */
	LS_FIELD_REAL_OF(OF, gflop_per_s_core, 1e-9, 1e9),
	LS_FIELD_REAL_IF_OF(OF, replay_speed, 1e-6, 1e6),
};
static const ls_field link_fields[] = {
	LS_FIELD_REAL_OF(OF, to_gbit_per_s, 1e-6, 1e6),
	LS_FIELD_REAL_OF(OF, from_gbit_per_s, 1e-6, 1e6),
	LS_FIELD_REAL_OF(OF, both_gbit_per_s, 1e-6, 1e6),
	LS_FIELD_REAL_OF(OF, round_trip_us, 0, 1e9),
};
static const ls_field memory_fields[] = { LS_FIELD_REAL_OF(OF, copy_gb_per_s, 1e-3, 1e6) };
#undef OF

#define BYTES_MOST 1e11 /* of a gradient */

typedef struct between {
	double gbit_per_s, bytes, seconds;
	char strategy[16], wire[16];
	int64_t servers;
} between;
#define OF between
static const ls_field between_fields[] = {
	LS_FIELD_REAL_OF(OF, gbit_per_s, 0, 1e6),
	LS_FIELD_REAL_IF_OF(OF, bytes, 4, BYTES_MOST), /* older probes may lack this and the following */
	LS_FIELD_REAL_IF_OF(OF, seconds, 1e-9, 1e9),
	LS_FIELD_MAYBE_OF(OF, strategy),
	LS_FIELD_MAYBE_OF(OF, wire),
	LS_FIELD_WHOLE_IF_OF(OF, servers, 0, 1e6),
};
#undef OF

static ls_status read_probed(const ls_json_place *at, const json_t *object, int is_first, probed *out)
{
	ls_json_place link = *at, memory = *at;
	size_t used = strlen(at->prefix);

	snprintf(link.prefix + used, sizeof(link.prefix) - used, "link.");
	snprintf(memory.prefix + used, sizeof(memory.prefix) - used, "memory_core.");
	LS_TRY(ls_fields_read(at, probed_fields, LS_COUNT(probed_fields), object, out));
	LS_TRY(ls_fields_read(&memory, memory_fields, LS_COUNT(memory_fields), json_object_get(object, "memory_core"),
			      out));
	if (is_first)
		return LS_OK;
	return ls_fields_read(&link, link_fields, LS_COUNT(link_fields), json_object_get(object, "link"), out);
}

static void kind_from(ls_machine_kind *kind, const probed *node, const probed *first)
{
	*kind = ls_machine_kind_default();
	snprintf(kind->name, sizeof(kind->name), "%s", node->host);
	kind->cores = node->cores;
	kind->devices = node->devices;
	kind->speed = node->gflop_per_s_core / first->gflop_per_s_core;
	kind->probed = 1;
	kind->replay_speed = node->replay_speed;
	if (node->to_gbit_per_s <= 0)
		return;
	kind->gbit_per_s = fmin(node->to_gbit_per_s, node->from_gbit_per_s);
	kind->both_gbit_per_s = node->both_gbit_per_s;
	kind->latency_us = node->round_trip_us / 2;
}

/* The link of the first node is not measured separately: it is at least as fast as the fastest link to it. */
static void complete_first(ls_cluster *c)
{
	for (size_t k = 1; k < c->kinds; k++)
		if (k == 1 || c->kind[k].gbit_per_s > c->kind[0].gbit_per_s) {
			c->kind[0].gbit_per_s = c->kind[k].gbit_per_s;
			c->kind[0].both_gbit_per_s = c->kind[k].both_gbit_per_s;
			c->kind[0].latency_us = c->kind[k].latency_us;
		}
}

/* The rate that the exchange reached in each direction is a lower bound for the links: it transfers more bytes than the
 * link test, and it is what training does. */
static void raise_links(ls_cluster *c, double gbit_per_s)
{
	for (size_t k = 0; k < c->kinds; k++) {
		ls_machine_kind *kind = &c->kind[k];
		kind->gbit_per_s = fmax(kind->gbit_per_s, gbit_per_s);
		kind->both_gbit_per_s = fmin(kind->gbit_per_s, fmax(kind->both_gbit_per_s, gbit_per_s));
	}
}

/* Kept for calibrate.h, unless it does not say what it was. */
static void keep_exchange(ls_cluster *c, const between *b)
{
	int has_servers = !strcmp(b->strategy, "ps"), is_known = has_servers || !strcmp(b->strategy, "allreduce");

	if (c->exchanges == LS_CLUSTER_EXCHANGES || !is_known || !(b->seconds > 0) || !(b->bytes >= sizeof(float)) ||
	    !(b->bytes <= BYTES_MOST) || (has_servers && b->servers >= ls_cluster_nodes(c)))
		return;
	c->exchange[c->exchanges++] = (ls_measured_exchange){ .servers = has_servers ? b->servers : 0,
							      .bf16 = !strcmp(b->wire, "bf16"),
							      .bytes = b->bytes,
							      .seconds = b->seconds };
}

/* The first row is allreduce in fp32. */
static ls_status read_between(ls_cluster *c, const json_t *root, const char *label)
{
	static const char between_nodes[] = "exchange_between_nodes";
	const json_t *list = json_object_get(root, between_nodes);
	const ls_json_place top = { .label = label };
	double bytes = json_number_value(json_object_get(root, "bytes"));

	for (size_t i = 0; i < json_array_size(list); i++) {
		ls_json_place at = ls_json_element(&top, between_nodes, i);
		between row = { .servers = 1, .bytes = bytes };
		LS_TRY(ls_fields_read(&at, between_fields, LS_COUNT(between_fields), json_array_get(list, i), &row));
		if (i == 0)
			raise_links(c, row.gbit_per_s);
		keep_exchange(c, &row);
	}
	return LS_OK;
}

ls_status ls_cluster_from_probe(ls_cluster *c, const json_t *root, const char *label)
{
	const json_t *list = json_object_get(root, "nodes");
	const ls_json_place top = { .label = label };
	size_t count = json_array_size(list);
	probed first = { 0 };

	if (count < 1 || count > LS_CLUSTER_KINDS)
		return ls_fail(LS_EFORMAT, "%s: nodes is missing or not a list of 1 to %d probed nodes", label,
			       LS_CLUSTER_KINDS);
	LS_TRY(ls_cluster_make_kinds(c, count));
	for (size_t i = 0; i < count; i++) {
		ls_json_place at = ls_json_element(&top, "nodes", i);
		probed node = { .devices = 1, .replay_speed = 1 };
		LS_TRY(read_probed(&at, json_array_get(list, i), i == 0, &node));
		if (i == 0)
			first = node;
		kind_from(&c->kind[i], &node, &first);
	}
	c->copy_gb_per_s = first.copy_gb_per_s;
	complete_first(c);
	return read_between(c, root, label);
}
