/*
 * exchange_mpi.c - the MPI library's own blocking all-reduce in a plain MPI program: bench/exchange compiles it with
 * mpicc and compares it with Lockstep. Prints the median seconds; each repeat takes the time of its slowest process.
 *
 *     exchange_mpi BYTES REPEATS
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static double time_sum(float *values, int count)
{
	double taken, slowest;
	MPI_Barrier(MPI_COMM_WORLD);
	double start = MPI_Wtime();
	MPI_Allreduce(MPI_IN_PLACE, values, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
	taken = MPI_Wtime() - start;
	MPI_Allreduce(&taken, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
	return slowest;
}

int main(int argc, char **argv)
{
	enum { MOST = 1000, WARM_UPS = 2 };
	double taken[MOST];
	int rank, count = argc == 3 ? atoi(argv[1]) / 4 : 0, repeats = argc == 3 ? atoi(argv[2]) : 0;
	float *values = count > 0 ? calloc((size_t)count, sizeof(float)) : NULL;

	if (!values || repeats < 1 || repeats > MOST)
		return 2;
	for (int i = 0; i < count; i++)
		values[i] = 1e-30f;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	for (int i = 0; i < WARM_UPS; i++)
		time_sum(values, count);
	for (int i = 0; i < repeats; i++)
		taken[i] = time_sum(values, count);
	qsort(taken, (size_t)repeats, sizeof(double), by_size);
	if (rank == 0)
		printf("%.9f\n", taken[repeats / 2]);
	MPI_Finalize();
	free(values);
	return 0;
}
