/*
 * cluster.c - clusters from files and from a few numbers.
 */
#include "tools/forecast/cluster.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/link_rate.h"
#include "base/names.h"
#include "tools/forecast/cluster_probe.h"
#include "json/document.h"
#include "json/fields.h"

#define FORMAT "lockstep cluster"
#define PROBE_FORMAT "lockstep probe"
enum { PROBE_VERSION = 2, BYTES_MAX = 16 << 20, NODES_MAX = 10000000 };

#define OF ls_machine_kind
static const ls_field kind_fields[] = {
	LS_FIELD_MAYBE_OF(OF, name),
	LS_FIELD_WHOLE_IF_OF(OF, count, 1, NODES_MAX),
	LS_FIELD_WHOLE_IF_OF(OF, devices, 0, 100000),
	LS_FIELD_REAL_IF_OF(OF, speed, 1e-6, 1e6),
	LS_FIELD_REAL_IF_OF(OF, gbit_per_s, 1e-6, 1e6),
	LS_FIELD_REAL_IF_OF(OF, both_gbit_per_s, 0, 1e6),
	LS_FIELD_REAL_IF_OF(OF, latency_us, 0, 1e7),
	LS_FIELD_WHOLE_IF_OF(OF, cores, 0, 1e6),
	LS_FIELD_REAL_IF_OF(OF, inside_ms, 0, 1e7),
};
#undef OF
#define OF ls_cluster
static const ls_field cluster_fields[] = {
	LS_FIELD_MAYBE_OF(OF, name),
	LS_FIELD_REAL_IF_OF(OF, spread, 0, 1),
	LS_FIELD_WHOLE_IF_OF(OF, shared_cores, 0, 1e6),
	LS_FIELD_REAL_IF_OF(OF, copy_gb_per_s, 1e-3, 1e6),
	LS_FIELD_REAL_IF_OF(OF, net_ns_per_byte, 0, 1e6),
	LS_FIELD_REAL_IF_OF(OF, message_us, 0, 1e6),
	LS_FIELD_REAL_IF_OF(OF, mtbf_hours, 0, 1e9),
	LS_FIELD_REAL_IF_OF(OF, checkpoint_s, 0, 1e6),
	LS_FIELD_REAL_IF_OF(OF, interval_s, 0, 1e9),
	LS_FIELD_REAL_IF_OF(OF, restart_s, 0, 1e6),
	LS_FIELD_REAL_IF_OF(OF, snapshot_s, 0, 1e6),
};
#undef OF
/* Names in version 1. */
static const ls_field_rename renames[] = { { "letter_us", "message_us" }, { "net_ns_a_byte", "net_ns_per_byte" } };

void ls_cluster_init(ls_cluster *c)
{
	*c = (ls_cluster){ .name = "cluster",
			   .copy_gb_per_s = 10,
			   .net_ns_per_byte = 0.4,
			   .message_us = 10,
			   .checkpoint_s = 1,
			   .snapshot_s = -1,
			   .restart_s = 30 };
}

ls_machine_kind ls_machine_kind_default(void)
{
	return (ls_machine_kind){
		.name = "node", .count = 1, .devices = 1, .speed = 1, .gbit_per_s = LS_RATE_PAYLOAD, .latency_us = 150
	};
}

void ls_cluster_release(ls_cluster *c)
{
	free(c->kind);
	*c = (ls_cluster){ 0 };
}

int64_t ls_cluster_nodes(const ls_cluster *c)
{
	int64_t nodes = 0;
	for (size_t k = 0; k < c->kinds; k++)
		nodes += c->kind[k].count;
	return nodes;
}

int64_t ls_cluster_devices(const ls_cluster *c)
{
	int64_t devices = 0;
	for (size_t k = 0; k < c->kinds; k++)
		devices += c->kind[k].count * c->kind[k].devices;
	return devices;
}

ls_status ls_cluster_make_kinds(ls_cluster *c, size_t kinds)
{
	c->kind = calloc(kinds, sizeof(*c->kind));
	if (!c->kind)
		return ls_fail(LS_EMEMORY, "no memory for %zu kinds of nodes", kinds);
	c->kinds = kinds;
	return LS_OK;
}

ls_status ls_cluster_of(ls_cluster *out, int64_t nodes, int64_t devices, double gbit_per_s)
{
	ls_cluster c;
	ls_cluster_init(&c);
	LS_TRY(ls_cluster_make_kinds(&c, 1));
	c.kind[0] = ls_machine_kind_default();
	c.kind[0].count = nodes;
	c.kind[0].devices = devices;
	c.kind[0].gbit_per_s = gbit_per_s;
	*out = c;
	return LS_OK;
}

ls_status ls_cluster_resize(ls_cluster *out, const ls_cluster *from, int64_t nodes)
{
	int64_t had = ls_cluster_nodes(from), left = nodes;
	ls_cluster c = *from;

	c.kind = NULL;
	LS_TRY(ls_cluster_make_kinds(&c, from->kinds));
	memcpy(c.kind, from->kind, from->kinds * sizeof(*c.kind));
	c.kinds = 0;
	for (size_t k = 0; k < from->kinds && left > 0; k++) {
		int64_t others = (int64_t)(from->kinds - 1 - k);
		int64_t share = (int64_t)llround((double)nodes * (double)from->kind[k].count / (double)had);
		share = share < 1 ? 1 : share > left - others && left > others ? left - others : share;
		c.kind[k].count = k + 1 == from->kinds || share > left ? left : share;
		left -= c.kind[k].count;
		c.kinds++;
	}
	*out = c;
	return LS_OK;
}

/* ---- rates ------------------------------------------------------------------------------------------------------- */

ls_status ls_rate_parse(const char *text, double *gbit_per_s)
{
	double number = ls_link_rate(text) / 1e9;

	if (number > 0 && !(number >= 1e-6 && number <= 1e6))
		return ls_fail(LS_EINVALID, "rate '%s' is not between 1kbit and 1000tbit", text);
	if (!(number > 0))
		return ls_fail(LS_EINVALID, "'%s' is not a rate; write it like 1gbit, 100mbit or 2.5gbit", text);
	*gbit_per_s = number;
	return LS_OK;
}

const char *ls_rate_text(char *out, size_t size, double gbit_per_s)
{
	if (gbit_per_s < 1)
		snprintf(out, size, "%.4gmbit", gbit_per_s * 1e3);
	else
		snprintf(out, size, "%.4ggbit", gbit_per_s);
	return out;
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

static ls_status read_kind(ls_cluster *c, const ls_json_place *at, const json_t *object, size_t i)
{
	ls_machine_kind *kind = &c->kind[i];

	*kind = ls_machine_kind_default();
	LS_TRY(ls_fields_read(at, kind_fields, LS_COUNT(kind_fields), object, kind));
	LS_TRY(ls_fields_only(at, object, kind_fields, LS_COUNT(kind_fields), NULL));
	if (kind->name[0] == '\0')
		snprintf(kind->name, sizeof(kind->name), "kind %zu", i);
	return LS_OK;
}

static ls_status read_kinds(ls_cluster *c, const json_t *root, const char *label)
{
	const json_t *list = json_object_get(root, "nodes");
	const ls_json_place top = { .label = label };
	size_t count = json_array_size(list);

	if (count < 1 || count > LS_CLUSTER_KINDS)
		return ls_fail(LS_EFORMAT, "%s: nodes is missing or not a list of 1 to %d kinds of nodes", label,
			       LS_CLUSTER_KINDS);
	LS_TRY(ls_cluster_make_kinds(c, count));
	for (size_t i = 0; i < count; i++) {
		ls_json_place at = ls_json_element(&top, "nodes", i);
		LS_TRY(read_kind(c, &at, json_array_get(list, i), i));
	}
	if (ls_cluster_devices(c) == 0)
		return ls_fail(LS_EFORMAT, "%s: no kind of nodes has devices, so none computes", label);
	if (ls_cluster_nodes(c) > NODES_MAX)
		return ls_fail(LS_EFORMAT, "%s: more than %d nodes", label, NODES_MAX);
	return LS_OK;
}

static ls_status read_described(ls_cluster *c, json_t *root, const char *label)
{
	static const char *const others[] = { "format", "version", "nodes", NULL };
	const ls_json_place top = { .label = label };
	int version;

	LS_TRY(ls_json_check(root, FORMAT, LS_CLUSTER_VERSION, label, &version));
	if (version < 2)
		ls_fields_rename(root, renames, LS_COUNT(renames));
	LS_TRY(ls_fields_read(&top, cluster_fields, LS_COUNT(cluster_fields), root, c));
	LS_TRY(ls_fields_only(&top, root, cluster_fields, LS_COUNT(cluster_fields), others));
	return read_kinds(c, root, label);
}

/* Probes of version 1 have neither format nor version. */
static ls_status read_root(void *out, json_t *root, const char *label)
{
	ls_cluster *c = out;
	static const ls_field_rename probe_renames[] = { { "between", "exchange_between_nodes" } };
	const char *format = json_string_value(json_object_get(root, "format"));
	int version;

	ls_cluster_init(c);
	if (!format && json_object_get(root, "between")) {
		ls_fields_rename(root, probe_renames, LS_COUNT(probe_renames));
		return ls_cluster_from_probe(c, root, label);
	}
	if (!format || strcmp(format, PROBE_FORMAT) != 0)
		return read_described(c, root, label);
	LS_TRY(ls_json_check(root, PROBE_FORMAT, PROBE_VERSION, label, &version));
	return ls_cluster_from_probe(c, root, label);
}

LS_JSON_DOCUMENT(ls_cluster, BYTES_MAX, read_root)
