/*
 * machine.c - properties of this machine, from src/metrics and from a short probe.
 */
#include "tools/sweep/machine.h"

#include <stdio.h>
#include <string.h>

#include <lockstep/status.h>

#include "base/cores.h"
#include "base/names.h"
#include "metrics/machine.h"
#include "tools/sweep/child.h"
#include "json/fields.h"

static const double probe_s = 120;

int ls_sweep_cores(void)
{
	ls_processors allowed;

	ls_cores_allowed(&allowed);
	int cores = ls_cores_count("", &allowed), quota = ls_cores_quota("");
	return quota < cores ? quota : cores;
}

static void copy_text(const json_t *object, const char *name, char *out, size_t size)
{
	const char *text = json_string_value(json_object_get(object, name));
	if (text)
		ls_text_printable(out, size, text);
}

void ls_sweep_machine(ls_results_machine *out)
{
	json_t *machine = ls_machine_describe();

	*out = (ls_results_machine){ .cores = ls_sweep_cores() };
	copy_text(machine, "hostname", out->host, sizeof(out->host));
	copy_text(machine, "cpu", out->cpu, sizeof(out->cpu));
	copy_text(machine, "kernel", out->system, sizeof(out->system));
	snprintf(out->lockstep, sizeof(out->lockstep), "%s", ls_version());
	out->memory_bytes = json_integer_value(json_object_get(machine, "memory_bytes"));
	json_decref(machine);
}

static void take_probe(ls_results_machine *out, const ls_child *child)
{
	json_error_t error;
	json_t *root = json_loadb(child->out, child->bytes, 0, &error);
	const json_t *node = json_array_get(json_object_get(root, "nodes"), 0);

	copy_text(node, "kernels", out->kernels, sizeof(out->kernels));
	copy_text(node, "isa", out->isa, sizeof(out->isa));
	copy_text(node, "mpi", out->mpi, sizeof(out->mpi));
	double speed = json_number_value(json_object_get(node, "gflop_per_s_core"));
	if (speed > 0 && speed < 1e9)
		out->gflop_per_s_core = speed;
	json_decref(root);
}

ls_status ls_sweep_machine_probe(ls_results_machine *out, const char *program)
{
	char *argv[] = { (char *)program, (char *)"probe", (char *)"--quick", (char *)"--json", NULL };
	ls_child child;
	ls_status status = ls_child_run(&child, &(ls_child_options){ .argv = argv, .limit_s = probe_s });

	if (status != LS_OK)
		return status == LS_EINTERRUPTED ? status : LS_OK;
	if (child.code == 0)
		take_probe(out, &child);
	ls_child_release(&child);
	return LS_OK;
}
