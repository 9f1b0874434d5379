/*
 * ranks_twice HOW: trains, measures and trains again in one process, as one of the nodes that mpirun has started; node
 * 0 prints "FINGERPRINT FINGERPRINT measured". t6200-twice.sh runs it. HOW MPI is begun and ended:
 *
 *   lockstep   by Lockstep alone
 *   own        by this program, around all of it
 *   over       by this program, which finalises it before it trains: that must be refused
 *   fail       by Lockstep; afterwards the last node fails, while the others train again: they must be ended
 */
#include <stdio.h>
#include <string.h>

#include <lockstep/bench.h>
#include <lockstep/launch.h>
#include <lockstep/train.h>

#ifdef LS_HAVE_MPI
#include <mpi.h>

static int begin(const char *how)
{
	int level = MPI_THREAD_SERIALIZED;
	if (!strcmp(how, "own") || !strcmp(how, "over"))
		MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &level);
	if (!strcmp(how, "over"))
		MPI_Finalize();
	return level >= MPI_THREAD_SERIALIZED;
}

static void end(const char *how)
{
	if (!strcmp(how, "own"))
		MPI_Finalize();
}
#else
static int begin(const char *how)
{
	return how != NULL;
}

static void end(const char *how)
{
	(void)how;
}
#endif

static ls_status train(uint64_t *fingerprint)
{
	ls_train_options options = LS_TRAIN_OPTIONS_INIT;
	ls_train_result result = { 0 };
	options.model = "mlp";
	options.data = "glyphs";
	options.samples = 200;
	options.test_samples = 50;
	options.devices = 1;
	options.batch = 32;
	options.micro_batch = 8;
	options.steps = 5;
	options.quiet = 1;
	ls_status status = ls_train(&options, &result);
	*fingerprint = result.fingerprint;
	return status;
}

static ls_status measure(int *node, int *measured)
{
	ls_bench_options options = LS_BENCH_OPTIONS_INIT;
	ls_bench_result result = { 0 };
	options.job.model = "mlp";
	options.job.devices = 1;
	options.job.batch = 32;
	options.job.micro_batch = 8;
	options.steps = 2;
	options.warmup = 1;
	options.repeat = 1;
	ls_status status = ls_bench(&options, &result);
	if (status != LS_OK)
		return status;
	*node = result.node;
	*measured = result.step_ms > 0;
	ls_bench_result_release(&result);
	return LS_OK;
}

static int fail(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, ls_last_error());
	return 3;
}

int main(int argc, char **argv)
{
	uint64_t first = 0, second = 0;
	int node = -1, measured = 0;
	if (argc < 2 || !begin(argv[1]))
		return 2;
	if (train(&first) != LS_OK)
		return fail("the first run");
	if (measure(&node, &measured) != LS_OK)
		return fail("the measurement");
	if (!strcmp(argv[1], "fail") && node == ls_launched() - 1)
		return 7;
	if (train(&second) != LS_OK)
		return fail("the second run");
	if (node == 0)
		printf("%016llx %016llx %s\n", (unsigned long long)first, (unsigned long long)second,
		       measured ? "measured" : "not measured");
	end(argv[1]);
	return 0;
}
