/*
 * Any values in the variables that launchers and users set: a line "NAME=value" sets one. Nothing else follows than a
 * number of nodes, a number of devices or a message.
 */
#include <lockstep/data.h>
#include <lockstep/launch.h>

#include "cluster/launched.h"
#include "comm/transport.h"
#include "fuzz/common.h"
#include "kernels/gemm.h"

static const char *const names[] = {
	"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "PMI_SIZE",          "PMI_RANK",         "SLURM_STEP_ID",
	"SLURM_PROCID",         "SLURM_STEP_NUM_TASKS", LS_DEVICES_PER_NODE, "LOCKSTEP_KERNELS", "LOCKSTEP_DATA",
	"XDG_CACHE_HOME"
};
enum { NAMES = sizeof(names) / sizeof(names[0]) };

static void set_line(const char *line)
{
	for (size_t i = 0; i < NAMES; i++) {
		size_t length = strlen(names[i]);
		if (strncmp(line, names[i], length) == 0 && line[length] == '=')
			fuzz_require(setenv(names[i], line + length + 1, 1) == 0);
	}
}

/* Rank and size of one launcher fit together, as whole numbers, or there is one node. */
static void check_nodes(int nodes)
{
	fuzz_require(nodes >= 1);
	int known = nodes == 1;
	for (size_t i = 0; i < NAMES; i++) {
		const char *value = getenv(names[i]);
		known |= value && strtol(value, NULL, 10) == nodes;
	}
	fuzz_require(known);
}

static void check_devices(int node)
{
	int devices = -1;
	if (ls_mpi_launched_devices(node, &devices) == LS_OK)
		fuzz_require(devices >= 0 && devices <= 4096 && !devices == !getenv(LS_DEVICES_PER_NODE));
	else
		fuzz_require(devices == -1 && strstr(ls_last_error(), LS_DEVICES_PER_NODE));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_text(data, size);
	for (size_t i = 0; i < NAMES; i++)
		unsetenv(names[i]);
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
		set_line(line);
	check_nodes(ls_mpi_launched());
	for (int node = 0; node < 4; node++)
		check_devices(node);
	if (ls_gemm_check() != LS_OK)
		fuzz_require(strstr(ls_last_error(), "LOCKSTEP_KERNELS") != NULL);
	fuzz_require(ls_data_cache()[0] != '\0');
	free(text);
	return 0;
}
