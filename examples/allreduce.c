/*
 * allreduce.c - the sum of 24 arrays, spread over all ranks of an MPI program: MPI_Allreduce() gives other bits on 2
 * ranks than on 3, ls_allreduce_sum() gives the same on any number.
 *
 *     mpicc allreduce.c $(pkg-config --cflags --libs lockstep) && mpirun -np 2 ./a.out && mpirun -np 3 ./a.out
 */
#include <lockstep/exchange.h>
#include <mpi.h>
#include <stdio.h>

enum { TASKS = 24, FLOATS = 1000 };

/* The result of task i: the same whoever computes it. */
static void compute(int64_t task, float *result)
{
	uint32_t x = 2463534242u + (uint32_t)task;
	for (int k = 0; k < FLOATS; k++) {
		x ^= x << 13, x ^= x >> 17, x ^= x << 5;
		result[k] = (float)x / (float)(1u << (x % 30));
	}
}

/* Bits of an array as a number to compare (FNV-1a). */
static unsigned long long hash(const float *values)
{
	unsigned long long h = 1469598103934665603ull;
	for (size_t i = 0; i < FLOATS * sizeof(float); i++)
		h = (h ^ ((const unsigned char *)values)[i]) * 1099511628211ull;
	return h;
}

int main(int argc, char **argv)
{
	static float results[TASKS][FLOATS], local[FLOATS], theirs[FLOATS], ours[FLOATS];
	ls_contribution mine[TASKS];
	ls_allreduce_options options = LS_ALLREDUCE_OPTIONS_INIT;
	ls_allreduce *reduce = NULL;
	int64_t count = 0;
	int rank, ranks;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);

	/* This rank's share of the tasks. Runs are cheapest; any other assignment gives the same bits. */
	for (int64_t i = TASKS * rank / ranks; i < TASKS * (rank + 1) / ranks; i++) {
		compute(i, results[i]);
		mine[count++] = (ls_contribution){ .index = i, .values = results[i] };
		for (int k = 0; k < FLOATS; k++)
			local[k] += results[i][k];
	}
	MPI_Allreduce(local, theirs, FLOATS, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);

	options.communicator = MPI_Comm_c2f(MPI_COMM_WORLD);
	if (ls_allreduce_new(&reduce, &options) || ls_allreduce_sum(reduce, mine, count, TASKS, ours, FLOATS)) {
		fprintf(stderr, "rank %d: %s\n", rank, ls_last_error());
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
	if (rank == 0)
		printf("%d rank%s: MPI_Allreduce %016llx, lockstep %016llx\n", ranks, ranks == 1 ? "" : "s",
		       hash(theirs), hash(ours));
	ls_allreduce_free(reduce);
	MPI_Finalize();
	return 0;
}
