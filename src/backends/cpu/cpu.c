/*
 * cpu.c - the backend that computes on cores of the host: a device is a team of threads, an executor a graph bound to
 * one planned block of memory (exec.h). Parameters and gradients are read and written where the host has them.
 */
#include "backends/backend.h"
#include "backends/cpu/exec_plan.h"
#include "backends/host_teams.h"
#include "kernels/gemm.h"

static ls_status open_devices(void **devices, const ls_devices_options *options)
{
	ls_host_teams *teams = NULL;

	LS_TRY(ls_host_teams_new(&teams, options));
	*devices = teams;
	return LS_OK;
}

static void close_devices(void *devices)
{
	ls_host_teams_free(devices);
}

static ls_status load(ls_executor **out, void *devices, int device, const ls_graph *graph,
		      const ls_load_options *options)
{
	const ls_host_teams *teams = devices;
	ls_exec *exec = NULL;
	ls_exec_options o = { .team = teams->team[device],
			      .inference = options->inference,
			      .profile = options->profile };

	for (int i = 0; i < LS_SIZES_MAX; i++)
		o.sizes[i] = options->sizes[i];
	LS_TRY(ls_exec_new(&exec, graph, &o));
	exec->executor.backend = &ls_backend_cpu;
	*out = &exec->executor;
	return LS_OK;
}

static void unload(ls_executor *executor)
{
	ls_exec_free((ls_exec *)executor);
}

static void set_params(ls_executor *executor, const float *params, const float *buffers)
{
	ls_exec_set_params((ls_exec *)executor, params, buffers);
}

static void train(ls_executor *executor, ls_exec_microbatch *microbatch)
{
	ls_exec_train((ls_exec *)executor, microbatch);
}

static void infer(ls_executor *executor, ls_exec_microbatch *microbatch, float *logits)
{
	ls_exec_infer((ls_exec *)executor, microbatch, logits);
}

static int layer_times(const ls_executor *executor, int i, ls_layer_times *out)
{
	return ls_exec_layer_times((const ls_exec *)executor, i, out);
}

static void pause_profile(ls_executor *executor, int pause)
{
	ls_exec_pause_profile((ls_exec *)executor, pause);
}

const ls_backend ls_backend_cpu = {
	.name = "cpu",
	.help = "computes on the cores of this machine; a device is a team of threads",
	.check = ls_gemm_check,
	.start = ls_gemm_start,
	.kernels = ls_gemm_backend,
	.plan = ls_exec_bytes,
	.print_plan = ls_exec_print_plan,
	.shared_grads = ls_backend_shared_grads,
	.open = open_devices,
	.close = close_devices,
	.bind = ls_host_teams_bind,
	.host_run = ls_host_teams_run,
	.describe = ls_host_teams_describe,
	.load = load,
	.unload = unload,
	.set_params = set_params,
	.train = train,
	.infer = infer,
	.layer_times = layer_times,
	.pause_profile = pause_profile,
};
